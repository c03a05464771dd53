"""Where a local model is on this machine: a folder, a model that was fetched, or the cache of the Hugging Face hub.

Nothing is downloaded, and nothing is written. `merilo judge check local:NAME` stores what it downloads in
`judges_home()/NAME`: at least `judge.lock`, and the files themselves unless they are in the cache of the hub.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import file_digest
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from merilo.data.config_files import MAX_BYTES, read_document, user_directory
from merilo.errors import UsageError
from merilo.judges.local.card import CARD_NAME, NAME_PATTERN, UNDECIDED, builtin_card_for, builtin_cards, read_card

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.judges.local.card import Card

LOCK_NAME: Final = "judge.lock"
_Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class Lock(BaseModel):
    """What was fetched, and when."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    """ORG/NAME on the hub."""
    revision: str = Field(pattern="^[0-9a-f]{40}$")
    licence: str
    date: str
    """The day of the download, as YYYY-MM-DD."""
    files: dict[str, _Digest]
    """The SHA-256 of each file by its name in the repository, with `/` between folders."""


def read_lock(folder: Path) -> Lock | None:
    """Return the lock in a folder; None if there is none. Raises UsageError for an invalid one."""
    path = folder / LOCK_NAME
    try:
        if not path.is_file():
            return None
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"{path} must be at most {MAX_BYTES:,} bytes long. Fetch the model again.")
        return Lock.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"Cannot read {path} ({error.strerror}).") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise UsageError(f"{path} is invalid ({first['msg']}). Fetch the model again.") from None


# -- places -------------------------------------------------------------------------------------------


FORMS: Final = "local:FOLDER, local:ORG/NAME[@REVISION] or local:NAME"
_MODEL: Final = re.compile(r"(?P<org>[\w-][\w.-]*)/(?P<name>[\w-][\w.-]*)(?:@(?P<revision>[\w-][\w.-]*))?")
_NAME: Final = re.compile(NAME_PATTERN)
_FOLDER_NAME: Final = re.compile(r"[\w-][\w.-]*")


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model on this machine and its card."""

    name: str
    """What the user called it, or the folder."""
    card: Card
    folder: Path
    """The folder that contains all files."""
    home: Path
    """The folder for what merilo stores about the model: its lock and its agreement with human labels."""
    lock: Lock | None
    """The digests that the download recorded; None for other models."""

    @property
    def model(self) -> Path:
        """The ONNX file."""
        return _file(self.folder, self.card.files.model) or self.folder / self.card.files.model

    @property
    def tokenizer(self) -> Path:
        """The file of the tokenizer."""
        return _file(self.folder, self.card.files.tokenizer) or self.folder / self.card.files.tokenizer


def judges_home() -> Path:
    """Return the folder for fetched models: `$MERILO_JUDGES`, or `merilo/judges` in the user's data directory."""
    if named := os.environ.get("MERILO_JUDGES"):
        return Path(named)
    return user_directory("data") / "judges"


def fetched_folder(name: str) -> Path:
    """Return the folder of a fetched model, which may not exist. `name`: a card's name or ORG/NAME."""
    return judges_home() / name.replace("/", "--")


def hub_cache() -> Path:
    """Return the cache of the Hugging Face hub: `$HF_HUB_CACHE`, `$HF_HOME/hub` or `~/.cache/huggingface/hub`."""
    if cache := os.environ.get("HF_HUB_CACHE"):
        return Path(cache).expanduser()
    if home := os.environ.get("HF_HOME"):
        return Path(home).expanduser() / "hub"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").expanduser() / "huggingface" / "hub"


def hub_snapshot(model: str, revision: str = "main") -> Path | None:
    """Return the folder of a revision (a branch, a tag or a commit) of ORG/NAME in the hub's cache; None if absent."""
    root = hub_cache() / f"models--{model.replace('/', '--')}"
    try:
        commit = (root / "refs" / revision).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        commit = revision
    folder = root / "snapshots" / commit
    return folder if _FOLDER_NAME.fullmatch(commit) and folder.is_dir() else None


def card_for(spec: str) -> Card | None:
    """Return the card of a spec without its model: the user's or a shipped one. None if there is none.

    `spec` is a card's name or ORG/NAME[@REVISION]. Raises UsageError for an invalid card.
    """
    named = _MODEL.fullmatch(spec)
    name = f"{named['org']}/{named['name']}" if named else spec
    if (named or _NAME.fullmatch(name)) and (own := fetched_folder(name) / CARD_NAME).is_file():
        return read_card(own)
    return builtin_card_for(name) if named else builtin_cards().get(name)


