"""What metrics say of themselves: the list of all, and the card of one."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any, cast

from merilo.metrics.base import is_composite
from merilo.metrics.registry import (
    families,
    find_metric,
    known_metric,
    native_metrics,
    parameters_of,
    parse_metric,
    systems,
)
from merilo.rendering.page import Page, Tone
from merilo.rendering.reproduction import reproduction
from merilo.rendering.wording import count

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from merilo.metrics.base import Metric

_TITLES = {
    "retrieval": "Retrieval: did the retriever bring the right text?",
    "response": "Response: did the answer stay with the text and with the question?",
}
_COLUMN = 23


def list_record(system: str | None = None) -> list[dict[str, Any]]:  # Any: JSON
    """Our own metrics, or the definitions of one published system: name, family, one line, what it needs."""
    return [
        {
            "name": name,
            "family": str(find_metric(name).card.family),
            "summary": find_metric(name).card.summary,
            "needs": sorted(_needs(name)[0]),
        }
        for name in (native_metrics() if system is None else systems()[system])
    ]


def systems_record() -> list[dict[str, Any]]:  # Any: JSON
    """The published systems, each with how many definitions there are."""
    return [{"system": system, "definitions": len(names)} for system, names in systems().items()]


def list_page(width: int) -> Page:
    """Our own metrics by family, in one or two lines each; then one line a published system."""
    page = Page(width)
    for family, names in families().items():
        own = [name for name in names if name in native_metrics()]
        if own:
            page.heading(_TITLES.get(family, family.capitalize()))
        for name in own:
            page.entry(name, find_metric(name).card.summary, column=_COLUMN + 2, indent=2)
            page.entry("", f"needs {needs_text(name)}", column=_COLUMN + 2, tone=Tone.QUIET)
    page.heading("Published: definitions of other systems, with their quirks and our wording of the prompts")
    column = max(map(len, systems())) + 2
    for system, names in systems().items():
        command = f"merilo metrics {system}"
        page.entry(system, f"{count(len(names), 'definition')}; {command}", column=column + 2, indent=2)
    page.blank()
    page.text("merilo metrics NAME says how one is computed and when to use it.")
    return page


def system_page(system: str, width: int) -> Page:
    """The definitions of one published system, in two or three lines each."""
    names = systems()[system]
    page = Page(width)
    page.heading(f"{system}: {count(len(names), 'published definition')}")
    for name in names:
        page.line("  " + name)
        page.entry("", find_metric(name).card.summary, column=6)
        page.entry("", f"needs {needs_text(name)}", column=6, tone=Tone.QUIET)
    return page


def card_record(name: str) -> dict[str, Any]:  # Any: JSON
    """One metric's card as a JSON-able object. Raises UsageError for an unknown name."""
    found, card = find_metric(name), find_metric(name).card
    always, more = _needs(name)
    reproduced = reproduction(found.name)
    breaks: Mapping[str, str] = getattr(found, "breaks", {})
    return {
        "name": found.name,
        "version": found.version,
        "family": str(card.family),
        "summary": card.summary,
        "needs": sorted(always),
        "needs_with": {text: sorted(fields) for text, fields in more.items()},
        "range": [end if isfinite(end) else None for end in found.range],
        "higher_is_better": found.higher_is_better,
        "order_matters": bool(getattr(found, "ranked", False)),
        "asks": sorted({kind.kind for form in _forms(name).values() for kind in form.asks}),
        "made_of": list(_made_of(name)),
        "breaks": dict(breaks),
        "questions": card.questions,
        "formula": card.formula,
        "undefined": list(card.undefined),
        "when": card.when,
        "when_not": card.when_not,
        "relatives": list(card.relatives),
        "sources": list(card.sources),
        "reproduction": None if reproduced is None else asdict(reproduced),
        "parameters": [
            {"name": each.name, "allowed": each.allowed, "default": each.default} for each in parameters_of(found)
        ],
    }


