"""Check judges: trial questions of each kind, and human labels; download local ones.

All items are samples of one run for each judge, so limits, cache, resuming and progress are those of an evaluation::

    options → trial kinds, labelled records → samples → one run → tables of labels
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.commands.check.items import (
    KIND,
    READINGS,
    TRIAL,
    CheckedVerdicts,
    items_of,
    label_id,
    label_sample,
    table_of,
    trial_sample,
)
from merilo.commands.check.page import JudgeCheck
from merilo.commands.evaluate.preparation import for_one_judge, judges_of, usage_of
from merilo.commands.evaluate.run import run_evaluation
from merilo.commands.plan.run import Estimate, run_estimate
from merilo.data.labels import Labelled, Task, read_labels
from merilo.data.sample import Dataset
from merilo.errors import UsageError
from merilo.judges.local import find
from merilo.judges.local.card import Card, builtin_cards
from merilo.judges.local.judge import LocalJudge
from merilo.judges.local.model import golden_check
from merilo.judges.routed import each_judge, part_for, parts_of, unavailable_reason
from merilo.judging.registry import KINDS, SPECIAL
from merilo.lazy import optional_module
from merilo.metrics.base import Failed, Outcome
from merilo.results.records import grouped
from merilo.runs.files import write_file, writing
from merilo.runs.outcomes import outcome_from
from merilo.stats.resampling import Resampling

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    from merilo.commands.check.items import Item
    from merilo.commands.check.options import CheckOptions
    from merilo.commands.evaluate.options import Options
    from merilo.judges.base import Judge
    from merilo.judging.questions import Question
    from merilo.runs.run import Run

_AS_USUAL: Final = Resampling()


async def run_check(options: CheckOptions, resampling: Resampling = _AS_USUAL) -> JudgeCheck:
    """Return the result of checking `options.judge`; see `run_checks`."""
    return (await run_checks(options, [judges_of(options)["judge"]], resampling))[0]


async def run_checks(
    options: CheckOptions, judges: Sequence[Judge], resampling: Resampling = _AS_USUAL
) -> list[JudgeCheck]:
    """Return the result of each judge, in order; limits of requests and cost hold for all of them together.

    `out` becomes a directory with a run over all items for each judge: `run`, `run2`, ... The same call resumes an
    interrupted check. Raises UsageError, DataError and what an evaluation raises.
    """
    works = [_Work.of(options, judge) for judge in judges]
    found: list[JudgeCheck] = []
    with nullcontext(options.out) if options.out is not None else tempfile.TemporaryDirectory() as directory:
        places = [Path(directory, f"run{n + 1}" if n else "run") for n in range(len(works))]
        for n, work in enumerate(works):
            evaluation = replace(work.evaluation(places[n]), shared_with=tuple(places[:n]))
            found.append(work.result(await run_evaluation(work.dataset(), evaluation), resampling))
    return found


async def estimate_check(options: CheckOptions) -> Estimate:
    """Estimate requests and cost of a check, without a request. Raises what it raises before its first request."""
    work = _Work.of(options, judges_of(options)["judge"])
    out = None if options.out is None else Path(options.out, "run")
    found = await run_estimate(work.dataset(), work.evaluation(out), sample=None)
    return replace(found, metrics=tuple(replace(each, metric="judge check") for each in found.metrics))


@dataclass(frozen=True, slots=True)
class _Work:
    """The items that one judge is asked about."""

    judge: Judge
    options: CheckOptions
    files: Sequence[Mapping[str, object]]
    kinds: tuple[str, ...]
    records: Sequence[Labelled]
    constructed: int
    left_out: Mapping[str, str]

    @classmethod
    def of(cls, options: CheckOptions, judge: Judge) -> _Work:
        """Choose the items. Raises UsageError and DataError."""
        known = (TRIAL, *Task)
        if unknown := [each for each in options.tasks if each not in known]:
            raise UsageError(f"No task {unknown[0]!r}; tasks: {', '.join(known)}.")
        kinds = tuple(name for name, kind in KINDS.items() if kind in judge.answers and kind not in SPECIAL)
        kinds = kinds if not options.tasks or TRIAL in options.tasks else ()
        read = [] if {*options.tasks} == {TRIAL} else _label_files(options.labels)
        every = [record for _, own in read for record in own]
        unanswered, (chosen, left_out) = _unanswered(judge), _chosen(options, every)
        left_out |= {r.task.value: unanswered[k] for r in chosen if (k := KIND[r.task].kind) in unanswered}
        records = [record for record in chosen if KIND[record.task].kind not in unanswered]
        if not (kinds or records):
            raise UsageError(f"Nothing to ask: {'; '.join(f'{name}: {why}' for name, why in left_out.items())}.")
        constructed = sum(r.constructed for r in every if not options.tasks or r.task in options.tasks)
        return cls(judge, options, [each for each, _ in read], kinds, records, constructed, left_out)

    def dataset(self) -> Dataset:
        """Return all items as samples."""
        samples = [trial_sample(kind, pair=KINDS[kind] in self.judge.together) for kind in self.kinds]
        samples += map(label_sample, self.records)
        return Dataset("judge check", samples.__iter__)

    def evaluation(self, out: Path | None) -> Options:
        """Return the options of the run over these items."""
        kinds = {*self.kinds, *(KIND[record.task].kind for record in self.records)}
        metric = CheckedVerdicts("+".join(name for name in KINDS if name in kinds))
        options = replace(for_one_judge(self.options, self.judge), metrics=[metric], out=out)
        if self.records:
            return options
        # A stored answer does not show that the judge can be reached.
        return replace(options, storage=replace(options.storage, cache=False))

    def result(self, run: Run, resampling: Resampling) -> JudgeCheck:
        """Return what the outcomes of the run show; items that were not asked about are not part of it."""
        outcomes: dict[str, Outcome] = {record["sample"]: outcome_from(record) for record in run.records()}
        items = self._items(outcomes)
        tables = [table_of(each, items, resampling, _trained_on(self.judge, KIND[each.task])) for each in READINGS]
        local = [each for each in parts_of(self.judge) if isinstance(each, LocalJudge)] if self.kinds else []
        golden = [golden_check(each.provider.scorer()) for each in local if each.card.golden]
        return JudgeCheck(
            judge=self.judge,
            files=self.files,
            kinds={kind: each for kind in self.kinds if (each := outcomes.get(f"{TRIAL}/{kind}")) is not None},
            golden=max(golden, key=lambda each: each.difference, default=None),
            tables={each.name: each for each in tables if each is not None},
            constructed=self.constructed,
            left_out=self.left_out,
            usage=usage_of(run),
            items=items,
            failed=(sum(isinstance(each, Failed) for each in outcomes.values()), len(outcomes)),
            stopped=run.usage.get("stopped"),
        )

    def _items(self, outcomes: Mapping[str, Outcome]) -> dict[str, list[Item]]:
        """Return the labels with the judge's, by task."""
        groups = grouped(((record.task, record.source), record) for record in self.records)
        items: dict[str, list[Item]] = {}
        for (task, _), records in sorted(groups.items()):
            own = {each.id: outcome for each in records if (outcome := outcomes.get(label_id(each))) is not None}
            items.setdefault(task.value, []).extend(items_of(records, own))
        return items


