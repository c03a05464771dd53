"""The result of a diagnosis, read from its directory: effects of the arms and causes of failures, with their pages."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.calibrate.correction import match_if_fitting
from merilo.commands.calibrate.human_labels import labels_of
from merilo.commands.compare.caveats import UNCHECKED, no_conclusion
from merilo.commands.compare.result import Row
from merilo.commands.diagnose.result import CAUSES, FAILED, Draw, asked_in, cases_of, draws_in, unjudged
from merilo.commands.diagnose.right import RIGHT
from merilo.data.sanitize import command
from merilo.numbers import count, measured, number, percent
from merilo.rendering.doc import Doc, Entry, Line, Part, doc_page, forest
from merilo.rendering.frames import frame
from merilo.rendering.markup import page as html
from merilo.rendering.markup import write_page
from merilo.rendering.page import Page, Tone
from merilo.results.comparable import judged_by_embedded
from merilo.results.estimate import Basis, Caveat, Estimate, Level, Missing
from merilo.results.estimate import Verdict as Said
from merilo.results.means import CAVEAT
from merilo.results.records import grouped, picked
from merilo.results.scores import read_scores
from merilo.runs.files import CALLS
from merilo.runs.run import Run
from merilo.short_repr import short_repr
from merilo.stats.column import Column
from merilo.stats.column import Missing as NoValue
from merilo.stats.compare import Comparison, Conclusion, compare
from merilo.stats.corrected_pairs import PairLabels
from merilo.stats.correction import Labels, correct
from merilo.stats.diagnosis import ARMS, NO_CAUSES, Arm, Cause, Form, Verdict, verdicts
from merilo.stats.intervals import LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from os import PathLike

    import pandas as pd

    from merilo.stats.means import MeanEstimate

_UNIT: Final = 0.0, 1.0
_LONGEST: Final = 2_000
"""Characters of an answer on the page."""
_MOST_FAILED: Final = 20
_NO_ARM: Final = "no arm is shown to differ"
_NOT_EXAMINED: Final = "not examined: --each or --ids"
_UNMOVED: Final = "no answer changed"
_CACHE: Final = "The application gives the same answer in every arm; is there a cache by question?"
_FEW: Final = 3
"""Failures on the screen."""
THERE, ONLY, OTHERS = "evidence always there", "only the evidence", "other passages"
PLACEBO, TOP = "placebo", "evidence to the top"
"""The effects: retrieval, nothing but the evidence, the difference of both, an insertion, the order."""
_MEANS: Final = {
    THERE: ("lost by retrieval", "evidence first harms"),
    ONLY: ("lost by contexts", "contexts are needed"),
    OTHERS: ("others harm", "others help"),
    PLACEBO: ("an insertion helps", "an insertion harms"),
    TOP: ("lost by the order", "the top place harms"),
}
"""Effect → what better and worse mean."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failing question with its cause."""

    question: str
    text: str
    verdict: Verdict
    draws: tuple[Draw, ...]
    reference: str
    evidence: tuple[str, ...]
    reason: str
    """Why no cause is shown; empty if one is."""

    @property
    def cause(self) -> Cause:
        """The cause that is shown."""
        return self.verdict.cause

    @property
    def arms(self) -> dict[Arm, list[Draw]]:
        """The draws by arm, the unchanged application first."""
        found, form = grouped((each.arm, each) for each in self.draws), self.draws[0].metadata["form"]
        order = [*(ARMS[Form(form)] if form else ()), *Arm]
        return {arm: sorted(found[arm], key=lambda each: each.draw) for arm in dict.fromkeys(order) if arm in found}

    @property
    def right(self) -> dict[Arm, tuple[int, int]]:
        """Right answers and draws by arm."""
        return {arm: (sum(each.right is True for each in own), len(own)) for arm, own in self.arms.items()}

    @property
    def counts(self) -> str:
        """What shows the cause, or why none is shown, and right answers of the draws by arm."""
        counts = (f"{arm} {right}/{draws}" for arm, (right, draws) in self.right.items())
        return ", ".join(filter(None, (self.reason, *counts)))

    def __repr__(self) -> str:
        return short_repr(self, question=self.question, cause=self.cause, right=self.right)


