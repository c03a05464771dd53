"""Imports at the first use: public names of a package, so that it stays quick to import, and optional packages."""

from __future__ import annotations

import ast
import inspect
import sys
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping


def exports(package: str, modules: Collection[str] = ()) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose public names are defined in other modules.

    The names are those that the package imports for type checkers, under `if TYPE_CHECKING:`, so each is written once.
    `modules`: the public modules of the package.
    """

    def get(name: str) -> object:
        if not name.startswith("_") and (home := _homes(package).get(name)) is not None:
            return getattr(import_module(home), name)
        if name in modules:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: sorted(_homes(package))


@cache
def _homes(package: str) -> Mapping[str, str]:
    """Return public name → the module that defines it, as in the package's imports for type checkers."""
    source = ast.parse(inspect.getsource(sys.modules[package]))
    blocks = [each for each in source.body if isinstance(each, ast.If)]
    imports = [each for block in blocks for each in block.body if isinstance(each, ast.ImportFrom)]
    return {name.name: str(each.module) for each in imports for name in each.names}


def optional_module(module: str, *, wanted_by: str, install: str) -> Any:  # Any: the package may be untyped or absent
    """Return an optional module. Raises UsageError if it is not installed.

    `wanted_by`: what needs it, the subject of the message. `install`: what to install, such as `merilo[parquet]`.
    """
    from merilo.errors import UsageError  # a package that is only imported needs no errors

    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        shown = f"'{install}'" if "[" in install else install
        raise UsageError(f"{wanted_by} needs {package}, which is not installed. Run: pip install {shown}") from None
