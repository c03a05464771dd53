"""The terminal form that shows the tasks of a file one by one and saves each label at once."""

from __future__ import annotations

import sys
from time import monotonic
from typing import TYPE_CHECKING, Final

from merilo.commands.label.task_file import READ, keys_of, meant, named
from merilo.commands.label.tasks import read_seconds
from merilo.rendering.page import Page, Span, Tone, page_width, show, write
from merilo.rendering.wording import count

if TYPE_CHECKING:
    from merilo.commands.label.task_file import Key, OpenTask, TaskFile

_BACK, _SKIP, _QUIT = "b", "s", "q"
_WORDS: Final = {"back": _BACK, "skip": _SKIP, "quit": _QUIT}
_TAKEN: Final = frozenset({_BACK, _SKIP, _QUIT, *_WORDS})


def ask_tasks(file: TaskFile, *, annotator: str = "") -> int:
    """Ask for a label of every unlabelled task, in file order, until the last task or `q`.

    Return the number of tasks labelled for the first time.
    """
    answered = 0
    if file.unread:
        write(f"{count(file.unread, 'line')} without a readable task, left unchanged.\n")
    at = _next(file, -1)
    while at is not None:
        task = file.tasks[at]
        keys = keys_of(task, _TAKEN)
        show(_page(file, at, task))
        start = monotonic()
        typed = _typed(keys, task)
        if typed is None or typed == _QUIT:
            break
        if typed == _BACK:
            at = max(at - 1, 0)
        elif typed == _SKIP:
            at = _next(file, at)
        else:
            answered += not task.label
            file.answer(at, typed, annotator, read_seconds(monotonic() - start))
            at = _next(file, at)
    _goodbye(file, ended=at is None)
    return answered


def _next(file: TaskFile, at: int) -> int | None:
    """Return the position of the next unlabelled task after this one; None if there is none."""
    return next((place for place in range(at + 1, len(file.tasks)) if not file.tasks[place].label), None)


def _page(file: TaskFile, at: int, task: OpenTask) -> Page:
    page = Page(page_width())
    page.line("")
    labelled = sum(bool(each.label) for each in file.tasks)
    done = f"Task {at + 1} of {len(file.tasks)}, {labelled} labelled, {file.time_left} left"
    page.text(done, tone=Tone.QUIET)
    # The texts to read may be long: what the task is about comes after them, next to the prompt.
    for name, text in sorted(task.texts, key=lambda each: each[0] not in READ):
        page.heading(named(name))
        page.text(text, indent=2)
    page.blank()
    page.text(task.question, tone=Tone.STRONG)
    keys = keys_of(task, _TAKEN)
    if keys:
        page.entries([(key.typed, _meaning(key)) for key in keys])
    else:
        page.text(task.explained or "a number", indent=2)
    page.line(Span("s skip, b back, q quit", Tone.QUIET))
    if task.label:
        page.text(f"Labelled {task.label} so far; press Enter to keep it.", tone=Tone.QUIET)
    return page


def _meaning(key: Key) -> str:
    if key.typed == key.label:
        return key.meaning
    return f"{key.label}: {key.meaning}" if key.meaning else key.label


def _typed(keys: tuple[Key, ...], task: OpenTask) -> str | None:
    """Return the typed label or command letter (`b`, `s`, `q`); None at the end of the input."""
    while True:
        write("> ")
        line = sys.stdin.readline()
        if not line:
            return None
        text = line.strip().casefold()
        if not text and task.label:
            return _SKIP
        if (letter := _WORDS.get(text, text)) in {_BACK, _SKIP, _QUIT}:
            return letter
        found = meant(keys, task, text)
        if found is not None:
            return found
        which = ", ".join(key.typed for key in keys) or task.explained or "a number"
        write(f"Type {which}, or s, b, q.\n")


def _goodbye(file: TaskFile, *, ended: bool) -> None:
    left = sum(not task.label for task in file.tasks)
    done = len(file.tasks) - left
    text = f"{done} of {count(len(file.tasks), 'task')} labelled"
    if left:
        text += f"; {left} skipped" if ended else f"; {left} left"
        text += ". Repeat the command to label " + ("it" if left == 1 else "them")
    write(f"\n{text}.\n")
