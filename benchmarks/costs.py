"""What judges cost for 1,000 answers of usual sizes, by the plan of the default metrics: `python benchmarks/costs.py`.

Five contexts of 200 words, a response of four sentences (60 words), no reference. Nothing is sent. The prices are those
of merilo's list, with the day on which they were read.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

import merilo

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLES: Final = 1_000
JUDGES: Final = (
    "systemone:jev-1.13.0",
    "decisions:gpt-6-luna",
    "openai:gpt-6-luna",
    "openai:gpt-4.1-mini",
)
_WORDS: Final = "the old river house was built near a green hill by many people in its first year of trade".split()


def rows() -> Iterator[dict[str, Any]]:
    """Yield the samples."""
    dice = random.Random(1)
    for place in range(SAMPLES):
        yield {
            "id": str(place),
            "user_input": f"When was the old house number {place} built?",
            "retrieved_contexts": [" ".join(_sentence(dice, 20) for _ in range(10)) for _ in range(5)],
            "response": " ".join(_sentence(dice, 15) for _ in range(4)),
        }


def _sentence(dice: random.Random, words: int) -> str:
    return " ".join(dice.choices(_WORDS, k=words)).capitalize() + "."


def main() -> None:
    """Print requests, tokens and price for each judge."""
    samples = list(rows())
    print("| judge | requests | M tokens in, out | USD |\n|---|---|---|---|")
    for judge in JUDGES:
        found = merilo.plan(samples, judge=judge, storage={"cache": False}).typical
        tokens = f"{found.input_tokens / 1e6:.1f}, {found.output_tokens / 1e6:.1f}"
        print(f"| `{judge}` | {found.requests:,.0f} | {tokens} | {found.usd:.2f} |")


if __name__ == "__main__":
    main()
