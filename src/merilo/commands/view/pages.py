"""The pages about runs: those of `merilo report`, made once for each state of the runs' files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from merilo.bounded_cache import BoundedCache
from merilo.commands.report.run_page import report_text
from merilo.commands.view.catalog import Stamps, stamps_of
from merilo.commands.view.html import back

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_Key = tuple[tuple["Path", ...], tuple[Stamps, ...]]
_MAX_BYTES: Final = 64 * 2**20
"""Size of all pages that are held: a report on 10,000 samples may have 20 MB."""
_BODY: Final = "<body>"


class ReportPages:
    """Reports and comparisons with a link to the list, as bytes. The most recently used ones are held."""

    def __init__(self) -> None:
        self._pages: BoundedCache[_Key, bytes] = BoundedCache(
            _page, size=lambda _, page: len(page), max_size=_MAX_BYTES
        )

    def page(self, runs: Sequence[Path]) -> bytes:
        """Return the report on a run, or the comparison of each other run with the first.

        It is made again if a file of a run changed. Raises the errors of `report_text`.
        """
        paths = tuple(runs)
        return self._pages[paths, tuple(map(stamps_of, paths))]


def _page(key: _Key) -> bytes:
    paths, _ = key
    before, body, after = report_text(paths).partition(_BODY)
    return f"{before}{body}\n{back()}{after}".encode("utf-8", "replace")
