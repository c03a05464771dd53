"""A tiny model with random weights, and what torch makes of some texts with it."""

import json
from pathlib import Path
from typing import TypedDict

from merilo.judges.encoder.model import Encoder, Reader, Weights

PATH = Path(__file__).parent / "judges" / "encoder" / "tiny.safetensors"


class Alone(TypedDict):
    """A text as torch's encoder reads it."""

    text: str
    ids: list[int]
    lower: list[list[float]]
    pooled: list[float]


class Pair(TypedDict):
    """Two of the texts by their places, and the logits of torch's reader."""

    short: int
    long: int
    features: list[list[float]]
    logits: list[float]


class Expected(TypedDict):
    """What training/encoder/check_export.py wrote."""

    encoded: list[Alone]
    read: list[Pair]


EXPECTED: Expected = json.loads(PATH.with_suffix(".json").read_text(encoding="ascii"))
WEIGHTS = Weights.read(PATH)
ENCODER = Encoder(WEIGHTS)
READER = Reader(WEIGHTS)
