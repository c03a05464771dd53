"""Records objects of a framework as JSON, and builds stand-ins from it: same names of classes, same attributes.

A recording holds what a reader without the package can see: the names of the class and its bases, the attributes, and
the results of the methods in `_CALLS`. `python tests/recorded_objects.py langchain` writes it with the version.
"""

import json
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "adapters" / "recorded"
_CALLS = {"llama_index": ("get_content",), "dspy": ("items",), "datasets": ("__iter__",)}
"""Package → the methods that merilo calls."""
_MAX_DEPTH = 8
_PLAIN = (str, int, float, bool, type(None))


def record(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON; an attribute that is too deep or cannot be read is left out."""
    if isinstance(value, _PLAIN) and type(value) in _PLAIN:
        return value
    if type(value) in (list, tuple):
        return {"tuple" if type(value) is tuple else "list": [record(item, depth + 1) for item in value]}
    if type(value) is dict:
        return {"dict": {str(name): record(item, depth + 1) for name, item in value.items()}}
    classes = [[each.__module__, each.__name__] for each in type(value).__mro__[:-1]]
    return {"classes": classes, "attributes": _attributes(value, depth), "calls": _calls(value, depth)}


def _attributes(value: Any, depth: int) -> dict[str, Any]:
    if _package(value) == "datasets" or depth > _MAX_DEPTH:  # a data set is read by iterating only
        return {}
    names = set(getattr(value, "__dict__", ()))
    names |= {name for each in type(value).__mro__ for name, kind in vars(each).items() if isinstance(kind, property)}
    found: dict[str, Any] = {}
    for name in sorted(names):
        if not name.startswith(("_", "model_")):
            with suppress(Exception):  # a property may raise anything
                found[name] = record(getattr(value, name), depth + 1)
    return found


def _calls(value: Any, depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in _CALLS.get(_package(value), ()):
        if callable(getattr(type(value), name, None)):
            result = getattr(value, name)()
            found[name] = record(result if isinstance(result, str) else list(result), depth + 1)
    return found


def _package(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def restore(recorded: Any) -> Any:
    """Return the value, with a stand-in for each object."""
    if not isinstance(recorded, dict):
        return recorded
    if "list" in recorded:
        return [restore(item) for item in recorded["list"]]
    if "tuple" in recorded:
        return tuple(restore(item) for item in recorded["tuple"])
    if "dict" in recorded:
        return {name: restore(item) for name, item in recorded["dict"].items()}
    return _stand_in(recorded)


def _stand_in(recorded: dict[str, Any]) -> Any:
    base: type = object
    for module, name in reversed(recorded["classes"]):
        base = type(name, (base,), {"__module__": module})
    calls = {name: restore(result) for name, result in recorded["calls"].items()}
    methods: dict[str, Any] = {name: _returning(result) for name, result in calls.items()}
    module, name = recorded["classes"][0]
    if name.endswith("Dataset"):
        methods["with_format"] = lambda self, _: self  # a data set without a format is itself
    made = type(name, (base,), {"__module__": module, **methods})()
    for attribute, value in recorded["attributes"].items():
        setattr(made, attribute, restore(value))
    return made


def _returning(result: Any) -> Any:
    """Return a method with this result; a list is iterated anew each time."""
    return lambda _: iter(result) if isinstance(result, list) else result


def recorded_objects(framework: str) -> dict[str, Any]:
    """Return the stand-ins of a framework by name."""
    objects = json.loads((FOLDER / f"{framework}.json").read_text(encoding="utf-8"))["objects"]
    return {name: restore(each) for name, each in objects.items()}


def main(framework: str) -> None:
    """Record the objects of an installed framework."""
    from framework_objects import MAKERS

    package, make = MAKERS[framework]
    found = {"package": package, "version": version(package), "objects": {n: record(v) for n, v in make().items()}}
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{framework}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
