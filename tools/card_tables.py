"""The tables of the page on the embedded judge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from card_text import NONE, amount, between, percent, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    JSON = Mapping[str, Any]  # Any: parsed JSON

TASKS: Final = (
    "relevance",
    "evidence",
    "sufficiency",
    "support of responses",
    "support of statements",
    "support of edited responses",
    "short answers",
    "yes or no",
    "addresses",
)
_CURVES: Final = {
    "answers": "relevance",
    "sentence": "evidence",
    "sufficient": "sufficiency",
    "supported": "support",
    "answered": "short answers",
    "yes_or_no": "yes or no",
    "addresses": "addresses",
}
_EDITS: Final = {
    "order": "Several contexts are in another order.",
    "duplicate": "One of the contexts appears twice.",
    "padding": "An equal amount of text without content is added to a context.",
    "empty": "An empty context replaces all contexts.",
    "stuffing": "The question's words are added to an unrelated context.",
    "question": "The question is repeated in an unrelated context.",
    "instructions": "A context tells the judge which verdict to give: 30 instructions in English, Russian and Spanish.",
    "negation": "A supported statement is negated.",
    "number": "A number in a supported statement is changed.",
    "name": "A name in a supported statement is changed.",
}
"""What each probe does to a question."""


def agreement(model: Any, kind: str) -> str:  # Any: the model
    """Return the figures of each task; `kind`: unseen, known or locked."""
    rows = []
    for task in TASKS:
        each = model.agreement.get(task, {}).get(kind)
        if each is None:
            rows.append([task, *[NONE] * 4, "0", "0"])
            continue
        rows.append(
            [
                task,
                between(each["auroc"], each["auroc_interval"]),
                between(each["balanced_accuracy"], each["balanced_accuracy_interval"]),
                between(each["kappa"], each["interval"]),
                f"{each['calibration_error']:.2f}",
                str(each["families"]),
                f"{each['n']:,}",
            ]
        )
    head = ["task", "AUROC", "balanced accuracy", "κ", "calibration error", "families", "labels"]
    return table(head, rows)


def sources(model: Any) -> str:  # Any: the model
    """Return AUROC and balanced accuracy of each source, unseen ones first."""
    rows = [
        [task, source, "unseen" if kind == "unseen" else "known", f"{each['n']:,}"]
        + [f"{each[name]:.2f}" for name in ("auroc", "balanced_accuracy", "kappa")]
        for task in TASKS
        for kind in ("unseen", "known")
        for source, each in ((model.agreement.get(task, {}).get(kind) or {}).get("sources") or {}).items()
    ]
    return table(["task", "source", "reader", "labels", "AUROC", "balanced accuracy", "κ"], rows, left=3)


def components(model: Any) -> str:  # Any: the model
    """Return the AUROC of each curve and of its features alone, over left-out families."""
    rows = []
    for name, task in _CURVES.items():
        own = dict(model.components[name])
        whole = own.pop("all")
        alone = ", ".join(f"`{feature}` {value:.3f}" for feature, value in own.items() if value is not None)
        rows.append([task, NONE if whole is None else f"{whole:.3f}", alone or NONE])
    return table(["task", "all features", "each feature alone"], rows, left=3)


def licences(model: Any) -> str:  # Any: the model
    """Return the sources that the model was fitted on, with their licences."""
    return table(
        ["source", "licence"], [[source, licence] for source, licence in sorted(model.trained_on.items())], left=2
    )


def figures(step: JSON) -> str:
    """Return the output of a benchmark: each figure with its target."""
    rows = [[each["name"], amount(each["measured"]), _limit(each)] for each in step["record"]]
    return table(["figure", "measured", "target"], rows)


def _limit(each: JSON) -> str:
    if each["limit"] is None:
        return NONE
    return f"at {'most' if each['sign'] == '<=' else 'least'} {each['limit']:g}"


def probes(step: JSON) -> str:
    """Return every probe with its effect."""
    rows = []
    for name, each in step["record"]["probes"].items():
        interval = each["interval"] and [percent(end) for end in each["interval"]]
        effect = percent(each["value"]) + (f" [{interval[0]}, {interval[1]}]" if interval else "")
        edit = _EDITS.get(name, each["summary"])
        rows.append([f"`{name}`", edit, f"{each['counted']:,}", effect, percent(each["limit"])])
    return table(["probe", "edit", "pairs", "effect", "passes up to"], rows, left=2)


def languages(step: JSON) -> str:
    """Return the figures by language of a translated set of questions."""
    rows = []
    for each in step["record"]:
        cells = [NONE if each[name] is None else f"{each[name]:.2f}" for name in _SHOWN]
        rows.append([each["task"], each["language"], f"{each['n']:,}", *cells])
    return table(["task", "language", "labels", "κ", "balanced accuracy", "AUROC"], rows, left=2)


_SHOWN: Final = ("kappa", "balanced_accuracy", "auroc")


def commands(steps: Mapping[str, JSON]) -> str:
    """Return the command of each step and its duration."""
    rows = [[f"`{name}`", f"`{each['command']}`", f"{each['seconds']:,} s"] for name, each in steps.items()]
    return table(["step", "command", "took"], rows, left=2)
