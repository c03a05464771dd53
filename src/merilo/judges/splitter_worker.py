"""Splits texts into sentences with pysbd in a separate process: one JSON text per input line, one JSON object per
output.

`merilo.judges.splitter` starts this file by its path, so it imports nothing of merilo. Its first line reports that
it is ready. On systems with alarms, it ends itself a little after the time limit. So a text on which pysbd hangs does
not keep a processor busy if its parent process is gone.
"""

from __future__ import annotations

import json
import math
import signal
import sys
from collections.abc import Callable

Segment = Callable[[str], list[str]]


def main() -> None:
    """Answer line by line until the input ends. The only argument is the time limit of a text in seconds."""
    limit_s = math.ceil(float(sys.argv[1])) + 2
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process decides when it ends
    try:
        from pysbd import Segmenter
    except Exception as error:  # noqa: BLE001  any error is reported to the parent process
        _write({"error": _message(error)})
        return
    segment: Segment = Segmenter(language="en", clean=False).segment
    _write({"ready": True})
    for line in sys.stdin:
        _alarm(limit_s)
        _write(_answer(segment, line))
        _alarm(0)


def _answer(segment: Segment, line: str) -> dict[str, object]:
    try:
        return {"texts": [str(piece) for piece in segment(json.loads(line))]}
    except Exception as error:  # noqa: BLE001  one failed text does not end the worker
        return {"error": _message(error)}


def _alarm(seconds: int) -> None:
    if sys.platform != "win32":
        signal.alarm(seconds)  # its default action ends the process, even inside a regular expression


def _write(value: dict[str, object]) -> None:
    print(json.dumps(value), flush=True)  # noqa: T201  the output is the protocol


def _message(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
