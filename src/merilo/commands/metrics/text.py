"""The list of all metrics and the card of one, as pages and as JSON."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, cast

from merilo.data.context import Context
from merilo.data.sample import NUGGETS, Sample
from merilo.errors import MissingField
from merilo.judging.kinds.responses import Statements
from merilo.metrics.base import Definition, Metric, Score, Undefined, drive, is_composite
from merilo.metrics.registry import families, find_metric, known_metric, native_metrics, parse_metric, systems
from merilo.metrics.text import bare_name, metric_text, parameters_of
from merilo.numbers import count
from merilo.plugins import Group, plugin
from merilo.rendering.page import Page, Tone
from merilo.results.records import picked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from merilo.judging.questions import Question
    from merilo.judging.verdicts import Verdict

_TITLES = {
    "retrieval": "Retrieval: did the retriever find the right text?",
    "response": "Response: is the answer supported by the text, and does it address the question?",
}


def list_record(system: str | None = None) -> list[dict[str, Any]]:  # Any: JSON
    """Return merilo's metrics, or the definitions of one published system: name, family, summary, fields."""
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
    """Return the published systems with the number of their definitions."""
    return [{"system": system, "definitions": len(names)} for system, names in systems().items()]


def list_page(width: int) -> Page:
    """Return a page with merilo's metrics by family, then one line per published system."""
    page = Page(width)
    column = max(map(len, native_metrics())) + 4
    for family, names in families().items():
        own = [name for name in names if name in native_metrics()]
        if own:
            page.heading(_TITLES.get(family, family.capitalize()))
        for name in own:
            page.entry(name, find_metric(name).card.summary, column=column, indent=2)
            page.entry("", f"needs {needs_text(name)}", column=column, tone=Tone.QUIET)
    if systems():
        page.heading("Published: definitions of other systems, quirks included, with our wording of the prompts")
    column = max(map(len, systems()), default=0) + 2
    for system, names in systems().items():
        command = f"merilo metrics {system}"
        page.entry(system, f"{count(len(names), 'definition')}; {command}", column=column + 2, indent=2)
    page.blank()
    page.text("merilo metrics NAME explains one: its formula and when to use it.")
    return page


def system_page(system: str, width: int) -> Page:
    """Return a page with the definitions of one published system."""
    names = systems()[system]
    page = Page(width)
    page.heading(f"{system}: {count(len(names), 'published definition')}")
    for name in names:
        page.line("  " + name)
        page.entry("", find_metric(name).card.summary, column=6)
        page.entry("", f"needs {needs_text(name)}", column=6, tone=Tone.QUIET)
    return page


def card_record(name: str) -> dict[str, Any]:  # Any: JSON
    """Return the card of one metric, named as in a run, as a JSON-able object. Raises UsageError for an unknown one."""
    found, forms = _class_of(name), _forms(name)
    card = found.card
    always, more = _needs(name)
    breaks: Mapping[str, str] = getattr(found, "breaks", {})
    reproduction = cast("Callable[[str], dict[str, Any] | None] | None", plugin(Group.PARTS, "reproduction"))
    return {
        "name": metric_text(parse_metric(name)) if bare_name(name) != name else found.name,
        "version": found.version,
        "family": str(card.family),
        "summary": card.summary,
        "needs": sorted(always),
        "needs_with": {text: sorted(fields) for text, fields in more.items()},
        "range": [end if isfinite(end) else None for end in found.range],
        "higher_is_better": found.higher_is_better,
        "order_matters": bool(getattr(found, "ranked", False)),
        "asks": sorted({kind.kind for form in forms.values() for kind in form.asks}),
        "made_of": list(_made_of(name)),
        "breaks": dict(breaks),
        **picked(card, "questions formula undefined"),
        "edge_cases": edge_scores(next(iter(forms.values()))) if forms and name in native_metrics() else {},
        **picked(card, "when when_not relatives sources"),
        "reproduction": None if reproduction is None else reproduction(found.name),
        "parameters": [picked(each, "name allowed default") for each in parameters_of(found)],
    }


