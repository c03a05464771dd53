"""`config.json` of a model, and the draft of a card from it; what only a person knows is left as "?"."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from merilo.data.config_files import read_document
from merilo.errors import UsageError
from merilo.judges.local.card import UNDECIDED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

CONFIG_NAME: Final = "config.json"
_MAX_LABELS: Final = 1_000
_MAX_NAME: Final = 100
"""Characters of a label, which messages repeat."""
_MAX_BYTES: Final = 2**20


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The fields that merilo reads; missing ones are empty."""

    architecture: str
    labels: Mapping[int, str]
    """`id2label`: the name of each output."""
    max_positions: int | None


def read_config(folder: Path) -> ModelConfig | None:
    """Return the configuration in a folder; None if there is none. Raises UsageError for an invalid file."""
    path = folder / CONFIG_NAME
    if not path.is_file():
        return None
    if path.stat().st_size > _MAX_BYTES:
        raise UsageError(f"{path} must be at most {_MAX_BYTES:,} bytes long.")
    fields = read_document(path)
    architectures, positions = fields.get("architectures"), fields.get("max_position_embeddings")
    first = cast("list[object]", architectures)[0] if isinstance(architectures, list) and architectures else ""
    return ModelConfig(
        architecture=first if isinstance(first, str) else "",
        labels=_labels(fields.get("id2label"), path),
        max_positions=positions if isinstance(positions, int) and 0 < positions < 10**7 else None,
    )


def _labels(value: object, path: Path) -> Mapping[int, str]:
    if value is None:
        return {}
    labels: dict[int, str] = {}
    given = cast("dict[str, object]", value) if isinstance(value, dict) else {"": value}
    for key, name in given.items():
        if not (key.isascii() and key.isdigit() and len(key) < 5 and _is_name(name)):
            raise UsageError(f"{path}: id2label must map numbers to names.")
        labels[int(key)] = cast("str", name)
    if sorted(labels) != [*range(len(labels))] or len(labels) > _MAX_LABELS:
        raise UsageError(f"{path}: id2label must number the labels from 0.")
    return labels


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value.isprintable() and len(value) <= _MAX_NAME


# -- the draft ----------------------------------------------------------------------------------------


_OFFSET: Final = 2
"""Positions that RoBERTa and its relatives count in `max_position_embeddings` but cannot use."""
_OFFSET_FAMILIES: Final = ("Roberta", "XLMRoberta", "Camembert")
_GENERATED: Final = re.compile(r"LABEL_\d+")


def draft_card(folder: Path) -> str:
    """Return the text of a card for the model in a folder. Raises UsageError if it has no `config.json`."""
    config = read_config(folder) if folder.is_dir() else None
    if config is None:
        raise UsageError(f"{folder} has no {CONFIG_NAME}. Name the folder of a model.")
    labels = [config.labels[place] for place in sorted(config.labels)]
    ranks = len(labels) == 1
    model = _model_file(folder)
    lines = [
        '# A draft: replace each "?". The keys are explained in merilo\'s documentation, "Use a local model".',
        "card = 1",
        f"name = {_text(_name(folder))}",
        f'licence = "{UNDECIDED}"',
        f'languages = ["{UNDECIDED}"]  # such as "en"; "multi" for many',
        "",
        "[files]",
        f"model = {_text(model)}",
        'tokenizer = "tokenizer.json"',
        "",
        f"# Architecture: {_plain(config.architecture) or 'unknown'}.",
        "[input]",
        'form = "pair"',
        f"first = {_text('{query}' if ranks else '{premise}')}",
        f"second = {_text('{premise}' if ranks else '{hypothesis}')}",
        f"max_tokens = {_max_tokens(config)}",
        "",
        "[output]",
        f'head = "{"sigmoid" if ranks else "softmax"}"',
        *_label_lines(labels),
        "",
        *(_RANKS if ranks else _CHECKS),
    ]
    return "\n".join(lines) + "\n"


_CHECKS: Final = ("[answers.support]", 'use = { premise = "context", hypothesis = "statement" }', "cut = 0.5")
_RANKS: Final = (
    "[answers.relevance]",
    'use = { query = "user_input", premise = "context" }',
    f'cuts = ["{UNDECIDED}", "{UNDECIDED}"]  # lowest probabilities of grade 1 and grade 2, such as 0.1 and 0.6',
)


def _label_lines(labels: Sequence[str]) -> list[str]:
    if len(labels) == 1:
        named = UNDECIDED if not labels[0] else "relevant" if _GENERATED.fullmatch(labels[0]) else labels[0]
        return [f"labels = [{_text(named)}]", f"yes = {_text(named)}"]
    shown = [UNDECIDED if _GENERATED.fullmatch(each) else each for each in labels] or [UNDECIDED, UNDECIDED]
    yes = next((each for each in labels if each.casefold() == "entailment"), UNDECIDED)
    return [f"labels = [{', '.join(map(_text, shown))}]", f"yes = {_text(yes)}"]


def _model_file(folder: Path) -> str:
    """Return the ONNX file: model.onnx, or the only one."""
    found = sorted(
        path.relative_to(folder).as_posix() for place in (folder, folder / "onnx") for path in place.glob("*.onnx")
    )
    usual = [name for name in found if name.rpartition("/")[2] == "model.onnx"]
    return usual[0] if usual else found[0] if len(found) == 1 else "model.onnx"


def _max_tokens(config: ModelConfig) -> str:
    if config.max_positions is None:
        return f'"{UNDECIDED}"'
    offset = _OFFSET if config.architecture.startswith(_OFFSET_FAMILIES) else 0
    return str(config.max_positions - offset)


def _name(folder: Path) -> str:
    name = re.sub(r"[^a-z0-9._-]+", "-", folder.resolve().name.casefold()).strip("-._")[:40]
    return name or "model"


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=True)  # a JSON text without characters beyond ASCII is a TOML text too


def _plain(text: str) -> str:
    return re.sub(r"[^\w.-]", "", text)[:80]