@dataclass(frozen=True)
class Diagnosis:
    """The diagnosis in a directory. `print` shows it, `report` writes it as a page. Raises RunError if it is read."""

    path: Path

    @cached_property
    def run(self) -> Run:
        """The run of level 1."""
        return Run.open(self.path)

    @cached_property
    def samples(self) -> list[Draw]:
        """The answers of level 1, then those of level 2."""
        looks = sorted(self.path.glob(f"{CAUSES}/look-*"))
        return [*draws_in(self.run), *(draw for look in looks for draw in draws_in(Run.open(look)))]

    @property
    def level_1(self) -> list[Draw]:
        """The answers of level 1."""
        return [each for each in self.samples if not each.draw]

    @cached_property
    def _arms(self) -> dict[Arm, dict[str, Draw]]:
        """Arm → question → its answer at level 1."""
        arms = grouped((each.arm, each) for each in self.level_1)
        return {arm: {each.question: each for each in own} for arm, own in arms.items()}

    @property
    def questions(self) -> list[str]:
        """The ids of the questions."""
        return [*self._arms[Arm.UNCHANGED]]

    def rate(self, arm: Arm) -> float | None:
        """Return the fraction of right answers in an arm by the judge; None if all failed."""
        known = [each.right for each in self._arms[arm].values() if each.right is not None]
        return sum(known) / len(known) if known else None

    @cached_property
    def right(self) -> MeanEstimate:
        """The fraction of right answers of the unchanged application; corrected by labels."""
        draws = [each for each in self._arms[Arm.UNCHANGED].values() if each.right is not None]
        known = [(at, *both) for at, each in enumerate(draws) if (both := self._label(each)) is not None]
        labels = Labels.of(*zip(*known, strict=True)) if known else Labels.of([], [], [])
        found = correct([float(each.right or 0) for each in draws], labels, _UNIT, clusters=self._clusters(draws))
        return found.estimate or found.raw

    @cached_property
    def effects(self) -> dict[str, Row]:
        """The paired differences of the arms, by name. Labels that were attached to the directory correct them."""
        base, only, first = (self._arms[arm] for arm in (Arm.UNCHANGED, Arm.ONLY, Arm.FIRST))
        whole = {id_ for id_, each in base.items() if each.metadata.get("form") == Form.WHOLE}
        there = {id_: (base if id_ in whole else first)[id_] for id_ in base}
        pairs = {
            THERE: (there, base),
            ONLY: (only, base),
            OTHERS: (only, there),
            PLACEBO: (self._arms[Arm.PLACEBO], base),
        }
        if whole:
            pairs[TOP] = ({id_: (first if id_ in whole else base)[id_] for id_ in base}, base)
        found = compare(
            {name: (_column(one), _column(two)) for name, (one, two) in pairs.items()},
            clusters=self._clusters(base.values()),
            labels={name: own for name, pair in pairs.items() if (own := self._labels(*pair)) is not None},
        )
        return {
            name: Row(name, other=1, higher_is_better=True, comparison=each, estimate=self._estimate(each))
            for name, each in found.items()
        }

    def _estimate(self, found: Comparison) -> Estimate:
        """Return a difference with what forces its verdict."""
        counts, judges = found.counts, self.run.manifest.judges
        failed = counts.first_failed + counts.second_failed + counts.neither
        basis = Basis.LABELS if found.by_judge is not None else Basis.JUDGE if judges else Basis.NO_JUDGE
        unchecked = not self.labelled and judged_by_embedded(self.run.manifest, RIGHT)
        why = {"judge-unchecked": UNCHECKED} if basis is Basis.JUDGE and unchecked else {}
        if found.reading is Conclusion.CANNOT_TELL:
            moved = not counts.pairs or counts.wins + counts.losses
            why["no-conclusion"] = no_conclusion(found) if moved else _UNMOVED
        caveats = (Caveat(code, text, Level.DECIDES, Said.CANNOT_TELL) for code, text in why.items())
        missing = Missing(counts.first_undefined + counts.second_undefined, failed)
        return Estimate(found.difference, found.interval.ends, counts.pairs, missing, basis, tuple(caveats))

    def _clusters(self, draws: Iterable[Draw]) -> list[str] | None:
        """Return the clusters of the questions of these answers; None if the data has none."""
        name = self.run.manifest.cluster or "question"
        return None if name == "question" else [str(each.metadata.get(name)) for each in draws]

    @cached_property
    def labelled(self) -> dict[str, tuple[float, float]]:
        """The human label and the judge's verdict on each labelled answer, by the id of its sample."""
        labels = labels_of(self.run)
        found = match_if_fitting(read_scores(self.run, metrics=[RIGHT], cluster=""), labels, [RIGHT]).get(RIGHT)
        if found is None or found.elsewhere or found.broken:
            return {}
        return {id_: (human, judge) for id_, human, judge in zip(found.samples, found.people, found.judge, strict=True)}

    def _label(self, draw: Draw) -> tuple[float, float] | None:
        return self.labelled.get(f"{draw.question}/{draw.arm}")

    def _labels(self, one: Mapping[str, Draw], two: Mapping[str, Draw]) -> PairLabels | None:
        both = [(self._label(one[id_]), self._label(two[id_])) for id_ in one]
        rows = [(at, *first, *second) for at, (first, second) in enumerate(both) if first and second]
        return PairLabels.of(rows) if rows else None

    @cached_property
    def causes(self) -> dict[str, Failure]:
        """The examined failing questions by id, with their causes; the most certain first."""
        draws = grouped((each.question, each) for each in self.samples if each.draw)
        cases = cases_of([each for own in draws.values() for each in own])
        found: list[Failure] = []
        all_verdicts = verdicts([case for case, _ in cases.values()])
        for (id_, (case, why)), (cause, p) in zip(cases.items(), all_verdicts, strict=True):
            healthy = case.usable and self._arms[Arm.UNCHANGED][id_].right and all(case.right[Arm.UNCHANGED])
            own = Verdict(Cause.RIGHT if healthy else cause, p)
            reason = why or (_NO_ARM if own.cause is Cause.NOT_SHOWN else "")
            found.append(self._failure(draws[id_], own, reason))
        return {each.question: each for each in sorted(found, key=lambda each: (each.verdict.p, each.question))}

    def _failure(self, draws: Sequence[Draw], verdict: Verdict, reason: str) -> Failure:
        first = draws[0]
        evidence = self._arms[Arm.ONLY][first.question].metadata["contexts"]
        return Failure(first.question, first.text, verdict, tuple(draws), first.reference, tuple(evidence), reason)

    def question(self, id_: str) -> Failure:
        """Return a question with its answers: those of level 2 if its cause was examined, otherwise of level 1."""
        draws = [arm[id_] for arm in self._arms.values()]
        why = FAILED if any(each.failed for each in draws) else _NOT_EXAMINED
        return self.causes.get(id_) or self._failure(draws, Verdict(Cause.NOT_SHOWN, 1.0), why)

    @property
    def named(self) -> dict[str, tuple[str, float, str]]:
        """By the text of each examined question, its cause, p-value and right answers by arm."""
        return {each.text: (str(each.cause), each.verdict.p, each.counts) for each in self.causes.values()}

    @property
    def stay_wrong(self) -> int:
        """Questions that stay wrong with nothing but the evidence."""
        return sum(each.right is False for each in self._arms[Arm.ONLY].values())

    @property
    def failed(self) -> int:
        """Answers without a verdict: the application or the judge failed."""
        return sum(each.failed for each in self.samples)

    @property
    def has_verdict(self) -> bool:
        """True if the verdict on an effect, or a cause, is known."""
        if 3 * unjudged(self.level_1) > len(self.level_1):
            return False
        shown = any(each.verdict is not Said.CANNOT_TELL for each in self.effects.values())
        return shown or any(each.cause is not Cause.NOT_SHOWN for each in self.causes.values())

    def report(self, out: str | PathLike[str] = "report.html") -> Path:
        """Write the diagnosis as one HTML file and return its path. Raises RunError."""
        write_page(Path(out), diagnosis_html(self))
        return Path(out)

    def to_pandas(self) -> pd.DataFrame:
        """Return one row for each answer. Raises UsageError if pandas is not installed."""
        return frame([picked(each, "question arm draw right text answer error") for each in self.samples])

    @property
    def doc(self) -> Doc:
        """The document, with all causes."""
        return diagnosis_doc(self)

    def shown(self, width: int | None, *, full: bool) -> Page | dict[str, Any]:  # Any: JSON
        """Return the screen of this width, or without one the JSON."""
        return diagnosis_record(self) if width is None else diagnosis_page(self, width, full=full)

    def shown_question(self, question: str, width: int | None) -> Page | dict[str, Any]:  # Any: JSON
        """Return one question: a screen of this width, or without one the JSON."""
        case = self.question(question)
        return question_record(case) if width is None else question_page(case, width)

    def __str__(self) -> str:
        return str(diagnosis_page(self))


