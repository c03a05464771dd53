"""The generated parts of the documentation by name, each a function that returns Markdown."""

from __future__ import annotations

import inspect
import re
import tomllib
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from doc_code import commands, error_tree, kinds, options, other_options, python, table
from doc_levels import levels
from doc_scripts import deepeval_scripts, ragas_scripts

from merilo.commands import exit_codes as exits
from merilo.commands.exit_codes import Exit
from merilo.commands.metrics.text import card_record, needs_text
from merilo.data.sample import FIELDS
from merilo.metrics.registry import families, native_metrics, systems

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_ONCE: Final = re.compile(
    r" Each verdict counts as its probability if the judge's probabilities are averaged\."
    r"| White space does not count, and repeated text counts once\."
)
"""Sentences of many formulas, which the page has once."""

_AS: Final = re.compile(r", as ragas scores it|, by one or several models| \([^()]*(?:ragas 0\.\d|[A-Z]\w+)\)(?=\.$)")
"""What a summary says of its system, under whose name the page lists it."""

_RAGAS: Final = (("0.0.12", "0.0.13", "0.0.15"), ("0.1.9", "0.1.22"), ("0.3.0", "0.4.3", "0.4.3 collections"))
"""The releases of ragas, those with mostly the same definitions together."""


def metrics() -> str:
    """Return a short section for each native metric, from its card, without the categories of answering."""
    native = [name for names in families().values() for name in names if name in native_metrics()]
    return "\n".join(_metric(card_record(name)) for name in native if "." not in name)


def _metric(record: Mapping[str, Any]) -> str:  # Any: JSON
    name = record["name"]
    formula = _ONCE.sub("", record["formula"])
    needs = re.sub(rf"(?<!=)\b({'|'.join(FIELDS)})\b", r"`\1`", needs_text(name))
    used = f"**Use:** {_lower(record['when'])} **Not:** {_lower(record['when_not'])}"
    return f"### {name}\n\n{_code(formula)} Needs {needs}.\n\n{_code(used)}\n"


def _code(text: str) -> str:
    """Return the text with names such as context_recall in code font."""
    return re.sub(r"\b([a-z]+_[a-z_]+)\b(?![(=])", r"`\1`", text)


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def published() -> str:
    """Return a table for each line of ragas releases, then one for all other systems."""
    others = [name for system, names in systems().items() if not system.startswith("ragas-") for name in names]
    rest = table(("definition", "value"), ((f"`{name}`", _value(name)) for name in others))
    return "\n".join([*map(_releases, _RAGAS), f"### Other systems\n\n{rest}"])


def _releases(releases: Sequence[str]) -> str:
    """Return the table of some releases of ragas, equal values in one row; what some lack names those that have it."""
    rows: dict[str, dict[str, list[str]]] = {}
    for release in releases:
        version, _, part = release.partition(" ")
        for name in systems()[f"ragas-{version}"]:
            of, _, metric = name.partition(":")[2].rpartition(".")
            if of == part:
                rows.setdefault(_value(name), {}).setdefault(metric, []).append(release)

    def shown(metric: str, having: list[str]) -> str:
        return f"`{metric}`" + f" ({', '.join(having)})" * (len(having) < len(releases))

    found = ((", ".join(shown(*each) for each in metrics.items()), text) for text, metrics in rows.items())
    return f"### ragas {', '.join(releases)}\n\n{table(('metric', 'value'), found)}"


def _value(name: str) -> str:
    return _AS.sub("", card_record(name)["summary"])


def aliases() -> str:
    """Return the table of the other names of each field, from the alias file."""
    tables = tomllib.loads(files("merilo.data").joinpath("aliases.toml").read_text("utf-8"))
    named = [(field, column) for names in tables["systems"].values() for column, field in names.items()]
    named += [(field, column) for field, columns in tables["usual"].items() for column in columns]
    passages = tomllib.loads(files("merilo.data").joinpath("content.toml").read_text("utf-8"))
    named += [
        (f"a context's `{part}`", key)
        for table in ("passage", "usual")
        for part, keys in passages[table].items()
        for key in keys
        if key != part
    ]
    found: dict[str, dict[str, None]] = {}
    for field, column in named:
        found.setdefault(field, {})[f"`{column}`{_condition(column, tables)}"] = None
    beside: dict[tuple[str, str], list[str]] = {}
    for each in tables["meaning"]:
        if each["field"] and f"`{each['column']}`" not in found[each["field"]]:
            others = " and ".join(f"`{name}`" for name in each["with"])
            beside.setdefault((each["field"], each["column"]), []).append(others)
    for (field, column), others in beside.items():
        found[field][f"`{column}` (only with {', or '.join(others)})"] = None
    return table(
        ("field", "is also read from"),
        ((field if "`" in field else f"`{field}`", ", ".join(names)) for field, names in found.items()),
    )


def _condition(column: str, tables: Mapping[str, Any]) -> str:  # Any: TOML
    for each in tables["alone"]:
        if each["column"] == column:
            others = " or ".join(f"`{other}`" for other in each["with"])
            return f" (only with {others}; `{each['field']}` without)"
    return ""


def exit_codes() -> str:
    """The exit codes of the command line, in the words of its module."""
    said = " ".join((inspect.getdoc(exits) or "").split()).partition("Exit codes: ")[2].removesuffix(".")
    pairs = [part.partition(" ")[::2] for part in said.split(" · ")]
    if [int(code) for code, _ in pairs] != [code.value for code in Exit]:
        raise SystemExit("Docstring and codes of merilo.commands.exit_codes differ; fix the docstring.")
    return table(("code", "meaning"), pairs)


BLOCKS: Final[Mapping[str, Callable[[], str]]] = {
    "aliases": aliases,
    "commands": commands,
    "deepeval-scripts": deepeval_scripts,
    "errors": error_tree,
    "exit-codes": exit_codes,
    "kinds": kinds,
    "levels": levels,
    "metrics": metrics,
    "options": options,
    "other-options": other_options,
    "published": published,
    "python": python,
    "ragas-scripts": ragas_scripts,
}
"""Every generated part by its name."""
