"""`merilo judge card`: draft the card of a local model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from merilo.commands.command import Command, Section
from merilo.commands.flags import Debug, given

HELP = """Draft the card of a local model, from its config.json.

A card describes the files, input and output of a model, so that --judge local:FOLDER can use it. Replace each "?" in
the draft. Exit codes: 0 success, 2 usage error.
"""
EXAMPLES = """\b
Examples:
  merilo judge card ./models/nli
  merilo judge card ./models/nli -o card.toml
"""


def draft(
    folder: Annotated[
        str,
        typer.Argument(
            metavar="FOLDER",
            help="Folder with model.onnx, tokenizer.json and config.json.",
            callback=given,
            show_default=False,
        ),
    ],
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="File to write. [default: FOLDER/judge.toml]")
    ] = None,
    debug: Debug = False,
) -> None:
    """Write the draft of a card."""
    del debug  # main reads it
    from merilo.errors import UsageError
    from merilo.judges.local.card import CARD_NAME, UNDECIDED
    from merilo.judges.local.draft import draft_card
    from merilo.rendering.terminal import write

    text = draft_card(Path(folder))
    path = Path(out) if out is not None else Path(folder) / CARD_NAME
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} exists. Choose another file with -o FILE.") from None
    except OSError as error:
        raise UsageError(f"Cannot write {path} ({error.strerror}).") from error
    places = text.count(f'"{UNDECIDED}"') - 1  # the first line names the sign
    write(f'Wrote {path}. Replace "{UNDECIDED}" in {places} places, then: merilo judge test local:{folder}\n')


COMMAND = Command(
    name="judge card",
    section=Section.JUDGES,
    summary="Draft the card of a local model.",
    help=HELP,
    call=draft,
    examples=EXAMPLES,
)
