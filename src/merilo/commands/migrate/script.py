"""The facts in a script that uses another package: release, metrics, models and data, read without running it."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.migrate.source import (
    Match,
    Source,
    matched,
    model_providers,
    package_title,
    packages,
    source_of_columns,
    source_of_imports,
    stated_source,
)
from merilo.data import check
from merilo.errors import DataError, Problem, UsageError
from merilo.metrics.registry import known_definition, metric_text, parameters_of
from merilo.metrics.text import written_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from merilo.metrics.base import Definition

_MAX_BYTES: Final = 2_000_000
_METRICS: Final = {"ragas": ("ragas.metrics",), "deepeval": ("deepeval.metrics",), "trulens": ("trulens",)}
"""Modules of the metrics of each package."""
_TRULENS_CALLS: Final = re.compile(r".*(?:relevance|groundedness).*")
_PINNED: Final = r"\b{}\s*==\s*(\d+(?:\.\d+)*)"
_DATA_FILE: Final = re.compile(r".+\.(?:csv|tsv|jsonl|ndjson|json|parquet)(?:\.gz)?", re.IGNORECASE)
_READS: Final = re.compile(r"read_\w+|from_\w+|load_\w+|open|load", re.IGNORECASE)
_UNPARSED: Final = (SyntaxError, ValueError, RecursionError, MemoryError)
_ADDRESS_WORDS: Final = ("base_url", "openai_api_base", "api_base")
_ADDRESSED: Final = ("openai", "ollama")
_CLIENTS: Final = frozenset({"AsyncOpenAI"})
"""Classes besides those of models that take the address of a server."""
UNREAD_ADDRESS: Final = "URL"
"""Stands for an address that the script computes."""
_MODEL_WORDS: Final = ("model", "model_name", "model_id", "azure_deployment", "deployment_name", "deployment")
_NOT_METRICS: Final = frozenset(
    {
        "BaseConversationalMetric",
        "BaseMetric",
        "DistanceMeasure",
        "Metric",
        "MetricOutputType",
        "MetricType",
        "MetricWithEmbeddings",
        "MetricWithLLM",
        "SingleTurnMetric",
        "base",
        "collections",
        "utils",
    }
)
"""Names in modules of metrics that are not metrics."""
_UNUSED: Final = frozenset({"name", "llm", "embeddings", "model", "async_mode", "verbose_mode", "max_retries"})
"""Arguments that no definition takes and that do not change a score here."""


@dataclass(frozen=True, slots=True)
class ScriptMetric:
    """A metric in a script."""

    line: int
    match: Match
    ignored: tuple[str, ...] = ()
    """Arguments in the script that are not carried over."""


@dataclass(frozen=True, slots=True)
class ScriptFacts:
    """The facts in a script about one package."""

    source: Source
    evidence: str
    """Where the release is from."""
    metrics: tuple[ScriptMetric, ...]
    judge: str | None
    """The model as a judge of merilo, `openai:gpt-4o`; None if the script names none."""
    embedder: str | None
    data: str | None
    """The first data file that the script reads; None if it names none."""
    base_url: str | None = None
    """The address of the judge's server, `UNREAD_ADDRESS` if it is not a text; None if the script names none."""
    embedder_base_url: str | None = None


@dataclass(slots=True)
class _Names:
    """The imported names of a script, and the calls in it."""

    imported: dict[str, str] = field(default_factory=dict[str, str])
    """Local name → dotted name."""
    calls: list[ast.Call] = field(default_factory=list[ast.Call])


def read_script(path: Path, release: str | None = None) -> ScriptFacts:
    """Return the facts in a Python file or a notebook, which is parsed and never run.

    `release`: of the package, as the user states it. Raises DataError if the file cannot be parsed, UsageError if it
    imports none of the known packages.
    """
    text = _text(path)
    try:
        tree = ast.parse(text)
    except _UNPARSED as error:
        line, problem = getattr(error, "lineno", None), _reason(error)
        raise DataError.of(
            Problem("a Python script", f"a syntax error ({problem})", source=path.name, line=line)
        ) from None
    names = _Names()
    for node in ast.walk(tree):
        _note_imports(node, names.imported)
        if isinstance(node, ast.Call):
            names.calls.append(node)
    package = _package(names.imported.values(), path.name)
    source, evidence = _source(package, text, tree, names, release)
    return ScriptFacts(
        source=source,
        evidence=evidence,
        metrics=tuple(_metrics(tree, names, source)),
        judge=_model(names, embedders=False),
        embedder=_model(names, embedders=True),
        data=_data_file(names.calls),
        base_url=_address(names.calls, embedders=False),
        embedder_base_url=_address(names.calls, embedders=True),
    )


