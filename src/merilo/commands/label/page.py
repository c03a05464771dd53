"""The labelling page: one HTML file with tasks of `merilo label`, to be answered in a browser.

It has the questions and texts that the terminal form shows, and no verdict, score or path of a run. Answers are saved
in the browser, or sent to a server that stores them with `store_answer`. Without scripts it lists the tasks.
"""

from __future__ import annotations

from hashlib import blake2b
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.label.choices import READ, about, keys_of, named, range_of
from merilo.commands.label.task_file import open_task
from merilo.commands.label.tasks import COLUMNS
from merilo.errors import DataError
from merilo.rendering.assets import MARK_SCRIPTS, asset, policy
from merilo.rendering.markup import Markup, el, json_text, raw_element
from merilo.rendering.wording import count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.commands.label.task_file import OpenTask

GUIDELINES: Final = (
    "Judge by the texts on this page alone, even if you know more or know better.",
    "Judge each task separately, even if it resembles an earlier one.",
    "If two answers seem possible, choose the one that fits better.",
    "Skip a task only if you cannot read it: skipped tasks make the corrected numbers less reliable.",
    "Do not discuss tasks with other annotators before all of you have finished.",
)
_TAKEN: Final = frozenset({"u", "z", "s", "g", "?"})
"""Keys of commands on the page."""


def label_page(
    records: Sequence[Mapping[str, object]],
    *,
    save: str | None = None,
    guidelines: Sequence[str] = GUIDELINES,
) -> str:
    """Return the page for these tasks, in their order; equal arguments give an equal page.

    `records`: as in `TaskLine.record` and `TaskFile.records`. `save`: the address on the server of the page that stores
    an answer; None if answers stay in the browser and are downloaded as a file. Raises DataError if no task needs an
    answer.
    """
    tasks = [open_task(place, record) for place, record in enumerate(records)]
    asked = [task for task in tasks if task is not None]
    if not asked:
        raise DataError("No task needs an answer, so there is nothing to label.")
    style = asset("report.css") + asset("label.css")
    scripts = [MARK_SCRIPTS, asset("label.js")]
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy(style, scripts, served=save is not None)),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", "Label · merilo"),
        raw_element("style", style),
        raw_element("script", scripts[0]),
    )
    body = el(
        "body",
        el("main", id="label", cls="app"),
        _plain(asked),
        raw_element("script", json_text(_data(records, tasks, save, guidelines)), type="application/json", id="tasks"),
        raw_element("script", scripts[1]),
    )
    return f"<!doctype html>\n{el('html', head, body, lang='en')}\n"


def _data(
    records: Sequence[Mapping[str, object]],
    tasks: Sequence[OpenTask | None],
    save: str | None,
    guidelines: Sequence[str],
) -> dict[str, Any]:  # Any: JSON
    forms: list[dict[str, Any]] = []  # Any: JSON
    form_of: list[int] = []
    for task in tasks:
        form = None if task is None else _form(task)
        if form is not None and form not in forms:
            forms.append(form)
        form_of.append(-1 if form is None else forms.index(form))
    ids = "\n".join(str(record.get("task")) for record in records)
    return {
        "digest": blake2b(ids.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest(),
        "columns": COLUMNS,
        "read": sorted(READ),
        "records": records,
        "forms": forms,
        "form": form_of,
        "pair": any(task is not None and task.pair for task in tasks),
        "guidelines": guidelines,
        "save": save,
    }


def _form(task: OpenTask) -> dict[str, Any]:  # Any: JSON
    """Return how a task is answered: by keys, or by a number in a range (None for an end without a limit)."""
    low, high = (end if isfinite(end) else None for end in range_of(task))
    return {"keys": [(key.typed, key.label, key.meaning) for key in keys_of(task, _TAKEN)], "low": low, "high": high}


def _plain(tasks: Sequence[OpenTask]) -> Markup:
    """Return the tasks as a list, for readers without scripts."""
    return el(
        "main",
        el("h1", f"Label {count(len(tasks), 'task')}"),
        el("p", "Answers need scripts, which are switched off here. The tasks are listed below; in a terminal:"),
        el("pre", "merilo label tasks.jsonl --ask"),
        [_listed(number, task) for number, task in enumerate(tasks, start=1)],
        cls="wrap plain",
        id="plain",
    )


def _listed(number: int, task: OpenTask) -> Markup:
    first = about(task.texts)
    texts = [*first, *(each for each in task.texts if each not in first)]
    return el(
        "article",
        el("h2", f"{number}. {task.question}", cls="t", dir="auto"),
        [(el("h3", named(name)), el("p", text, cls="t", dir="auto")) for name, text in texts],
        el("p", el("b", "Answers: "), task.explained or "a number"),
    )
