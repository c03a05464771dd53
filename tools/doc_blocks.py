"""The generated parts of the documentation by name, each a function that returns Markdown."""

from __future__ import annotations

import inspect
import re
import tomllib
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from doc_code import api, api_verbs, commands, error_tree, kinds
from doc_levels import levels
from doc_scripts import deepeval_scripts, ragas_scripts

from merilo.commands import exit_codes as exits
from merilo.commands.exit_codes import Exit
from merilo.commands.metrics.text import card_record, limit
from merilo.data.sample import FIELDS
from merilo.metrics.edges import edge_table
from merilo.metrics.published.fidelity import FAMILIES
from merilo.metrics.registry import families, native_metrics, parse_metric, systems

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from merilo.metrics.base import Metric

_EDGE_TEXTS: Final = (
    ("context_relevance", "context_ranking", "context_precision"),
    ("context_precision(against=reference)", "context_recall", "context_sufficiency"),
    ("context_utilization", "faithfulness", "answer_relevancy"),
    ("noise_sensitivity", "context_entity_recall", "answer_completeness"),
    ("answer_correctness", "critique(aspect=coherence)", "nugget_recall"),
    ("citation_recall", "citation_precision", "citation_f1"),
    ("id_precision", "id_recall", "reciprocal_rank", "average_precision"),
    ("nDCG", "hit_rate@1", "precision@2", "recall@2"),
)
"""The columns of the table of edge cases, split into tables that fit the page. Metrics not named here follow."""


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    names = list(head)
    lines = [names, ["---"] * len(names), *(list(row) for row in rows)]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def metrics() -> str:
    """A section for each native metric, from its card."""
    native = native_metrics()
    return "\n".join(_metric(name) for names in families().values() for name in names if name in native)


def published() -> str:
    """For each published system a section with a table for each of its definitions."""
    return "\n".join(
        f"## {system}\n\n" + "\n".join(_definition(name) for name in names) for system, names in systems().items()
    )


def fidelity() -> str:
    """Return the reading of replies, the known differences and the comparison for each family of definitions."""
    head = ("definitions", "reading of replies", "known differences", "compared with")
    rows = (
        (
            f"`{name}{'' if name in _whole_names() else '*'}`",
            _parameters_shown(each.replies),
            "; ".join(each.differs),
            each.checked,
        )
        for name, each in FAMILIES
    )
    return table(head, rows)


def _whole_names() -> frozenset[str]:
    return frozenset(name for names in systems().values() for name in names)


def _parameters_shown(text: str) -> str:
    """The text with the parameters in braces in code font."""
    return re.sub(r"\{(\w+)\}", r"`\1`", text)


def _definition(name: str) -> str:
    record = card_record(name)
    rows = [
        *_rows(record),
        ("laws broken on purpose", "; ".join(f"{law} ({quirk})" for law, quirk in record["breaks"].items())),
        ("sampling", record["reproduction"]["sampling"]),
        ("source", " ".join(record["sources"])),
    ]
    return f"### {name}\n\n{table(('', record['summary']), ((label, text) for label, text in rows if text))}"


def _metric(name: str) -> str:
    record = card_record(name)
    rows = [
        *_rows(record),
        ("use it", record["when"]),
        ("do not", record["when_not"]),
        ("see also", ", ".join(map(_link, record["relatives"]))),
        ("source", " ".join(record["sources"])),
        ("version", str(record["version"])),
    ]
    return f"### {name}\n\n{table(('', record['summary']), ((label, text) for label, text in rows if text))}"


def _rows(record: Mapping[str, Any]) -> list[tuple[str, str]]:  # Any: JSON
    """Return the rows that native and published metrics share."""
    low, high = map(limit, record["range"])
    return [
        ("needs", _needs(record)),
        ("range", f"{low} to {high}, {'higher' if record['higher_is_better'] else 'lower'} is better"),
        ("formula", record["formula"]),
        ("made of", ", ".join(f"`{part}`" for part in record["made_of"])),
        ("parameters", "; ".join(_parameter(**each) for each in record["parameters"])),
        ("asks", record["questions"]),
        ("undefined when", "; ".join(record["undefined"])),
    ]


