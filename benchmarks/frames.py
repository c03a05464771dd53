"""Frames around answers and the embedded judge: python benchmarks/frames.py [--details]

Each frame, such as a reasoning block, a lead-in or a list of sources, is put around 60 supported and 60 unsupported
answers. Prints the fraction of answers with the verdict of the plain text, the unsupported answers that become
supported, the texts that look like a frame and keep their meaning, and the pairs of values that are compared rightly.
The rules were written with these frames in sight; of the last 70, 61 kept their verdicts before, and 35 of the last 40
texts that look like a frame their meaning.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final

from figures import report

import merilo
from merilo.data.answer import read_answer
from merilo.data.citations import Contexts
from merilo.data.values import has_values, values

FOLDER: Final = Path(__file__).parent / "frames"
MIN_EQUAL: Final = 0.95
"""Minimum fraction of the answers in a frame that have the verdict of the plain answer."""
MAX_BELOW: Final = 1
"""An answer without its final stop is read as it is."""
MIN_KEPT: Final = 0.9


def rows_of(name: str) -> list[dict[str, Any]]:
    """Return the records of a file."""
    return [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]


class Verdicts:
    """The faithfulness of texts; answers that are read as the same text are judged once."""

    def __init__(self, texts: list[tuple[dict[str, Any], str]]) -> None:
        read = {(row["id"], self.read(row, text)): row for row, text in texts}
        samples = [
            {"id": str(at), "response": text} | {key: row[key] for key in ("user_input", "retrieved_contexts")}
            for at, ((_, text), row) in enumerate(read.items())
        ]
        run = merilo.evaluate(samples, metrics=["faithfulness"], judge="embedded")
        scores = [getattr(each.outcomes["faithfulness"], "value", None) for each in run.samples]
        self.scores: dict[tuple[str, str], float | None] = dict(zip(read, scores, strict=True))

    @staticmethod
    def read(row: dict[str, Any], text: str) -> str:
        """Return an answer as it is judged."""
        ids = (None,) * len(row["retrieved_contexts"])
        return read_answer(text, Contexts((*row["retrieved_contexts"], row["user_input"]), ids))

    def of(self, row: dict[str, Any], text: str) -> float | None:
        """Return the score of a text as the answer of a row."""
        return self.scores[row["id"], self.read(row, text)]


def main() -> None:
    """Print the figures of both halves."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--details", action="store_true", help="print what fails")
    show = parser.parse_args().details
    answers = rows_of("answers.jsonl")
    frames = {each["id"]: eval(each["python"]) for each in rows_of("frames.jsonl")}  # noqa: S307  our own file
    plain = [(row, row[key]) for row in answers for key in ("response", "wrong")]
    verdicts = Verdicts([*plain, *((row, frame(text)) for frame in frames.values() for row, text in plain)])
    details = sys.stderr if show else None
    shares, turned = list[float](), 0
    for name, apply in frames.items():
        unequal = list[str]()
        for row, text in plain:
            before, after = verdicts.of(row, text), verdicts.of(row, apply(text))
            turned += text == row["wrong"] and before != 1 and after == 1
            unequal += [f"{row['id']} {before} {after} {verdicts.read(row, apply(text))!r}"] * (before != after)
        shares.append(1 - len(unequal) / len(plain))
        if unequal and details:
            print(f"{name}: {len(unequal)}", *unequal[:4], sep="\n   ", file=details)
    report(f"frames: {len(shares)}; verdicts equal, mean", round(sum(shares) / len(shares), 4))
    report(f"frames below {MIN_EQUAL}", sum(each < MIN_EQUAL for each in shares), at_most=MAX_BELOW)
    report("frames: unsupported answers that become supported", turned, at_most=0)
    alike = rows_of("lookalikes.jsonl")
    lost = [each for each in alike if not _keeps(each)]
    report(
        f"texts that look like a frame: kept of {len(alike)}", round(1 - len(lost) / len(alike), 3), at_least=MIN_KEPT
    )
    pairs = rows_of("units.jsonl")
    read = [(each, values(each["a"]), values(each["b"])) for each in pairs]
    wrong = [each for each, a, b in read if (has_values(a, b) and has_values(b, a)) is not each["same"]]
    report(f"pairs of values: compared rightly of {len(pairs)}", round(1 - len(wrong) / len(pairs), 3))
    if details:
        print(*(f"{each['text']} -> {read_answer(each['text'])!r}" for each in lost), *wrong, sep="\n", file=details)


def _keeps(row: dict[str, Any]) -> bool:
    contexts = row.get("contexts", [])
    read = " ".join(read_answer(row["text"], Contexts(tuple(contexts), (None,) * len(contexts))).split())
    return all(" ".join(each.split()) in read for each in row["must_keep"])


if __name__ == "__main__":
    main()
