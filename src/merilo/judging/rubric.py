"""Rubrics: the prompt texts through which a language model is asked. One file defines a judge for one kind of question.

`rubrics/<language>/<kind>[.together].v<N>.md` has a system part and a user part, divided by the line `=== user ===`.
Without that line the whole file is the user part. Both are jinja2 templates of the question's fields. A released text
is never edited: `rubrics.lock` has the SHA-256 of each (also readable by `sha256sum -c`), and `python -m
merilo.judging.rubric --lock` writes it.

Filters for texts that are data, not instructions:

- `fenced(label)`: the text between two lines with the prompt's token;
- `fenced_each(label)`: each text of a tuple in such a fence, numbered from 1;
- `numbered`: one line per text, numbered from 1, all within one fence; white space is folded;
- `numbered_each(label)`: the sentences of each text of a tuple in such a fence, numbered from 1 through all of them;
- `numbered_alone(label)`: the same, numbered from 1 in each text.

A sentence is one line after its number, so no text can begin a line with a number that it contains.

The token of a prompt is derived from the digest of its question, and so from all its fields. It occurs in none of them,
in any case or Unicode form: if it does, the next one is derived. So no field can contain a line of a real fence, even
if its author knows the other fields. It can neither close its own fence nor imitate another one, such as that of a
forged question. Equal questions give equal bytes.

A prompt that begins with fields that other prompts share (the contexts of many statements) has a second token for them.
It is derived from the shared fields alone and also absent from every field. With a single token, no two prompts would
begin with the same text, and the prompt caches of providers would be useless. Replies are recorded under the question,
not under the bytes of its prompt, so the choice of tokens invalidates no run or cache.
"""

from __future__ import annotations

import itertools
import re
import sys
from dataclasses import dataclass, fields
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from importlib.resources import files
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from unicodedata import normalize

from merilo.errors import RubricError
from merilo.judging.digests import TEXTS, TUPLES, digest_bytes, digest_text, digest_texts
from merilo.judging.kinds.responses import Completion
from merilo.judging.questions import Pack, Question, Texts
from merilo.judging.verdicts import per_type
from merilo.plugins import Group, plugin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from importlib.resources.abc import Traversable
    from types import ModuleType

    from jinja2 import Environment
    from jinja2.runtime import Context

    from merilo.judging.reply_fields import SentencesOfContexts

    Fill = Callable[[Mapping[str, object], "_Tokens"], list[str]]

DIVIDER = "=== user ==="
FALLBACK_LANGUAGE = "en"
HISTORY = "history"
"""The field with the earlier turns of a conversation, and the name of the rubric that shows them."""
_HISTORY_VERSION = 1
LOCK = "rubrics.lock"
_TOKEN_DIGITS = 12
_TOKENS = "_tokens"
"""The template variable with a prompt's tokens; no field starts with an underscore."""
_CONTEXTS = "contexts"
"""The field that a rubric may show as numbered sentences."""
_NAME = re.compile(r"[\w-]+(\.[\w-]+)*(/[\w-]+(\.[\w-]+)*)*")
_PLACE = re.compile(
    r"\{\{ *(\w+) *\| *(fenced|fenced_each|numbered_each|numbered_alone|numbered)\(\"([^\"{}\\]*)\"\) *\}\}"
)
_INVISIBLE = re.compile("[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")
_MARKUP = re.compile(r"\{[{%#]|[}%#]\}")


class Rendered(NamedTuple):
    """A rubric filled in; `system` is empty if the rubric has no system part."""

    system: str
    user: str


class SharedPrefix(NamedTuple):
    """A rubric filled in, and the length of the part that other questions share."""

    rendered: Rendered
    shared: int
    """Characters at the beginning of the user part that are equal for all questions of a pack; 0 if unknown."""


