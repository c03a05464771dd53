r"""Every distinct text of the pairs, read once by the frozen lower layers and kept as half-precision token vectors.

    python training/encoder/texts.py --pairs pairs.jsonl.gz --base model.safetensors \
        --tokenizer tokenizer.json --out DIR

Some 5 GB for 100,000 texts. Training reads them instead of running the frozen layers again in each pass.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from tokenizers import Tokenizer

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from encoder.bert import Encoder

if TYPE_CHECKING:
    from collections.abc import Sequence

LOWER: Final = 4
"""Layers that read each text alone; those above read two together."""
TOKENS: Final = 192
_VOCABULARY: Final = 30_522
_BATCH_TOKENS: Final = 6_144
_KEPT_EVERY: Final = 5_000


class Texts:
    """The texts with their token ids and vectors, as files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.starts: np.ndarray = np.load(folder / "starts.npy")
        """The start of each text's tokens; one more than there are texts."""
        self.ids: np.ndarray = np.load(folder / "ids.npy")
        """The token ids of all texts, one after another."""
        # Not a memory map: batches read all over the file, and where it does not stay in memory the disk is waited for.
        self.vectors = np.fromfile(folder / "vectors.f16", dtype=np.float16).reshape(len(self.ids), -1)
        """The vector of each token, float16."""
        with (folder / "texts.json").open(encoding="utf-8") as file:
            self.place: dict[str, int] = {text: at for at, text in enumerate(json.load(file))}

        self.rarity = rarity(self.ids, self.starts)
        """For each token of the vocabulary."""


def write(texts: Sequence[str], encoder: Encoder, tokenizer: Tokenizer, folder: Path) -> None:
    """Encode all texts, the longest first, and write them in their own order; goes on where it was stopped."""
    folder.mkdir(parents=True, exist_ok=True)
    ids: list[list[int]] = []
    for start in range(0, len(texts), 5_000):
        ids += [found.ids for found in tokenizer.encode_batch(list(texts[start : start + 5_000]))]
    starts = np.concatenate([[0], np.cumsum([len(each) for each in ids])])
    np.save(folder / "starts.npy", starts)
    np.save(folder / "ids.npy", np.array([token for each in ids for token in each], dtype=np.int32))
    done, file = folder / "done", folder / "vectors.f16"
    left = int(done.read_text()) if done.exists() else len(texts)
    vectors = np.memmap(file, dtype=np.float16, mode="r+" if done.exists() else "w+", shape=(int(starts[-1]), 384))
    order = sorted(range(len(texts)), key=lambda at: (len(ids[at]), at))[:left]
    while order:
        if left - len(order) >= _KEPT_EVERY:
            vectors.flush()
            left = len(order)
            done.write_text(str(left))
        width = len(ids[order[-1]])
        batch = [order.pop() for _ in range(min(len(order), max(1, _BATCH_TOKENS // width)))]
        rows, mask = torch.zeros(len(batch), width, dtype=torch.long), torch.zeros(len(batch), width, dtype=torch.bool)
        for row, at in enumerate(batch):
            rows[row, : len(ids[at])], mask[row, : len(ids[at])] = torch.tensor(ids[at]), True
        with torch.inference_mode():
            found = encoder(rows, mask, layers=LOWER).half().numpy()
        for row, at in enumerate(batch):
            vectors[starts[at] : starts[at + 1]] = found[row, : len(ids[at])]
    vectors.flush()
    (folder / "texts.json").write_text(json.dumps(list(texts), ensure_ascii=False), encoding="utf-8")


def rarity(ids: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return for each token of the vocabulary how rare it is, from 0 (in all texts) to about 1 (in one), float32."""
    texts = len(starts) - 1
    of = np.repeat(np.arange(texts), np.diff(starts))
    counts = np.bincount(np.unique(of * _VOCABULARY + ids) % _VOCABULARY, minlength=_VOCABULARY)
    return (np.log((texts + 1) / (counts + 1)) / np.log(texts + 1)).astype(np.float32)


def own_tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer, truncating at TOKENS."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.enable_truncation(TOKENS)
    tokenizer.no_padding()
    return tokenizer


def main() -> None:
    """Encode the texts of a file of pairs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("pairs", "base", "tokenizer", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    chosen = parser.parse_args()
    with gzip.open(chosen.pairs, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    texts = list(dict.fromkeys(text for record in records for text in (record["a"], record["b"])))
    write(texts, Encoder.read(chosen.base).eval(), own_tokenizer(chosen.tokenizer), chosen.out)
    print(f"{len(texts):,} texts")


if __name__ == "__main__":
    main()