def _reason(error: Exception) -> str:
    return str(getattr(error, "msg", error)) or "nested too deeply"  # the parser's MemoryError has no text


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UsageError(f"Cannot read {path} ({error.strerror or error}).") from None
    if len(raw) > _MAX_BYTES:
        raise DataError.of(Problem(f"a script of at most {_MAX_BYTES:,} bytes", f"{len(raw):,}", source=path.name))
    text = raw.decode("utf-8-sig", errors="replace")
    return _code_of_notebook(text, path.name) if path.suffix == ".ipynb" else text


def _code_of_notebook(text: str, name: str) -> str:
    """Return the code cells of a notebook as one script; what is not Python in them becomes comments."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    cells = found.get("cells") if check.is_record(found) else None
    if not check.is_list(cells):
        raise DataError.of(Problem("a notebook", "something else", source=name))
    code: list[str] = []
    for cell in cells:
        if check.is_record(cell) and cell.get("cell_type") == "code":
            source = cell.get("source")
            code.append(_python_of("".join(map(str, source)) if check.is_list(source) else str(source)))
    return "\n".join(code)


def _python_of(cell: str) -> str:
    """Return a cell with the notebook's own commands as comments; all lines if the rest does not parse."""
    lines = cell.splitlines()
    code = "\n".join(f"# {line}" if line.lstrip().startswith(("%", "!")) else line for line in lines)
    try:
        ast.parse(code)
    except _UNPARSED:
        return "\n".join(f"# {line}" for line in lines)
    return code


def _note_imports(node: ast.AST, imported: dict[str, str]) -> None:
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        for each in node.names:
            imported[each.asname or each.name] = f"{node.module}.{each.name}"
    elif isinstance(node, ast.Import):
        for each in node.names:
            local = each.asname or each.name.partition(".")[0]
            imported[local] = each.name if each.asname else local


def _package(imported: Any, name: str) -> str:  # Any: an iterable of dotted names
    roots = [each.partition(".")[0].partition("_")[0] for each in imported]
    for package in packages():
        if package in roots:
            return package
    known = ", ".join(map(package_title, packages()))
    raise UsageError(f"{name} imports none of {known}, so there is nothing to migrate.")


def _source(package: str, text: str, tree: ast.AST, names: _Names, release: str | None) -> tuple[Source, str]:
    """Return the source and where its release is from: the user, a pinned requirement, imports, or column names."""
    if release is not None:
        return stated_source(release, package), "--version"
    if pinned := re.search(_PINNED.format(package), text):
        return stated_source(pinned[1], package), f"{package}=={pinned[1]} in the script"
    by_imports = source_of_imports(package, names.imported.values())
    if by_imports.releases:
        return by_imports, "the imported names"
    columns = {each.value for each in ast.walk(tree) if isinstance(each, ast.Constant) and isinstance(each.value, str)}
    by_columns = source_of_columns(columns)
    if by_columns is not None and by_columns.package == package:
        return by_columns, "the names of columns"
    return by_imports, ""