def card_page(name: str, width: int) -> Page:
    """Return a page with one metric's card. Raises UsageError for an unknown name."""
    record = card_record(name)
    page = Page(width)
    page.text(f"{record['name']}  (version {record['version']})", tone=Tone.STRONG)
    page.text(record["summary"])
    page.blank()
    better = "higher" if record["higher_is_better"] else "lower"
    order = "; the order of the contexts matters" if record["order_matters"] else ""
    low, high = record["range"]
    scores: dict[float, list[str]] = {}
    for case, score in record["edge_cases"].items():
        scores.setdefault(score, []).append(case)
    edges = [f"{score:g} if {', or if '.join(scores[score])}; everything else is good" for score in sorted(scores)]
    copied = record["reproduction"] or {"reproduced": (), "not_reproduced": (), "checked": ""}
    rows = [
        ("needs", needs_text(name)),
        ("range", f"{limit(low)} to {limit(high)}, {better} is better{order}"),
        ("formula", record["formula"]),
        ("undefined", ";\n".join(record["undefined"])),
        *(("edge case", text) for text in edges),
        ("made of", ", ".join(record["made_of"])),
        ("asks", record["questions"] or ", ".join(record["asks"])),
        *(("parameter", _parameter(each)) for each in record["parameters"]),
        ("quirks", "\n".join(f"{law}: broken on purpose ({quirk})" for law, quirk in record["breaks"].items())),
        ("use it", record["when"]),
        ("do not", record["when_not"]),
        ("see also", ", ".join(record["relatives"])),
        ("source", "\n".join(record["sources"])),
        ("reproduced", ";\n".join(copied["reproduced"])),
        ("differs", ";\n".join(copied["not_reproduced"])),
        ("checked", f"compared with {copied['checked']}" if copied["checked"] else ""),
    ]
    page.entries([(label, text) for label, text in rows if text], indent=0)
    return page


def limit(end: float | None) -> str:
    """Return one end of a range as text; `no limit` for None."""
    return "no limit" if end is None else f"{end:g}"


def needs_text(name: str) -> str:
    """Return the fields that a metric needs by default, then those that other parameter values need in addition."""
    always, more = _needs(name)
    parts = [", ".join(_in_order(always))]
    parts += [f"{', '.join(_in_order(fields))} with {text}" for text, fields in more.items()]
    return "; ".join(part for part in parts if part) or "what its parameters choose"


def _parameter(each: dict[str, Any]) -> str:  # Any: JSON
    default = "must be given" if each["default"] is None else f"{each['default']} by default"
    return f"{each['name']}: {each['allowed']}; {default}"


def _class_of(name: str) -> type[Definition]:
    """Return the class of a metric, named with or without parameters. Raises UsageError."""
    return type(parse_metric(name)) if bare_name(name) != name else find_metric(name)


def _forms(name: str) -> dict[str, Metric]:
    """Return a metric with its defaults, then with each other value of one parameter, by the text to write.

    With the parameters in its name if it has any. For a composite: its parts by their text. Empty if the metric has a
    required parameter.
    """
    parts = _made_of(name)
    if parts:
        return {text: cast("Metric", parse_metric(text)) for text in parts}  # the parts of a composite are metrics
    if bare_name(name) != name:
        return {"": cast("Metric", parse_metric(name))}
    parameters = parameters_of(find_metric(name))
    if any(each.default is None for each in parameters):
        return {}
    choices = [f"{each.name}={value}" for each in parameters for value in each.allowed.split(" or ") if value != "text"]
    forms = {
        text: known_metric(f"{find_metric(name).name}({text})") for text in ("", *choices)
    }  # some values are valid only with another parameter
    return {text: form for text, form in forms.items() if form is not None}


def _made_of(name: str) -> tuple[str, ...]:
    """Return the parts of a composite; none for a metric."""
    if hasattr(_class_of(name), "plan"):
        return ()
    composite = parse_metric(name)
    return composite.parts if is_composite(composite) else ()


def _needs(name: str) -> tuple[frozenset[str], dict[str, frozenset[str]]]:
    """Return the fields that a metric needs by default, and the additional fields of its other forms."""
    needed = {text: form.needs for text, form in _forms(name).items()}
    if not needed:  # a parameter is required, so only the class itself can declare its fields
        declared = getattr(_class_of(name), "needs", None)
        known = cast("frozenset[str]", declared) if isinstance(declared, frozenset) else frozenset[str]()
        return known, {}
    if _made_of(name):
        return frozenset[str]().union(*needed.values()), {}
    always = needed[""]
    return always, {text: fields - always for text, fields in needed.items() if fields - always}


