"""What metrics say of themselves: the list of all, and the card of one."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from merilo.metrics.registry import families, find_metric, metric_names, parameters_of, parse_metric
from merilo.reports.page import Page, Tone

if TYPE_CHECKING:
    from collections.abc import Iterable

    from merilo.metrics.base import Metric

_TITLES = {
    "retrieval": "Retrieval: did the retriever bring the right text?",
    "response": "Response: did the answer stay with the text and with the question?",
}
_COLUMN = 23


def list_record() -> list[dict[str, Any]]:  # Any: JSON
    """Every known metric: name, family, one line, what it needs."""
    return [
        {
            "name": name,
            "family": str(find_metric(name).card.family),
            "summary": find_metric(name).card.summary,
            "needs": sorted(_needs(name)[0]),
        }
        for name in metric_names()
    ]


def list_page(width: int) -> Page:
    """Every known metric by family, in one or two lines each."""
    page = Page(width)
    for family, names in families().items():
        page.heading(_TITLES.get(family, family.capitalize() or "Others"))
        for name in names:
            page.entry(name, find_metric(name).card.summary, column=_COLUMN + 2, indent=2)
            page.entry("", f"needs {needs_text(name)}", column=_COLUMN + 2, tone=Tone.QUIET)
    page.blank()
    page.text("merilo metrics NAME says how one is computed and when to use it.")
    return page


def card_record(name: str) -> dict[str, Any]:  # Any: JSON
    """One metric's card as a JSON-able object. Raises UsageError for an unknown name."""
    found, card = find_metric(name), find_metric(name).card
    always, more = _needs(name)
    return {
        "name": name,
        "version": found.version,
        "family": str(card.family),
        "summary": card.summary,
        "needs": sorted(always),
        "needs_with": {text: sorted(fields) for text, fields in more.items()},
        "range": list(found.range),
        "higher_is_better": found.higher_is_better,
        "order_matters": found.ranked,
        "asks": sorted({kind.kind for form in _forms(name).values() for kind in form.asks}),
        "questions": card.questions,
        "formula": card.formula,
        "undefined": list(card.undefined),
        "when": card.when,
        "when_not": card.when_not,
        "relatives": list(card.relatives),
        "sources": list(card.sources),
        "parameters": [
            {"name": each.name, "allowed": each.allowed, "default": each.default} for each in parameters_of(found)
        ],
    }


def card_page(name: str, width: int) -> Page:
    """One metric's card. Raises UsageError for an unknown name."""
    record = card_record(name)
    page = Page(width)
    page.text(f"{name}  (version {record['version']})", tone=Tone.STRONG)
    page.text(record["summary"])
    page.blank()
    better = "higher" if record["higher_is_better"] else "lower"
    order = "; the order of the contexts matters" if record["order_matters"] else ""
    low, high = record["range"]
    rows = [
        ("needs", needs_text(name)),
        ("range", f"{low:g} to {high:g}, {better} is better{order}"),
        ("formula", record["formula"]),
        ("undefined", "\n".join(f"{reason};" for reason in record["undefined"]).rstrip(";")),
        ("asks", record["questions"] or ", ".join(record["asks"])),
        *(("parameter", text) for text in _parameters(record["parameters"])),
        ("use it", record["when"]),
        ("do not", record["when_not"]),
        ("see also", ", ".join(record["relatives"])),
        ("source", "\n".join(record["sources"])),
    ]
    page.entries([(label, text) for label, text in rows if text], indent=0)
    return page


def needs_text(name: str) -> str:
    """The fields that a metric needs, those first that every form of it needs."""
    always, more = _needs(name)
    parts = [", ".join(_in_order(always))]
    parts += [f"{', '.join(_in_order(fields))} with {text}" for text, fields in more.items()]
    return "; ".join(part for part in parts if part)


def _parameters(parameters: list[dict[str, Any]]) -> list[str]:  # Any: JSON
    return [
        f"{each['name']}: {each['allowed']}; "
        + ("must be given, or follows from the data" if each["default"] is None else f"{each['default']} by default")
        for each in parameters
    ]


def _forms(name: str) -> dict[str, Metric]:
    """A metric in each of the forms that its required parameters allow, by what has to be written."""
    required = [each for each in parameters_of(find_metric(name)) if each.default is None]
    if not required:
        return {"": parse_metric(name)}
    choices = [[f"{each.name}={value}" for value in each.allowed.split(" or ")] for each in required]
    texts = [", ".join(chosen) for chosen in product(*choices)]
    return {text: parse_metric(f"{name}({text})") for text in texts}


def _needs(name: str) -> tuple[frozenset[str], dict[str, frozenset[str]]]:
    """The fields that all forms need, and what single forms need beside."""
    needed = {text: form.needs for text, form in _forms(name).items()}
    first, *others = needed.values()
    always = first.intersection(*others)
    return always, {text: fields - always for text, fields in needed.items() if fields - always}


def _in_order(names: Iterable[str]) -> list[str]:
    from merilo.data.sample import FIELDS

    return sorted(names, key=lambda name: FIELDS.index(name) if name in FIELDS else len(FIELDS))
