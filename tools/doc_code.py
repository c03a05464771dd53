"""Generated parts that are derived from the code: commands, public names, question kinds, errors."""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import typer

import merilo
from merilo import api, errors
from merilo.cli import app
from merilo.commands.evaluate.options import Options
from merilo.commands.option import docs_of, flag_name, flags_of
from merilo.judging.registry import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

WORDS: Final = 14
"""Words of a line about one parameter, unless it cannot be shortened."""

INDENT: Final = "    "
MOST: Final = 9
"""From so many commands on, an option is one of most commands."""


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table. It has no `|` at the ends of lines, which would count as words of the page."""
    names = list(head)
    lines = [names, ["---"] * len(names), *(list(row) for row in rows)]
    return "".join(" | ".join(cell.replace("|", "\\|") for cell in line).rstrip() + "\n" for line in lines)


def options() -> str:
    """Return the table of the options of an evaluation, the ones in `--help` first."""
    names = {flag_name(option, flag): option for option, flag in flags_of(Options).items()}
    found = sorted((each for each in _commands()["run"].params if each.opts[0] in names), key=lambda each: each.hidden)
    rows = ((_shown(each), f"`{names[each.opts[0]]}`", _text(each)) for each in found)
    return table(("option", "Python, `merilo.toml`", "meaning"), rows)


def commands() -> str:
    """Return a section for each command, with its visible options unless another table has them in the same words."""
    found = _commands()
    having = _having(hidden=False)
    return "\n".join(_command(name, command, having) for name, command in found.items())


def other_options() -> str:
    """Return the table of the visible options that several commands have, and of the hidden options."""
    several = [(option, names) for option, names in _having(hidden=False).items() if len(names) > 1]
    hidden: dict[str, tuple[str, list[str]]] = {}
    for (shown, text), names in sorted(_having(hidden=True).items()):
        hidden.setdefault(shown, (text, []))[1].extend(names)
    several += [((shown, text), names) for shown, (text, names) in hidden.items()]
    rows = ((*option, ", ".join(names) if len(names) < MOST else "most") for option, names in several)
    return table(("option", "meaning", "commands"), rows)


def _commands() -> dict[str, Any]:  # Any: click's classes are private in typer
    """Return every visible command by its full name such as "judge check", in the app's order."""
    return dict(_leaves(typer.main.get_command(app()), ""))


def _leaves(group: Any, before: str) -> Iterator[tuple[str, Any]]:  # Any: as above
    for name, found in group.commands.items():
        if found.hidden:
            continue
        if hasattr(found, "commands"):
            yield from _leaves(found, f"{before}{name} ")
        else:
            yield before + name, found


def _having(*, hidden: bool) -> dict[tuple[str, str], list[str]]:
    """Return the hidden or the visible options, with the commands that have each in the same words.

    Without those of an evaluation: all of `run`, the hidden ones of other commands, and those in the same words.
    """
    flags = {flag_name(option, flag) for option, flag in flags_of(Options).items()}
    evaluating = {(_shown(each), _text(each)) for each in _commands()["run"].params if each.opts[0] in flags}
    having: dict[tuple[str, str], list[str]] = {}
    for name, command in _commands().items():
        for each in command.params:
            option = (_shown(each), _text(each))
            known = option in evaluating or (hidden and each.opts[0] in flags)
            if each.param_type_name != "argument" and each.hidden is hidden and not known:
                having.setdefault(option, []).append(name)
    return having


def _command(name: str, found: Any, having: Mapping[tuple[str, str], list[str]]) -> str:  # Any: as above
    arguments = [each.metavar or each.name.upper() for each in found.params if each.param_type_name == "argument"]
    visible = [each for each in found.params if each.param_type_name != "argument" and not each.hidden]
    shared = {(_shown(each), _text(each)): len(having.get((_shown(each), _text(each)), ())) for each in visible}
    rows = [option for option, commands in shared.items() if commands == 1]
    also = ", ".join(shown for (shown, _), commands in shared.items() if commands < MOST and commands != 1)
    if name == "run":
        also = "the options of an evaluation"
    summary = " ".join(inspect.cleandoc(found.help).partition("\n\n")[0].split())
    parts = [f"### merilo {' '.join([name, *arguments])}\n", summary + f" Also {also}." * bool(also) + "\n"]
    if len(rows) == 1:
        return "\n".join([*parts, ": ".join(rows[0]) + "\n"])
    return "\n".join([*parts, table(("option", "meaning"), rows) if rows else ""])


def _shown(option: Any) -> str:  # Any: as above
    """Return an option as code, with a star if it is hidden. Markdown tables have no `|` in code."""
    value = "" if getattr(option, "is_flag", False) or not option.metavar else f" {option.metavar}"
    return f"`{max(option.opts, key=len)}{value.replace('|', '/')}`" + "*" * bool(getattr(option, "hidden", False))


def _text(option: Any) -> str:  # Any: as above
    """Return the text of an option, with its default."""
    text = " ".join((getattr(option, "help", "") or "").split())
    default = "" if getattr(option, "is_flag", False) or callable(option.default) else str(option.default)
    return text if "[default" in text or default in {"None", "()", ""} else f"{text} [default: {default}]"