def find_model(spec: str) -> FoundModel:
    """Return the model that the text after `local:` names. Raises UsageError if a part of it is missing or wrong.

    A name without a separator is a fetched model or a shipped card, otherwise a folder. A text with a separator is a
    folder if there is one, otherwise ORG/NAME.
    """
    spec = spec.strip()
    if not spec:
        raise UsageError(f"A local judge needs a model: {FORMS}.")
    card = card_for(spec)
    if card is not None and "/" not in spec:
        return _installed(spec, card.model, "", card)
    folder = Path(spec).expanduser()
    if folder.is_dir():
        path = folder / CARD_NAME
        if not path.is_file():
            raise UsageError(f"{folder} has no {CARD_NAME}. Write a draft: merilo judge check local:{folder}.")
        own = read_card(path)
        advice = f"Copy the file there, or correct files in {CARD_NAME}."
        advice += f" {export_advice(own.model)}" if own.model else ""
        return _checked(FoundModel(str(folder), own, folder, home=folder, lock=read_lock(folder)), advice)
    if folder.is_file():
        raise UsageError(f"{folder} is a file. Name its folder: local:{folder.parent}.")
    named = _MODEL.fullmatch(spec)
    if named is not None:
        model = f"{named['org']}/{named['name']}"
        if card is None:
            message = f"No card for {model}. Download the model and write a draft: merilo judge check local:{model}."
            raise UsageError(message)
        return _installed(model, model, named["revision"] or "", card)
    if _NAME.fullmatch(spec):
        raise UsageError(f"No local model {spec!r}. Use {FORMS}; names: {', '.join(builtin_cards())}.")
    raise UsageError(f"No such folder: {folder}.")


def _installed(name: str, model: str, revision: str, card: Card) -> FoundModel:
    """Return the model that a card's name or ORG/NAME means: fetched, or in the cache of the hub."""
    home = fetched_folder(name)
    lock = read_lock(home)
    if not revision and _file(home, card.files.model) is not None:
        return _checked(FoundModel(name, card, home, home=home, lock=lock), export_advice(model))
    if not model:
        raise UsageError(f"{home} has no {card.files.model}. Copy the files of the model there.")
    pinned = card.revision if model == card.model else ""
    wanted = revision or (lock.revision if lock is not None else pinned)
    folder = hub_snapshot(model, wanted or "main")
    if folder is None:
        what = f"Revision {wanted} of {model}" if wanted else f"The model {model}"
        option = f"@{wanted}" if wanted and "/" in name else ""
        raise UsageError(
            f"{what} is not in the cache of the hub. Download it: merilo judge check local:{name}{option}."
        )
    kept = lock if lock is not None and revision in {"", lock.revision} else None
    found = FoundModel(name, card, folder, home=home, lock=kept)
    return _checked(found, export_advice(model))


def _checked(found: FoundModel, advice: str) -> FoundModel:
    """Return the model after a look for its files, and after comparing its labels with the card."""
    card, folder = found.card, found.folder
    for name in (card.files.model, card.files.tokenizer):
        if _file(folder, name) is None:
            raise UsageError(f"{folder} has no {name}. {advice}")
    config = read_config(folder)
    if config is not None and (problem := label_problem(card, config.labels)) is not None:
        raise UsageError(f"The card {card.name} does not fit {folder / 'config.json'}: {problem}.")
    return found


def label_problem(card: Card, labels: Mapping[int, str]) -> str | None:
    """Return how `id2label` of the model's configuration contradicts the card; None if it does not.

    Names that a training script generated (`LABEL_0`) say nothing about the order; only their number is compared.
    """
    if not labels:
        return None
    own, expected = [labels[index] for index in sorted(labels)], card.output.labels
    if len(own) != len(expected):
        return f"the model has {len(own)} labels ({', '.join(own)}), the card {len(expected)} ({', '.join(expected)})"
    if all(re.fullmatch(r"LABEL_\d+", each) for each in own):
        return None
    if [each.casefold() for each in own] != [each.casefold() for each in expected]:
        return f"the model's labels are {', '.join(own)}, those of the card {', '.join(expected)}"
    return None


def _file(folder: Path, name: str) -> Path | None:
    """Return a file of a model: where its card says, or as exports place it."""
    base = Path(name).name
    options = (folder / name, folder / base, folder / "onnx" / base)
    return next((path for path in options if path.is_file()), None)


def export_advice(model: str) -> str:
    """Return how to export a model to ONNX, as a sentence."""
    return (
        "To export the model: uvx --from optimum-onnx --with torch optimum-cli export onnx "
        f"--model {model or 'MODEL'} --task text-classification FOLDER."
    )


