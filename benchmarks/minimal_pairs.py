"""The embedded judge on minimal pairs: python benchmarks/minimal_pairs.py [FILE ...]

Each pair is a true statement about a context and the same statement with one changed slot: a number, a unit, a name, a
negation, a comparison word, a table cell, a row or a subject. Prints the fractions that are judged and judged rightly
by type and language, and the statements that were judged wrongly.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

from figures import report

from merilo.judges.blended import BlendedModel, CannotJudge
from merilo.judges.embedded_provider import RULES
from merilo.judging.kinds.contexts import Support, SupportVerdict

FOLDER: Final = Path(__file__).parent / "labels" / "minimal_pairs"
MIN_RIGHT: Final = 0.75
"""Minimum fraction of statements of either kind that are judged rightly or not judged."""


def records_of(files: list[Path]) -> list[dict[str, Any]]:
    """Return the records of JSON Lines files."""
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    """Print the fractions and the wrong verdicts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="[default: all files of labelled pairs]")
    chosen = parser.parse_args()
    model = BlendedModel.load()
    right: dict[tuple[str, str], list[bool | None]] = defaultdict(list)
    for record in records_of(chosen.files or sorted(FOLDER.glob("*.jsonl"))):
        question = Support(record["statement"], (record["context"],), language=record["lang"])
        which = "true" if record["label"] else "changed"
        try:
            verdict = RULES[Support](model, question)
            assert isinstance(verdict, SupportVerdict)  # noqa: S101  the rule for this kind returns no other type
            is_right = verdict.supported == bool(record["label"])
        except CannotJudge:
            is_right = None
        for group in (f"type {record['meta']['type']}", f"language {record['lang']}", "all"):
            right[group, which].append(is_right)
        if is_right is False:
            print(f"{record['id']} ({record['lang']}): {record['statement']} | {verdict.reason}", file=sys.stderr)
    for (group, which), found in sorted(right.items()):
        given = [each for each in found if each is not None]
        name = f"minimal pairs, {group}, {which} statements"
        report(f"{name}: judged of {len(found)}", round(len(given) / len(found), 3))
        if given:
            report(f"{name}: right of the judged {len(given)}", round(sum(given) / len(given), 3))
        least = MIN_RIGHT if group == "all" else None
        wrong = found.count(False) / len(found)
        report(f"{name}: right or not judged of {len(found)}", round(1 - wrong, 3), at_least=least)


if __name__ == "__main__":
    main()