def error_tree() -> str:
    """Return the tree of errors, as drawn in the module."""
    doc = inspect.getdoc(errors) or ""
    drawn = [line[4:] for line in doc.splitlines() if line.startswith("    ")]
    return "```text\n" + "\n".join(drawn) + "\n```\n"


def python() -> str:
    """Return the public functions and classes of options as Python, then the other names in tables."""
    public = {name: getattr(merilo, name) for name in merilo.__all__ if not _is_error(getattr(merilo, name))}
    called = {name: _call(name, each) for name, each in public.items() if _notes(each) or _is_options(each)}
    code = "".join(called[name] for name in sorted(called, key=[*vars(api), *called].index))
    rest = ((f"`{name}`", _content(each)) for name, each in public.items() if not {name, name[1:]} & called.keys())
    members = ((f"`{name}`", _value(text)) for name, text in _members(merilo.Run))
    tables = [table(("of a `Run`", "content"), members), table(("name", "content"), rest)]
    return "\n".join([f"<!-- norun: signatures -->\n```python\n{code}```\n", *tables])


def _value(text: str) -> str:
    """Return the first sentence on a function as what it returns."""
    text = re.sub(r"^(Return|Yield) (the |this )?", "", _brief(text))
    return text[:1].upper() + text[1:]


def _content(value: Any) -> str:  # Any: whatever is public
    kinds = getattr(value, "__args__", None)
    return " or ".join(f"`{kind.__name__}`" for kind in kinds) if kinds else _value(inspect.getdoc(value) or "")


def _is_options(value: Any) -> bool:  # Any: whatever is public
    return is_dataclass(value) and any("doc" in each.metadata for each in fields(value))


def _is_error(value: Any) -> bool:  # Any: whatever is public
    return inspect.isclass(value) and issubclass(value, Exception)


def _notes(value: Any) -> dict[str, str]:  # Any: as above
    """Return the text on each parameter of a function or class of options, unless the table of options has it."""
    if is_dataclass(value):
        return {each.name: each.metadata["doc"] for each in fields(value) if each.metadata.keys() == {"doc"}}
    listed = (inspect.getdoc(value) or "").partition("Args:\n")[2].partition("\n\n")[0]
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {8,}.*)*)", listed, re.MULTILINE)
    texts = {name: " ".join(text.split()) for name, text in found}
    flagged = {option.partition(".")[0] for option in flags_of(Options)}
    return {name: text for name, text in texts.items() if name not in flagged or docs_of(Options)[name] != text}


def _call(name: str, value: Any) -> str:  # Any: as above
    """Return a call: a parameter, its default and its text on each line, the others on the first or as dots."""
    parameters = inspect.signature(value).parameters.values()
    shown = {
        each.name: "*" * (each.kind is each.VAR_POSITIONAL)
        + each.name
        + (f"={each.default!r}" if each.default is not each.empty else "")
        for each in parameters
    }
    notes = _notes(value)
    if not notes:
        return textwrap.fill(f"{name}({', '.join(shown.values())})", 100, subsequent_indent=INDENT) + "\n"
    lines = [f"{INDENT}{shown[each]},  # {_brief(text)}" for each, text in notes.items() if each in shown]
    dots = [f"{INDENT}...,  # the options of an evaluation"] * (len(lines) < len(shown))
    return "\n".join([f"{name}(  # {_brief(inspect.getdoc(value) or '')}", *lines, *dots, ")\n"])


def _brief(text: str) -> str:
    """Return the first sentence of a text; of a long one the part before a semicolon, colon or comma."""
    sentence = re.split(r"(?<=[.:\"]) (?=[A-Z\"`\[])", " ".join(text.replace("``", "`").split()))[0].rstrip(".:")
    if len(sentence.split()) > WORDS:
        sentence = re.sub(r" \([^()]*\)", "", sentence)
    for boundary in ("; ", ": ", ", "):
        while boundary in sentence and len(sentence.split()) > WORDS:
            sentence = sentence.rpartition(boundary)[0]
    return sentence


def _members(value: type) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, member in vars(value).items():
        target = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        doc = inspect.getdoc(target) if not name.startswith("_") else None
        if doc and (inspect.isfunction(target) or isinstance(member, property) or hasattr(member, "func")):
            found.append((f"{name}()" if inspect.isfunction(target) else name, doc))
    return found


def kinds() -> str:
    """Return the table of the kinds of question: what each asks, and the fields of its verdict."""
    rows = ((f"`{name}`", _asked(kind), _verdict(kind.verdict)) for name, kind in KINDS.items())
    return table(("kind", "question", "verdict"), rows)


def _asked(kind: type[Any]) -> str:  # Any: questions of all verdict types
    text = _brief((inspect.getdoc(kind) or "").removeprefix("Question: "))
    return text[:1].upper() + text[1:]


def _verdict(verdict: type[Any]) -> str:  # Any: verdicts of all kinds
    """Return the fields of a verdict, those of every verdict left out, each with its labels if it has some."""
    labels = vars(sys.modules[verdict.__module__])
    found: list[str] = []
    for each in fields(verdict):
        kind = labels.get(str(each.type))
        members = ", ".join(kind) if inspect.isclass(kind) and issubclass(kind, StrEnum) else ""
        if each.name not in {"reason", "probability", "averaged", "flag"}:
            found.append(f"`{each.name}`" + f" ({members})" * bool(members))
    return ", ".join(found)
