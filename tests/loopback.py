"""Keeps the tests, and every Python process that they start, to this machine."""

import os
import sys
from collections.abc import MutableMapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

_CLOSED = Path(__file__).with_name("closed")
_VARIABLE = "PYTHONPATH"
_shut: set[Path] = set()


class OpenChild(RuntimeError):
    """A process was about to be started that could reach other machines."""


def shut() -> None:
    """Close the way out of this process and of its children; it cannot be opened again."""
    if _CLOSED in _shut:
        return
    _shut.add(_CLOSED)
    _close(os.environ)
    spec = spec_from_file_location("merilo_tests_closed", _CLOSED / "sitecustomize.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"{_CLOSED} cannot be read")
    spec.loader.exec_module(module_from_spec(spec))
    sys.addaudithook(_close_children)


def _close(environment: MutableMapping[str, str]) -> None:
    """Let a Python that starts with this environment close its way out."""
    entries = [entry for entry in environment.get(_VARIABLE, "").split(os.pathsep) if entry]
    if str(_CLOSED) not in entries:
        environment[_VARIABLE] = os.pathsep.join([str(_CLOSED), *entries])


def _close_children(event: str, arguments: tuple[Any, ...]) -> None:
    """Close also those that are given an environment of their own, by the code under test too: it is not copied yet."""
    if event == "subprocess.Popen":
        environment = os.environ if arguments[3] is None else arguments[3]
        if not isinstance(environment, MutableMapping):
            raise OpenChild(f"{arguments[1]!r} would start with the way out open: its environment is not a dict.")
        _close(environment)
