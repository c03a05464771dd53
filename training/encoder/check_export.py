"""The exported model, run by merilo, held against the same model in torch.

    python training/encoder/check_export.py --base model.safetensors --vocabulary vocab.txt --pairs pairs.jsonl.gz \
        [--reader reader.safetensors] [--texts 2000] [--freeze DIR]

Compared are, text by text: the vectors of the encoder with weights in 8 bits and in 32 (what storing them costs), and
the shipped code with torch on the same 8-bit weights (what is left is rounding). Without `--reader` one with random
weights is made. `--freeze` writes a tiny model with random weights and what torch makes of it, for the tests.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
from safetensors.torch import load_file

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from encoder.bert import HEADS, Encoder, Reader, Side, Size
from encoder.export import packed, write
from encoder.graph import GROUP, floats_again, in_8_bits
from encoder.texts import LOWER, TOKENS
from merilo.judges.encoder import model as shipped
from merilo.judges.encoder.model import Weights
from merilo.judges.encoder.wordpiece import Window

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

SEED: Final = 20261121
TINY: Final = Size(vocabulary=0, positions=40, hidden=32, layers=3, attention_heads=4, inner=64)
TINY_LOWER: Final = 2
TINY_LONGEST: Final = 24
_IN_8_BITS: Final = ("query", "key", "value", "out", "up", "down", "mix", "heads", "features", "words")


def arrays(module: torch.nn.Module) -> dict[str, NDArray[np.float32]]:
    """Return the weights of a module by name."""
    return {name: value.detach().numpy() for name, value in module.state_dict().items()}


def as_stored(module: torch.nn.Module) -> None:
    """Round the weights of a module as the file does."""
    for name, value in module.state_dict().items():
        if value.ndim == 2 and name.split(".")[-2] in _IN_8_BITS:
            value.copy_(torch.from_numpy(floats_again(*in_8_bits(value.numpy(), GROUP))))


def read_alone(encoder: Encoder, ids: Sequence[int], lower: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return token vectors after the lower layers and the vector of the text, by torch."""
    with torch.inference_mode():
        rows = torch.tensor([list(ids)])
        mask = torch.ones_like(rows, dtype=torch.bool)
        hidden = encoder(rows, mask, layers=lower)
        last = encoder(rows, mask)[0].mean(0)
        return hidden[0].numpy(), (last / last.norm()).numpy()


