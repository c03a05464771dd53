"""A cascade: the first judge answers where it is sure enough, the next one the rest, and so on.

Each judge of it is asked as if a metric asked it, under its own key: what one of them has answered before, in whatever
cascade or alone, is not asked again. A part of what an earlier judge answers goes to the last one too, once a run is
through, to see how far they agree; no verdict depends on that.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from merilo.errors import UsageError
from merilo.judges.conversation import side_by_side
from merilo.judges.reliability import DIGITS, Sure, tables_from
from merilo.judging.questions import Pack, Question, kind_of
from merilo.judging.saying import sureness_of
from merilo.judging.untyped import as_object, plain
from merilo.judging.verdicts import Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from os import PathLike

    from merilo.judges.base import Conversation, Judge
    from merilo.judges.reliability import Reliability
    from merilo.judging.ask import Answer, Plan

SIGN: Final = ">"
MAX_ERROR: Final = 0.05
CHECKED_SHARE: Final = 0.05
LEAST_CHECKED: Final = 50
_ALONE: Final = "A cascade has at least two judges, as in embedded>openai:MODEL."


@dataclass(frozen=True)
class Stage:
    """A judge that answers where it is sure enough."""

    judge: Judge
    sure: Mapping[str, Sure] = field(default_factory=dict[str, Sure])
    """By kind of question, from which sureness on; kinds that are not there go on to the next judge."""
    in_any_language: bool = False
    """Whether it is asked in languages that it does not know, too: the thresholds are from a user's own labels."""

    def asked(self, question: Question[Any]) -> bool:
        """Whether a question of a kind that it answers is for this judge."""
        knows: Callable[[Sequence[str]], bool] | None = getattr(self.judge, "knows", None)
        return self.in_any_language or knows is None or knows(question.all_texts)

    def answered(self, answer: Answer) -> bool:
        """Whether an answer of this judge stands."""
        sure = None if isinstance(answer, Failure) else self.sure.get(kind_of(answer))
        sureness = None if sure is None or isinstance(answer, Failure) else sureness_of(answer)
        return sureness is not None and sure is not None and round(sureness, DIGITS) >= sure.least


@dataclass(frozen=True)
class Cascade:
    """Asks one judge after another, until one is sure enough; make one with `cascade_of`.

    `checked_share` and `least_checked`: how many of the questions that were answered before the last judge it gets too,
    chosen by their digests and `seed`.
    """

    stages: tuple[Stage, ...]
    last: Judge
    max_error: float = MAX_ERROR
    checked_share: float = CHECKED_SHARE
    least_checked: int = LEAST_CHECKED
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.stages:
            raise UsageError(_ALONE)

    @property
    def judges(self) -> tuple[Judge, ...]:
        """All of them, in the order in which they are asked."""
        return (*(stage.judge for stage in self.stages), self.last)

    @property
    def name(self) -> str:
        """Their names with `>` between them: `embedded>openai:gpt-4.1-mini`."""
        return SIGN.join(judge.name for judge in self.judges)

    @property
    def answers(self) -> frozenset[type[Question[Any]]]:
        """What any of them answers."""
        return frozenset[type[Question[Any]]]().union(*(judge.answers for judge in self.judges))

    @property
    def together(self) -> frozenset[type[Question[Any]]]:
        """What the last judge takes in packs: those that stay are packed anew for each judge."""
        return self.last.together

    @property
    def cacheable(self) -> bool:
        """No: its judges' own verdicts are, so that every run knows who answered what, and nothing is asked twice."""
        return False

    @property
    def batched(self) -> bool:
        """Where all its judges answer batches."""
        return all(getattr(judge, "batched", False) for judge in self.judges)

    @property
    def unready(self) -> str | None:
        """Why one of its judges can answer nothing here."""
        reasons = (cast("str | None", getattr(judge, "unready", None)) for judge in self.judges)
        return next((reason for reason in reasons if reason is not None), None)

    @property
    def rates(self) -> str | None:
        """Who answers what, from which sureness on, and how well each but the last agrees with people."""
        told = [_told(stage, self.max_error) for stage in self.stages]
        agreeing = [f". {stage.judge.name}: {rates}" for stage in self.stages if (rates := stage.judge.rates)]
        return f"{'; '.join(told)}; {self.last.name} all else{''.join(agreeing)}"

    def fingerprint(self) -> Mapping[str, object]:
        """All judges, the thresholds, and which part is checked."""
        return {
            "judge": "cascade",
            "stages": [
                {
                    "name": stage.judge.name,
                    "judge": dict(stage.judge.fingerprint()),
                    "sure": {kind: sure.least for kind, sure in sorted(stage.sure.items())},
                    "in_any_language": stage.in_any_language,
                }
                for stage in self.stages
            ],
            "last": {"name": self.last.name, "judge": dict(self.last.fingerprint())},
            "max_error": self.max_error,
            "checked": {"share": self.checked_share, "least": self.least_checked, "seed": self.seed},
        }

    def rubric(self, question: Question[Any] | Pack) -> str:
        """The texts of all judges that may be asked, one after the other."""
        kind = _kind(question)
        return "\n".join(filter(None, [judge.rubric(question) for judge in self.judges if kind in judge.answers]))

    def answer(self, question: Question[Any] | Pack) -> Conversation:
        """The answers, without the engine keeping what each judge said; see `consult`."""
        plan = self.consult(question)
        try:
            step = next(plan)
            while True:
                asked = [each for group in step for each in group]
                step = plan.send((yield from side_by_side([self.judge_for(each.role).answer(each) for each in asked])))
        except StopIteration as stop:
            return cast("tuple[Answer, ...]", stop.value)  # what `consult` returns

    def consult(self, question: Question[Any] | Pack) -> Plan[tuple[Answer, ...]]:
        """A plan that asks the judges one after another; each step's questions carry the role of one of them.

        A judge before the last is not asked in a language that it does not know: its own tables say nothing of how
        often it is wrong there.
        """
        questions = question.questions if isinstance(question, Pack) else (question,)
        answers: dict[int, Answer] = {}
        left = list(range(len(questions)))
        places = self.places(_kind(question))
        for place in places:
            asked = [n for n in left if place == places[-1] or self.stages[place].asked(questions[n])]
            if not asked:
                continue
            told = yield (tuple(replace(questions[n], role=stage_role(questions[n].role, place)) for n in asked),)
            for n, answer in zip(asked, told, strict=True):
                if place == places[-1] or self.stages[place].answered(answer):
                    answers[n] = answer
                    left.remove(n)
            if not left:
                break
        return tuple(answers[n] for n in range(len(questions)))

    def places(self, kind: type[Question[Any]]) -> tuple[int, ...]:
        """Which of the judges are asked questions of a kind, in their order; the last of these answers in any case."""
        last = len(self.stages)
        sure = [n for n, stage in enumerate(self.stages) if kind.kind in stage.sure and kind in stage.judge.answers]
        if kind in self.last.answers:
            return (*sure, last)
        return next(((n,) for n, stage in enumerate(self.stages) if kind in stage.judge.answers), ())

    def judge_for(self, role: str) -> Judge:
        """The judge of a role that `consult` gave to a question."""
        return self.judges[int(role.rpartition(SIGN)[2]) - 1]


