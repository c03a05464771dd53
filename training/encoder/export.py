"""The trained model as the one file that merilo reads: the encoder, the reader and the vocabulary.

    python training/encoder/export.py --base model.safetensors --vocabulary vocab.txt --reader reader.safetensors \
        --texts DIR --model model.json --out encoder.v1.safetensors

`model.json` says what the file shall tell of itself beside sizes and heads: name, data, calibration. DIR is that of
`texts.py`: how rare each token is in it goes into the file, as `rarity`. Weights are stored in 8 bits with a scale for
each 32 inputs of an output; biases, norms and places stay in 32.
"""

from __future__ import annotations

import argparse
import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from safetensors.numpy import load_file

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from encoder.graph import (
    GROUP,
    begin_graph,
    in_8_bits,
    lower_graph,
    nearest_graph,
    open_graph,
    reader_graph,
    upper_graph,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    Arrays: TypeAlias = Mapping[str, NDArray[np.float32]]

FORMAT: Final = 1
_TYPES: Final = {"float32": "F32", "int8": "I8", "uint8": "U8"}
_ALIGNED: Final = 64


def packed(  # what the file holds
    encoder: Arrays,
    reader: Arrays,
    vocabulary: Sequence[str],
    *,
    lower: int,
    heads: int,
    tasks: Mapping[str, int],
    longest: int,
    told: Mapping[str, Any],
    rarity: NDArray[np.float32] | None = None,
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return the tensors of the file and the metadata of its model.

    `encoder`, `reader`: weights by name, as in `bert.py`; `heads`: of attention; `tasks`: the logits of each.
    """
    layers, pair_layers = _layers(encoder), _layers(reader)
    words, scales = in_8_bits(encoder["words.weight"], GROUP)
    tensors: dict[str, NDArray[Any]] = {
        "words.scales": scales,
        "places": encoder["places.weight"][:longest] + encoder["segments.weight"][0],
        "words": words,
        "vocabulary": _bytes("\n".join(vocabulary).encode()),
        "lower.onnx": _bytes(lower_graph(encoder, lower, heads)),
        "upper.onnx": _bytes(upper_graph(encoder, lower, layers, heads)),
        "begin.onnx": _bytes(begin_graph(reader, heads)),
        "open.onnx": _bytes(open_graph(reader, pair_layers, heads)),
        "nearest.onnx": _bytes(nearest_graph(len(encoder["norm.weight"]), heads)),
        "reader.onnx": _bytes(reader_graph(reader, pair_layers, heads)),
    }
    if rarity is not None:
        tensors["rarity"] = rarity.astype(np.float32)
    features = reader["features.weight"].shape[1] if "features.weight" in reader else 0
    model = {**told, "format": FORMAT, "longest": longest, "features": features, "heads": dict(tasks)}
    return tensors, model


def write(path: Path, tensors: Mapping[str, NDArray[Any]], model: Mapping[str, Any]) -> None:
    """Write a safetensors file; the same tensors give the same bytes."""
    names = sorted(tensors, key=lambda name: (-tensors[name].dtype.itemsize, name))
    header: dict[str, Any] = {}
    data = bytearray()
    for name in names:
        low = len(data)
        data += np.ascontiguousarray(tensors[name]).tobytes()
        told = {"dtype": _TYPES[tensors[name].dtype.name], "shape": list(tensors[name].shape)}
        header[name] = {**told, "data_offsets": [low, len(data)]}
    texts = {"model": json.dumps(model), "sha256": sha256(data).hexdigest()}
    content = json.dumps({"__metadata__": texts, **header}, separators=(",", ":")).encode()
    content += b" " * (-(8 + len(content)) % _ALIGNED)
    path.write_bytes(len(content).to_bytes(8, "little") + content + data)


def _bytes(content: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(content, dtype=np.uint8)


def _layers(state: Arrays) -> int:
    return 1 + max(int(name.split(".")[1]) for name in state if name.startswith("layers."))


def main() -> None:
    """Read the weights and write the file."""
    from encoder.bert import HEADS, Encoder, Size
    from encoder.texts import LOWER, TOKENS, Texts

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("base", "vocabulary", "reader", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("texts", "model"):
        parser.add_argument(f"--{name}", type=Path)
    chosen = parser.parse_args()
    encoder = {name: value.numpy() for name, value in Encoder.read(chosen.base).state_dict().items()}
    vocabulary = chosen.vocabulary.read_text(encoding="utf-8").rstrip("\n").split("\n")
    tensors, model = packed(
        encoder,
        load_file(chosen.reader),
        vocabulary,
        lower=LOWER,
        heads=Size().attention_heads,
        tasks=HEADS,
        longest=TOKENS,
        told=json.loads(chosen.model.read_text(encoding="utf-8")) if chosen.model else {},
        rarity=Texts(chosen.texts).rarity if chosen.texts else None,
    )
    write(chosen.out, tensors, model)
    print(f"{chosen.out.stat().st_size / 1e6:.1f} MB, SHA-256 {sha256(chosen.out.read_bytes()).hexdigest()}")


if __name__ == "__main__":
    main()
