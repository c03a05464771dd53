"""Questions and verdicts of the kind `sentences`: the sentences of a text, as an external splitter finds them."""

from __future__ import annotations

from dataclasses import dataclass

from merilo.judging.questions import Question
from merilo.judging.synthetic import CONTEXT, OTHER
from merilo.judging.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class TextsVerdict(Verdict):
    """The pieces of a text, in order, unchanged or as the splitter trims them."""

    texts: tuple[str, ...]
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Sentences(Question[TextsVerdict]):
    """The sentences of a text as an external splitter finds them, for published metrics that count these sentences.

    `splitter` names it, for example `pysbd`.
    """

    kind = "sentences"
    verdict = TextsVerdict
    trials = ((CONTEXT, "pysbd"), (OTHER, "pysbd"))

    text: str
    splitter: str

    def guess(self) -> TextsVerdict:
        """Return the whole text as one sentence; none if it is blank."""
        return TextsVerdict((self.text,) if self.text.strip() else ())
