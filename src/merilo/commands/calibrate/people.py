"""Human labels next to the judge's verdicts: by sample, and the verdicts on which they differ."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.calibrate.human_labels import labels_of
from merilo.errors import RunError
from merilo.judging.verdicts import probability_of
from merilo.rendering.page import Span, Tone, cut
from merilo.rendering.sanitize import clean
from merilo.rendering.wording import count
from merilo.results.sample_detail import cases_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from merilo.commands.calibrate.human_labels import HumanLabel
    from merilo.rendering.page import Page
    from merilo.results.sample_detail import GivenLabel, HumanVerdict, SampleDetail
    from merilo.runs.run import Run

_SHOWN: Final = 10
_MIN_TEXT: Final = 24


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A verdict of the judge from which annotators differ."""

    sample: str
    user_input: str
    about: str
    """For example `context 2`, `statement`, or the kind of question if it is about the sample as a whole."""
    text: str
    """The context or the statement; empty for the sample as a whole."""
    people: tuple[HumanVerdict, ...]
    """The verdicts of the annotators who differ."""

    @property
    def words(self) -> str:
        """The verdicts, the judge's with its probability of a yes."""
        judge, given = self.people[0].judge, probability_of(self.people[0].judge)
        own = f"judge {judge.in_words()}" + ("" if given is None else f" ({given:.2f})")
        return ", ".join([own, *(f"{each.annotator} {each.verdict.in_words()}" for each in self.people)])

    def record(self) -> dict[str, Any]:  # Any: JSON
        """Return this as a JSON-able object."""
        first = self.people[0]
        return {
            **{name: getattr(self, name) for name in ("sample", "user_input", "about", "text")},
            "kind": first.kind,
            "judge": first.judge.as_label(),
            "certainty": first.certainty,
            "people": {each.annotator: each.verdict.as_label() for each in self.people},
        }


def readable_labels(*runs: Run) -> list[HumanLabel]:
    """Return the labels stored with these runs, without those that cannot be used: corrected numbers report these."""
    found: list[HumanLabel] = []
    for run in runs:
        with suppress(RunError):
            found += labels_of(run)
    return found


def labels_by_sample(labels: Iterable[HumanLabel]) -> dict[str, tuple[GivenLabel, ...]]:
    """Return the labels of contexts, statements and whole samples; of one annotator's labels of a question, the last.

    Labels that are the value of a metric are left out.
    """
    found: dict[str, dict[tuple[str, str], GivenLabel]] = {}
    for each in labels:
        ticket = each.ticket
        if ticket.labels and not ticket.settled:
            found.setdefault(ticket.sample, {})[ticket.mark, each.annotator] = (ticket.mark, each.annotator, each.label)
    return {sample: tuple(own.values()) for sample, own in found.items()}


def disagreements(run: Run, labels: Iterable[HumanLabel]) -> tuple[Disagreement, ...]:
    """Return where these annotators and the judge of a run differ: the judge's most certain verdicts first."""
    return people_and_judge(run, labels)[2]


def people_and_judge(run: Run, labels: Iterable[HumanLabel]) -> tuple[int, int, tuple[Disagreement, ...]]:
    """Return the number of verdicts on which annotators and the judge agree, that of all, and `disagreements`."""
    by_sample = labels_by_sample(labels)
    known = dict.fromkeys(record["sample"] for record in run.records_of(frozenset(by_sample)))
    cases = [*cases_of(run, list(known), by_sample).values()]
    verdicts = [each.agrees for case in cases for each in case.people]
    found = sorted((each for case in cases for each in _differing(case)), key=lambda each: -each.people[0].certainty)
    return sum(verdicts), len(verdicts), tuple(found)


def _differing(case: SampleDetail) -> Iterator[Disagreement]:
    sample = case.result.sample
    for (kind, context, statement), own in groupby(case.people, lambda each: (each.kind, each.context, each.statement)):
        differing = tuple(each for each in own if not each.agrees)
        about, text = "statement" if statement else kind, statement
        if context is not None:
            about, text = f"context {context + 1}", " ".join(case.contexts[context].sentences)
        if differing:
            yield Disagreement(sample.id, sample.user_input or "", about, text, differing)


def add_disagreements(page: Page, found: Sequence[Disagreement], *, every: bool) -> None:
    """Add the disagreements, two lines each: the first ten, unless `every`."""
    order = ", the judge's most certain first" if found else ""
    page.heading(f"People and judge differ on {count(len(found), 'verdict')}{order}")
    for number, each in enumerate(found if every else found[:_SHOWN], start=1):
        start = f"{number:>2}  {clean(each.sample)}  "
        page.line(start, Span(cut(each.user_input, max(page.width - len(start), _MIN_TEXT)), Tone.STRONG))
        room = page.width - len(f"    {each.about}: , {each.words}")
        quote = f"{cut(each.text, max(room, _MIN_TEXT))}, " if each.text else ""
        page.text(f"{each.about}: {quote}{each.words}", indent=4)