def _metrics(tree: ast.AST, names: _Names, source: Source) -> Iterator[ScriptMetric]:
    """Yield each metric that the script uses once, in the order of the lines."""
    calls = {id(call.func): call for call in names.calls}
    seen: set[str] = set()
    found: list[tuple[int, ast.expr, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            dotted = _dotted(node, names.imported)
            if dotted is not None and _is_metric(dotted, source.package):
                found.append((node.lineno, node, dotted))
    for line, node, dotted in sorted(found, key=lambda each: each[0]):
        collections = ".collections." in dotted
        arguments = _arguments(calls.get(id(node)))
        match, ignored = _with_arguments(dotted.rpartition(".")[2], source, arguments, collections=collections)
        key = match.definition or match.name
        if key not in seen:
            seen.add(key)
            yield ScriptMetric(line, match, ignored)


def _is_metric(dotted: str, package: str) -> bool:
    module, _, last = dotted.rpartition(".")
    if package == "trulens":
        return _TRULENS_CALLS.fullmatch(last) is not None and last[:1].islower()
    inside = any(module == each or module.startswith(f"{each}.") for each in _METRICS[package])
    return inside and last not in _NOT_METRICS and module.rpartition(".")[2] != "DistanceMeasure"


def _dotted(node: ast.expr, imported: Mapping[str, str]) -> str | None:
    """Return the dotted name of an expression whose first name is imported; a method of an object by its own name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    first = imported.get(node.id)
    if first is None:
        return ".".join(["", *reversed(parts)]) if parts else None
    return ".".join([first, *reversed(parts)])


def _arguments(call: ast.Call | None) -> dict[str, object]:
    """Return the named arguments of a call that are constants; None stands for any other expression."""
    if call is None:
        return {}
    return {
        each.arg: each.value.value if isinstance(each.value, ast.Constant) else None
        for each in call.keywords
        if each.arg is not None
    }


def _with_arguments(
    name: str, source: Source, arguments: Mapping[str, object], *, collections: bool
) -> tuple[Match, tuple[str, ...]]:
    """Return the definition with the arguments that it takes, and the names of the others."""
    match = matched(name, source, collections=collections)
    if match.definition is None and "definition" in arguments:  # a critic with its own definition
        match = Match(name, _critic(name, source), "")
    found = None if match.definition is None else known_definition(match.definition)
    if found is None:
        return match, ()
    takes = {each.name for each in parameters_of(type(found))}
    given = {key: value for key, value in arguments.items() if key in takes and value is not None}
    ignored = tuple(sorted(key for key in arguments if key not in given and key not in _UNUSED))
    built = _built(found, given)
    if built is None:
        return match, tuple(sorted({*ignored, *given}))
    return Match(name, built, match.reason), ignored


def _critic(name: str, source: Source) -> str | None:
    wanted = "aspect_critic" if name.lower().endswith("critic") else "aspect_critique"
    found = known_definition(f"{source.system}:{wanted}")
    return None if found is None else metric_text(found)


def _built(found: Definition, given: Mapping[str, object]) -> str | None:
    """Return the text of a definition with these parameters; None if it refuses one of them."""
    if not given:
        return metric_text(found)
    inside = ", ".join(f"{key}={written_value(value)}" for key, value in given.items())
    built = known_definition(f"{found.name}({inside})")
    return None if built is None else metric_text(built)


def _model(names: _Names, *, embedders: bool) -> str | None:
    """Return the first model in the script, as a judge or an embedder of merilo."""
    providers = model_providers(embedders=embedders)
    for call in sorted(names.calls, key=lambda each: each.lineno):
        provider = providers.get(_last(call.func))
        named = _arguments(call)
        stated = [value for word in _MODEL_WORDS if isinstance(value := named.get(word), str)]
        first = call.args[0] if call.args else None
        if provider and not stated and isinstance(first, ast.Constant) and isinstance(first.value, str):
            stated = [first.value]
        if provider is None and not embedders and _is_deepeval(call, names.imported):
            provider = "openai"
        if provider and stated:
            return f"{provider}:{stated[0]}"
    return None


def _address(calls: list[ast.Call], *, embedders: bool) -> str | None:
    """Return the first address of a model's server: without it, the command would send the texts to OpenAI."""
    classes = {name for name, provider in model_providers(embedders=embedders).items() if provider in _ADDRESSED}
    for call in sorted(calls, key=lambda each: each.lineno):
        if _last(call.func) not in (classes if embedders else classes | _CLIENTS):
            continue
        named = _arguments(call)
        for word in _ADDRESS_WORDS:
            if word in named and not _is_none(call, word):
                value = named[word]
                return value if isinstance(value, str) else UNREAD_ADDRESS
    return None


def _is_none(call: ast.Call, word: str) -> bool:
    return any(
        each.arg == word and isinstance(each.value, ast.Constant) and each.value.value is None for each in call.keywords
    )


def _is_deepeval(call: ast.Call, imported: Mapping[str, str]) -> bool:
    """Return True for a metric of DeepEval, whose `model` is one of OpenAI unless it is an object."""
    dotted = _dotted(call.func, imported)
    return dotted is not None and dotted.startswith("deepeval.metrics.")


def _data_file(calls: list[ast.Call]) -> str | None:
    for call in sorted(calls, key=lambda each: each.lineno):
        if not _READS.fullmatch(_last(call.func)):
            continue
        for value in (*call.args, *(each.value for each in call.keywords)):
            if isinstance(value, ast.Constant) and isinstance(value.value, str) and _DATA_FILE.fullmatch(value.value):
                return value.value
    return None


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