def _in_order(names: Iterable[str]) -> list[str]:
    from merilo.data.sample import FIELDS

    return sorted(names, key=lambda name: FIELDS.index(name) if name in FIELDS else len(FIELDS))


# -- edge cases, computed so that a metric's page always agrees with the code -------------------------
# The judge of each case gives the best verdicts, unless the name of the case says otherwise.


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge case: its name, its sample, and its judge."""

    name: str
    sample: Sample
    is_bad: Callable[[Question[Any]], bool] = lambda _: False
    """Return True for a question with the worst verdict."""

    def answer(self, question: Question[Any]) -> Verdict:
        """Return the verdict of the judge."""
        verdict: Verdict = question.worst() if self.is_bad(question) else question.best()
        return verdict


_USUAL: Final = Sample(
    "usual",
    user_input="Where is France, and what is its capital?",
    retrieved_contexts=["France is in Western Europe.", "Paris is the capital of France."],
    response="France is in Western Europe [1]. Its capital is Paris [2].",
    reference="It is in Western Europe. The capital is Paris.",
    reference_contexts=["France is in Western Europe.", "Paris is the capital of France."],
    retrieved_context_ids=["europe", "paris"],
    reference_context_ids=["europe", "paris"],
    metadata={NUGGETS: ["France is in Western Europe.", "Its capital is Paris."]},
)
_UNCITED: Final = replace(_USUAL, response="France is in Western Europe. Its capital is Paris.")


def edges() -> tuple[Edge, ...]:
    """Return all cases, the usual one first."""
    return (
        Edge("the usual case", _USUAL),
        Edge("nothing was retrieved", replace(_USUAL, retrieved_contexts=(), retrieved_context_ids=())),
        Edge("every context is blank", replace(_USUAL, retrieved_contexts=(Context(""), Context(" \n")))),
        Edge(
            "there is one context",
            replace(_USUAL, retrieved_contexts=_USUAL.contexts[:1], retrieved_context_ids=("europe",)),
        ),
        Edge("no context is relevant", _USUAL, _worst_on("relevance", "usefulness")),
        Edge("the response is blank", replace(_USUAL, response=" ")),
        Edge("the response declines to answer", _USUAL, _worst_on("noncommittal", "answered")),
        Edge(
            "the response makes no statement",
            _USUAL,
            _states_nothing(_USUAL.sentences("response"), _UNCITED.sentences("response")),
        ),
        Edge("the response cites nothing", _UNCITED),
        Edge("the response cites a number without a context", replace(_USUAL, response="It is big [1][7].")),
        Edge("the question has no nuggets", replace(_USUAL, metadata={})),
        Edge("the reference is blank", replace(_USUAL, reference="")),
        Edge("the reference makes no statement", _USUAL, _states_nothing(_USUAL.sentences("reference"))),
        Edge("the reference names no entity", _USUAL, _worst_on("entities")),
        Edge("no context is named as relevant", replace(_USUAL, reference_context_ids=())),
        Edge("the user input is blank", replace(_USUAL, user_input="")),
        Edge("the user input asks for nothing", _USUAL, _worst_on("parts")),
        Edge("a needed field is missing", Sample("missing")),
    )


def edge_outcome(metric: Metric, edge: Edge) -> Score | Undefined:
    """Return the outcome of the metric in this case; a missing field is Undefined, as in a run."""
    try:
        return drive(metric.plan(edge.sample), edge.answer)
    except MissingField as error:
        return Undefined(f"{error.field} is missing")


def edge_scores(metric: Metric) -> dict[str, float]:
    """Return the lowest and highest possible scores by the case that gives them, unless the usual case does."""
    usual, *others = edges()
    expected = edge_outcome(metric, usual)
    outcomes = {edge.name: edge_outcome(metric, edge) for edge in others}
    scores = {name: outcome.value for name, outcome in outcomes.items() if isinstance(outcome, Score)}
    at_ends = {name: value for name, value in scores.items() if value in metric.range}
    return {name: value for name, value in at_ends.items() if isinstance(expected, Score) and value != expected.value}


def _worst_on(*kinds: str) -> Callable[[Question[Any]], bool]:
    return lambda question: question.kind in kinds


def _states_nothing(*texts: tuple[str, ...]) -> Callable[[Question[Any]], bool]:
    """Return True for a request for the statements of one of these texts, given as sentences."""
    return lambda question: isinstance(question, Statements) and question.sentences in texts
