"""The embedded judge on texts that are no sentences: python benchmarks/stuffed_texts.py [--seed N]

Contexts made by a generator: the words of a question and several answers in a row, the shuffled words of a sentence
that answers, and sentences that answer a question about a time without one. Prints how often each kind is called
relevant, sufficient, or supporting. The rules were written with seed 1; report with another seed.
"""

from __future__ import annotations

import argparse
import random
from contextlib import suppress
from typing import Final, NamedTuple

from figures import report

from merilo.data.sentences import sentences
from merilo.judges.blended import BlendedModel, CannotJudge
from merilo.judges.embedded_provider import RULES
from merilo.judging.kinds.contexts import Relevance, Sufficiency, Support

THINGS: Final = "harbour tower,railway bridge,town hall,water mill,city library,glass museum,stone church,old theatre"
PLACES: Final = "Lund,Visby,Bergen,Cologne,Graz,Trieste,Kalmar,Vologda,Minden,Porto"
VERBS: Final = "built,opened,closed,restored,sold,painted,enlarged,moved"
TAILS: Final = "by a company from the north,after a long debate in the council,with money from local merchants"
AUTHORS: Final = "Marta Holm,Olof Berg,Ilse Aichner,Anna Lind,Paul Werner"


class Case(NamedTuple):
    """A question, a statement that answers it, and a context that must not support it."""

    asked: str
    stated: str
    context: str


def case(rng: random.Random, kind: str) -> Case:
    """Return a case of this kind."""
    thing, place, verb, tail, author = (rng.choice(each.split(",")) for each in (THINGS, PLACES, VERBS, TAILS, AUTHORS))
    year = rng.randrange(1600, 1990)
    asked = f"When was the {thing} of {place} {verb}?"
    stated = f"The {thing} of {place} was {verb} in {year}."
    if kind == "stuffed words":
        context = f"{thing} {place} {verb} {year - 1} {year} {year + 1}"
    elif kind == "stuffed words with a full stop":
        context = f"{thing} {place} {verb} {year - 1} {year} {year + 1}."
    elif kind == "shuffled words":
        taken = f"the {thing} of {place} was {verb} in {year} {tail} in the centre of the town".split()
        rng.shuffle(taken)
        context = f"{' '.join(taken)}."
    elif kind == "no time stated":
        context = f"The {thing} of {place} was {verb} by {author}. It belongs to the town and is made of brick."
    else:
        context = f"The {thing} of {place} was {verb} in {year} {tail}. It belongs to the town."
    return Case(asked, stated, context)


KINDS: Final = ("stuffed words", "stuffed words with a full stop", "shuffled words", "no time stated", "a true answer")


def main() -> None:
    """Print a fraction for each kind and task."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--cases", type=int, default=100, metavar="N")
    chosen = parser.parse_args()
    model = BlendedModel.load()
    for kind in KINDS:
        rng = random.Random(chosen.seed)
        counts = {"relevant": 0, "sufficient": 0, "supported": 0}
        for _ in range(chosen.cases):
            each = case(rng, kind)
            parts = sentences(each.context)
            counts["relevant"] += RULES[Relevance](model, Relevance(each.asked, parts)).positive
            with suppress(CannotJudge):
                counts["sufficient"] += RULES[Sufficiency](model, Sufficiency(each.asked, (each.context,))).positive
            with suppress(CannotJudge):
                counts["supported"] += RULES[Support](model, Support(each.stated, (each.context,))).positive
        for task, count in counts.items():
            report(f"{chosen.cases} contexts, {kind}: {task}", count / chosen.cases)


if __name__ == "__main__":
    main()
