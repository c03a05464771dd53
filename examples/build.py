"""Build the example data that ships inside merilo: `python examples/build.py --data DIR [--out DIR]`.

DIR holds `provenance.json` and, under `dev` and `train`, gzipped JSON Lines of human-labelled records.
The same input gives the same bytes. Questions and answers are chosen by rule and by digest, never by hand.
"""

import argparse
import json
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TypedDict, cast

from detokenise import detokenise
from judged_answers import judged_answers
from records import digest, read, write_lines
from retrievers import BM25, Hit, OpeningOverlap, Passage, Retriever, quality, search

_HERE = Path(__file__).parent
_PACKAGE_DATA = _HERE.parent / "src" / "merilo" / "examples"

_QUESTIONS = 60
_TOP = 5
_PASSAGE_WORDS = range(40, 141)  # short passages, because the files travel in the wheel
_ANSWERS_PER_LABEL = 22
_MOST_CONTEXT_WORDS = 500


class Source(TypedDict):
    """An entry of `provenance.json`."""

    repo: str
    commit: str
    paths: list[str]


@dataclass(frozen=True)
class Question:
    """A question with the answer a person wrote from its gold passage."""

    id: str
    text: str
    reference: str
    gold: Passage


def main() -> None:
    """Write both parts and their README, and print the figures."""
    parser = argparse.ArgumentParser(description="Build the example data that ships inside merilo.")
    parser.add_argument("--data", type=Path, required=True, help="folder of the labelled records")
    parser.add_argument("--out", type=Path, default=_PACKAGE_DATA, help="folder to write to")
    options = parser.parse_args()
    data, out = cast("Path", options.data), cast("Path", options.out)

    facts = build_retrieval(data, out / "retrieval") | build_generation(data, out / "generation")
    facts |= source_commits(data / "provenance.json") | {
        "fewest_words": str(_PASSAGE_WORDS[0]),
        "most_words": str(_PASSAGE_WORDS[-1]),
        "most_context_words": str(_MOST_CONTEXT_WORDS),
    }
    template = Template((_HERE / "package_readme.md").read_text(encoding="utf-8"))
    (out / "README.md").write_text(template.substitute(facts), encoding="utf-8", newline="\n")
    print("\n".join(f"{name}: {fact}" for name, fact in facts.items()))


def build_retrieval(data: Path, out: Path) -> dict[str, str]:
    """Write one file a retriever; what the README says of them."""
    corpus = clapnq_corpus(data)
    questions = clapnq_questions(data, corpus)[:_QUESTIONS]
    gold = [question.gold.id for question in questions]
    facts = {"questions": str(len(questions)), "passages": str(len(corpus))}
    missed = set(range(len(questions)))
    retrievers: dict[str, Retriever] = {"bm25": BM25(corpus), "opening_overlap": OpeningOverlap(corpus)}
    for name, retriever in retrievers.items():
        hits = [search(retriever, corpus, question.text, k=_TOP) for question in questions]
        write_lines(out / f"{name}.jsonl", map(retrieval_sample, questions, hits))
        ranked = [[hit.passage.id for hit in found] for found in hits]
        missed -= {place for place, ids in enumerate(ranked) if gold[place] in ids}
        facts[name] = str(quality(ranked, gold))
    return facts | {"missed_by_both": str(len(missed))}


def clapnq_corpus(data: Path) -> list[Passage]:
    """Every readable CLAPNQ passage of fitting length, in the order of its digest."""
    texts = {
        (record["meta"]["title"], record["context"])
        for split in ("dev", "train")
        for task in ("chunk_relevance", "groundedness", "sufficiency")
        for record in read(data / split / f"{task}.jsonl.gz", "clapnq")
    }
    fitting = [
        (title, text)
        for title, text in texts
        if len(text.split()) in _PASSAGE_WORDS and "\\" not in text  # a backslash: remains of a formula
    ]
    ordered = sorted(fitting, key=lambda pair: digest(*pair))
    return [Passage(passage_id(title, text), title, detokenise(text)) for title, text in ordered]


def clapnq_questions(data: Path, corpus: Sequence[Passage]) -> list[Question]:
    """The questions of the dev part whose gold passage is in the corpus, in the order of their ids."""
    by_id = {passage.id: passage for passage in corpus}
    questions: list[Question] = []
    for record in read(data / "dev" / "groundedness.jsonl.gz", "clapnq"):
        gold = by_id.get(passage_id(record["meta"]["title"], record["context"]))
        if gold is not None:
            text, reference = detokenise(record["query"]), detokenise(record["response"])
            questions.append(Question(record["id"], text, reference, gold))
    return sorted(questions, key=lambda question: question.id)


def retrieval_sample(question: Question, hits: Sequence[Hit]) -> dict[str, object]:
    """One line of a retrieval file; scores are rounded to four digits after the ranking."""
    return {
        "id": question.id,
        "user_input": question.text,
        "retrieved_contexts": [
            {"text": hit.passage.text, "id": hit.passage.id, "score": round(hit.score, 4)} for hit in hits
        ],
        "retrieved_context_ids": [hit.passage.id for hit in hits],
        "reference": question.reference,
        "reference_contexts": [question.gold.text],
        "reference_context_ids": [question.gold.id],
        "metadata": {"title": question.gold.title, "retrieved_titles": [hit.passage.title for hit in hits]},
    }


def passage_id(title: str, text: str) -> str:
    """The title in ASCII, then eight hexadecimal digits of the digest of title and untouched text."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return f"{re.sub(r'[^a-z0-9]+', '-', plain).strip('-')}-{digest(title, text)[:8]}"


def build_generation(data: Path, out: Path) -> dict[str, str]:
    """Write the judged answers, as many supported as not; what the README says of them."""
    fitting = [answer for answer in judged_answers(data / "dev") if len(answer.context.split()) <= _MOST_CONTEXT_WORDS]
    supported = [answer for answer in fitting if answer.supported][:_ANSWERS_PER_LABEL]
    unsupported = [answer for answer in fitting if not answer.supported][:_ANSWERS_PER_LABEL]
    kept = sorted(supported + unsupported, key=lambda answer: answer.id)
    write_lines(out / "answers.jsonl", (answer.sample() for answer in kept))
    return {"answers": str(len(kept)), "supported": str(len(supported)), "unsupported": str(len(unsupported))}


def source_commits(provenance: Path) -> dict[str, str]:
    """The commit each source was taken at."""
    sources = cast("list[Source]", json.loads(provenance.read_text(encoding="utf-8")))
    commits = {source["repo"]: source["commit"] for source in sources}
    return {
        "clapnq_commit": commits["primeqa/clapnq"],
        "qa_feedback_commit": commits["allenai/FineGrainedRLHF"],
    }


if __name__ == "__main__":
    main()