@dataclass(frozen=True)
class Rubric:
    """A rubric as read from its file."""

    name: str
    """Its path under `rubrics/`, without `.md`."""
    text: str
    needs: frozenset[str]
    """The fields it is filled with, no more and no fewer."""

    @property
    def digest(self) -> bytes:
        """The 16-byte digest of the whole text."""
        return digest_text(self.text)

    @cached_property
    def version(self) -> int:
        """The version in its name."""
        return int(self.name.rpartition(".v")[2])

    @cached_property
    def numbers_contexts(self) -> bool:
        """True if it shows the contexts as numbered sentences."""
        return any(filtered == "numbered_each" for _, filtered, _ in _cut(self.text)[1])

    def begin(self, values: Mapping[str, object], asked: Question[Any] | Pack) -> SharedPrefix:
        """Return both parts with these values of a question, and how much of the user part precedes the first field
        that is not shared.

        Raises RubricError if the fields are not those it needs.
        """
        if frozenset(values) != self.needs:
            title = self.name.rpartition("/")[2]
            raise RubricError(f"Rubric '{title}' needs the fields {sorted(self.needs)}, got {sorted(values)}.")
        system, user = _parts(self.text)
        first = asked.questions[0] if isinstance(asked, Pack) else asked
        shared = first.shared | {HISTORY}
        beginning = _leading(self.text, shared)
        tokens = _tokens(values, asked.content, first, shared if beginning > 1 else frozenset())
        texts = user(values, tokens)
        length = sum(map(len, texts[:beginning])) if beginning > 1 else 0
        return SharedPrefix(Rendered("".join(system(values, tokens)), "".join(texts)), length)


def rubric_for(question: Question[Any] | Pack, *, language: str | None = None, version: int | None = None) -> Rubric:
    """Return the rubric for a question or pack, in its own or the given language and in the current or given version.

    English if there is none in that language. A completion names its rubric itself. A question with earlier turns has
    a rubric with two more parts, which explain and show them. Raises RubricError if the kind has none.
    """
    first = question.questions[0] if isinstance(question, Pack) else question
    if isinstance(first, Completion):
        return load(first.rubric)
    number = first.rubric_version if version is None else version
    found = _of_kind(language or first.language, first.kind, question is not first, number)
    return _with_history(found) if first.history else found


def rubric_with_text(question: Question[Any] | Pack, text: str, *, language: str | None = None) -> Rubric | None:
    """Return the rubric of any version that asks the question with this text; None if there is none."""
    first = question.questions[0] if isinstance(question, Pack) else question
    for version in range(first.rubric_version, 0, -1):
        try:
            found = rubric_for(question, language=language, version=version)
        except RubricError:
            continue
        if found.text == text:
            return found
    return None


def rubric_versions(kinds: Iterable[type[Question[Any]]]) -> dict[str, str]:
    """Return the version of the rubrics of each of these kinds, by its name; kinds without a rubric are omitted.

    Completions are omitted too: the metric names their rubric, so the metric's version covers it.
    """
    versions = {kind.kind: f"v{kind.rubric_version}" for kind in sorted(kinds, key=lambda kind: kind.kind)}
    folder = _root().joinpath(FALLBACK_LANGUAGE)
    return {name: version for name, version in versions.items() if folder.joinpath(f"{name}.{version}.md").is_file()}


def render(question: Question[Any] | Pack, *, language: str | None = None) -> Rendered:
    """Return the system and user text that ask a question, or a pack of questions at once. Raises RubricError."""
    return render_shared(question, rubric_for(question, language=language)).rendered


def render_shared(
    question: Question[Any] | Pack, rubric: Rubric | None = None, *, sentences: SentencesOfContexts | None = None
) -> SharedPrefix:
    """Return the text that asks a question through a rubric, and the length of the user text that questions about the
    same contexts share.

    `rubric`: None for the current one in the question's language. `sentences`: those of each context, for rubrics that
    number them; None treats each context as one sentence. Raises RubricError.
    """
    rubric = rubric_for(question) if rubric is None else rubric
    values = values_of(question)
    if rubric.numbers_contexts:
        contexts: Texts = getattr(question.questions[0] if isinstance(question, Pack) else question, _CONTEXTS)
        values[_CONTEXTS] = tuple((text,) for text in contexts) if sentences is None else sentences
    return rubric.begin(values, question)


