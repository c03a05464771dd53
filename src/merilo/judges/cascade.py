"""A cascade: a cheap judge answers if it is confident enough, and the last judge answers the rest.

The thresholds are not part of a cascade. Each run measures them on its own data (`commands/evaluate/cascade.py`). It
asks every judge about a random sample of questions, the pilot, and lets a cheap judge answer only as far as the pilot
shows that it agrees with the last judge. Until then everything goes to the last judge.

The engine asks each judge of a cascade as if a metric asked it, under that judge's own key. A verdict that one of
them has given before, in any cascade or alone, is not paid for again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain
from math import ceil, log, log1p
from re import fullmatch
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from merilo.errors import UsageError
from merilo.judges.conversation import side_by_side
from merilo.judges.routed import Routed, parts_of
from merilo.judging.decisions import confidence_of, is_positive
from merilo.judging.questions import Pack, Question
from merilo.judging.verdicts import DecisionVerdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from merilo.judges.base import Conversation, Judge
    from merilo.judging.ask import Answer, Plan
    from merilo.judging.verdicts import Verdict

SIGN: Final = ">"
MAX_ERROR: Final = 0.05
LEVEL: Final = 0.95
"""Confidence of the promise about one kind of question and one judge."""
CLASS_LEVEL: Final = 1 - (1 - LEVEL) / 2
"""Confidence of the promise about yes or no alone, so that both hold together with `LEVEL`."""
AUDIT_RATE: Final = 0.05
MIN_AUDITS: Final = 50
MAX_AUDITS: Final = 2_000
_PROCEDURE: Final = 1
"""Version of the pilot and the audit, in the fingerprint."""
_PILOT_ERRORS: Final = 10
"""The default pilot is so large that this many errors are expected if the error rate is the largest allowed."""
_DIGITS: Final = 6
_ALONE: Final = "A cascade has at least two judges, as in embedded>openai:MODEL."


class Decision(NamedTuple):
    """A kind of question and the yes or no that a judge answered it with. Each has its own threshold."""

    kind: str
    yes: bool


class Attributed(NamedTuple):
    """An answer, and the position of the judge that gave it."""

    place: int
    answer: Answer


@dataclass(frozen=True)
class Stage:
    """A judge before the last one."""

    judge: Judge
    thresholds: Mapping[Decision, float] = field(default_factory=dict[Decision, float])
    """Lowest confidence at which a decision is accepted; decisions that are missing here go to the next judge."""

    def asked(self, question: Question[Any]) -> bool:
        """Return True unless the question is in a language that the judge does not support."""
        knows: Callable[[Sequence[str]], bool] | None = getattr(self.judge, "supports_language", None)
        return knows is None or knows(question.all_texts)

    def accepts(self, kind: str, answer: Answer) -> bool:
        """Return True if this answer of the judge to a question of this kind is confident enough."""
        if not isinstance(answer, DecisionVerdict):
            return False
        threshold = self.thresholds.get(Decision(kind, is_positive(answer)))
        return threshold is not None and rounded_confidence(answer) >= threshold


@dataclass(frozen=True)
class Cascade:
    """A judge that asks one judge after another until one is confident enough; make one with `cascade_of`.

    `pilot`: pilot questions per kind of question and judge before the last. `audit_rate`, `min_audits`, `max_audits`:
    how many of the questions that were not answered by the last judge it is asked afterwards, per kind of question.
    """

    stages: tuple[Stage, ...]
    last: Judge
    max_error: float = MAX_ERROR
    pilot: int = ceil(_PILOT_ERRORS / MAX_ERROR)
    audit_rate: float = AUDIT_RATE
    min_audits: int = MIN_AUDITS
    max_audits: int = MAX_AUDITS
    seed: int = 0
    revoked: frozenset[str] = frozenset()
    """Kinds whose audit failed: their questions go to the last judge, whatever the thresholds say."""
    alone: frozenset[bytes] = frozenset()
    """Contents of the pilot and audit questions. The last judge answered them alone, so they are never packed."""
    route: str = ""
    """The label of its route in a routed judge; empty if it is not part of one."""
    kinds: frozenset[type[Question[Any]]] | None = None
    """The kinds of its route; None if it is asked about all kinds that its judges answer."""

    def __post_init__(self) -> None:
        if not self.stages:
            raise UsageError(_ALONE)
        if any(isinstance(judge, Cascade) for judge in self.judges):
            raise UsageError("A cascade cannot be a judge of another cascade; list all judges in one cascade.")
        if any(isinstance(judge, Routed) for judge in self.judges):
            raise UsageError("A cascade cannot contain routes; put the cascade into a route (support=FIRST>SECOND).")

    @property
    def judges(self) -> tuple[Judge, ...]:
        """All judges, in the order in which they are asked."""
        return (*(stage.judge for stage in self.stages), self.last)

    @property
    def name(self) -> str:
        """The judges' names, joined by `>`: `embedded>openai:gpt-4.1-mini`."""
        return SIGN.join(judge.name for judge in self.judges)

    @property
    def weak_kinds(self) -> frozenset[str]:
        """Those of the last judge: the others answer only as far as they agree with it."""
        found: frozenset[str] = getattr(self.last, "weak_kinds", frozenset())
        return found

    @property
    def weak_metrics(self) -> frozenset[str]:
        """Those of the last judge."""
        found: frozenset[str] = getattr(self.last, "weak_metrics", frozenset())
        return found

    @property
    def answers(self) -> frozenset[type[Question[Any]]]:
        """The kinds that any of the judges answers, as far as they are on its route."""
        found = frozenset[type[Question[Any]]]().union(*(judge.answers for judge in self.judges))
        return found if self.kinds is None else found & self.kinds

    @property
    def together(self) -> frozenset[type[Question[Any]]]:
        """The kinds that the last judge takes in packs; questions that reach a judge are packed again for it."""
        return self.last.together

    @property
    def cacheable(self) -> bool:
        """Always False: the verdicts of its judges are cached, and its own depend on the thresholds of the run."""
        return False

    @property
    def supports_batches(self) -> bool:
        """True if all its judges answer batches."""
        return all(getattr(judge, "supports_batches", False) for judge in self.judges)

    @property
    def unavailable_reason(self) -> str | None:
        """The reason why one of its judges cannot answer here; None if all can."""
        reasons = (cast("str | None", getattr(judge, "unavailable_reason", None)) for judge in self.judges)
        return next((reason for reason in reasons if reason is not None), None)

    @property
    def agreement_note(self) -> str | None:
        """The division of questions between the judges, and the agreement of each but the last with human labels."""
        first = ", ".join(stage.judge.name for stage in self.stages)
        rule = (
            f"{first} answers if a pilot on the run's own data shows that at most {self.max_error:.0%} of its answers "
            f"differ from {self.last.name}; {self.last.name} answers the rest"
        )
        agreement = [f". {stage.judge.name}: {rates}" for stage in self.stages if (rates := stage.judge.agreement_note)]
        return f"{rule}{''.join(agreement)}"

    def fingerprint(self) -> Mapping[str, object]:
        """Return the judges and the procedure for thresholds, not the thresholds, which are a result of the run."""
        return {
            "judge": "cascade",
            "stages": [{"name": stage.judge.name, "judge": dict(stage.judge.fingerprint())} for stage in self.stages],
            "last": {"name": self.last.name, "judge": dict(self.last.fingerprint())},
            "max_error": self.max_error,
            "procedure": _PROCEDURE,
            "pilot": {"questions": self.pilot, "level": LEVEL, "seed": self.seed},
            "audit": {"rate": self.audit_rate, "min": self.min_audits, "max": self.max_audits},
        }

    def rubric(self, question: Question[Any] | Pack) -> str:
        """Return the rubrics of all judges that may be asked, joined."""
        kind = _kind(question)
        return "\n".join(filter(None, [judge.rubric(question) for judge in self.judges if kind in judge.answers]))

    def answer(self, question: Question[Any] | Pack) -> Conversation:
        """Answer without an engine, which would store what each judge answered; see `consult`."""
        plan = self.consult(question)
        try:
            step = next(plan)
            while True:
                asked = [each for group in step for each in group]
                step = plan.send((yield from side_by_side([self.judge_for(each.role).answer(each) for each in asked])))
        except StopIteration as stop:
            return cast("tuple[Answer, ...]", stop.value)  # what `consult` returns

    def consult(self, question: Question[Any] | Pack) -> Plan[tuple[Answer, ...]]:
        """Ask the judges one after another; the role of each question that this plan yields names its judge."""
        found = yield from self.attributed(question)
        return tuple(each.answer for each in found)

    def attributed(self, question: Question[Any] | Pack) -> Plan[tuple[Attributed, ...]]:
        """Ask as `consult` does, and return with each answer the judge that gave it."""
        questions = question.questions if isinstance(question, Pack) else (question,)
        kind = _kind(question)
        answers: dict[int, Attributed] = {}
        revoked: list[int] = []
        left = [*range(len(questions))]
        # `places` depends on the kind: a judge without a threshold for it is skipped.
        *earlier, last = self.places(kind)
        for place in earlier:
            stage = self.stages[place]
            asked = [n for n in left if stage.asked(questions[n])]
            if not asked:
                continue
            given = yield (tuple(_at_stage(questions[n], place) for n in asked),)
            accepted = [n for n, answer in zip(asked, given, strict=True) if stage.accepts(kind.kind, answer)]
            left = [n for n in left if n not in accepted]
            # After a failed audit, answers of earlier judges are replaced by the last judge's.
            if kind.kind in self.revoked:
                revoked += accepted
            else:
                answers |= {
                    n: Attributed(place, answer) for n, answer in zip(asked, given, strict=True) if n in accepted
                }
        if left or revoked:
            # Revoked questions form separate packs: those in `left` were packed without them before the audit.
            groups = [*self._groups(questions, left), *self._groups(questions, revoked)]
            given = yield tuple(tuple(_at_stage(questions[n], last) for n in group) for group in groups)
            order = chain.from_iterable(groups)
            answers |= {n: Attributed(last, answer) for n, answer in zip(order, given, strict=True)}
        return tuple(answers[n] for n in range(len(questions)))

    def on_route(self, label: str, kinds: frozenset[type[Question[Any]]]) -> Cascade:
        """Return this cascade as the judge of a route: it has thresholds and audits for these kinds only."""
        return replace(self, route=label, kinds=kinds)

    def places(self, kind: type[Question[Any]]) -> tuple[int, ...]:
        """Return the positions of the judges that are asked questions of a kind; the last of these always answers."""
        if self._elsewhere(kind):
            return ()
        if kind in self.last.answers:
            found = (
                n for n, stage in enumerate(self.stages) if any(each.kind == kind.kind for each in stage.thresholds)
            )
            return (*found, len(self.stages))
        return next(((n,) for n, stage in enumerate(self.stages) if kind in stage.judge.answers), ())

    def candidates(self, kind: type[Question[Any]]) -> tuple[int, ...]:
        """Return the positions of the judges before the last whose answers a pilot can compare with the last one's."""
        if self._elsewhere(kind) or kind not in self.last.answers or not issubclass(kind.verdict, DecisionVerdict):
            return ()
        return tuple(n for n, stage in enumerate(self.stages) if kind in stage.judge.answers)

    def trusting(self) -> Cascade:
        """Return this cascade with every decision of an earlier judge accepted: it continues plans in a pilot."""
        stages = tuple(
            replace(
                stage,
                thresholds={
                    Decision(kind.kind, yes): 0.0
                    for kind in stage.judge.answers
                    if n in self.candidates(kind)
                    for yes in (True, False)
                },
            )
            for n, stage in enumerate(self.stages)
        )
        return replace(self, stages=stages, revoked=frozenset(), alone=frozenset())

    def judge_for(self, role: str) -> Judge:
        """Return the judge of a role that `consult` gave to a question."""
        return self.judges[int(role.rpartition(SIGN)[2]) - 1]

    def _elsewhere(self, kind: type[Question[Any]]) -> bool:
        """Return True if another route answers this kind."""
        return self.kinds is not None and kind not in self.kinds

    def _groups(self, questions: Sequence[Question[Any]], places: Sequence[int]) -> list[tuple[int, ...]]:
        """Return the questions that the last judge is asked together; each question in `alone` is a separate group."""
        if not self.alone or len(questions) == 1 or type(questions[0]) not in self.together:
            return [tuple(places)] if places else []
        apart = [n for n in places if questions[n].content in self.alone]
        rest = tuple(n for n in places if n not in apart)
        return [*((n,) for n in apart), *([rest] if rest else [])]