# -- files and their digests --------------------------------------------------------------------------


_LOCATION: Final = re.compile(rb"\x0a\x08location\x12([\x01-\x7f])")
"""How a protobuf writes the key `location` of a tensor's external data, and the length of the file name after it."""


def external_files(model: Path) -> tuple[Path, ...]:
    """Return the files with weights that an ONNX file names, sorted.

    Raises UsageError for a name that is not in the model's folder, or a file that is missing.
    """
    with model.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            raise UsageError(f"{model} is empty.")
        with mmap(file.fileno(), 0, access=ACCESS_READ) as content:
            names = {content[match.end() : match.end() + match[1][0]] for match in _LOCATION.finditer(content)}
    files = [model.parent / raw.decode("utf-8", "replace") for raw in sorted(names)]
    for path, raw in zip(files, sorted(names), strict=True):
        if re.search(rb"[\\:/\x00-\x1f]|^\.\.?$|^$", raw):
            name = raw.decode("utf-8", "replace")
            raise UsageError(f"{model} reads weights from {name!r}, which is not a file in its folder.")
        if not path.is_file():
            raise UsageError(f"{path} is missing: {model.name} stores its weights there.")
    return tuple(files)


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file as hex digits."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def digests(found: FoundModel) -> Mapping[str, str]:
    """Return the SHA-256 of each file that the model uses, by its place in the model's folder.

    Raises UsageError if a file is missing or differs from `judge.lock`. A file is read again only if it has changed.
    """
    result: dict[str, str] = {}
    for path in (found.model, *external_files(found.model), found.tokenizer):
        name = path.relative_to(found.folder).as_posix()
        status = path.stat()
        result[name] = _digest_of(path, status.st_size, status.st_mtime_ns)
        expected = found.lock.files.get(name) if found.lock is not None else None
        if expected not in {None, result[name]}:
            raise UsageError(
                f"{path} differs from the file that was fetched. Fetch it again: merilo judge check local:{found.name}."
            )
    return result


@lru_cache(maxsize=256)
def _digest_of(path: Path, size: int, modified_ns: int) -> str:
    del size, modified_ns
    return file_sha256(path)


# -- a card for a model without one --------------------------------------------------------------------
# A draft from the model's `config.json`; what only a person knows is left as "?".

CONFIG_NAME: Final = "config.json"
_MAX_LABELS: Final = 1_000
_MAX_NAME: Final = 100
"""Characters of a label, which messages repeat."""


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
    fields = read_document(path)
    architectures, positions = fields.get("architectures"), fields.get("max_position_embeddings")
    first = cast("list[object]", architectures)[0] if isinstance(architectures, list) and architectures else ""
    return ModelConfig(
        architecture=first if isinstance(first, str) else "",
        labels=_labels(fields.get("id2label"), path),
        max_positions=positions if isinstance(positions, int) and 0 < positions < 10**7 else None,
    )


def _labels(value: object, path: Path) -> Mapping[int, str]:
    given = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    names = [name for name in given.values() if isinstance(name, str) and name.isprintable() and len(name) <= _MAX_NAME]
    numbered = {*given} == {*map(str, range(len(given)))} and len(names) == len(given) <= _MAX_LABELS
    if not numbered or (value is not None and not given):
        raise UsageError(f"{path}: id2label must map the numbers from 0 to names.")
    return {int(key): cast("str", name) for key, name in given.items()}


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
    offset = _OFFSET if config.architecture.startswith(_OFFSET_FAMILIES) else 0
    most = f'"{UNDECIDED}"' if config.max_positions is None else config.max_positions - offset
    lines = [
        '# A draft: replace each "?". The keys are explained in merilo\'s documentation, "Use a local model".',
        "card = 1",
        f"name = {_text(re.sub('[^a-z0-9._-]+', '-', folder.resolve().name.casefold()).strip('-._')[:40] or 'model')}",
        f'licence = "{UNDECIDED}"',
        f'languages = ["{UNDECIDED}"]  # such as "en"; "multi" for many',
        "",
        "[files]",
        f"model = {_text(_model_file(folder))}",
        'tokenizer = "tokenizer.json"',
        "",
        "[input]",
        'form = "pair"',
        f"first = {_text('{query}' if ranks else '{premise}')}",
        f"second = {_text('{premise}' if ranks else '{hypothesis}')}",
        f"max_tokens = {most}",
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


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=True)  # a JSON text without characters beyond ASCII is a TOML text too
