"""Style sheets and scripts of the pages with scripts, and the content security policy that allows them alone."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Final

from merilo.rendering.markup import digest

if TYPE_CHECKING:
    from collections.abc import Iterable

MARK_SCRIPTS: Final = "document.documentElement.classList.add('js')"
"""Hides the plain copy before it is drawn. A page whose scripts are blocked keeps it."""


def asset(name: str) -> str:
    """Return the text of a style sheet or script."""
    return files("merilo.rendering").joinpath("templates", name).read_text(encoding="utf-8")


def policy(style: str, scripts: Iterable[str], *, served: bool) -> str:
    """Return the content security policy of a page with this style and these scripts, and no request.

    `served`: a page of our own server, which may ask that server for more.
    """
    allowed = " ".join(map(digest, scripts)) or "'none'"
    own = "connect-src 'self'; form-action 'self'" if served else "form-action 'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src {digest(style)}; base-uri 'none'; {own}; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )
