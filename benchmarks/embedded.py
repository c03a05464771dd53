"""Speed of the embedded judge: CPU of verdicts, by words and encoder together, and of runs by length of contexts."""

from __future__ import annotations

import tempfile
import time
from contextlib import suppress
from pathlib import Path

from encoder import CONTEXT_WORDS, SENTENCE_TOKENS, STATEMENT_TOKENS, cpu_ms, example_words
from figures import peak_mb, report

import merilo

STATEMENT_WORDS, SENTENCE_WORDS = STATEMENT_TOKENS * 3 // 4, SENTENCE_TOKENS * 3 // 4
ASKED = ("When was the first of them built, and by whom?", "Which of the two had more readers in the north?")
RUN_WORDS, CONTEXTS = 20_000, 5
LEAST_A_CPU_S = {40: 20, 120: 10, 200: 6, 800: 1.5}
"""Fewest contexts per CPU second in a run with the default metrics, by the words of a context."""
MOST_MB = 450


def contexts_per_cpu_s(words: list[str], length: int) -> float:
    """Return the contexts of `length` words per CPU second in a run whose contexts are all different."""
    texts = [" ".join((words * 2)[start:][:length]) for start in range(0, RUN_WORDS, length)]
    rows = [
        {
            "user_input": f"{ASKED[at % 2]} {at}",
            "retrieved_contexts": texts[at : at + CONTEXTS],
            "response": " ".join(texts[at].split()[:STATEMENT_WORDS]) + ".",
        }
        for at in range(0, len(texts), CONTEXTS)
    ]
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        merilo.evaluate(rows, out=Path(folder, "run"), storage={"cache": False})
        return len(texts) / (time.process_time() - began)


def main() -> None:
    """Print milliseconds of CPU for verdicts of each kind, and the cost of loading."""
    began, other = time.process_time(), time.perf_counter()
    from merilo.data.sentences import sentences
    from merilo.judges.blended import BlendedModel, CannotJudge
    from merilo.judges.embedded_provider import RULES
    from merilo.judging.kinds.contexts import Support

    model = BlendedModel.load()

    def support(statement: str, fact: tuple[str, ...]) -> None:
        """Judge a statement, whether or not there is a verdict."""
        with suppress(CannotJudge):
            RULES[Support](model, Support(statement, fact))

    support("It is so.", ("It is so.",))
    report("embedded: load with imports and a verdict, CPU s", time.process_time() - began)
    report("embedded: the same by the clock, s", time.perf_counter() - other)
    words = example_words()

    def text(number: int, length: int) -> str:
        """Return words from the example passages, different ones for each number."""
        return " ".join((words * 2)[number * 7 % len(words) :][:length])

    contexts = [sentences(text(each, CONTEXT_WORDS)) for each in range(300)]
    relevance = cpu_ms(lambda each: model.relevance(ASKED[each % 2], contexts[each]), 20)
    report("embedded: relevance of a new context of 120 words, CPU ms", relevance, at_most=50)
    again = cpu_ms(lambda each: model.relevance(f"{ASKED[each % 2]} {each}", contexts[200 + each % 20]), 20)
    report("embedded: another question about a context, CPU ms", again)
    statements = [text(2_000 + 13 * each, STATEMENT_WORDS) for each in range(300)]
    facts = [(text(9_000 + 17 * each, SENTENCE_WORDS),) for each in range(300)]
    new = cpu_ms(lambda each: support(statements[each], facts[each]), 40)
    report("embedded: support of a new statement by a new sentence, CPU ms", new, at_most=1_000 / 60)
    pair = cpu_ms(lambda each: support(statements[each % 20], facts[each // 20 % 20]), 400)
    report("embedded: support, both encoded already, CPU ms", pair, at_most=2)
    report("embedded: peak memory, MB", peak_mb(), at_most=400)
    for length, least in LEAST_A_CPU_S.items():
        report(f"embedded: contexts of {length} words a CPU s", contexts_per_cpu_s(words, length), at_least=least)
    report("embedded: peak memory with these runs, MB", peak_mb(), at_most=MOST_MB)


if __name__ == "__main__":
    main()
