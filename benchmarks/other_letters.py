"""The effect of lines in another script on verdicts about English texts: python benchmarks/other_letters.py [--texts
N]

Pages contain language menus and notices in Russian or Chinese. Such lines are inserted before, between and after the
sentences of labelled English contexts, and in one block with the first of them. Prints, for each kind, the fraction
of verdicts (grades of contexts, sufficiency, support of a response's sentences) that change, compared with that of
English lines of about the same length.
"""

from __future__ import annotations

import argparse
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from figures import report

from merilo.data.labels import Task, read_labels
from merilo.data.sentences import sentences
from merilo.judges.blended import BlendedModel, CannotJudge
from merilo.judges.embedded_provider import RULES
from merilo.judging.kinds.contexts import Sufficiency, Support

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from merilo.data.labels import Labelled

    Sentences = tuple[str, ...]
    Asked = Callable[[Sentences], int]

DEV: Final = Path(__file__).parent / "labels" / "dev"
LINES: Final[dict[str, Sentences]] = {
    "a menu in English": ("English | Russian | Chinese | Arabic | Hindi | Greek | Thai",),
    "names of languages in English": ("English", "Russian", "Chinese", "Arabic", "Hindi", "Greek", "Thai"),
    "names of languages": ("Русский", "中文", "العربية", "हिन्दी", "Ελληνικά", "ไทย", "日本語"),
    "a menu of languages": ("English | Русский | 中文 | العربية | हिन्दी | Ελληνικά | ไทย",),
    "a notice in English": ("This page is for information only.", "All rights are reserved by their owners."),
    "a notice in Chinese": ("本页面内容仅供参考，不构成任何建议。", "版权归其所有者所有，未经许可不得转载。"),
    "a story in English": ("The weather was fine, and music was played in the park.", "Later all of them went home.")
    * 6,
    "a story in Russian": ("Погода была хорошая, и в парке играла музыка.", "Потом все они пошли домой.") * 6,
}
MOST: Final = 0.01
"""Largest fraction of verdicts that lines in another script may change."""


def main() -> None:
    """Print a fraction for each kind of lines."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--texts", type=int, default=50, metavar="N", help="labelled contexts for each task")
    chosen = parser.parse_args()
    model = BlendedModel.load()
    cases = [
        (parts, asked, asked(parts))
        for name in ("chunk_relevance", "sufficiency", "groundedness")
        for record in islice(_english(DEV / f"{name}.jsonl.gz"), chosen.texts)
        for parts in [sentences(record.texts[0], "en")]
        for asked in _questions(record, model)
    ]
    for name, lines in LINES.items():
        changed = [asked(placed) != verdict for parts, asked, verdict in cases for placed in _placed(parts, lines)]
        limit = None if name.endswith("English") else MOST
        report(f"{len(changed)} verdicts, changed by {name}", sum(changed) / len(changed), at_most=limit)


def _english(path: Path) -> Iterator[Labelled]:
    return (record for record in read_labels([path]) if record.language == "en" and record.texts)


def _questions(record: Labelled, model: BlendedModel) -> Iterator[Asked]:
    """Return the questions about a context; each gives a number for its verdict."""
    if record.task is Task.CHUNK_RELEVANCE:
        yield lambda parts: model.relevance(record.query, parts).level
    elif record.task is Task.SUFFICIENCY:
        yield lambda parts: _judged(model, Sufficiency(record.query, ("\n\n".join(parts),)))
    else:
        for statement in sentences(record.response, "en"):
            yield partial(_supported, model, statement)


def _supported(model: BlendedModel, statement: str, parts: Sentences) -> int:
    return _judged(model, Support(statement, ("\n\n".join(parts),)))


def _judged(model: BlendedModel, question: Sufficiency | Support) -> int:
    try:
        return int(RULES[type(question)](model, question).positive)
    except CannotJudge:
        return -1


def _placed(parts: Sentences, lines: Sentences) -> Iterator[Sentences]:
    middle = len(parts) // 2
    yield (*lines, *parts)
    yield (*parts[:middle], *lines, *parts[middle:])
    yield (*parts, *lines)
    yield ("\n".join((*lines, parts[0])), *parts[1:])


if __name__ == "__main__":
    main()
