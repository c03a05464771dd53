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
_ADVICE: Final = """
run comparison | df to_df to_dataframe dataframe to_csv to_json to_dict | use {}.to_pandas()
run comparison | summary show | use print({})
run comparison | to_html save_html html | use {}.report("report.html")
run | scores | use {}.to_pandas()
run | results outcomes rows data items | use {}.samples
run | aggregates means | use {}.metrics
run | verdicts causes fault | use {}.faults
run | cost tokens | use {}.usage
run | judge | use {}.manifest.judges
run | export | use merilo export RUN -o FILE on the command line
comparison | results scores | use {}.rows
comparison | winner better result | use {}.verdict
comparison | difference differences interval p_value | use {}.metrics["METRIC"]
comparison | runs | use {}.sides
comparison | samples | use {}.moved
sample | score metrics values results | use {}.scores
sample | verdict cause verdicts | use {}.fault
sample | id user_input response reference retrieved_contexts metadata | use {}.sample.{name}
sample | question | use {}.sample.user_input
sample | answer | use {}.sample.response
sample | contexts | use {}.sample.retrieved_contexts
"""
"""Results, attributes that users of other tools expect, and what to use."""
_ROWS: Final = [[*map(str.strip, row.split("|"))] for row in _ADVICE.strip().splitlines()]
GUESSES: Final = {
    (thing, name): advice.format(thing, name=name)
    for things, names, advice in _ROWS
    for thing in things.split()
    for name in names.split()
}
"""Result and attribute → what to use."""


def unknown_attribute(thing: str, name: str, advice: str = "") -> AttributeError:
    """Return the error of a result, such as `run`, without this attribute; `advice`: unless the table has some."""
    found = GUESSES.get((thing, name), advice)
    return AttributeError(f"A {thing} has no attribute {name!r}{f': {found}' if found else ''}.")


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
