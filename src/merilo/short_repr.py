"""Short representations of results, and what to use instead of a name that a result does not have."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

LIMIT: Final = 300
"""Maximum length of a representation."""
_VALUE_LIMIT: Final = 60
SCREEN_LINES: Final = 12
"""Maximum number of lines of a representation that is a screen."""
_TABLE: Final = "use {}.to_pandas()"
_FIELD: Final = "use sample.sample.{}"
GUESSES: Final[dict[str, dict[str, str]]] = {
    "run": {
        **dict.fromkeys("scores df to_df to_dataframe dataframe to_csv to_json to_dict".split(), _TABLE),
        **dict.fromkeys("results outcomes rows data items".split(), "use run.samples"),
        **dict.fromkeys("summary show".split(), "use print(run)"),
        **dict.fromkeys("aggregates means".split(), "use run.metrics"),
        **dict.fromkeys("verdicts causes fault".split(), "use run.faults"),
        **dict.fromkeys("to_html save_html html".split(), "use run.report('report.html')"),
        **dict.fromkeys("cost tokens".split(), "use run.usage"),
        "judge": "use run.manifest.judges",
        "worst_samples": "use run.worst()",
        "export": "use merilo export RUN -o FILE on the command line",
    },
    "comparison": {
        **dict.fromkeys("scores df to_df to_dataframe dataframe to_csv to_json to_dict".split(), _TABLE),
        **dict.fromkeys("results data".split(), "use comparison.rows"),
        **dict.fromkeys("summary show".split(), "use print(comparison)"),
        **dict.fromkeys("to_html save_html html plot".split(), "use comparison.report('comparison.html')"),
        **dict.fromkeys("winner better result".split(), "use comparison.verdict"),
        **dict.fromkeys("difference differences interval p_value".split(), "use comparison.metrics['METRIC']"),
        "runs": "use comparison.sides",
        "samples": "use comparison.moved",
    },
    "sample": {
        **dict.fromkeys("score metrics values results".split(), "use sample.scores"),
        **dict.fromkeys("verdict cause faults".split(), "use sample.fault"),
        **dict.fromkeys("id user_input response reference retrieved_contexts metadata".split(), _FIELD),
        "question": "use sample.sample.user_input",
        "answer": "use sample.sample.response",
        "contexts": "use sample.sample.retrieved_contexts",
    },
}
"""Result → attribute that users of other tools expect → what to use."""


def unknown_attribute(thing: str, name: str, advice: str = "") -> AttributeError:
    """Return the error of a result, such as `run`, without this attribute; `advice`: unless the table has some."""
    found = GUESSES[thing].get(name, advice)
    own = name if found is _FIELD else thing
    return AttributeError(f"A {thing} has no attribute {name!r}{f': {found.format(own)}' if found else ''}.")


def short_screen(text: str) -> str:
    """Return a text with at most 12 lines; the last one states the number of those left out."""
    lines = text.rstrip().splitlines()
    left = len(lines) - SCREEN_LINES + 1
    return "\n".join(lines if left < 2 else [*lines[: SCREEN_LINES - 1], f"... {left} more lines: print it"])


def short_repr(value: object, /, **facts: object) -> str:
    """Return `Class(name=fact, ...)` with at most 300 characters.

    Facts that are None are left out. A long text is truncated, and a collection is shown as its number of items.
    """
    shown = ", ".join(f"{name}={_shown(fact)}" for name, fact in facts.items() if fact is not None)
    text = f"{type(value).__name__}({shown})"
    return text if len(text) <= LIMIT else f"{text[: LIMIT - 4]}...)"


def _shown(fact: object) -> str:
    if isinstance(fact, str | Path):
        text = str(fact)
        # cut before repr, which takes long for a text of megabytes
        shown = repr(text[:_VALUE_LIMIT])
        return shown if len(text) <= _VALUE_LIMIT else f"{shown[: _VALUE_LIMIT - 4]}...{shown[-1]}"
    if isinstance(fact, Collection):
        return f"<{len(fact):,} {'item' if len(fact) == 1 else 'items'}>"  # pyright: ignore[reportUnknownArgumentType]  # of anything
    return repr(fact)
