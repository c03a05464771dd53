"""The options in the help of each command."""

import re
from pathlib import Path
from typing import Any, Final

import pytest
import typer
from each_case import each_case

from merilo.cli import app, commands, outcome
from merilo.commands.check.options import CheckOptions
from merilo.commands.compare.options import ComparisonRequest
from merilo.commands.diagnose.settings import DiagnoseOptions
from merilo.commands.evaluate.options import Options
from merilo.commands.option import flag_name, flags_of

BY_NAME = {command.name: command for command in commands()}
GROUPS: Final = {name.partition(" ")[0] for name in BY_NAME if " " in name}
ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
ALWAYS: Final = {"--help", "--help-all", "--debug", "--version"}
OF_OTHERS: Final = {"--api-key", "--max-model-len", "--output", "--parallel", "--reasoning-budget"}
"""Options of model servers and of promptfoo."""


WHOLE: Final[Any] = typer.main.get_command(app())


def params(name: str) -> list[Any]:
    found = WHOLE
    for word in name.split():
        found = found.commands[word]
    return [each for each in found.params if each.param_type_name == "option"]


OWN: Final = {name: ALWAYS.union(*(each.opts for each in params(name))) for name in BY_NAME}


@each_case("name", BY_NAME)
def test_a_command_shows_only_its_options(name: str) -> None:
    """`--help` has those that the command declares."""
    shown = [each.opts for each in params(name) if not each.hidden]
    declared = {*BY_NAME[name].options.split()}
    assert shown
    assert all(declared.intersection(opts) for opts in shown)


@each_case("name", ["", *sorted(GROUPS), *BY_NAME])
def test_every_help_page_is_printed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The short one and the one with all options."""
    for option in ("--help", "--help-all"):
        assert outcome([*name.split(), option]) == 0
        assert f"Usage: merilo {name}".strip() in capsys.readouterr().out


def test_every_number_has_a_range() -> None:
    """An option that takes a number declares the smallest one, or is a field of an options class."""
    declared = {
        flag_name(*each)
        for make in (Options, CheckOptions, ComparisonRequest, DiagnoseOptions)
        for each in flags_of(make).items()
    }
    numbers = [each for name in BY_NAME for each in params(name) if each.type_descriptor.annotation in (int, float)]
    assert len(numbers) > 20
    for each in numbers:
        assert each.opts[0] in declared or each.min is not None, each.opts


def test_few_options_are_shown() -> None:
    """At most 20 by `run`, and at most 150 by all commands."""
    shown = {name: sum(not each.hidden for each in params(name)) for name in BY_NAME}
    assert shown["run"] <= 20
    assert sum(shown.values()) <= 150


def test_help_all_shows_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    """Those that `--help` hides too, and `--debug`."""
    assert outcome(["run", "--help"]) == 0
    short = capsys.readouterr().out
    assert "--help-all" in short
    assert "--api-key-env" not in short
    assert outcome(["run", "--help-all"]) == 0
    whole = capsys.readouterr().out
    assert all(each.opts[0] in whole for each in params("run"))
    assert "--debug" in whole


@each_case("page", PAGES)
def test_a_page_names_only_options_that_exist(page: Path) -> None:
    """Those after a command are its own; an option alone is one of any command."""
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in re.findall(r"^(?:\$ | +)(?:\.venv/bin/)?merilo (.+)|`merilo ([^`]+)`", text, re.MULTILINE):
        words = " ".join(line).split()
        named = OWN.get(" ".join(words[:2])) or OWN.get(words[0], ALWAYS)
        assert named.issuperset(word.partition("=")[0] for word in words if word.startswith("--")), words
    assert {*re.findall(r"`(--[a-z-]+)", text)} <= set().union(*OWN.values(), OF_OTHERS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plan", "data.jsonl"], "merilo plan is now: merilo run DATA --plan"),
        (["sample-questions", "docs"], "merilo sample-questions is now: merilo questions DOCUMENTS"),
        (["list"], "Did you mean: merilo runs list?"),
        (["report"], "Missing argument 'RUN...'. See merilo report --help."),
        (["export"], "Missing argument 'RUN...'. See merilo export --help."),
    ],
)
def test_a_former_or_incomplete_command_says_what_to_write(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And exits with 2."""
    assert outcome(words) == 2
    assert message in capsys.readouterr().err
