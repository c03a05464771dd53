"""Put the sentence judgements of qa-feedback together again: one record an answer, with all its marks."""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from records import Record, read

_UNSUPPORTED = frozenset({"Wrong-Grounding", "Unverifiable"})
_MODEL = "t5-large-1k-train"


@dataclass(frozen=True)
class JudgedSentence:
    """A sentence of an answer and the kinds of error that the annotator marked in it."""

    text: str
    errors: tuple[str, ...]

    @property
    def supported(self) -> bool:
        """No part of the sentence was marked as wrong by the context or as not to be found there."""
        return _UNSUPPORTED.isdisjoint(self.errors)


@dataclass(frozen=True)
class JudgedAnswer:
    """An answer of a model, what it was given, and what the annotator marked."""

    id: str
    question: str
    context: str
    text: str
    sentences: tuple[JudgedSentence, ...]
    missing: tuple[str, ...]

    @property
    def supported(self) -> bool:
        """Every sentence is supported."""
        return all(sentence.supported for sentence in self.sentences)

    def sample(self) -> dict[str, object]:
        """One line of the file; `label` is 1 for supported and 0 for not."""
        return {
            "id": self.id,
            "user_input": self.question,
            "retrieved_contexts": [self.context],
            "response": self.text,
            "metadata": {
                "label": int(self.supported),
                "scale": "0-1",
                "annotators": 1,
                "model": _MODEL,
                "missing": list(self.missing),
                "sentences": [
                    {
                        "text": sentence.text,
                        "supported": int(sentence.supported),
                        "errors": list(sentence.errors),
                    }
                    for sentence in self.sentences
                ],
            },
        }


def judged_answers(split: Path) -> list[JudgedAnswer]:
    """The answers whose context is known and whose every sentence was judged, in the order of their ids."""
    contexts = {record["query"]: record["context"] for record in read(split / "groundedness.jsonl.gz", "qa-feedback")}
    judged: defaultdict[str, list[Record]] = defaultdict(list)
    for record in read(split / "answer_relevance.jsonl.gz", "qa-feedback"):
        judged[record["query"]].append(record)
    answers: list[JudgedAnswer] = []
    for whole in read(split / "answer_relevance.jsonl.gz", "qa-feedback-full"):
        question, text = whole["query"], whole["response"]
        sentences = _in_order(text, judged[question])
        if question in contexts and sentences:
            missing = tuple(whole["meta"]["missing"])
            answers.append(JudgedAnswer(whole["id"], question, contexts[question], text, sentences, missing))
    return sorted(answers, key=lambda answer: answer.id)


def _in_order(text: str, judged: list[Record]) -> tuple[JudgedSentence, ...]:
    """The judged sentences as they follow in the text; empty unless together they are the whole text."""
    placed = sorted((text.find(record["response"]), record["response"], record["meta"]["errors"]) for record in judged)
    if "".join("".join(part for _, part, _ in placed).split()) != "".join(text.split()):
        return ()
    return tuple(JudgedSentence(part, tuple(errors)) for _, part, errors in placed)
