"""One result of a framework alone: a response of LlamaIndex, an answer of Haystack, a prediction of DSPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.adapters.base import Adapter
from merilo.data.objects import Role, plain, role_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from merilo.data.foreign import ForeignRecord


def _is_result(source: object) -> bool:
    return role_of(source) is Role.RESULT


def _result(source: object) -> Iterator[ForeignRecord]:
    found: Mapping[str, object] = plain(source)  # type: ignore[assignment]  # a result is read as a dict
    yield found


ADAPTERS: Final = (Adapter("result", _is_result, _result),)
