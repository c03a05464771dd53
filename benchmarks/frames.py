"""Frames around answers and the embedded judge: python benchmarks/frames.py [--details]

Each frame, such as a reasoning block, a lead-in or a list of sources, is put around 60 supported and 60 unsupported
answers. Prints the fraction of answers with the verdict of the plain text, the unsupported answers that become
supported, the texts that look like a frame and keep their meaning, and the pairs of values that are compared rightly.
Rules are written for the half `tuning`; of the half `held out` only the figures are read.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from figures import report

import merilo
from merilo.data.answer import read_answer
from merilo.data.citations import Contexts
from merilo.data.values import same_values

FOLDER: Final = Path(__file__).parent / "frames"
HALVES: Final = ("tuning", "held out")
MIN_EQUAL: Final = 0.95
"""Minimum fraction of the answers in a frame that have the verdict of the plain answer."""
MIN_KEPT: Final = 0.9


def rows_of(name: str, half: int | None = None) -> list[dict[str, Any]]:
    """Return the records of a file, or one half of them."""
    rows = [json.loads(line) for line in (FOLDER / name).read_text(encoding="utf-8").splitlines()]
    return [each for each in rows if half is None or crc32(each["id"].encode()) % 2 == half]


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
    parser.add_argument("--details", action="store_true", help="print what fails in the tuning half")
    show = parser.parse_args().details
    answers = rows_of("answers.jsonl")
    frames = {each["id"]: eval(each["python"]) for each in rows_of("frames.jsonl")}  # noqa: S307  our own file
    plain = [(row, row[key]) for row in answers for key in ("response", "wrong")]
    verdicts = Verdicts([*plain, *((row, frame(text)) for frame in frames.values() for row, text in plain)])
    for half, name in enumerate(HALVES):
        details = sys.stderr if show and not half else None
        shares, turned = list[float](), 0
        for frame in rows_of("frames.jsonl", half):
            apply, unequal = frames[frame["id"]], list[str]()
            for row, text in plain:
                before, after = verdicts.of(row, text), verdicts.of(row, apply(text))
                turned += text == row["wrong"] and before != 1 and after == 1
                unequal += [f"{row['id']} {before} {after} {verdicts.read(row, apply(text))!r}"] * (before != after)
            shares.append(1 - len(unequal) / len(plain))
            if unequal and details:
                print(f"{frame['id']}: {len(unequal)}", *unequal[:4], sep="\n   ", file=details)
        report(f"frames, {name}: {len(shares)}; verdicts equal, mean", round(sum(shares) / len(shares), 4))
        report(f"frames, {name}: lowest fraction of equal verdicts", round(min(shares), 3), at_least=MIN_EQUAL)
        report(f"frames, {name}: frames below {MIN_EQUAL}", sum(each < MIN_EQUAL for each in shares), at_most=0)
        report(f"frames, {name}: unsupported answers that become supported", turned, at_most=0)
        alike = rows_of("lookalikes.jsonl", half)
        lost = [each for each in alike if not _keeps(each)]
        kept = 1 - len(lost) / len(alike)
        report(f"texts that look like a frame, {name}: kept of {len(alike)}", round(kept, 3), at_least=MIN_KEPT)
        pairs = rows_of("units.jsonl", half)
        wrong = [each for each in pairs if same_values(each["a"], each["b"]) is not each["same"]]
        report(f"pairs of values, {name}: compared rightly of {len(pairs)}", round(1 - len(wrong) / len(pairs), 3))
        if details:
            print(
                *(f"{each['text']} -> {read_answer(each['text'])!r}" for each in lost), *wrong, sep="\n", file=details
            )


def _keeps(row: dict[str, Any]) -> bool:
    read = " ".join(read_answer(row["text"]).split())
    return all(" ".join(each.split()) in read for each in row["must_keep"])


if __name__ == "__main__":
    main()
