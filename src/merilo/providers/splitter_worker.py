"""Cuts texts into sentences with pysbd in a process of its own: a JSON text a line in, a JSON object a line out.

`merilo.providers.splitter` starts this file by its path, so it imports nothing of ours. The first line says that it
is ready. Where the system can do so, it ends itself a little after the time limit, so that a text on which pysbd
hangs does not keep a processor busy when nobody is left to end it.
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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it decides when it ends
    try:
        from pysbd import Segmenter
    except Exception as error:  # noqa: BLE001  whatever it is, somebody must be told
        _say({"error": _told(error)})
        return
    segment: Segment = Segmenter(language="en", clean=False).segment
    _say({"ready": True})
    for line in sys.stdin:
        _alarm(limit_s)
        _say(_answer(segment, line))
        _alarm(0)


def _answer(segment: Segment, line: str) -> dict[str, object]:
    try:
        return {"texts": [str(piece) for piece in segment(json.loads(line))]}
    except Exception as error:  # noqa: BLE001  a text on which pysbd breaks is no reason to end
        return {"error": _told(error)}


def _alarm(seconds: int) -> None:
    if sys.platform != "win32":
        signal.alarm(seconds)  # by default it ends the process, also in the middle of a regular expression


def _say(value: dict[str, object]) -> None:
    print(json.dumps(value), flush=True)  # noqa: T201  this is how it answers


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
