"""Speed of the embedded judge on one core, asked in rounds as a run asks it."""

from __future__ import annotations

import json
import time
from importlib.resources import files

from figures import report

from merilo.data.sample import Sample
from merilo.engine.rounds import Batches
from merilo.judges.embedded import EmbeddedJudge
from merilo.judging.questions import Relevance
from merilo.judging.verdicts import RelevanceVerdict


def main() -> None:
    """Print relevance judgements a second over the contexts of the example data, each seen for the first time."""
    lines = files("merilo.examples").joinpath("retrieval", "bm25.jsonl").read_text(encoding="utf-8").splitlines()
    samples = [Sample.from_record(json.loads(line)) for line in lines]
    questions = [Relevance(sample.require("user_input"), c.sentences) for sample in samples for c in sample.contexts]
    judge = EmbeddedJudge()
    _ = judge.fingerprint(), RelevanceVerdict.from_json(RelevanceVerdict(0).to_json())  # what every run loads once
    began = time.process_time()
    talks = [judge.answer(question) for question in questions]
    sends = [send for talk in talks for send in next(talk)]
    for place, reply in Batches()(sends):
        try:
            talks[place].send((reply,))
        except StopIteration:
            continue
        raise SystemExit("the embedded judge asked again")
    report("embedded relevance judgements a CPU s", len(questions) / (time.process_time() - began), at_least=100)


if __name__ == "__main__":
    main()
