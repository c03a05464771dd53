"""Regular expressions over texts that strangers control take time that grows with the length of the text only.

An input is a prefix, a pump that is repeated, and a suffix. All three are derived from the parsed expression: each
repeat in it is pumped with texts that it matches, and the suffix makes the match fail.
"""

import ast
import builtins
import importlib
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]  # the only parser of `re` expressions
from re import _parser
from typing import Any, Final

from each_case import each_case

import merilo
from merilo.data import answer

_CALLS: Final = {"search", "match", "fullmatch", "findall", "finditer", "sub", "subn", "split"}
_CHARS: Final = "a0 \n-_.,:;'\"`*[](){}<>|\\/#%&=+@?!xA\u00e9\u0301\u0000"
_ENDS: Final = ("", "\u0000" * 40, "!")
"""The second one is longer than texts that `re` rejects as too short for the expression."""
_LENGTHS: Final = (*range(8, 40, 4), 80, 160, 400, 4_000)
_NOTABLE_S: Final = 0.003
_LOCAL: Final = "x" * 36
"""A value of a local name that is part of an expression."""


@dataclass(frozen=True)
class Found:
    """A regular expression in the sources; `calls` are the methods that it is used with."""

    place: str
    pattern: re.Pattern[Any]
    calls: frozenset[str]


class _Locals(dict[str, object]):
    """The local names of a function, whose values are not known."""

    def __init__(self, known: Mapping[str, object]) -> None:
        super().__init__()
        self._known = known

    def __missing__(self, name: str) -> object:
        if name in self._known or hasattr(builtins, name):
            raise KeyError(name)
        return _LOCAL


def expressions(package: Path) -> Iterator[Found]:
    """Yield every regular expression of a package: arguments of `re` functions, and `pattern=` of pydantic."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(package.rglob("*.py"))}
    used = _uses(trees)
    for path, tree in trees.items():
        name = ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")
        names = {id(part): target for target, value in _assigned(tree) for part in ast.walk(value)}
        for node in ast.walk(tree):
            argument, call = _expression(node)
            if argument is None or not isinstance(node, ast.Call):
                continue
            known = vars(importlib.import_module(name))
            others = [*node.args[1:], *(word.value for word in node.keywords)]
            flags = sum(_value(each, known) for each in others if re.match(r"re\.[A-Z]", ast.unparse(each)))
            calls = used.get((name, names.get(id(node), "")), set()) if call == "compile" else {call}
            yield Found(
                f"{name}:{node.lineno}",
                re.compile(_value(argument, known), flags),
                frozenset(calls & _CALLS or {"fullmatch", "search", "findall"}),
            )


def _expression(node: ast.AST) -> tuple[ast.expr | None, str]:
    if not isinstance(node, ast.Call):
        return None, ""
    function = node.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re":
        return (None, "") if function.attr == "escape" else (node.args[0], function.attr)
    return next((word.value for word in node.keywords if word.arg == "pattern"), None), "search"


def _value(node: ast.expr, known: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "", "eval"), known, _Locals(known))  # noqa: S307  merilo's own source


def _assigned(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            yield getattr(target, "id", getattr(target, "attr", "")), node.value


def _uses(trees: Mapping[Path, ast.AST]) -> dict[tuple[str, str], set[str]]:
    """Return the methods called on each name, by the module that defines it and the name."""
    found: dict[tuple[str, str], set[str]] = {}
    for path, tree in trees.items():
        package = next(parent for parent in path.parents if parent.name == "merilo").parent
        here = ".".join(path.relative_to(package).with_suffix("").parts).removesuffix(".__init__")
        origin: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                origin |= {each.name: node.module or "" for each in node.names}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
                name = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
                found.setdefault((origin.get(name, here), name), set()).add(node.attr)
    return found


def inputs(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str, str]]:
    """Yield prefixes, pumps and suffixes for an expression."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    parsed = _parser.parse(text, pattern.flags & ~re.UNICODE)
    wholes = _samples(parsed, 3)
    cut = [whole[:size] for whole in wholes for size in (1, len(whole) - 1, len(whole))]
    found = {("", pump, _ENDS[1]): None for pump in cut if pump}
    for prefix, body in _repeats(parsed, ""):
        some = _samples(body, 6)
        pairs = [first + second for first in some[:2] for second in some[:2] if first != second]
        for pump in dict.fromkeys((*some, *pairs, *(prefix + each for each in some[:2]))):
            found |= {(start, pump, end): None for start in ("", prefix) for end in _ENDS if pump}
    yield from found