def values_of(question: Question[Any] | Pack) -> dict[str, object]:
    """Return the values to fill a rubric with: the question's own fields.

    A pack has the fields that its questions share, and the others as tuples under the plural name: `statements` for
    `statement`. Draws of one completion are filled like one of them.
    """
    if not isinstance(question, Pack):
        return _own_values(question)
    first = question.questions[0]
    if isinstance(first, Completion):
        return _own_values(first)
    names = _names(type(first))
    shared: dict[str, object] = {name: getattr(first, name) for name in names if name in first.shared}
    if first.history:
        shared[HISTORY] = first.history
    own: dict[str, object] = {
        f"{n.removesuffix('s')}s": tuple(getattr(q, n) for q in question.questions)
        for n in names
        if n not in {*first.shared, HISTORY}
    }
    return shared | own


def _own_values(question: Question[Any]) -> dict[str, object]:
    if isinstance(question, Completion):
        return dict(zip(question.names, question.values, strict=True))
    values = dict(zip(_names(type(question)), _values(type(question))(question), strict=False))
    if not question.history:
        del values[HISTORY]
    return values


def fenced(text: str, label: str, token: str) -> str:
    """Return the text between two lines that carry the label and the token."""
    return f"<<<{label} {token}\n{text}\n{label} {token}>>>"


def fence_token(texts: Texts) -> str:
    """Return a token for fences around these texts; it occurs in none of them."""
    return _absent(digest_texts(texts), _folded("\n".join(texts)))


def fenced_each(texts: tuple[str, ...], label: str, token: str) -> str:
    """Return each text in a separate fence, numbered from 1; `(none)` for no texts."""
    fences = [f"<<<{label} {n} {token}\n{text}\n{label} {n} {token}>>>" for n, text in enumerate(texts, start=1)]
    return "\n".join(fences) or "(none)"


def numbered(texts: tuple[str, ...], label: str, token: str) -> str:
    """Return the texts in one fence, one line each, as `[1] ...`; white space within a text is folded."""
    return fenced(_lines(texts, 1), label, token)


def numbered_each(texts: tuple[Texts, ...], label: str, token: str) -> str:
    """Return the sentences of each text in a separate fence, one line each, as `[1] ...`, counted through all texts."""
    starts = itertools.accumulate(map(len, texts), initial=1)
    return fenced_each(tuple(map(_lines, texts, starts)), label, token)


def numbered_alone(texts: tuple[Texts, ...], label: str, token: str) -> str:
    """Return the sentences of each text in a separate fence, one line each, as `[1] ...`, counted in each text."""
    return fenced_each(tuple(_lines(each, 1) for each in texts), label, token)


def _lines(texts: Texts, first: int) -> str:
    """Return one line for each text, numbered from `first`. White space within a text is folded."""
    # few sentences have white space but single blanks, and text with another one is not printable
    whole = "|".join(("", *texts, ""))
    if not whole.isprintable() or "  " in whole or "| " in whole or " |" in whole:
        texts = tuple([" ".join(text.split()) for text in texts])
    return "\n".join(map("[%d] %s".__mod__, enumerate(texts, start=first)))


def lock_lines(root: Traversable) -> tuple[str, ...]:
    """Return one line `SHA-256  path` per rubric file of a folder, in the order of the paths."""
    return tuple(f"{sha256(_read(root, path).encode()).hexdigest()}  {path}" for path in _paths(root))


def main(arguments: list[str]) -> int:
    """Compare the rubrics with their locks, or write these (`--lock`); return 1 if they differ."""
    differ = False
    for root in roots():
        lock, lines = Path(str(root)) / LOCK, lock_lines(root)
        locked = set(lock.read_text(encoding="utf-8").splitlines() if lock.exists() else ())
        for line in sorted(locked ^ set(lines), key=lambda line: line.split("  ")[-1]):
            differ = True
            sys.stdout.write(f"{'-' if line in locked else '+'} {line}\n")
        if "--lock" in arguments:
            lock.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    return int(differ and "--lock" not in arguments)