# -- which items --------------------------------------------------------------------------------------


def _label_files(paths: Sequence[str | PathLike[str]]) -> list[tuple[dict[str, object], tuple[Labelled, ...]]]:
    """Read each file; the sample in the package if no file is named. Raises what `read_labels` raises."""
    found: list[tuple[dict[str, object], tuple[Labelled, ...]]] = []
    with as_file(files("merilo").joinpath("examples", "labels")) as sample:
        chosen = [*map(Path, paths)] or sorted(sample.glob("*.jsonl.gz"))
        read_labels(chosen)  # reading all together rejects ids that occur in two files
        for path in chosen:
            records = read_labels([path])
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found.append(({"file": path.name, "sha256": digest, "records": len(records)}, records))
    return found


def _chosen(options: CheckOptions, every: Sequence[Labelled]) -> tuple[list[Labelled], dict[str, str]]:
    """Return the records of the chosen tasks with human labels, and the tasks that have none, with the reason."""
    wanted = [record for record in every if not options.tasks or record.task in options.tasks]
    without = {*options.tasks} & {*Task} - {record.task for record in wanted}
    left_out = dict.fromkeys(sorted(map(str, without)), "no labelled record has this task")
    human = [record for record in wanted if not record.constructed]
    if wanted and not human:
        left_out["labels"] = "all are rule-generated (meta.constructed)"
    return _sampled(human, options.number), left_out


def _sampled(records: list[Labelled], number: int | None) -> list[Labelled]:
    """Return `number` records per task and source, those whose ids have the lowest digests, in their order."""
    if number is None:
        return records
    groups = grouped(((record.task, record.source), record) for record in records)
    chosen = {
        (record.task, record.id)
        for group in groups.values()
        for record in sorted(group, key=lambda each: hashlib.blake2b(each.id.encode()).digest())[:number]
    }
    return [record for record in records if (record.task, record.id) in chosen]


def _unanswered(judge: Judge) -> dict[str, str]:
    """Return the kinds of question that the judge cannot answer, each with the reason."""
    found = {name: unavailable_reason(judge, [kind]) for name, kind in KINDS.items() if kind in judge.answers}
    found |= {name: f"the judge {judge.name} cannot answer '{name}' questions" for name in KINDS.keys() - found.keys()}
    return {name: reason for name, reason in found.items() if reason is not None}


def _trained_on(judge: Judge, kind: type[Question[Any]]) -> frozenset[str]:
    """Return the data sets that a local model which answers a kind of question was trained on, by its card."""
    models = [each for each in each_judge([part_for(judge, kind) or judge]) if isinstance(each, LocalJudge)]
    return frozenset(name for each in models if kind in each.model_kinds for name in each.card.trained_on)


# -- downloads from the hub ---------------------------------------------------------------------------

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
    return Download(name, model, str(info.sha), licence, _needed(model, info.siblings or (), card))


def _needed(model: str, listed: Any, card: Card | None) -> tuple[Any, ...]:  # Any: as in `Download.files`
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