def stage_role(role: str, place: int) -> str:
    """The role of a cascade's judge, where the cascade itself has the role `role`: `judge>1`, `judge>2`, ..."""
    return f"{role}{SIGN}{place + 1}"


def with_stages(judges: Mapping[str, Judge]) -> dict[str, Judge]:
    """Judges by role, those within cascades with roles of their own."""
    found = dict(judges)
    for role, judge in judges.items():
        if isinstance(judge, Cascade):
            found |= with_stages({stage_role(role, place): each for place, each in enumerate(judge.judges)})
    return found


def each_judge(judges: Iterable[Judge]) -> Iterator[Judge]:
    """All judges that are asked themselves: for a cascade those within it."""
    for judge in judges:
        if isinstance(judge, Cascade):
            yield from each_judge(judge.judges)
        else:
            yield judge


def cascade_of(
    judges: Sequence[Judge], *, max_error: float = MAX_ERROR, checks: Sequence[str | PathLike[str]] = ()
) -> Cascade:
    """A cascade of at least two judges, with the thresholds that keep the error of each but the last at `max_error`.

    How reliable a judge is stands in its `reliability` (tables by kind of question), or in the file among `checks`
    that `merilo judge check --json` wrote about it. A kind without a table, or without a threshold that reaches
    `max_error`, goes on to the next judge. Raises UsageError for a file that is of none of the judges, and for a judge
    that stands there twice.
    """
    if not 0 < max_error < 1:
        raise UsageError(f"The largest error of a cascade is a share between 0 and 1, got {max_error:g}.")
    if len(judges) < 2:
        raise UsageError(_ALONE)
    for place, judge in enumerate(judges):
        if any(judge.fingerprint() == other.fingerprint() for other in judges[:place]):
            raise UsageError(f"{judge.name} stands twice in a cascade and would say the same again; name it once.")
    known = [_Checked.read(path) for path in checks]
    stages: list[Stage] = []
    used: set[int] = set()
    for judge in judges[:-1]:
        marks = plain(judge.fingerprint())
        fitting = [n for n, each in enumerate(known) if each.marks == marks]
        used.update(fitting)
        tables: Mapping[str, Reliability] = known[fitting[-1]].tables if fitting else getattr(judge, "reliability", {})
        found = {kind: table.sure(max_error) for kind, table in tables.items()}
        sure = {kind: least for kind, least in found.items() if least is not None}
        stages.append(Stage(judge, sure, in_any_language=bool(fitting)))
    for n, each in enumerate(known):
        if n not in used:
            names = ", ".join(stage.judge.name for stage in stages)
            raise UsageError(
                f"{each.path} was measured on {each.name}, and no judge before the last is that one ({names}), or not "
                "with these parameters or weights; check it anew with merilo judge check --json."
            )
    return Cascade(tuple(stages), judges[-1], max_error)


@dataclass(frozen=True, slots=True)
class _Checked:
    """What `merilo judge check --json` wrote about a judge."""

    path: str
    name: str
    marks: object
    tables: Mapping[str, Reliability]

    @classmethod
    def read(cls, path: str | PathLike[str]) -> _Checked:
        try:
            record = as_object(json.loads(Path(path).read_text(encoding="utf-8"))) or {}
        except (OSError, ValueError, RecursionError) as error:
            raise UsageError(
                f"{path} cannot be read as JSON ({error}); it is what judge check --json writes."
            ) from error
        judge = as_object(record.get("judge"))
        if judge is None or "cascade" not in record:
            raise UsageError(f"{path} is not what merilo judge check --json writes; make it anew.")
        return cls(str(path), str(judge.get("name")), judge.get("fingerprint"), tables_from(record["cascade"]))


def _kind(question: Question[Any] | Pack) -> type[Question[Any]]:
    return type(question.questions[0]) if isinstance(question, Pack) else type(question)


def _told(stage: Stage, max_error: float) -> str:
    """Where a stage answers, in words."""
    if not stage.sure:
        return f"{stage.judge.name} answers nothing: no threshold keeps its error at {max_error:.0%}, or none is known"
    parts = [f"{kind} from {sure.least:.2f}" for kind, sure in sorted(stage.sure.items())]
    return f"{stage.judge.name} answers where it is sure enough ({', '.join(parts)})"