@dataclass(frozen=True, slots=True)
class _Tokens:
    """The tokens of one prompt; neither occurs in any of its fields."""

    whole: str
    """Derived from the question."""
    shared: str
    """Derived from the shared fields; the same as `whole` if there are none."""
    shared_fields: frozenset[str] = frozenset()


def _tokens(values: Mapping[str, object], digest: bytes, question: Question[Any], shared: frozenset[str]) -> _Tokens:
    """Return the tokens of a prompt. `digest`: of all that is asked; `question`: one with the shared fields."""
    texts: list[str] = []
    common: list[bytes] = []
    for name, value in values.items():
        texts += (value,) if type(value) is str else _texts_in(value)
        if name in shared:
            own = getattr(question, name)
            common += (TEXTS[name], TEXTS[own] if type(own) is str else TUPLES[own])
    text = _folded("\n".join(texts))
    whole = _absent(digest, text)
    return _Tokens(whole, _absent(digest_bytes(b"".join(common)), text) if common else whole, shared)


def _folded(text: str) -> str:
    """Return the text in lower case, without invisible characters, and with compatibility forms such as full-width
    normalized.

    A forged token in capitals would not be the real one, but a model may read it as the real one.
    """
    return text.lower() if text.isascii() else _INVISIBLE.sub("", normalize("NFKC", text)).casefold()


def _texts_in(value: Any) -> Iterable[str]:  # Any: texts, nested or not
    """Return the texts in the value of a field."""
    nested = value
    if not isinstance(value, tuple | list):
        return (str(nested),)
    return nested if {*map(type, nested)} == {str} else itertools.chain.from_iterable(map(_texts_in, nested))


def _absent(digest: bytes, text: str) -> str:
    """Return a token made of the digest that does not occur in the folded text."""
    while (token := digest.hex()[:_TOKEN_DIGITS]) in text:
        digest = digest_bytes(digest)  # deterministic, so that equal fields give equal prompts
    return token


@per_type
def _names(kind: type[Any]) -> tuple[str, ...]:
    """Return the fields of a question type that a rubric may be filled with."""
    return tuple(each.name for each in fields(kind) if each.compare and each.name not in {"role", "draw", "language"})


@per_type
def _values(kind: type[Any]) -> attrgetter[tuple[object, ...]]:
    """Return the function that returns the values of these fields, and one more."""
    return attrgetter(*_names(kind), "draw")


@lru_cache(maxsize=4_096)
def _of_kind(language: str, kind: str, together: bool, version: int) -> Rubric:  # noqa: FBT001  lru_cache is fastest with positional arguments
    tag, file = re.split("[-_]", language)[0].lower(), f"{kind}{'.together' if together else ''}.v{version}"
    root = _root()
    for folder in (tag, FALLBACK_LANGUAGE):
        if _NAME.fullmatch(folder) and root.joinpath(folder, f"{file}.md").is_file():
            return load(f"{folder}/{file}")
    raise RubricError(f"There is no rubric '{file}', neither for '{tag}' nor for '{FALLBACK_LANGUAGE}'.")


@cache
def load(name: str) -> Rubric:
    """Return the rubric with this path under `rubrics/`, such as `en/relevance.v1`. Raises RubricError."""
    name = name.removesuffix(".md")
    named = _NAME.fullmatch(name) is not None
    root = next((each for each in roots() if named and each.joinpath(f"{name}.md").is_file()), None)
    if root is None:
        raise RubricError(f"There is no rubric '{name}'; a name is a path under {_root()}, without '.md'.")
    text = _read(root, f"{name}.md")
    return Rubric(name, text, _needs(text))


@cache
def _with_history(base: Rubric) -> Rubric:
    """Return a rubric that also shows the earlier turns: first in the user part, since all prompts of a turn share
    them. The name is that of the base, whose version decides how replies are read.
    """
    folder = base.name.partition("/")[0]
    added = _divided(_of_kind(folder, HISTORY, False, _HISTORY_VERSION).text)  # noqa: FBT003  as above
    system, user = _divided(base.text)
    text = f"{system}\n\n{added[0]}\n{DIVIDER}\n{added[1].strip()}\n\n{user}"
    return Rubric(base.name, text, _needs(text))


