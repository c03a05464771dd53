"""Questions from templates: one on each line of a file, with `{title}` for the title of the document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.errors import UsageError
from merilo.judging.synthetic import chance

if TYPE_CHECKING:
    from pathlib import Path

    from merilo.data.corpus import SourceDocument

TITLE: Final = "{title}"


def load_templates(path: Path) -> tuple[str, ...]:
    """Return the templates in a file. Raises UsageError if it cannot be read, is empty or names another field."""
    try:
        lines = path.read_bytes().decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Cannot read the templates in {path} ({error}).") from error
    found = tuple(line.strip() for line in lines if line.strip())
    if not found:
        raise UsageError(f'{path} has no template. Write one question on each line, such as "What is {TITLE}?".')
    for line in found:
        if set("{}\0") & set(line.replace(TITLE, "")):
            raise UsageError(f"{path}: the only field of a template is {TITLE}, got {line!r}.")
    return found


def question_of(templates: tuple[str, ...], document: SourceDocument, passage: str, seed: int) -> str:
    """Return the question about a passage: one of the templates, filled in. Empty if it needs a title and has none."""
    template = templates[int(len(templates) * chance(seed, "template", passage))]
    return template.replace(TITLE, document.title) if document.title or TITLE not in template else ""