def _repeats(sequence: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield each repeat without a small maximum, with a text that matches what precedes it."""
    for code, value in sequence:
        if code in {op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT}:
            if value[1] > len(_LOCAL):
                yield prefix, value[2]
            yield from _repeats(value[2], prefix)
        for inner in _parts(code, value):
            yield from _repeats(inner, prefix)
        prefix += _texts(code, value)[0]


def _parts(code: Any, value: Any) -> list[Any]:
    if code is op.BRANCH:
        return list(value[1])
    if code is op.SUBPATTERN:
        return [value[-1]]
    if code is op.ATOMIC_GROUP:
        return [value]
    return [value[1]] if code in {op.ASSERT, op.ASSERT_NOT} else []


def _samples(sequence: Any, limit: int) -> list[str]:
    """Return a few texts that a sequence matches; its assertions are ignored."""
    found = [""]
    for code, value in sequence:
        found = [text + more for text in found for more in _texts(code, value)[:limit]]
        found = found[:: max(1, -(-len(found) // limit))]
    return list(dict.fromkeys(found))


def _texts(code: Any, value: Any) -> list[str]:
    if code is op.LITERAL:
        return [chr(value)]
    if code in {op.IN, op.NOT_LITERAL, op.ANY}:
        return _members(value if code is op.IN else [(op.NEGATE, None), (op.LITERAL, value or ord("\n"))])
    if code in {op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT}:
        return [text * max(1, value[0]) for text in _samples(value[2], 4)] + [""] * (not value[0])
    if code in {op.BRANCH, op.SUBPATTERN, op.ATOMIC_GROUP}:
        return [text for part in _parts(code, value) for text in _samples(part, 3)][:12]
    return [""]


def _members(items: list[tuple[Any, Any]]) -> list[str]:
    negated = items[0][0] is op.NEGATE
    own = [chr(end) for code, value in items if code is op.RANGE for end in value]
    own += [chr(value) for code, value in items if code is op.LITERAL]
    found = [char for char in (*own, *_CHARS) if any(_is_in(char, *item) for item in items) != negated]
    return found[:4] + found[-2:] if found else [""]


def _is_in(char: str, code: Any, value: Any) -> bool:
    if code is op.LITERAL:
        return ord(char) == value
    if code is op.RANGE:
        return bool(value[0] <= ord(char) <= value[1])
    kind = str(value)
    kinds = {"DIGIT": char.isdigit(), "SPACE": char.isspace(), "WORD": char.isalnum() or char == "_"}
    is_member = any(member for name, member in kinds.items() if name in kind)
    return code is op.CATEGORY and is_member != ("NOT_" in kind)


def growth(found: Found, call: str, start: str, pump: str, end: str) -> float:
    """Return the ratio of the times for an input and for one half as long; 1 for an input of any length that is fast.

    An input grows until it takes 3 ms or has 4,000 characters, so that a slow expression does not stop the test.
    """
    run = getattr(found.pattern, "findall" if call in {"finditer", "sub", "subn", "split"} else call)

    def seconds(repeats: int) -> float:
        text = start + pump * repeats + end
        subject = text if isinstance(found.pattern.pattern, str) else text.encode("latin-1", "replace")
        began = time.process_time()
        run(subject)
        return time.process_time() - began

    for length in _LENGTHS:
        if (repeats := length // len(pump)) < 2:
            continue
        if seconds(repeats) > _NOTABLE_S:
            longer, shorter = (min(seconds(each) for _ in range(3)) for each in (repeats, repeats // 2))
            if longer > _NOTABLE_S:
                return longer / max(shorter, 1e-5)
    return 1.0


_MAX_GROWTH = 3.2
"""A text twice as long takes twice the time if it is linear, four times if it is quadratic."""


def slow_inputs(found: Found) -> Iterator[str]:
    """The inputs on which an expression is slow, measured again to exclude a busy machine."""
    for call in sorted(found.calls):
        for pumped in inputs(found.pattern):
            if all(growth(found, call, *pumped) > _MAX_GROWTH for _ in range(3)):
                yield f"{found.place} {call}: {pumped!r}"


@each_case(
    ("pattern", "call"),
    [
        (r"(?:a|a)*b", "match"),
        (r"(\w+\s*)*\Z", "match"),
        (r"\s+,", "search"),
        (r"x*x*y", "match"),
        (r"(?:\\?x|x)" * 36, "match"),
    ],
)
def test_ambiguous_expressions_are_recognised(pattern: str, call: str) -> None:
    """Exponential and quadratic expressions are found slow."""
    assert next(slow_inputs(Found("", re.compile(pattern), frozenset({call}))), None)


def test_every_expression_of_the_sources_is_linear() -> None:
    """On pumped inputs, every expression in `merilo` takes at most about twice the time for twice the text."""
    found = list(expressions(Path(merilo.__file__).parent))
    tables = [*((each,) for each in answer.tables()["expressions"]), ("blocks",), answer.MARKUP]
    found += [Found(f"answer.toml:{each[0]}", answer.pattern(*each), frozenset({"match"})) for each in tables]
    assert len(found) > 100
    assert not list(filter(None, (next(slow_inputs(each), None) for each in found)))
