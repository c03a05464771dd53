"""Public names of a package that are imported when they are first used, so that the package stays quick to import."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def exports(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose public names are defined in other modules.

    `homes`: module → its public names.
    """
    home = {name: module for module, names in homes.items() for name in names}

    def get(name: str) -> object:
        if name in home:
            return getattr(import_module(home[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def names() -> list[str]:
        return sorted(home)

    return get, names
