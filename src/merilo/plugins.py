"""Code that extends merilo: entry points of installed packages, and Python files named by path.

An installed package adds metrics, judges, providers and data adapters through entry points. merilo's own published
metrics and judges are declared in the same way, in `pyproject.toml`:

- `merilo.metrics`: a metric class, a tuple of them, or a module with `METRICS` (and `COMPOSITES`).
- `merilo.judges`: the word before the colon in `--judge`, and a function from the text after it to a judge.
- `merilo.providers`: the word before the colon, and a function from the model, `base_url` and `api_key_env` to a
  provider.
- `merilo.adapters`: a function from an object or a `Path` of another system to records, or None if it is not its own;
  or a tuple of such functions.
- `merilo.parts`: what merilo itself has in another package.

  - `compat`: the package whose modules are those of `merilo.compat`.
  - `rubrics`: the package with more rubrics.
  - `prompts`: a function from metrics to those of them that another package words (`Reworded`), by their texts.
  - `definitions`: a function that compares the definitions of one name on data.
  - `families`: a mapping from the text of a definition to that name.
  - `reproduction`: a function from the name of a definition to what it reproduces; None for other names.

merilo's own metrics, providers and adapters need no entry point: each module of `merilo.metrics` with `METRICS`, of
`merilo.providers` with `PROVIDER` and of `merilo.adapters` with `ADAPTERS` counts. A module with further providers
assigns each to `PROVIDER_` and its name in capital letters.
"""

from __future__ import annotations

import hashlib
import importlib.util
import pkgutil
import re
import sys
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.abc import InspectLoader
from importlib.machinery import SourceFileLoader
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from merilo.errors import UsageError

if TYPE_CHECKING:
    from types import CodeType, ModuleType

OWN_PACKAGE: Final = "merilo"
PUBLISHED: Final = "the package merilo_published, which is not installed"
"""Where the definitions of other systems are; for messages if they are missing."""


class Group(StrEnum):
    """The entry points that merilo reads."""

    METRICS = "merilo.metrics"
    JUDGES = "merilo.judges"
    PROVIDERS = "merilo.providers"
    ADAPTERS = "merilo.adapters"
    PARTS = "merilo.parts"


_IN_FILE: Final = re.compile(r"(?P<path>.+\.py):(?P<name>[A-Za-z_]\w*)", re.DOTALL)
_FILE_AND_REST: Final = re.compile(r"([^\"]+?\.py:[A-Za-z_]\w*)(\(.*)?", re.DOTALL)
"""A path may contain brackets. A quotation mark before the name of a file belongs to a parameter."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """One entry point, or one of merilo's own providers and adapters."""

    group: Group
    entry: EntryPoint
    package: str
    """The distribution that declares it."""

    @property
    def name(self) -> str:
        """The name that its package gave it."""
        return self.entry.name

    def load(self) -> object:
        """Return the object. Raises UsageError if its module cannot be imported or lacks it."""
        try:
            return self.entry.load()
        except (Exception, SystemExit) as error:  # a stranger's module may raise anything, or end the command
            raise UsageError(
                f"The plug-in {self.name} of {self.package} cannot be loaded ({type(error).__name__}: {error}). "
                f"Update or uninstall {self.package}."
            ) from error


@cache
def plugins(group: Group) -> tuple[Plugin, ...]:
    """Return the plug-ins of a group, merilo's own first, in the order of declaration; the first of equal names."""
    found: dict[str, Plugin] = {each.name: each for each in _own(group)}
    declared = [
        Plugin(group, entry, "unknown package" if entry.dist is None else entry.dist.name)
        for entry in entry_points(group=group.value)
    ]
    for each in sorted(declared, key=lambda plugin: plugin.package != OWN_PACKAGE):
        if each.package != OWN_PACKAGE or find_spec(each.entry.module.partition(".")[0]) is not None:
            found.setdefault(each.name, each)
    return tuple(found.values())


