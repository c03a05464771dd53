"""Download a local judge with the client of the Hugging Face hub: weights, tokenizer and texts, never files with code.

`judge.lock`, written last, holds the commit and the SHA-256 of each file; without it a judge is not installed.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.errors import UsageError
from merilo.extras import optional_module
from merilo.judges.local import find
from merilo.judges.local.card import builtin_cards
from merilo.runs.files import write_file, writing

if TYPE_CHECKING:
    from collections.abc import Callable

    from merilo.judges.local.card import Card

_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_TEXTS: Final = ("config.json", "README.md", "LICENSE", "LICENSE.md", "LICENSE.txt")


class Download(NamedTuple):
    """The files to take from one commit of ORG/NAME."""

    name: str
    """What the user called the judge: the name of a card, or ORG/NAME."""
    model: str
    revision: str
    licence: str
    files: tuple[Any, ...]  # Any: as the client describes them, with `rfilename`, `size` and `lfs`


def plan_download(text: str) -> Download:
    """Return the files to download for a card's name or ORG/NAME[@REVISION]. Raises UsageError."""
    name, _, revision = text.partition("@")
    card, lock = find.card_for(name), find.read_lock(find.fetched_folder(name))
    model = name if "/" in name else card.model if card is not None else ""
    if not model:
        cards = ", ".join(builtin_cards())
        raise UsageError(f"No local judge {name!r}. Name a model of the hub (ORG/NAME) or: {cards}.")
    revision = revision or next((each.revision for each in (lock, card) if each and each.model == model), "")
    info = _asked(model, "model_info", revision=revision or None, files_metadata=True)
    if not _COMMIT.fullmatch(str(info.sha)):  # it becomes a part of paths
        raise UsageError(f"Cannot get {model} from the hub: it names no commit.")
    named = [getattr(info.card_data, each, None) for each in ("license_name", "license")]
    licence = next((str(each) for each in named if each), card.licence if card is not None else "unknown")
    return Download(name, model, str(info.sha), licence, _chosen(model, info.siblings or (), card))


def _chosen(model: str, listed: Any, card: Card | None) -> tuple[Any, ...]:  # Any: as in `Download.files`
    """Return the ONNX file with its external weights, the tokenizer and the texts."""
    there = {each.rfilename: each for each in listed}
    found: list[str] = []
    for wanted in ("model.onnx", "tokenizer.json") if card is None else (card.files.model, card.files.tokenizer):
        base = Path(wanted).name
        place = next((each for each in (wanted, base, f"onnx/{base}") if each in there), None)
        if place is None:
            raise UsageError(f"{model} has no {wanted}. {find.export_advice(model)}")
        found.append(place)
    names = (*found, f"{found[0]}_data", f"{found[0]}.data", *_TEXTS)
    return tuple(there[each] for each in names if each in there)


def download(plan: Download, advance: Callable[[str], None] = lambda _: None) -> Path:
    """Download the files and write the lock; return their folder. `advance`: called with each name. Raises UsageError.

    An interrupted download is resumed. A judge that is installed already was damaged, so its files are renewed.
    """
    place, digests, folder = find.fetched_folder(plan.name) / find.LOCK_NAME, dict[str, str](), Path()
    renewed = (lock := find.read_lock(place.parent)) is not None and lock.revision == plan.revision
    for each in plan.files:
        name: str = each.rfilename
        advance(name)
        options = {"revision": plan.revision, "cache_dir": find.hub_cache(), "force_download": renewed}
        path = Path(_asked(plan.model, "hf_hub_download", filename=name, **options))
        digests[name], folder = find.file_sha256(path), path.parents[name.count("/")]
        if each.lfs and each.lfs["sha256"] != digests[name]:
            raise UsageError(f"{path} is not the file that the hub describes. Remove it and repeat the command.")
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    with writing(place, "set MERILO_JUDGES to another folder"):
        place.parent.mkdir(parents=True, exist_ok=True)
        new = find.Lock(model=plan.model, revision=plan.revision, licence=plan.licence, date=date, files=digests)
        write_file(place, new.model_dump_json(indent=1) + "\n")
    return folder


def _asked(model: str, method: str, **options: Any) -> Any:  # Any: the package is optional and its types vary
    """Return what a method of the hub's client returns. Raises UsageError."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # read when the package is imported
    hub = optional_module("huggingface_hub", wanted_by="A download", install="merilo[local]")
    try:
        return getattr(hub.HfApi(endpoint=os.environ.get("HF_ENDPOINT")), method)(model, **options)
    except Exception as error:
        why = f"{type(error).__name__}: {error}".partition("\n")[0]
        advice = "Check the name and the network; a gated or private model needs HF_TOKEN."
        raise UsageError(f"Cannot get {model} from the hub ({why}). {advice}") from error
