"""Names of other packages that merilo does not have: an import of one raises an error that says what to use.

`missing.toml` has the advice. A name counts without its underscores and its `Metric`, so `GEval` and `g_eval` are one.
"""

from __future__ import annotations

import sys
import tomllib
from difflib import get_close_matches
from functools import cache, partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ClassVar, Final

from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_ROOT: Final = "merilo.compat"


class MissingModules:
    """A finder that finds nothing. It comes last, so Python asks it only for modules that do not exist."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raise ImportError for a module, or a name imported from one, that is missing here; return None elsewhere."""
        del path, target
        if fullname.startswith(f"{_ROOT}."):
            raise ImportError(_advice(*fullname.rsplit(".", 1)), name=fullname)
        return None


class Refused:
    """The common base of classes that merilo has only to say, when one is made, what to do."""

    advice: ClassVar[str]

    def __init__(self, *_: object, **__: object) -> None:
        raise UsageError(self.advice)


def add_files(module: str, *names: str) -> None:
    """Make files of the other package importable whose names are all in one module here."""
    sys.modules.update({f"{module}.{name}": sys.modules[module] for name in names})


def cover(package: str) -> None:
    """Make the imported modules of a package say what to use for a missing name; repeated calls change nothing."""
    if MissingModules not in sys.meta_path:
        sys.meta_path.append(MissingModules)
    for module, found in [*sys.modules.items()]:
        if module == package or module.startswith(f"{package}."):
            names = vars(found)
            names.setdefault("__path__", [])  # so that Python asks the finder for a name that the module lacks
            names.setdefault("__getattr__", partial(_refuse, found.__name__))


def _refuse(module: str, name: str) -> object:
    if name.startswith("__"):
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    raise AttributeError(_advice(module, name))


def _advice(module: str, name: str) -> str:
    """Return what to use instead of a name that a module lacks: the advice, where it is, or a name like it."""
    package = module.removeprefix(_ROOT).lstrip(".").split(".")[0]
    known = advice_table().get(package) or advice_table()["merilo"]
    if advice := known["advice"].get(plain(name)):
        return f"merilo does not have {known['title']} {name}: {advice}."
    modules = {each: found for each, found in sys.modules.items() if each.startswith(f"{_ROOT}.{package}")}
    elsewhere = next((each for each, found in modules.items() if name in vars(found)), None)
    if elsewhere is not None and package:
        return f"{module} has no {name}: import it from {elsewhere}."
    close = get_close_matches(name, [each for each in vars(sys.modules[module]) if each[0] != "_"], n=1)
    if close:
        return f"{module} has no {name}. Did you mean {close[0]}?"
    return f"merilo does not have {known['title']} {name}; {known['page']} lists what it has."


def plain(name: str) -> str:
    """Return a name as the table of advice has it."""
    return name.rpartition(".")[2].replace("_", "").lower().removesuffix("metric")


@cache
def advice_table() -> Mapping[str, Any]:
    """Return, by package, its title, its page, and the advice for each name."""
    text = files("merilo_published").joinpath("compat", "missing.toml").read_text(encoding="utf-8")
    return {
        package: row
        | {"advice": {plain(name): advice for advice, names in row["advice"].items() for name in names.split()}}
        for package, row in tomllib.loads(text).items()
    }