_FOUND_BY_FILE: Final = {Group.PROVIDERS: "PROVIDER", Group.ADAPTERS: "ADAPTERS"}
"""Groups whose plug-ins of merilo are found by the name that their module assigns."""


def _own(group: Group) -> list[Plugin]:
    """Return merilo's own plug-ins of a group; `merilo/providers/my_server.py` gets the name `my-server`."""
    if group not in _FOUND_BY_FILE:
        return []
    constant = _FOUND_BY_FILE[group]
    found = {
        (name or module.rpartition(".")[2]).lower().replace("_", "-"): f"{module}:{attribute}"
        for module, source in modules_with(group.value, constant).items()
        for attribute, name in re.findall(rf"^({constant}(?:_(\w+))?)\b.*=", source, re.MULTILINE)
    }
    return [Plugin(group, EntryPoint(name, found[name], group), OWN_PACKAGE) for name in sorted(found)]


def modules_with(package: str, name: str) -> dict[str, str]:
    """Return the modules of a package whose source assigns this name at top level, sorted, and their sources.

    None is imported.
    """
    assigned = re.compile(rf"^{name}\b.*=", re.MULTILINE)
    path = importlib.import_module(package).__path__
    specs = (each.module_finder.find_spec(each.name, None) for each in pkgutil.iter_modules(path, f"{package}."))
    # Reading the source takes 1 ms. Importing every module takes 50 ms for the providers.
    loaders = {spec.name: spec.loader for spec in specs if spec is not None}
    sources = {name: each.get_source(name) or "" for name, each in loaders.items() if isinstance(each, InspectLoader)}
    return {each: source for each, source in sorted(sources.items()) if assigned.search(source)}


def plugin(group: Group, name: str) -> object | None:
    """Return the object of the plug-in with this name; None if there is none. Raises UsageError if it cannot load."""
    return next((each.load() for each in plugins(group) if each.name == name), None)


def names_file(text: str) -> bool:
    """Return True for a text such as `path/to/file.py:Name`."""
    return _IN_FILE.fullmatch(text) is not None


def split_file(text: str) -> tuple[str, str]:
    """Split `path/to/file.py:Name(...)` into the object and the rest; the first is empty for other texts."""
    found = _FILE_AND_REST.fullmatch(text.strip())
    return (found[1], found[2] or "") if found else ("", text)


@cache
def object_in_file(text: str) -> object:
    """Return the object that `path/to/file.py:Name` names. A file runs once per process.

    Modules in the file's own folder can be imported while it runs.

    Raises UsageError if there is no such file or name, or if the code raises an error.
    """
    named = _IN_FILE.fullmatch(text)
    if named is None:
        raise UsageError(f"Code in a file is named as in path/to/file.py:Name; got {text!r}.")
    path = Path(named["path"])
    if not isfile(path):  # noqa: PTH113  Path.is_file raises OSError for a long name
        raise UsageError(f"No such file: {path}.")
    module = _module(path.resolve())
    found = getattr(module, named["name"], None)
    if found is None:
        public = {name: value for name, value in vars(module).items() if not name.startswith("_")}
        homes = {name: {getattr(value, "__module__", ""), type(value).__module__} for name, value in public.items()}
        own = ", ".join(name for name, found_in in homes.items() if module.__name__ in found_in)
        raise UsageError(f"{path} has no {named['name']!r}; it defines {own or 'nothing'}.")
    return found


class _SourceOnly(SourceFileLoader):
    """Runs the source that the user can read: a checkout may contain `__pycache__` with other code."""

    def get_code(self, fullname: str) -> CodeType:
        """Compile the file."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


@cache
def _module(path: Path) -> ModuleType:
    # Equal file names in two folders are two modules.
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:8]
    name = f"{path.stem}_{digest}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_SourceOnly(name, str(path)))
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} cannot be imported.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module while it runs
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # sys.exit(0) would report success without a run
        del sys.modules[name]
        raise UsageError(f"{path} cannot be imported ({type(error).__name__}: {error}).") from error
    finally:
        sys.path.remove(str(path.parent))
    return module
