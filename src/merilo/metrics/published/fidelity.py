"""The fidelity of the published definitions, by family: how replies are read, and what differs.

Declared once for each family. What is sent with a request is not written here: `rendering.reproduction` finds it by
running a definition's own plan, so that it cannot differ from the code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Fidelity:
    """The facts about all definitions of a family; parameters in braces stand for a definition's own defaults."""

    replies: str
    """The reading of replies, and the handling of an unreadable one."""
    checked: str
    """The source of the numbers that the definitions were compared with."""
    differs: tuple[str, ...] = ()
    """Known differences, besides those of every family."""


_SPRING_REPLIES: Final = (
    "JSON at the beginning of the reply, as Jackson reads it; a model whose reply cannot be read is left out and never "
    "re-asked, and a reply of null fails the sample"
)
_SPRING_CHECKED: Final = "its unit tests, its source, and computation by hand; the package itself was not run"
_SPRING_DIFFERS: Final = (
    "a Russian sample is asked in Russian; the package's prompts are English, as with --language en",
)
_RUN: Final = "numbers from a run of {} with scripted replies"

_NVIDIA: Final = "the first of the digits {ratings} that occurs in the reply; up to {tries} requests for each rating"
_REPAIRED: Final = "the first JSON value, closed if it is open; up to {repairs} requests for repair"
_RATINGS: Final = ("context_relevance", "response_groundedness", "answer_accuracy")
_INSTRUCTOR: Final = "as instructor up to 1.15.1 does (from 1.15.3 on: reasks=3)"
_COLLECTIONS: Final = (
    "runs of ragas 0.4.3 with instructor 1.14.4 and 1.17.0 against a local server",
    ("top_p=0.1, max_tokens=1024 and JSON mode, which instructor sends, are not sent",),
)

FAMILIES: Final[tuple[tuple[str, Fidelity], ...]] = (
    (
        "ragas-0.0.",
        Fidelity(
            "free text, read line by line; an unreadable reply is never re-asked", _RUN.format("ragas 0.0.12 to 15")
        ),
    ),
    (
        "ragas-0.1.9:context_relevancy",
        Fidelity("free text, cut into sentences; a reply is never re-asked", _RUN.format("ragas 0.1.9")),
    ),
    (
        "ragas-0.1.",
        Fidelity(
            "JSON, read leniently; an unreadable reply is sent back for repair once",
            _RUN.format("ragas 0.1.9 and 0.1.22"),
        ),
    ),
    ("ragas-0.3.0:nv_", Fidelity(_NVIDIA, "the source of ragas 0.3.0 and a run of 0.4.3")),
    ("ragas-0.3.0:", Fidelity(_REPAIRED, "the source of ragas 0.3.0, and some numbers from a run of it")),
    *(
        (
            f"ragas-0.4.3:collections.{name}",
            Fidelity(
                "the field `rating` of a JSON object, read strictly; {tries} tries for a rating, each re-asked up to "
                f"{{reasks}} times after an unreadable reply, {_INSTRUCTOR}",
                *_COLLECTIONS,
            ),
        )
        for name in _RATINGS
    ),
    (
        "ragas-0.4.3:collections.",
        Fidelity(
            "a JSON object between the outermost braces, read strictly; an unreadable reply is re-asked up to {reasks} "
            f"times in the same conversation, {_INSTRUCTOR}",
            *_COLLECTIONS,
        ),
    ),
    ("ragas-0.4.3:nv_", Fidelity(_NVIDIA, _RUN.format("ragas 0.4.3"))),
    ("ragas-0.4.3:", Fidelity(_REPAIRED, _RUN.format("ragas 0.4.3"))),
    ("nvidia:", Fidelity(_NVIDIA, _RUN.format("ragas 0.4.3"))),
    (
        "axion:",
        Fidelity(
            "JSON of the expected form; an unreadable reply counts as a failed request, which has its own score",
            "numbers from a run of axion's engine and metrics, its model class replaced; its source for empty texts",
        ),
    ),
    *(
        (
            f"spring-ai-ragas:{name}",
            Fidelity(
                _SPRING_REPLIES,
                _SPRING_CHECKED,
                (
                    "temperature 0.1 is sent, which the published code sets but never sends (temperature_sent=false)",
                    *_SPRING_DIFFERS,
                ),
            ),
        )
        for name in _RATINGS
    ),
    ("spring-ai-ragas:", Fidelity(_SPRING_REPLIES, _SPRING_CHECKED, _SPRING_DIFFERS)),
    (
        "deepeval-4.3.1:",
        Fidelity(
            "a JSON object that must fit the schema of its request (reply=schema, as DeepEval's own clients do) or is "
            "read leniently (reply=loose); an unreadable reply is never re-asked",
            "a run of DeepEval 4.3.1 against a local server, with four kinds of its models",
            (
                "text around the JSON is read, which its client of OpenAI models with structured outputs refuses",
                "requests of one sample are sent one after another (async_mode=False)",
            ),
        ),
    ),
    (
        "trulens:",
        Fidelity(
            "a JSON score or list, otherwise the smallest number in range; an unreadable reply is never re-asked",
            "a run of its rating parser; the rest from its source",
        ),
    ),
    (
        "umbrela:",
        Fidelity(
            "the label by patterns in order of priority; 0 if none matches",
            "a run of its parser; the rest from its source",
        ),
    ),
    (
        "ragchecker:",
        Fidelity("lists of claims and of labels as JSON", "a run of its computation; the rest from its source"),
    ),
    (
        "ares:",
        Fidelity(
            "the label in brackets; a reply without one counts as no",
            "a run of its label patterns; the rest from its source",
            ("classifiers trained for ARES are not used: a judge answers",),
        ),
    ),
    (
        "alce:",
        Fidelity(
            "a Support question of merilo's own in place of an entailment model",
            "computation by hand from its source; it was not run",
            ("sentences are split by merilo, not by NLTK",),
        ),
    ),
    (
        "autonuggetizer:",
        Fidelity(
            "a list of labels in Python's syntax; up to {tries} requests for one that can be read",
            "a run of nuggetizer 0.0.5 with scripted replies; weighted scores, which it lacks, by hand",
            (
                "after the last try the outcome is Failed; nuggetizer tries 500 times, then scores the nuggets 0",
                "a list with an item that is not a text is unreadable as a whole",
            ),
        ),
    ),
)
"""By the beginning of the names; of several that fit a name the first counts."""


def fidelity_of(name: str) -> Fidelity | None:
    """Return what holds for the family of a definition with this name; None for one of no published system."""
    return next((each for beginning, each in FAMILIES if name.startswith(beginning)), None)
