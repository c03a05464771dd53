"""The exit codes of the command line.

Exit codes: 0 done · 1 a gate failed, a verification gives other numbers, or the traffic changed · 2 usage error,
invalid data, a broken seal or a provider that cannot be used · 3 cannot tell · 4 too many failed outcomes · 5 stopped
at a limit (--max-cost, --max-requests, --max-seconds) · 6 waiting for batches (--batch) · 7 the judge changed · 70 a
bug in merilo, or no memory · 74 the standard output cannot be written · 130 interrupted · 141 the reader of the output
is gone.
"""

from enum import IntEnum


class Exit(IntEnum):
    """The exit codes by name; the module says what they mean."""

    DONE = 0
    GATE_FAILED = 1
    WRONG_USE = 2
    CANNOT_TELL = 3
    TOO_MANY_FAILED = 4
    LIMIT_REACHED = 5
    WAITING = 6
    JUDGE_CHANGED = 7
    BUG = 70
    OUTPUT_LOST = 74
    INTERRUPTED = 130
    NO_READER = 141
