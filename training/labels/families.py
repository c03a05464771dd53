"""Families of sources that have one origin: a judge is measured on families that it was not fitted on."""

import tomllib
from pathlib import Path

_FIELDS = tomllib.loads((Path(__file__).resolve().parents[1] / "families.toml").read_text(encoding="utf-8"))
_FAMILY = {source: family for family, sources in _FIELDS["families"].items() for source in sources}
LOCKED = frozenset(_FIELDS["locked"])
"""Families that are used for one measurement at the end only, never to fit, select or debug."""

KNOWN = frozenset(_FIELDS["known"])
"""Families that the reader or the words were trained on."""


def family_of(source: str) -> str:
    """The family of a source; the source itself if it is the only one of its origin."""
    source = "xquad" if source.startswith("xquad-") else source
    return _FAMILY.get(source, source)


def is_locked(source: str) -> bool:
    """Whether a source belongs to a locked family."""
    return family_of(source) in LOCKED


def is_known(source: str) -> bool:
    """Whether the reader or the words were trained on the family of a source."""
    return family_of(source) in KNOWN