def _column(draws: Mapping[str, Draw]) -> Column:
    lacking = {True: NoValue.FAILED, False: NoValue.UNDEFINED}
    return Column.of([lacking[x.failed] if x.right is None else float(x.right) for x in draws.values()], _UNIT)


def diagnosis_in(run: Run | str | PathLike[str]) -> Diagnosis | None:
    """Return the diagnosis in a directory; None if there is none."""
    path = run.path if isinstance(run, Run) else Path(run)
    return Diagnosis(path) if (path / CALLS).is_dir() else None


# -- outputs -------------------------------------------------------------------------------------------


def diagnosis_doc(found: Diagnosis, most: int | None = None) -> Doc:
    """Return the effects, then the causes of single failures. `most`: failures that are shown; None: all."""
    rows, causes, run = [*found.effects.values()], [*found.causes.values()], str(found.path)
    tests = max(round((1 - LEVEL) / (1 - each.comparison.interval.level)) for each in rows)
    level = f"{percent(LEVEL)} interval" if tests < 2 else f"{percent(LEVEL)} over {tests} tests"
    reasons = grouped((each.reason, each.metric) for each in rows if each.reason)
    questions, labelled, judges = len(found.questions), len(found.labelled), found.run.manifest.judges
    title = f"{count(questions, 'question')}, {measured(found.right.value, found.right.interval.ends)} right."
    lacking, none = asked_in(found.path).get("left_out", ""), unjudged(found.level_1)
    same = grouped((each.question, each.answer) for each in found.level_1 if not each.failed).values()
    below = [
        f"Without any context {number(found.rate(Arm.NONE))} are right.",
        _CACHE
        if same and all(len({*own}) == 1 for own in same)
        else f"{found.stay_wrong:,} stay wrong with nothing but the evidence: prompt, model or reference.",
        *([f"Left out: {lacking}."] if lacking else []),
        *(f"{'' if why == _UNMOVED else 'Cannot tell '}{', '.join(own)}: {why}." for why, own in reasons.items()),
    ]
    effects = Part(
        "",
        (title, *([f"Corrected by human labels of {count(labelled, 'answer')}."] if labelled else [])),
        ("", "right", "difference", level),
        tuple(_entry(each, questions) for each in rows),
        " ".join(below),
    )
    numbers = Counter(str(each.cause) for each in causes).most_common()
    examined = "question" if any(each.cause is Cause.RIGHT for each in causes) else "failing question"
    sentence = f"{count(len(causes), examined)}: {', '.join(f'{many:,} {cause}' for cause, many in numbers)}."
    failures = [
        Line((each.question, each.cause, f"{each.counts}: {each.text}"))
        if most
        else Line((each.question, each.cause, number(each.verdict.p)), f"{each.counts}; {each.text}")
        for each in causes[:most]
    ]
    errors = [each for each in found.samples if each.failed]
    names = ", ".join([*dict.fromkeys(each.question for each in errors)][:_FEW])
    answers, failed = count(len(found.level_1), "answer"), count(len(errors), "answer")
    warnings = [
        *([f"{none:,} of {answers} have no verdict: use --right or another judge."] if none else []),
        *(f"{failed} failed and left out ({names}). The first: {each.error}" for each in errors[:1]),
    ]
    lines = [Line((x.question, str(x.arm), str(x.draw)), x.error) for x in errors[:_MOST_FAILED]]
    return Doc(
        f"Diagnosis {found.path.name}",
        (
            effects,
            *([Part("", (sentence,), () if most else ("question", "cause", "p"), tuple(failures))] if causes else []),
            *([] if most or not errors else [Part("", (), ("failed", "arm", "draw"), tuple(lines))]),
        ),
        tuple(warnings),
        advice="" if labelled or not judges else f"By the judge alone. Check it: {command('label', run)}",
        next=(f"All: {command('show', run)} --full", f"Side by side: {command('report', run)}") if causes else (),
    )


