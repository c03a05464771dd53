"""Likely faults of samples: what the contexts hold, against what the response does with them.

If the run has the metric `answering`, its category is the fault. Otherwise two questions give a table. Are the contexts
sufficient (context_sufficiency)? Does the response decline, and are all its statements supported (faithfulness)? What
the run did not judge is "not judged".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from merilo.metrics.answering import Answering, Category

if TYPE_CHECKING:
    from collections.abc import Mapping

    from merilo.runs.outcomes import OutcomeRecord

DECLINES: Final = "the response declines to answer"
"""The beginning of the reason why a metric of the response is undefined if the response declines."""
SUFFICIENCY: Final = "context_sufficiency"
FAITHFULNESS: Final = "faithfulness"
ANSWERED: Final = ("answer_relevancy",)
"""Other metrics that ask whether the response declines."""
JUDGED: Final = frozenset({Answering.name, SUFFICIENCY, FAITHFULNESS, *ANSWERED})
"""Names of the metrics whose whole records `fault_of` reads."""


class Held(StrEnum):
    """What the contexts hold."""

    ENOUGH = "enough"
    SHORT = "short"
    UNKNOWN = "unknown"


class Answer(StrEnum):
    """What the response does."""

    SUPPORTED = "supported"
    STRAYED = "strayed"
    DECLINED = "declined"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Fault:
    """One cell of the table."""

    held: Held
    answer: Answer
    tone: str
    """`bad`, `warn`, `good` or `none`: the colour of the cell."""
    name: str
    cause: str
    """A sentence on the cause and where to look."""
    category: str = ""
    """The category of `answering`, or "cannot tell"; empty for a cell of the table."""

    @property
    def likely(self) -> bool:
        """True if it counts as a likely fault."""
        return self.tone in {"bad", "warn"}

    @property
    def glyph(self) -> str:
        """The character that repeats the colour."""
        return {"bad": "\u2717", "warn": "!", "good": "\u2713"}.get(self.tone, "?")


GRID: Final = (
    Fault(
        Held.SHORT,
        Answer.STRAYED,
        "bad",
        "No evidence, answered",
        "The contexts do not hold the answer, and the response claims what they do not say. Look at the "
        "retriever, then at the generator, which should have declined.",
    ),
    Fault(
        Held.ENOUGH,
        Answer.STRAYED,
        "bad",
        "Strayed from evidence",
        "The contexts hold enough, but the response says what they do not support. Look at the generator.",
    ),
    Fault(
        Held.UNKNOWN,
        Answer.STRAYED,
        "bad",
        "Not supported",
        "The contexts do not support all of the response. Whether they hold enough was not judged.",
    ),
    Fault(
        Held.ENOUGH,
        Answer.DECLINED,
        "warn",
        "Over-refusal",
        "The contexts hold enough, but the response declines. The generator is too careful.",
    ),
    Fault(
        Held.SHORT,
        Answer.SUPPORTED,
        "warn",
        "Retriever missed",
        "The contexts support the response but do not hold enough to answer. Look at the retriever.",
    ),
    Fault(
        Held.SHORT,
        Answer.UNKNOWN,
        "warn",
        "Contexts not enough",
        "The contexts do not hold enough to answer. The response was not judged.",
    ),
    Fault(
        Held.UNKNOWN,
        Answer.UNKNOWN,
        "none",
        "Not judged",
        "Neither the sufficiency of the contexts nor the support of the response has a verdict.",
    ),
    Fault(
        Held.SHORT,
        Answer.DECLINED,
        "none",
        "Declined, no evidence",
        "The contexts do not hold enough, and the response declines. If the documents have an answer, the retriever "
        "missed it: the metric answering decides this with a reference.",
    ),
    Fault(
        Held.UNKNOWN,
        Answer.DECLINED,
        "none",
        "Declined",
        "The response declines. Whether the contexts hold enough was not judged.",
    ),
    Fault(
        Held.ENOUGH,
        Answer.UNKNOWN,
        "none",
        "Contexts sufficient",
        "The contexts hold enough. The support of the response was not judged.",
    ),
    Fault(
        Held.UNKNOWN,
        Answer.SUPPORTED,
        "good",
        "Supported",
        "The contexts support the response. Whether they hold enough was not judged.",
    ),
    Fault(Held.ENOUGH, Answer.SUPPORTED, "good", "Grounded", "The contexts hold enough and support the response."),
)
"""All cells, in the order in which samples are listed."""
CELLS: Final = {(fault.held, fault.answer): place for place, fault in enumerate(GRID)}
"""Contexts and response → position in `FAULTS`."""
CANNOT_TELL: Final = "cannot tell"
JOINT: Final = (
    Fault(
        Held.SHORT,
        Answer.STRAYED,
        "bad",
        "Evidence missing, invented",
        "The contexts do not hold the answer, and the response claims what they do not say. Culprits: the retriever, "
        "and the generator, which should have declined.",
        Category.INVENTED,
    ),
    Fault(
        Held.ENOUGH,
        Answer.STRAYED,
        "bad",
        "Wrong",
        "The contexts hold the answer, but the response does not agree with the reference. Culprit: the generator.",
        Category.WRONG,
    ),
    Fault(
        Held.ENOUGH,
        Answer.STRAYED,
        "bad",
        "Beyond the evidence",
        "The contexts hold the answer, but the response also claims what they do not say. Culprit: the generator.",
        Category.BEYOND_EVIDENCE,
    ),
    Fault(
        Held.ENOUGH,
        Answer.DECLINED,
        "warn",
        "Declined though the evidence was there",
        "The contexts hold the answer, but the response declines. Culprit: the generator.",
        Category.DECLINED_WRONGLY,
    ),
    Fault(
        Held.SHORT,
        Answer.SUPPORTED,
        "warn",
        "Evidence missing",
        "The contexts do not hold the answer; the response declines or adds nothing to them. Culprit: the retriever.",
        Category.EVIDENCE_MISSING,
    ),
    Fault(
        Held.UNKNOWN,
        Answer.UNKNOWN,
        "none",
        "Cannot tell",
        "The metric answering has no value for this sample.",
        CANNOT_TELL,
    ),
    Fault(
        Held.SHORT,
        Answer.DECLINED,
        "good",
        "Rightly declined",
        "There is no evidence, or no answer, and the response declines. Without a reference it is not known if the "
        "retriever could have found more.",
        Category.RIGHTLY_DECLINED,
    ),
    Fault(
        Held.ENOUGH,
        Answer.SUPPORTED,
        "good",
        "Right",
        "The contexts hold the answer and support the response, and the reference, if there is one, agrees.",
        Category.RIGHT,
    ),
)
"""The categories of `answering`, in the order in which samples are listed."""
FAULTS: Final = (*GRID, *JOINT)
"""All faults: the cells of the table, then the categories."""
CATEGORIES: Final = {fault.category: place for place, fault in enumerate(FAULTS) if fault.category}
"""Category → position in `FAULTS`."""


def fault_of(records: Mapping[str, OutcomeRecord]) -> int:
    """Return the position in `FAULTS` of a sample with these outcomes, by metric name without parameters."""
    joint = records.get(Answering.name)
    if joint is not None:
        return CATEGORIES[_category(joint)]
    return CELLS[_held(records.get(SUFFICIENCY)), _answer(records)]


def _category(record: OutcomeRecord) -> str:
    """Return the category of a record of `answering`."""
    counts = record.get("counts", {}) if record["outcome"] == "score" else {}
    return next((name for name, count in counts.items() if count and name in CATEGORIES), CANNOT_TELL)


def _held(record: OutcomeRecord | None) -> Held:
    if record is None or record["outcome"] != "score":
        return Held.UNKNOWN
    labels = [piece["verdict"].get("label") for piece in record.get("evidence", ()) if piece["kind"] == "sufficiency"]
    if not labels:
        return Held.UNKNOWN
    return Held.ENOUGH if labels[0] == "sufficient" else Held.SHORT


def _answer(records: Mapping[str, OutcomeRecord]) -> Answer:
    record = records.get(FAITHFULNESS)
    asking = [each for name in (FAITHFULNESS, *ANSWERED) if (each := records.get(name)) is not None]
    if any(each["outcome"] == "undefined" and each.get("reason", "").startswith(DECLINES) for each in asking):
        return Answer.DECLINED
    if record is None or record["outcome"] != "score":
        return Answer.UNKNOWN
    labels = [piece["verdict"].get("label") for piece in record.get("evidence", ()) if piece["kind"] == "support"]
    if not labels:
        return Answer.UNKNOWN
    return Answer.SUPPORTED if all(label == "supported" for label in labels) else Answer.STRAYED
