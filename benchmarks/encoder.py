"""Speed, start and memory of the encoder on one core: `python benchmarks/encoder.py [WEIGHTS]`.

Every text is new to the encoder. Costs are per token, because tokens determine the cost of a text.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from figures import peak_mb, report

if TYPE_CHECKING:
    from collections.abc import Callable

    from merilo.judges.encoder.model import Encoded

ROUNDS = 5
CONTEXT_WORDS = 120
STATEMENT_TOKENS, SENTENCE_TOKENS = 20, 30


def example_words() -> list[str]:
    """Return the words of all contexts of the example data, in order."""
    lines = files("merilo.examples").joinpath("retrieval", "bm25.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        word for line in lines for context in json.loads(line)["retrieved_contexts"] for word in _text(context).split()
    ]


def _text(context: str | dict[str, str]) -> str:
    return context if isinstance(context, str) else context["text"]


def cpu_ms(step: Callable[[int], object], times: int) -> float:
    """Return CPU milliseconds per step, the best of several rounds; each step gets a number that is used once."""
    best = float("inf")
    for number in range(ROUNDS):
        began = time.process_time()
        for each in range(number * times, (number + 1) * times):
            step(each)
        best = min(best, (time.process_time() - began) / times)
    return best * 1_000


def main() -> None:
    """Print all figures."""
    began, other = time.process_time(), time.perf_counter()
    import numpy as np

    from merilo.judges.encoder.model import MARKS, Encoder, Reader, Weights
    from merilo.judges.encoder.wordpiece import Window

    packaged = Path(str(files("merilo.judges").joinpath("encoder.v1.safetensors")))
    weights = Weights.read(Path(sys.argv[1]) if len(sys.argv) > 1 else packaged)
    encoder, reader = Encoder(weights), Reader(weights)
    pooled_one = encoder.encode("ready").pooled
    report("encoder: start with imports, CPU s", time.process_time() - began, at_most=0.5)
    report("encoder: the same by the clock, s", time.perf_counter() - other)
    words = example_words()

    def text(number: int, length: int) -> str:
        return " ".join((words * 2)[number * 7 % len(words) :][:length])

    def read(number: int, length: int, most: int = encoder.longest) -> Encoded:
        """Return a text of this number of words, or of the maximum number of tokens if that is less."""
        return encoder.encode_window(Window.of(encoder.wordpiece.ids(text(number, length))[: most - MARKS]))

    contexts = [len(read(each, CONTEXT_WORDS).ids) for each in range(20)]
    print(f"{sum(contexts) / len(contexts):.0f} tokens a context, vectors of {len(pooled_one)}", file=sys.stderr)
    whole = " ".join(words)
    speed = len(whole.encode()) / 1e3 / cpu_ms(lambda _: encoder.wordpiece.ids(whole), 5)
    report("encoder: text to ids, MB a CPU s", speed, at_least=1)
    context = cpu_ms(lambda each: read(each, CONTEXT_WORDS), 20)
    report("encoder: a new context of 120 words, CPU ms", context, at_most=50)
    vector = cpu_ms(lambda each: read(each, CONTEXT_WORDS).pooled, 20)
    report("encoder: the same with its vector, CPU ms", vector, at_most=50)
    report("encoder: a new sentence of 25 words, CPU ms", cpu_ms(lambda each: read(each, 25), 40))

    def see(short: Encoded, long: Encoded) -> object:
        """Score a pair with the features that the reader takes: the nearest tokens, and their rarity."""
        near = reader.nearest(short, long)
        return reader.logits(short, long, features=np.stack([near] * reader.features, 1))

    def new(number: int, tokens: int) -> Encoded:
        return read(number, tokens, tokens)

    def new_pair(number: int) -> object:
        return see(new(number, STATEMENT_TOKENS), new(number + 9_999, SENTENCE_TOKENS))

    report("encoder: a new statement-sentence pair, CPU ms", cpu_ms(new_pair, 40), at_most=1_000 / 60)
    short = [new(each, STATEMENT_TOKENS) for each in range(20)]
    long = [new(each, SENTENCE_TOKENS) for each in range(100, 120)]
    pair = cpu_ms(lambda each: see(short[each % 20], long[each // 20 % 20]), 400)
    report("encoder: a pair encoded already, CPU ms", pair, at_most=2)
    windows = [read(each, CONTEXT_WORDS) for each in range(20)]
    against = cpu_ms(lambda each: see(short[each % 20], windows[each // 20 % 20]), 400)
    report("encoder: a statement and a context encoded already, CPU ms", against)
    report("encoder: peak memory, MB", peak_mb(), at_most=400)


if __name__ == "__main__":
    main()
