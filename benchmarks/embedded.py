"""Speed of the embedded judge on one core."""

from __future__ import annotations

import json
import time
from importlib.resources import files

from figures import report

from merilo.data.sample import Sample
from merilo.judges.embedded import EmbeddedJudge
from merilo.judging.questions import Relevance


def main() -> None:
    """Print relevance judgements a second over the contexts of the example data, each seen for the first time."""
    lines = files("merilo.examples").joinpath("retrieval", "bm25.jsonl").read_text(encoding="utf-8").splitlines()
    samples = [Sample.from_record(json.loads(line)) for line in lines]
    questions = [Relevance(sample.require("user_input"), c.sentences) for sample in samples for c in sample.contexts]
    judge = EmbeddedJudge()
    _ = judge.fingerprint()
    began = time.process_time()
    for question in questions:
        conversation = judge.answer(question)
        try:
            next(conversation)
        except StopIteration:
            continue
        raise SystemExit("the embedded judge made a request")
    report("embedded relevance judgements a CPU s", len(questions) / (time.process_time() - began), at_least=100)


if __name__ == "__main__":
    main()