def read_pair(
    reader: Reader, short: shipped.Encoded, long: shipped.Encoded | shipped.Part, rarity: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the logits by torch from the same token vectors."""
    with torch.inference_mode():
        return reader(_side(short, long, rarity), _side(long, short, rarity))[0].numpy()


def _side(own: shipped.Encoded | shipped.Part, other: shipped.Encoded | shipped.Part, rarity: Any) -> Side:
    held = (own.lower, np.isin(own.ids, other.ids).astype(np.int64), rarity[own.ids], np.ones(len(own.ids), dtype=bool))
    return Side(*(torch.from_numpy(np.array(each))[None] for each in held))


def random_reader(size: Size) -> Reader:
    """Return a reader with random weights, large enough to matter."""
    reader = Reader(2, size).eval()
    at_random(reader, 0.08)
    return reader


def at_random(module: torch.nn.Module, spread: float) -> None:
    """Give a module random weights, none of which is without effect."""
    for name, value in module.named_parameters():
        scales = value.ndim == 1 and name.endswith("norm.weight")
        torch.nn.init.normal_(value, mean=1.0 if scales else 0.0, std=spread if value.ndim > 1 else 0.3)


def compare(folder: Path, base: Path, reader: Reader, vocabulary: Sequence[str], texts: Sequence[str]) -> None:
    """Print the differences between all of them."""
    exact, rounded = Encoder.read(base).eval(), Encoder.read(base).eval()
    as_stored(rounded)
    as_stored(reader)
    packing: dict[str, Any] = {"lower": LOWER, "heads": Size().attention_heads, "longest": TOKENS, "told": {}}
    path = folder / "weights.safetensors"
    write(path, *packed(arrays(exact), arrays(reader), vocabulary, tasks=HEADS, **packing))
    weights = Weights.read(path)
    rarity = np.random.default_rng(SEED).random(len(vocabulary), dtype=np.float32)
    ours, pairs = shipped.Encoder(weights), shipped.Reader(weights)
    cosines, tokens, pooled, logits = [], [], [], []
    before: shipped.Encoded | None = None
    for text in texts:
        pieces = ours.wordpiece.ids(text)[: TOKENS - shipped.MARKS]
        found = ours.encode_window(Window.of(pieces))
        lower, vector = read_alone(rounded, found.ids.tolist(), LOWER)
        tokens.append(float(np.abs(found.lower - lower).max()))
        pooled.append(float(np.abs(found.pooled - vector).max()))
        cosines.append(float(found.pooled @ read_alone(exact, found.ids.tolist(), LOWER)[1]))
        if before is not None:
            for long in (found, shipped.Part(found, slice(1, 1 + len(found.ids) // 2))):
                wanted = read_pair(reader, before, long, rarity)
                features = np.stack([pairs.nearest(before, long), rarity[before.ids]], 1)
                logits.append(float(np.abs(pairs.logits(before, long, features=features) - wanted).max()))
        before = found
    print(f"{path.stat().st_size / 1e6:.1f} MB, {len(texts):,} texts")
    print(f"8 bits against 32: cosine mean {np.mean(cosines):.6f}, least {min(cosines):.6f}")
    print(f"merilo against torch, same weights: token vectors {max(tokens):.1e}, vectors {max(pooled):.1e}", end=", ")
    print(f"logits {max(logits):.1e} at most apart")


def freeze(folder: Path) -> None:
    """Write a tiny model, and torch's results for some texts with it."""
    torch.manual_seed(SEED)
    held = json.loads((folder / "wordpiece.json").read_text(encoding="ascii"))
    alphabet = [token for token in held["vocabulary"] if token.removeprefix("##").isascii()]
    size = Size(len(alphabet), TINY.positions, TINY.hidden, TINY.layers, TINY.attention_heads, TINY.inner)
    encoder = Encoder(size).eval()
    at_random(encoder, 0.2)
    reader = random_reader(size)
    packing: dict[str, Any] = {"lower": TINY_LOWER, "heads": size.attention_heads, "longest": TINY_LONGEST}
    model = {"name": "tiny"}
    path = folder / "tiny.safetensors"
    write(path, *packed(arrays(encoder), arrays(reader), alphabet, tasks=HEADS, told=model, **packing))
    as_stored(encoder)
    as_stored(reader)
    ours = shipped.Encoder(Weights.read(path))
    texts = ["Who built the bridge?", "It was built in 1931.", "", "7", "The bridge (1931) is 1,280 m long."]
    found = [ours.encode(text) for text in texts]
    wanted = []
    for text, each in zip(texts, found, strict=True):
        lower, vector = read_alone(encoder, each.ids.tolist(), TINY_LOWER)
        wanted.append({"text": text, "ids": each.ids.tolist(), "lower": lower.tolist(), "pooled": vector.tolist()})
    read = []
    rarity = np.random.default_rng(SEED).random(len(alphabet), dtype=np.float32)
    for short, long in ((0, 1), (0, 4), (3, 4), (2, 1), (4, 0)):
        normed = [
            vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
            for vectors in (found[short].lower, found[long].lower)
        ]
        features = np.stack([(normed[0] @ normed[1].T).max(1), rarity[found[short].ids]], 1)
        logits = read_pair(reader, found[short], found[long], rarity)
        read.append({"short": short, "long": long, "features": features.tolist(), "logits": logits.tolist()})
    content = json.dumps(_rounded({"encoded": wanted, "read": read}))
    (folder / "tiny.json").write_text(content + "\n", encoding="ascii")


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.8g}")
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return {name: _rounded(each) for name, each in value.items()} if isinstance(value, dict) else value


def sampled(path: Path, number: int) -> list[str]:
    """Return this number of distinct texts of a file of pairs."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        records: list[Mapping[str, str]] = [json.loads(line) for line in lines]
    return Random(SEED).sample(sorted({record[side] for record in records for side in "ab"}), number)


def main() -> None:
    """Compare, and freeze if requested."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("base", "vocabulary", "pairs"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--reader", type=Path)
    parser.add_argument("--texts", type=int, default=2_000)
    parser.add_argument("--freeze", type=Path)
    chosen = parser.parse_args()
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    reader = random_reader(Size())
    if chosen.reader:
        reader.load_state_dict(load_file(chosen.reader))
    if chosen.freeze:
        freeze(chosen.freeze)
    vocabulary = chosen.vocabulary.read_text(encoding="utf-8").rstrip("\n").split("\n")
    with tempfile.TemporaryDirectory() as folder:
        compare(Path(folder), chosen.base, reader, vocabulary, sampled(chosen.pairs, chosen.texts))


if __name__ == "__main__":
    main()