def rounded_confidence(verdict: Verdict) -> float:
    """Return the judge's probability that its own yes or no is right, rounded; 0.0 if it gives none."""
    return round(confidence_of(verdict) or 0.0, _DIGITS)


def stage_role(role: str, place: int) -> str:
    """Return the role of a judge within the cascade that has the role `role`: `judge>1`, `judge>2`, ..."""
    return f"{role}{SIGN}{place + 1}"


def is_stage_role(role: str) -> bool:
    """Return True for a role that `stage_role` made."""
    return fullmatch(rf".*{SIGN}\d+", role) is not None


def with_stages(judges: Mapping[str, Judge]) -> dict[str, Judge]:
    """Return the judges by role, with the judges of cascades under separate roles.

    Cascades on different routes of one judge share these roles, so the kind of a question decides which is meant.
    """
    found = dict(judges)
    for role, judge in judges.items():
        if isinstance(judge, Cascade):
            found |= {stage_role(role, place): each for place, each in enumerate(judge.judges)}
        elif isinstance(judge, Routed):
            found |= {stage_role(role, place): each for place, each in enumerate(_routed_stages(judge))}
    return found


def _routed_stages(judge: Routed) -> Iterator[Routed]:
    """Yield, for each position, the judges at this position of the cascades among the routes."""
    cascades = [(route, route.judge) for route in judge.routes if isinstance(route.judge, Cascade)]
    for place in range(max((len(each.judges) for _, each in cascades), default=0)):
        yield Routed(
            tuple(
                route._replace(judge=cascade.judges[place])
                for route, cascade in cascades
                if place < len(cascade.judges)
            )
        )