def _entry(row: Row, questions: int) -> Entry:
    meant = dict[Said | None, str](zip((Said.BETTER, Said.WORSE), _MEANS[row.metric], strict=True))
    pairs = row.estimate.samples
    return Entry(
        row.metric,
        row.metric,
        (number(row.run_mean),),
        row.estimate,
        row.verdict,
        said=meant.get(row.verdict, str(row.verdict)),
        why="",
        fewer="" if pairs == questions else f"{pairs:,} of {questions:,} questions",
    )


def diagnosis_page(found: Diagnosis, width: int = 80, *, full: bool = False) -> Page:
    """Return the screen. `full`: with all causes, and the first failed answers."""
    return doc_page(diagnosis_doc(found, None if full else _FEW), width, rows=None if full else len(_MEANS))


def question_page(found: Failure, width: int) -> Page:
    """Return the screen of one question: its cause, and the answers and contexts of each arm."""
    page = Page(width)
    page.text(f"{found.question}: {found.text}", tone=Tone.STRONG)
    page.text(f"{found.cause} ({found.counts})")
    page.blank()
    page.entries([("reference", found.reference), *(("evidence", each) for each in found.evidence)])
    for arm, own in found.arms.items():
        page.heading(f"{arm} {'/'.join(map(str, found.right[arm]))}")
        page.entries([(f"{many} \u00d7 {mark}", words) for many, mark, words in _answers(own)])
        page.entries([(f"context {at}", each) for at, each in enumerate(own[0].metadata["contexts"] or (), 1)])
    return page


