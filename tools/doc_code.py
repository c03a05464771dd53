"""Generated parts that are derived from the code: commands, public names, question kinds, errors."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, get_type_hints

import typer

import merilo
from merilo import api as verbs
from merilo import errors
from merilo.cli import app
from merilo.judging.registry import KINDS
from merilo.judging.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

_ITEM_INDENT: Final = 4


def commands() -> str:
    """Return every command with its arguments and options, whichever version of typer is installed."""
    root: Any = typer.main.get_command(app)  # Any: typer carries click's classes under different names
    found = [*_leaves(root, "")]
    return "\n".join([*(_command(name, command) for name, command in found), _hidden(found)])


def _hidden(found: list[tuple[str, Any]]) -> str:  # Any: as above
    """Return the table of the options that only `--help-all` shows, each once with its commands."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for name, command in found:
        for each in command.params:
            if getattr(each, "hidden", False):
                rows.setdefault(_option(each, None), []).append(f"`{name}`")
    lines = [f"| {' | '.join(row)} | {', '.join(names)} |" for row, names in rows.items()]
    head = "## Other options\n\n`--help-all` shows them. [merilo.toml](../how-to/project-file.md) sets most of them.\n"
    return "\n".join([head, "| | | default | commands |\n| --- | --- | --- | --- |", *sorted(lines)]) + "\n"


def _leaves(group: Any, before: str) -> Iterator[tuple[str, Any]]:  # Any: as above
    """Yield every visible command below a group, with its full name such as "judge check", in the app's order."""
    for name, found in group.commands.items():
        if found.hidden:
            continue
        if hasattr(found, "commands"):
            yield from _leaves(found, f"{before}{name} ")
        else:
            yield before + name, found


def _command(name: str, found: Any) -> str:  # Any: as above
    parts = [f"## merilo {name}\n", inspect.cleandoc(found.help), ""]
    declared = get_type_hints(inspect.unwrap(found.callback), include_extras=True)
    rows = [_option(each, declared.get(each.name)) for each in found.params if not getattr(each, "hidden", False)]
    parts.append("| | | default |\n| --- | --- | --- |")
    parts += [f"| {shown} | {text} | {default} |" for shown, text, default in rows]
    if found.epilog:
        examples = inspect.cleandoc(found.epilog.replace("\b", "")).splitlines()
        lines = [line.strip() for line in examples if line.strip().startswith("merilo")]
        parts += ["", "```text", *lines, "```"]
    return "\n".join(parts) + "\n"


def _option(option: Any, declared: Any) -> tuple[str, str, str]:  # Any: as above
    """Return name, text and default. The text is the declared one: typer 0.16 loses that of arguments on a newer
    click.
    """
    told = getattr(option, "help", None) or getattr(declared, "__metadata__", [option])[0].help or ""
    text = told.replace("|", "\\|")
    if option.param_type_name == "argument":
        return f"`{option.metavar or option.name.upper()}`", text, "required" if option.required else ""
    flag = bool(getattr(option, "is_flag", False))
    shown = f"`{option.opts[0]}{'' if flag or not option.metavar else ' ' + option.metavar}`"
    default = "" if flag or option.default in (None, ()) or callable(option.default) else f"`{option.default}`"
    return shown, text, default


def error_tree() -> str:
    """Return the tree of errors, as drawn in the module."""
    doc = inspect.getdoc(errors) or ""
    drawn = [line[4:] for line in doc.splitlines() if line.startswith("    ")]
    return "```text\n" + "\n".join(drawn) + "\n```\n"


def api() -> str:
    """Return every public name with its signature and docstring."""
    return "\n".join(_public(name, getattr(merilo, name)) for name in merilo.__all__)


def api_verbs() -> str:
    """Return the functions of `merilo.api` that `import merilo` does not export, with signature and docstring."""
    named = vars(verbs).items()
    own = [name for name, each in named if inspect.isfunction(each) and each.__module__ == verbs.__name__]
    wanted = [name for name in own if not name.startswith("_") and name not in merilo.__all__]
    return "\n".join(_public(name, getattr(verbs, name)) for name in sorted(wanted))


def _public(name: str, value: Any) -> str:  # Any: whatever is public
    if not inspect.isclass(value) and not inspect.isfunction(value):
        return f"### {name}\n\n`{' | '.join(part.__name__ for part in value.__args__)}`\n"
    plain = inspect.isclass(value) and (issubclass(value, Exception) or getattr(value, "_is_protocol", False))
    signature = "" if plain else f"\n```text\n{name}{_signature(value)}\n```\n"
    doc = _prose(inspect.getdoc(value) or "")
    members = [] if not inspect.isclass(value) or issubclass(value, Exception) else _members(value)
    if is_dataclass(value):
        noted = [(field.name, field.metadata.get("doc") or " ".join(text.split())) for field, text in _noted(value)]
        noted = [(name, text) for name, text in noted if text]
        members = [*noted, *members]
    listed = "\n" + "\n".join(f"- `{shown}`: {text}" for shown, text in members) + "\n" if members else ""
    return f"### {name}\n{signature}\n{doc}\n{listed}"


