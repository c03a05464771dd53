"""Cases of a test in a loop: one test for the collection, and a failure that still names its cases."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

import pytest

_Test = TypeVar("_Test", bound="Callable[..., object]")
_FAILURES = (Exception, pytest.fail.Exception)


def each_case(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[[_Test], _Test]:
    """Call a test once for each case, as `pytest.mark.parametrize` does with the same arguments.

    A case that fails does not stop the others. Each case has its own `tmp_path` and `monkeypatch`; other fixtures are
    shared, so a test that changes another fixture needs `parametrize`.
    """
    own = (names,) if isinstance(names, str) else names
    rows = [dict(zip(own, (case,) if isinstance(names, str) else case, strict=True)) for case in cases]

    def decorated(test: Any) -> Any:  # Any: a test of any signature, with or without async
        @wraps(test)
        def looped(**fixtures: Any) -> None:
            with _failures() as failures:
                for number, row in enumerate(rows):
                    with _case(row, failures), _own(fixtures, number) as given:
                        test(**given, **row)

        @wraps(test)
        async def looped_async(**fixtures: Any) -> None:
            with _failures() as failures:
                for number, row in enumerate(rows):
                    with _case(row, failures), _own(fixtures, number) as given:
                        await test(**given, **row)

        made: Any = looped_async if inspect.iscoroutinefunction(test) else looped
        signature = inspect.signature(test)
        made.__signature__ = signature.replace(
            parameters=[each for each in signature.parameters.values() if each.name not in own]
        )
        return made

    return decorated


@contextmanager
def _failures() -> Iterator[list[BaseException]]:
    """Collect the failures of all cases and raise them at the end."""
    failures: list[BaseException] = []
    yield failures
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise BaseExceptionGroup(f"{len(failures)} cases failed", failures)


@contextmanager
def _case(row: dict[str, Any], failures: list[BaseException]) -> Iterator[None]:
    try:
        yield
    except _FAILURES as error:
        error.add_note("case: " + ", ".join(f"{name}={value!r:.300}" for name, value in row.items()))
        failures.append(error)


@contextmanager
def _own(fixtures: dict[str, Any], number: int) -> Iterator[dict[str, Any]]:
    given = dict(fixtures)
    if "tmp_path" in given:
        given["tmp_path"] = given["tmp_path"] / f"case{number}"
        given["tmp_path"].mkdir()
    with pytest.MonkeyPatch.context() as patched:
        if "monkeypatch" in given:
            given["monkeypatch"] = patched
        yield given
