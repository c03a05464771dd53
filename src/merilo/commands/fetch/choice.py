"""Chooses the files of a repository that a local judge needs, from a fixed list of harmless formats."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from merilo.commands.fetch.result import Download, HubModel
from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from merilo.judges.local.card import Card

ALLOWED: Final = (
    "*.onnx",
    "*.onnx_data",
    "*.onnx.data",
    "tokenizer.json",
    "config.json",
    "*.safetensors",
    "README.md",
    "LICENSE*",
)
"""Patterns of file names that are downloaded."""
FORBIDDEN: Final = (".bin", ".ckpt", ".pt", ".pth", ".pkl", ".pickle", ".py", ".sh", ".so", ".dll", ".exe")
"""Suffixes of files that may contain code. They are never downloaded, whatever else their name matches."""
_MODEL: Final = "model.onnx"
_TOKENIZER: Final = "tokenizer.json"
_FOLDER: Final = "onnx"
"""The folder in which exports are usually stored."""
_DATA: Final = (".onnx_data", ".onnx.data")


def choose(name: str, source: HubModel, card: Card | None) -> Download:
    """Return the files to download for a judge. Raises UsageError if the repository has no usable weights.

    If there is an ONNX file, the card's or the usual one is taken, otherwise the safetensors files.
    """
    allowed = {each.name: each for each in source.files if is_allowed(each.name)}
    weights = _onnx_files(allowed, card)
    needs_export = not weights
    if needs_export:
        weights = [each for each in allowed if each.endswith(".safetensors") and "/" not in each]
    if not weights:
        raise UsageError(
            f"{source.model} has no .onnx and no .safetensors file. merilo downloads no other weights, "
            "since they may contain code."
        )
    tokenizer = _first(allowed, _TOKENIZER if card is None else card.files.tokenizer)
    texts = [each for each in allowed if each in {"config.json", "README.md"} or fnmatchcase(each, "LICENSE*")]
    chosen: list[str] = sorted({*weights, *texts, *([] if tokenizer is None else [tokenizer])})
    notes: list[str] = []
    if tokenizer is None and not needs_export:
        notes.append("The repository has no tokenizer.json, which a local judge needs. An export creates one.")
    return Download(name, source, tuple(allowed[each] for each in chosen), needs_export, card, tuple(notes))


def is_allowed(name: str) -> bool:
    """Return True if a file may be downloaded: at the top or in `onnx/`, and of a format that contains no code."""
    path = PurePosixPath(name)
    return (
        path.parts in {(path.name,), (_FOLDER, path.name)}
        and name == path.as_posix()
        and "\\" not in name
        and name.isprintable()
        and not path.name.startswith(".")
        and path.suffix.casefold() not in FORBIDDEN
        and any(fnmatchcase(path.name, pattern) for pattern in ALLOWED)
    )


def _onnx_files(allowed: Iterable[str], card: Card | None) -> list[str]:
    """Return the ONNX file of the card, or the usual one, with its external weights; all ONNX files if neither is
    there.
    """
    names = list(allowed)
    model = _first(names, _MODEL if card is None else card.files.model)
    models = [each for each in names if each.endswith(".onnx")] if model is None and card is None else [model]
    found = [each for each in models if each is not None]
    return [*found, *(data for each in found for data in _external(names, each))]


def _external(names: Sequence[str], model: str) -> list[str]:
    """Return the files with external weights of an ONNX file: those with its name, otherwise all in its folder."""
    folder = PurePosixPath(model).parent
    data = [each for each in names if each.endswith(_DATA) and PurePosixPath(each).parent == folder]
    stem = model.removesuffix(".onnx")
    own = [each for each in data if each.removesuffix(_DATA[0]).removesuffix(_DATA[1]) == stem]
    others = {each.removesuffix(".onnx") for each in names if each.endswith(".onnx")} - {stem}
    return own or [each for each in data if each.removesuffix(_DATA[0]).removesuffix(_DATA[1]) not in others]


def _first(names: Iterable[str], wanted: str) -> str | None:
    """Return a file: where the card says, at the top, or in `onnx/`; None if it is in none of these places."""
    base = PurePosixPath(wanted).name
    there = set(names)
    return next((each for each in (wanted, base, f"{_FOLDER}/{base}") if each in there), None)
