"""The embedded judge on sentences copied from a context: python benchmarks/copied_sentences.py

The sentences are from the topics of Python's own documentation (`pydoc_data.topics`). Each is judged against its
topic among other topics, alone and as the answer to a question. A copied sentence must be supported.
"""

from __future__ import annotations

import argparse
import random
import sys
from pydoc_data.topics import topics
from typing import Final

from figures import report

from merilo.data.sentences import sentences
from merilo.judges.blended import BlendedModel, CannotJudge
from merilo.judges.copied import is_question
from merilo.judges.embedded_provider import RULES
from merilo.judges.words import stems
from merilo.judging.kinds.contexts import Support

MIN_SUPPORTED: Final = 0.99
OTHERS: Final = 3
LENGTHS: Final = ((1, 3), (4, 7), (8, 15), (16, 30), (31, 10_000))
ASKED: Final = "What does the documentation say about it?"


def cases(count: int, seed: int) -> list[tuple[str, tuple[str, ...]]]:
    """Return sentences, each with its topic among others; a fifth of them of each length."""
    rng = random.Random(seed)
    names = sorted(topics)
    found: dict[tuple[int, int], list[tuple[str, str]]] = {each: [] for each in LENGTHS}
    for name in names:
        for sentence in sentences(topics[name]):
            size = len(sentence.split())
            if stems(sentence) and not is_question(sentence):
                next(own for (low, high), own in found.items() if low <= size <= high).append((sentence, name))
    chosen: list[tuple[str, tuple[str, ...]]] = []
    for own in found.values():
        for sentence, name in rng.sample(own, min(len(own), count // len(LENGTHS))):
            texts = [topics[each] for each in rng.sample([each for each in names if each != name], OTHERS)]
            texts.insert(rng.randrange(OTHERS + 1), topics[name])
            chosen.append((sentence, tuple(texts)))
    return chosen


def main() -> None:
    """Print the fraction that is supported, by length in words."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sentences", type=int, default=400, metavar="N")
    parser.add_argument("--seed", type=int, default=20)
    chosen = parser.parse_args()
    model = BlendedModel.load()
    found: dict[str, list[bool]] = {}
    for sentence, texts in cases(chosen.sentences, chosen.seed):
        size = len(sentence.split())
        low, high = next(each for each in LENGTHS if each[0] <= size <= each[1])
        for label, statement in (("alone", sentence), ("as an answer", f"{ASKED}\n\n{sentence}")):
            if label == "as an answer" and "\n\n" in sentence:
                continue  # a question and an answer are separated by a blank line, which sentences do not contain
            own = found.setdefault(f"{label}, {low} to {high} words", [])
            try:
                own.append(RULES[Support](model, Support(statement, texts)).positive)
            except CannotJudge:
                own.append(False)
            if not own[-1]:
                print(f"{label}: {sentence!r}", file=sys.stderr)
    for name, supported in sorted(found.items()):
        rate = sum(supported) / len(supported)
        report(f"copied sentences {name}: supported of {len(supported)}", rate, at_least=MIN_SUPPORTED)


if __name__ == "__main__":
    main()
