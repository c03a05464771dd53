"""A judge that answers from tables, and the questions that it was asked."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from merilo.data.sample import Sample
from merilo.judging.kinds.contexts import (
    Mentions,
    MentionsVerdict,
    Relevance,
    RelevanceVerdict,
    Sufficiency,
    SufficiencyLabel,
    SufficiencyVerdict,
    Support,
    SupportLabel,
    SupportVerdict,
    Usefulness,
    UsefulnessVerdict,
)
from merilo.judging.kinds.measured import Embeddings, MatrixVerdict
from merilo.judging.kinds.responses import (
    Addresses,
    AddressesVerdict,
    Answered,
    AnsweredVerdict,
    Choice,
    ChoiceVerdict,
    Entities,
    EntitiesVerdict,
    Entity,
    Noncommittal,
    NoncommittalVerdict,
    Parts,
    PartsVerdict,
    Statement,
    Statements,
    StatementsVerdict,
)
from merilo.judging.questions import Question
from merilo.judging.verdicts import Failure, Verdict
from merilo.metrics.base import Metric, Score, Undefined, drive


@dataclass
class Says:
    """Answers by table; what stands in no table gets the worst verdict, statements are the sentences."""

    grades: Mapping[str, int] = field(default_factory=dict)
    """Grade of a context by its first sentence, on its first sentence."""
    useful: Collection[str] = ()
    statements: tuple[str, ...] | None = None
    supported: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Contexts that support a statement."""
    contradicted: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    otherwise: SupportLabel = SupportLabel.NOT_STATED
    sufficiency: SufficiencyLabel = SufficiencyLabel.INSUFFICIENT
    addressing: Collection[str] = ()
    declines: bool = False
    parts: tuple[str, ...] = ()
    answered: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Sentences that answer a part."""
    entities: tuple[str, ...] = ()
    mentioned: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Contexts that mention an entity."""
    label: str = ""
    vectors: Mapping[str, list[float]] = field(default_factory=dict)
    failing: Failure | None = None
    asked: list[Question[Any]] = field(default_factory=list)

    def __call__(self, question: Question[Any]) -> Verdict | Failure:
        self.asked.append(question)
        return self.failing or self._verdict(question)

    def _verdict(self, question: Question[Any]) -> Verdict:
        match question:
            case Relevance(sentences=(first, *_)):
                grade = self.grades.get(first, 0)
                return RelevanceVerdict(grade, (0,) if grade else ())
            case Usefulness(sentences=(first, *_)):
                return UsefulnessVerdict(first in self.useful, (0,) if first in self.useful else ())
            case Statements(sentences=sentences):
                texts = sentences if self.statements is None else self.statements
                return StatementsVerdict(tuple(Statement(text, 0) for text in texts))
            case Support(statement=statement):
                if statement in self.supported:
                    return SupportVerdict(SupportLabel.SUPPORTED, self.supported[statement])
                if statement in self.contradicted:
                    return SupportVerdict(SupportLabel.CONTRADICTED, self.contradicted[statement])
                tells = self.otherwise is not SupportLabel.UNSUPPORTED
                return SupportVerdict(self.otherwise, tells_contradicted=tells)
            case Sufficiency():
                return SufficiencyVerdict(self.sufficiency)
            case Addresses(statement=statement):
                return AddressesVerdict(statement in self.addressing)
            case Noncommittal():
                return NoncommittalVerdict(self.declines)
            case _:
                return self._rarer(question)

    def _rarer(self, question: Question[Any]) -> Verdict:
        match question:
            case Parts():
                return PartsVerdict(self.parts)
            case Answered(part=part):
                return AnsweredVerdict(part in self.answered, self.answered.get(part, ()))
            case Entities():
                return EntitiesVerdict(tuple(Entity(text, 0) for text in self.entities))
            case Mentions(name=name):
                return MentionsVerdict(name in self.mentioned, self.mentioned.get(name, ()))
            case Choice():
                return ChoiceVerdict(self.label)
            case Embeddings(texts=texts):
                return MatrixVerdict.of([self.vectors[text] for text in texts])
            case _:
                raise AssertionError(question)


def outcome(metric: Metric, sample: Sample, says: Says) -> Score | Undefined:
    """What the metric makes of the sample."""
    return drive(metric.plan(sample), says)


def value(metric: Metric, sample: Sample, says: Says) -> float:
    """The value of a score that must be there."""
    found = outcome(metric, sample, says)
    assert isinstance(found, Score), found
    return found.value