def _signature(value: Any) -> str:  # Any: as above
    signature = inspect.signature(value)
    bare = [each.replace(annotation=_plain(each.annotation)) for each in signature.parameters.values()]
    shown = [str(each) if each.default is MISSING else _with_default(each) for each in bare]
    star = next((n for n, each in enumerate(bare) if each.kind is each.KEYWORD_ONLY), None)
    if star is not None:
        shown.insert(star, "*")
    return f"({', '.join(shown)})" if len(str(shown)) < 90 else "(\n    " + ",\n    ".join(shown) + ",\n)"


def _plain(annotation: object) -> object:
    return inspect.Parameter.empty if isinstance(annotation, str) and len(annotation) > 60 else annotation


def _with_default(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return parameter.name if parameter.kind is not parameter.VAR_KEYWORD else f"**{parameter.name}"
    shown = repr(parameter.default)
    return f"{parameter.name}={shown if len(shown) < 24 and 'object at' not in shown and '<' not in shown else '...'}"


def _members(value: type) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, member in vars(value).items():
        target = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        doc = inspect.getdoc(target) if not name.startswith("_") else None
        if doc and (inspect.isfunction(target) or isinstance(member, property) or hasattr(member, "func")):
            shown = f"{name}()" if inspect.isfunction(target) else name
            found.append((shown, " ".join(doc.split("\n\n")[0].split())))
    return found


def _prose(doc: str) -> str:
    """Return a docstring as Markdown: its lists of arguments and errors become lists."""
    titles = {"Args:": "\n**Arguments**\n", "Raises:": "\n**Raises**\n"}
    out: list[str] = []
    for line in doc.replace("``", "`").splitlines():
        text, indent = line.strip(), len(line) - len(line.lstrip())
        if line in titles:
            out.append(titles[line])
        elif text.startswith("**arguments:"):
            continue
        elif text.startswith("- ") or (indent == _ITEM_INDENT and text.split(" ")[0].endswith(":")):
            out.append(f"- {_item(text.removeprefix('- '))}")
        elif text or (out and not out[-1].startswith("- ")):
            out.append(f"  {text}" if indent and text else text)
    return "\n".join(out).strip()


def _item(text: str) -> str:
    name, sign, rest = text.partition(": ")
    return f"`{name}`: {rest}" if sign and name.isidentifier() else text


def kinds() -> str:
    """Return every kind of question with its fields and its verdict's."""
    return "\n".join(_kind(name, kind) for name, kind in KINDS.items())


def _kind(name: str, kind: type[Any]) -> str:  # Any: questions of all verdict types
    verdict = kind.verdict
    own = [field.name for field in fields(kind) if field.name not in {"role", "draw", "language", "history"}]
    rows = [f"| `{each.name}` | {_type(each.type)} | {notes} |" for each, notes in _noted(verdict)]
    packed = f" May be judged in packs that share {', '.join(sorted(kind.shared))}." if kind.shared else ""
    return (
        f"### {kind.__name__}\n\n{inspect.getdoc(kind)}\n\n"
        f"Kind `{name}`; fields {', '.join(f'`{each}`' for each in own)}.{packed}\n\n"
        f"`{verdict.__name__}`: {inspect.getdoc(verdict)}\n\n"
        "| field of the verdict | type | meaning |\n| --- | --- | --- |\n" + "\n".join(rows) + "\n"
    )


def _type(annotation: object) -> str:
    return f"`{annotation}`".replace(" | ", "` or `")


def _noted(cls: type[Any]) -> list[tuple[Any, str]]:  # Any: dataclass fields
    """Return the fields of a dataclass with the docstrings below them."""
    if not is_dataclass(cls):
        return []
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    notes: dict[str, str] = {}
    last = ""
    for node in getattr(body, "body", []):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            last = node.target.id
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and last:
            notes[last] = " ".join(str(node.value.value).split())
            last = ""
        else:
            last = ""
    if issubclass(cls, Verdict):
        labels = vars(sys.modules[cls.__module__])
        for field in fields(cls):
            kind = labels.get(str(field.type))
            if inspect.isclass(kind) and issubclass(kind, StrEnum):
                notes.setdefault(field.name, ", ".join(f"`{member.value}`" for member in kind))
        notes.setdefault("probability", "the judge's own probability of yes; None when it gives none")
        notes.setdefault("reason", "one sentence; may be empty")
        notes.setdefault("averaged", "keyword-only; True if metrics average the probability instead of counting")
    return [(field, notes.get(field.name, "")) for field in sorted(fields(cls), key=lambda each: each.kw_only)]