def each_judge(judges: Iterable[Judge]) -> Iterator[Judge]:
    """Yield all judges that are asked directly: those of the routes of a routed judge, and of a cascade."""
    for judge in chain.from_iterable(map(parts_of, judges)):
        if isinstance(judge, Cascade):
            yield from judge.judges
        else:
            yield judge


def cascade_of(judges: Sequence[Judge], *, max_error: float = MAX_ERROR, pilot: int | None = None) -> Cascade:
    """Return a cascade of at least two judges.

    Args:
        judges: in the order in which they are asked, the cheapest first.
        max_error: largest share of the answers of an earlier judge that may differ from the last judge's.
        pilot: pilot questions per kind of question and earlier judge; None: 10 / `max_error`, so 200 for 5 %.

    Raises:
        UsageError: fewer than two judges, the same judge twice, or a pilot that is too small to show anything.
    """
    if not 0 < max_error < 1:
        raise UsageError(f"max_error (--max-error) is a rate between 0 and 1, got {max_error:g}.")
    if len(judges) < 2:
        raise UsageError(_ALONE)
    for place, judge in enumerate(judges):
        if any(judge.fingerprint() == other.fingerprint() for other in judges[:place]):
            raise UsageError(f"{judge.name} appears twice in a cascade and would answer the same again; name it once.")
    wanted = ceil(_PILOT_ERRORS / max_error - 1e-9) if pilot is None else pilot
    if wanted < (fewest := min_pilot(max_error)):
        raise UsageError(
            f"A pilot of {wanted} questions cannot show that at most {max_error:.3g} of the answers differ; "
            f"that takes at least {fewest} (cascade_pilot, --cascade-pilot)."
        )
    return Cascade(tuple(map(Stage, judges[:-1])), judges[-1], max_error, wanted)


def min_pilot(max_error: float) -> int:
    """Return the number of answers without any error that just show, with `CLASS_LEVEL`, an error rate this small."""
    return ceil(log(1 - CLASS_LEVEL) / log1p(-max_error) - 1e-9)


def _kind(question: Question[Any] | Pack) -> type[Question[Any]]:
    return type(question.questions[0]) if isinstance(question, Pack) else type(question)


def _at_stage(question: Question[Any], place: int) -> Question[Any]:
    return replace(question, role=stage_role(question.role, place))