def question_record(found: Failure) -> dict[str, Any]:  # Any: JSON
    """Return the same as JSON."""
    draws = [picked(each, "arm draw right answer error metadata") for each in found.draws]
    return {**picked(found, "question text reference evidence cause p=verdict.p reason right"), "draws": draws}


def diagnosis_html(found: Diagnosis) -> str:
    """Return the page; equal diagnoses give equal bytes."""
    doc = diagnosis_doc(found)
    effects = doc.parts[0]
    return html(
        "diagnosis.html",
        doc=doc,
        part=effects,
        forest=forest(effects),
        causes=doc.parts[1:2] if found.causes else (),
        failed=doc.parts[-1].lines if found.failed else (),
        failures=[
            (each, each.cause not in NO_CAUSES, [(arm, _answers(own), own[0]) for arm, own in each.arms.items()])
            for each in found.causes.values()
        ],
    )


def _answers(draws: Sequence[Draw]) -> list[tuple[int, str, str]]:
    """Return the different answers, each with its number and a mark."""
    marks = {True: "\u2713", False: "\u2717", None: "!"}
    same = Counter((marks[each.right], each.answer or each.error) for each in draws)
    return [(number, mark, words[:_LONGEST]) for (mark, words), number in same.items()]


def diagnosis_record(found: Diagnosis) -> dict[str, Any]:  # Any: JSON
    """Return the same as JSON; equal answers give equal bytes."""
    effect = "right=run_mean difference interval verdict failed=estimate.missing.failed questions=estimate.samples"
    return {
        "schema": 1,
        **picked(found, "run=path right=right.value interval=right.interval.ends stay_wrong failed"),
        "questions": len(found.questions),
        "no_context": found.rate(Arm.NONE),
        "labelled": len(found.labelled),
        "effects": {
            name: {
                **picked(each, f"{effect} p=comparison.p p_corrected=comparison.adjusted"),
                "caveats": [picked(caveat, CAVEAT) for caveat in each.estimate.caveats],
            }
            for name, each in found.effects.items()
        },
        "causes": {id_: picked(each, "cause p=verdict.p reason right") for id_, each in found.causes.items()},
    }