def _needs(record: Mapping[str, Any]) -> str:  # Any: JSON
    """Return the fields needed by default, then those that other parameters need in addition."""
    parts = [", ".join(_fields(record["needs"]))]
    parts += [f"{', '.join(_fields(names))} with {text}" for text, names in record["needs_with"].items()]
    return "; ".join(part for part in parts if part)


def _fields(names: Collection[str]) -> list[str]:
    return [f"`{field}`" for field in FIELDS if field in names]


def _link(name: str) -> str:
    """Return a link to the section of a native metric, or the name of another metric."""
    return f"[{name}](#{name.lower()})" if name in native_metrics() else f"`{name}`"


def _parameter(name: str, allowed: str, default: str | None) -> str:
    return f"`{name}`: {allowed}" + (", must be given" if default is None else f" (`{default}`)")


def edges() -> str:
    """The edge cases of all metrics, in tables narrow enough to read."""
    shown = {parse_metric(text).name for texts in _EDGE_TEXTS for text in texts}
    # rubric_metric means what its user's file says
    others = [name for name in native_metrics() if name not in {*shown, "rubric_metric"}]
    return "\n".join(edge_table(_parsed(texts)) for texts in (*_EDGE_TEXTS, *([name] for name in others)))


def _parsed(texts: Iterable[str]) -> Mapping[str, Metric]:
    return {text: parse_metric(text) for text in texts}


def aliases() -> str:
    """Return the table of the other names of each field, from the alias file."""
    tables = tomllib.loads(files("merilo.data").joinpath("aliases.toml").read_text("utf-8"))
    named = [(field, column) for names in tables["systems"].values() for column, field in names.items()]
    named += [(field, column) for field, columns in tables["usual"].items() for column in columns]
    named += [(f"a context's `{key}`", column) for column, key in tables["context"].items()]
    named += [
        (f"a context's `{key}`", column) for key, columns in tables["usual_context"].items() for column in columns
    ]
    found: dict[str, dict[str, None]] = {}
    for field, column in named:
        found.setdefault(field, {})[f"`{column}`{_condition(column, tables)}"] = None
    beside: dict[tuple[str, str], list[str]] = {}
    for each in tables["meaning"]:
        if f"`{each['column']}`" not in found[each["field"]]:
            others = " and ".join(f"`{name}`" for name in each["with"])
            beside.setdefault((each["field"], each["column"]), []).append(others)
    for (field, column), others in beside.items():
        found[field][f"`{column}` (only with {', or '.join(others)})"] = None
    return table(
        ("field", "is also read from"),
        ((field if "`" in field else f"`{field}`", ", ".join(names)) for field, names in found.items()),
    )


def _condition(column: str, tables: Mapping[str, Any]) -> str:  # Any: TOML
    others = tables["only_beside"].get(column)
    return f" (only with {' or '.join(f'`{other}`' for other in others)})" if others else ""


def rubrics() -> str:
    """Every rubric with the beginning of its digest, from the lock."""
    lines = files("merilo.rubrics").joinpath("rubrics.lock").read_text("utf-8").split("\n")
    pairs = [line.split() for line in lines if line.strip()]
    return table(("rubric", "SHA-256 begins"), ((f"`{name}`", f"`{digest[:12]}`") for digest, name in pairs))


def exit_codes() -> str:
    """The exit codes of the command line, in the words of its module."""
    said = " ".join((inspect.getdoc(exits) or "").split()).partition("Exit codes: ")[2].removesuffix(".")
    pairs = [part.partition(" ")[::2] for part in said.split(" · ")]
    if [int(code) for code, _ in pairs] != [code.value for code in Exit]:
        raise SystemExit("Docstring and codes of merilo.commands.exit_codes differ; fix the docstring.")
    return table(("code", "meaning"), pairs)


BLOCKS: Final[Mapping[str, Callable[[], str]]] = {
    "aliases": aliases,
    "api": api,
    "api-verbs": api_verbs,
    "commands": commands,
    "deepeval-scripts": deepeval_scripts,
    "edges": edges,
    "errors": error_tree,
    "exit-codes": exit_codes,
    "kinds": kinds,
    "levels": levels,
    "metrics": metrics,
    "fidelity": fidelity,
    "published": published,
    "ragas-scripts": ragas_scripts,
    "rubrics": rubrics,
}
"""Every generated part by its name."""
