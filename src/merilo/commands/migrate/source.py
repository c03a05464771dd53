"""The package and release that wrote a result or is used by a script, and the definitions that match its metrics.

`upstream.toml` holds the facts; nothing here imports another package or reads a file of the user.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from merilo.errors import UsageError
from merilo.metrics.registry import known_definition, metric_text, systems

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

_STATED: Final = re.compile(r"(?P<package>[a-z]++)(?:[\s=:@v-]*+(?P<release>\d++(?:\.\d++)*+)\S*)?", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\d+")
_WORD_END: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SUFFIX: Final = re.compile(r"(?:(?<!\s)\s++)?+[\[(](?:g-?eval|dag|conversational g-?eval)[\])]$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Source:
    """A package, its release as far as known, and the system of definitions that stands for the release."""

    package: str
    """`ragas`, `deepeval` or `trulens`."""
    system: str
    """The beginning of the names of its definitions, such as `ragas-0.4.3`."""
    releases: str
    """The release that the user or the script states, or the releases that fit; empty if nothing is known."""
    stated: bool
    """True if the release is stated, False if it follows from columns or imports."""

    @property
    def title(self) -> str:
        """The package's name with its releases, for users."""
        return f"{package_title(self.package)} {self.releases}".rstrip()

    @property
    def caveat(self) -> str:
        """A sentence if the definitions may be those of another release; otherwise empty."""
        if "-" not in self.system:
            return ""
        if not self.stated:
            return (
                f"The release is not recorded; {self.system} is used. State it with --version (such as --version "
                f"{self.system.partition('-')[2]})."
            )
        row = _row_of(self.package, _numbers(self.releases))
        if _numbers(self.releases) >= _numbers(str(row["since"])):
            return ""
        return f"merilo has no definitions of {self.title}; {self.system} has the nearest ones."


@dataclass(frozen=True, slots=True)
class Match:
    """The definition that matches a metric of another package; without one, the reason."""

    name: str
    """The metric's name there: a column, a class or a display name."""
    definition: str | None
    """The canonical text of the metric here."""
    reason: str = ""
    """Why there is no definition, or how the metric differs from it."""


def package_title(package: str) -> str:
    """Return a package's name for users."""
    return str(_facts()[package]["title"])


def packages() -> tuple[str, ...]:
    """Return the packages that are recognised."""
    return tuple(name for name, facts in _facts().items() if "releases" in facts)


def model_providers(*, embedders: bool = False) -> Mapping[str, str]:
    """Return the names of classes that stand for a model of a provider, with the provider as merilo calls it."""
    return _facts()["embedders" if embedders else "models"]


def stated_source(text: str, package: str | None = None) -> Source:
    """Return the source that a user states: `ragas-0.4.3`, `ragas==0.1.9`, `deepeval`; only a release with `package`.

    Raises UsageError for anything else.
    """
    written = text.strip()
    if package is not None and _NUMBER.match(written.removeprefix("v")):
        written = f"{package}-{written}"
    found = _STATED.fullmatch(written)
    name = "" if found is None else found["package"].lower()
    if found is None or name not in packages():
        raise UsageError(f"No known source {text!r}; write {', '.join(packages())}, with a release: ragas-0.4.3.")
    if package not in {None, name}:
        raise UsageError(f"This is a result of {package_title(str(package))}, but --version names {text!r}.")
    release: str = found["release"] or ""
    if not release and len(_facts()[name]["releases"]) > 1:
        raise UsageError(f"Name the release of {package_title(name)}, such as {name}-{_newest(name)}.")
    system = str(_row_of(name, _numbers(release))["system"])
    return Source(name, system, release, stated=bool(release))


def source_of_columns(columns: Collection[str]) -> Source | None:
    """Return the source that the columns of a result show; None if no known package writes such columns."""
    return next((found for package in packages() if (found := _fitting(package, "columns", columns))), None)


def source_of_imports(package: str, imported: Iterable[str]) -> Source:
    """Return the source that imported names (`ragas.metrics.faithfulness`) show."""
    names = {part for name in imported for part in _prefixes(name)}
    found = _fitting(package, "imports", names)
    return found or Source(package, str(_facts()[package]["releases"][-1]["system"]), "", stated=False)


def matched(name: str, source: Source, *, collections: bool = False) -> Match:
    """Return the definition of a metric of this source.

    `collections`: True for a class of `ragas.metrics.collections`.
    """
    facts = _facts()[source.package]
    base, bracket, rest = name.partition("(")
    plain = snake_case(_SUFFIX.sub("", name) if source.package == "deepeval" else base)
    if source.package == "deepeval" and _SUFFIX.search(name):
        return Match(name, None, facts["missing"]["g_eval"])
    known: str = facts["names"].get(base, facts["names"].get(plain, plain))
    parameters = f"{bracket}{rest}" if source.package == "ragas" else ""
    for candidate in _candidates(known, plain, collections=collections):
        found = known_definition(f"{source.system}:{candidate}{parameters}")
        if found is not None:
            return Match(name, metric_text(found), facts["notes"].get(plain, ""))
    return Match(name, None, facts["missing"].get(plain) or _no_definition(known, source))


def _no_definition(known: str, source: Source) -> str:
    """Return the reason for a metric without a definition; it names the same metric of another release, if any."""
    near = [
        f"{system}:{known}"
        for system in systems()
        if system.startswith(source.package) and known_definition(f"{system}:{known}") is not None
    ]
    also = f"; {max(near, key=_numbers)} is of another release" if near else ""
    return f"merilo has no definition of it among those of {source.system}{also}"


def snake_case(name: str) -> str:
    """Return a class or display name in snake case, without `Metric` at its end."""
    return _WORD_END.sub("_", name.strip()).replace(" ", "_").replace("-", "_").lower().removesuffix("_metric")


def _candidates(known: str, plain: str, *, collections: bool) -> tuple[str, ...]:
    """Return the names to try, the likeliest first; the collections have their own names."""
    if collections:
        return f"collections.{plain}", f"collections.{known}"
    return known, plain


@cache
def _facts() -> dict[str, dict[str, Any]]:  # Any: a file of ours
    return tomllib.loads(files("merilo.commands.migrate").joinpath("upstream.toml").read_text("utf-8"))


def _fitting(package: str, what: str, present: Collection[str]) -> Source | None:
    rows: list[Mapping[str, Any]] = _facts()[package].get(what, [])  # Any: as above
    for row in rows:
        if all(name in present for name in row.get("all", ())) and any(name in present for name in row["any"]):
            return Source(package, row["system"], row["releases"], stated=False)
    return None


def _prefixes(name: str) -> list[str]:
    """Return a dotted name and the modules that contain it."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]


def _row_of(package: str, release: tuple[int, ...]) -> Mapping[str, Any]:  # Any: as above
    rows: list[Mapping[str, Any]] = _facts()[package]["releases"]
    return next((row for row in rows if release and "before" in row and release < _numbers(row["before"])), rows[-1])


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in _NUMBER.findall(release))


def _newest(package: str) -> str:
    known = [system for system in systems() if system.startswith(f"{package}-")]
    return max(known, key=_numbers).partition("-")[2]
