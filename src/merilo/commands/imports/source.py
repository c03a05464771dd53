"""The package and release that the user names as the source of scores, and the definitions that match its metrics.

`upstream.toml` holds the facts; nothing here imports another package or reads a file of the user.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.errors import UsageError
from merilo.metrics.registry import known_definition, metric_text, systems

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    """The release as stated; empty if the user states none."""

    @property
    def title(self) -> str:
        """The package's name with its releases, for users."""
        return f"{_facts()[self.package]['title']} {self.releases}".rstrip()

    @property
    def caveat(self) -> str:
        """A sentence if the definitions may be those of another release; otherwise empty."""
        if "-" not in self.system:
            return ""
        if not self.releases:
            return f"The release is not stated; {self.system} is used. State it with --source {self.system}."
        row = _row_of(self.package, _numbers(self.releases))
        if _numbers(self.releases) >= _numbers(str(row["since"])):
            return ""
        return f"merilo has no definitions of {self.title}; {self.system} has the nearest ones."


class Match(NamedTuple):
    """The canonical text of the definition here that matches a metric of another package; without one, the reason."""

    definition: str | None
    reason: str = ""


def stated_source(text: str) -> Source:
    """Return the source that a user states: `ragas-0.4.3`, `ragas==0.1.9`, `deepeval`.

    Raises UsageError for anything else.
    """
    found = _STATED.fullmatch(text.strip())
    name = "" if found is None else found["package"].lower()
    if found is None or name not in _facts():
        raise UsageError(f"No known source {text!r}; write {', '.join(_facts())}, with a release: ragas-0.4.3.")
    release: str = found["release"] or ""
    if not release and len(_facts()[name]["releases"]) > 1:
        raise UsageError(f"Name the release of {_facts()[name]['title']}, such as {name}-{_newest(name)}.")
    system = str(_row_of(name, _numbers(release))["system"])
    return Source(name, system, release)


def matched(name: str, source: Source) -> Match:
    """Return the definition of a metric of this source."""
    facts = _facts()[source.package]
    base, bracket, rest = name.partition("(")
    plain = _snake_case(_SUFFIX.sub("", name) if source.package == "deepeval" else base)
    if source.package == "deepeval" and _SUFFIX.search(name):
        return Match(None, facts["missing"]["g_eval"])
    known: str = facts["names"].get(base, facts["names"].get(plain, plain))
    parameters = f"{bracket}{rest}" if source.package == "ragas" else ""
    for candidate in (known, plain):
        found = known_definition(f"{source.system}:{candidate}{parameters}")
        if found is not None:
            return Match(metric_text(found))
    return Match(None, facts["missing"].get(plain) or _no_definition(known, source))


def _no_definition(known: str, source: Source) -> str:
    """Return the reason for a metric without a definition; it names the same metric of another release, if any."""
    near = [
        f"{system}:{known}"
        for system in systems()
        if system.startswith(source.package) and known_definition(f"{system}:{known}") is not None
    ]
    also = f"; {max(near, key=_numbers)} is of another release" if near else ""
    return f"merilo has no definition of it among those of {source.system}{also}"


def _snake_case(name: str) -> str:
    """Return a class or display name in snake case, without `Metric` at its end."""
    return _WORD_END.sub("_", name.strip()).replace(" ", "_").replace("-", "_").lower().removesuffix("_metric")


@cache
def _facts() -> dict[str, dict[str, Any]]:  # Any: a file of ours
    return tomllib.loads(files("merilo.commands.imports").joinpath("upstream.toml").read_text("utf-8"))


def _row_of(package: str, release: tuple[int, ...]) -> Mapping[str, Any]:  # Any: as above
    rows: list[Mapping[str, Any]] = _facts()[package]["releases"]
    return next((row for row in rows if release and "before" in row and release < _numbers(row["before"])), rows[-1])


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in _NUMBER.findall(release))


def _newest(package: str) -> str:
    known = [system for system in systems() if system.startswith(f"{package}-")]
    return max(known, key=_numbers).partition("-")[2]