def _needs(text: str) -> frozenset[str]:
    literals, places = _cut(text)
    if _plain(literals):
        return frozenset(name for name, *_ in places)
    from jinja2 import meta

    return frozenset(meta.find_undeclared_variables(_environment().parse(text)))


@cache
def _parts(text: str) -> tuple[Fill, Fill]:
    """Return the functions that fill the system and the user part of a rubric with pieces of text."""
    return _filling(_divided(text)[0]), _filling(_divided(text)[1])


def _divided(text: str) -> tuple[str, str]:
    """Return the system and the user part; without a divider all is the user part."""
    system, divider, user = text.partition(f"\n{DIVIDER}\n")
    return (system, user) if divider else ("", text)


@cache
def _leading(text: str, shared: frozenset[str]) -> int:
    """Return the number of pieces of the filled user part that come before its first field that is not shared."""
    literals, places = _cut(_divided(text)[1])
    own = [number for number, (name, *_) in enumerate(places) if name not in shared]
    return 1 + 2 * own[0] if own and _plain(literals) else 0


def _filling(text: str) -> Fill:
    """Return the function that fills one part. Most parts are plain text between filtered fields and need no jinja."""
    literals, places = _cut(text)
    if not _plain(literals):
        template = _environment().from_string(text)
        return lambda values, tokens: [template.render({**values, _TOKENS: tokens})]
    if not places:
        return lambda _values, _tokens: literals
    filled = [
        (name, _FILTERS[filtered], label, after)
        for (name, filtered, label), after in zip(places, literals[1:], strict=True)
    ]

    def fill(values: Mapping[str, object], tokens: _Tokens) -> list[str]:
        texts = [literals[0]]
        for name, filtered, label, after in filled:
            token = tokens.shared if name in tokens.shared_fields else tokens.whole
            texts += (filtered(values[name], label, token), after)
        return texts

    return fill


def _plain(literals: list[str]) -> bool:
    """Return True if the literals contain no other markup than the filtered fields."""
    return not any(_MARKUP.search(literal) for literal in literals)


def _cut(text: str) -> tuple[list[str], list[tuple[str, str, str]]]:
    """Return the plain texts of a part, and the name, filter and label of each field. White space as in jinja."""
    pieces = _PLACE.split(re.sub(r"\r\n?", "\n", text).removesuffix("\n"))
    return pieces[::4], list(zip(pieces[1::4], pieces[2::4], pieces[3::4], strict=True))


@cache
def _environment() -> Environment:
    from jinja2 import StrictUndefined, pass_context
    from jinja2.sandbox import SandboxedEnvironment

    def in_template(filtered: Callable[..., str]) -> Callable[..., str]:
        """Return the filter as a template calls it: with the token of the prompt, since it sees no name of a field."""

        @pass_context
        def with_token(context: Context, value: object, label: str) -> str:
            return filtered(value, label, context[_TOKENS].whole)

        return with_token

    environment = SandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update({name: in_template(filtered) for name, filtered in _FILTERS.items()})
    return environment


def roots() -> Iterator[Traversable]:
    """Yield the folders of rubrics: merilo's own, then that of the plug-in `rubrics`."""
    yield _root()
    if (part := plugin(Group.PARTS, "rubrics")) is not None:
        yield files(cast("ModuleType", part))


def _root() -> Traversable:
    return files("merilo").joinpath("rubrics")


def _read(root: Traversable, path: str) -> str:
    return root.joinpath(path).read_text(encoding="utf-8")


def _paths(folder: Traversable, prefix: str = "") -> list[str]:
    found: list[str] = []
    for item in folder.iterdir():
        path = f"{prefix}{item.name}"
        found += _paths(item, f"{path}/") if item.is_dir() else [path] if path.endswith((".md", ".toml")) else []
    return sorted(found)


_FILTERS: dict[str, Callable[..., str]] = {
    "fenced": fenced,
    "fenced_each": fenced_each,
    "numbered": numbered,
    "numbered_alone": numbered_alone,
    "numbered_each": numbered_each,
}


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