def card_page(name: str, width: int) -> Page:
    """One metric's card. Raises UsageError for an unknown name."""
    record = card_record(name)
    page = Page(width)
    page.text(f"{record['name']}  (version {record['version']})", tone=Tone.STRONG)
    page.text(record["summary"])
    page.blank()
    better = "higher" if record["higher_is_better"] else "lower"
    order = "; the order of the contexts matters" if record["order_matters"] else ""
    low, high = record["range"]
    rows = [
        ("needs", needs_text(name)),
        ("range", f"{limit(low)} to {limit(high)}, {better} is better{order}"),
        ("formula", record["formula"]),
        ("undefined", "\n".join(f"{reason};" for reason in record["undefined"]).rstrip(";")),
        ("made of", ", ".join(record["made_of"])),
        ("asks", record["questions"] or ", ".join(record["asks"])),
        *(("parameter", text) for text in _parameters(record["parameters"])),
        ("quirks", "\n".join(f"{law}: broken on purpose by {quirk}" for law, quirk in record["breaks"].items())),
        ("use it", record["when"]),
        ("do not", record["when_not"]),
        ("see also", ", ".join(record["relatives"])),
        ("source", "\n".join(record["sources"])),
        *_reproduced(record["reproduction"]),
    ]
    page.entries([(label, text) for label, text in rows if text], indent=0)
    return page


def _reproduced(record: dict[str, Any] | None) -> list[tuple[str, str]]:  # Any: JSON
    """The entries on what a published definition reproduces; none for a metric of our own."""
    if record is None:
        return []
    return [
        ("reproduced", "\n".join(f"{each};" for each in record["reproduced"]).rstrip(";")),
        ("differs", "\n".join(f"{each};" for each in record["not_reproduced"]).rstrip(";")),
        ("checked", f"compared with {record['checked']}"),
    ]


def limit(end: float | None) -> str:
    """One end of a range; `no limit` where it has none."""
    return "no limit" if end is None else f"{end:g}"


def needs_text(name: str) -> str:
    """The fields that a metric needs, those first that it needs by its defaults."""
    always, more = _needs(name)
    parts = [", ".join(_in_order(always))]
    parts += [f"{', '.join(_in_order(fields))} with {text}" for text, fields in more.items()]
    return "; ".join(part for part in parts if part) or "what its parameters choose"


def _parameters(parameters: list[dict[str, Any]]) -> list[str]:  # Any: JSON
    return [
        f"{each['name']}: {each['allowed']}; "
        + ("must be given" if each["default"] is None else f"{each['default']} by default")
        for each in parameters
    ]


def _forms(name: str) -> dict[str, Metric]:
    """A metric by its defaults, then with each other choice of one parameter, by what has to be written.

    For a composite: its parts by their text. Empty where a parameter must be given.
    """
    parts = _made_of(name)
    if parts:
        return {text: cast("Metric", parse_metric(text)) for text in parts}  # a composite is made of metrics
    parameters = parameters_of(find_metric(name))
    if any(each.default is None for each in parameters):
        return {}
    choices = [f"{each.name}={value}" for each in parameters for value in each.allowed.split(" or ") if value != "text"]
    forms = {text: known_metric(f"{name}({text})") for text in ("", *choices)}  # some go with other parameters only
    return {text: form for text, form in forms.items() if form is not None}


def _made_of(name: str) -> tuple[str, ...]:
    """The parts of a composite; none for a metric."""
    if hasattr(find_metric(name), "plan"):
        return ()
    composite = parse_metric(name)
    return composite.parts if is_composite(composite) else ()


def _needs(name: str) -> tuple[frozenset[str], dict[str, frozenset[str]]]:
    """The fields that a metric needs by its defaults, and what other forms need beside."""
    needed = {text: form.needs for text, form in _forms(name).items()}
    if not needed:  # its forms are the user's own: what the class itself declares, if it does
        declared = getattr(find_metric(name), "needs", None)
        known = cast("frozenset[str]", declared) if isinstance(declared, frozenset) else frozenset[str]()
        return known, {}
    if _made_of(name):
        return frozenset[str]().union(*needed.values()), {}
    always = needed[""]
    return always, {text: fields - always for text, fields in needed.items() if fields - always}


def _in_order(names: Iterable[str]) -> list[str]:
    from merilo.data.sample import FIELDS

    return sorted(names, key=lambda name: FIELDS.index(name) if name in FIELDS else len(FIELDS))
