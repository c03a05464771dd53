"""The options of an evaluation, each declared once: in Python, on the command line and in `merilo.toml`.

A field of `Options` is a keyword of `evaluate`, and its parts (`Model`, `Limits`, ...) hold the rest.
`commands/option.py` describes the metadata of a field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from functools import cached_property
from operator import not_
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict

from merilo.commands.option import (
    OptionGroup,
    column_mapping,
    flags_of,
    keyword,
    metric_texts,
    opt,
    part,
    unanswered_as,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike
    from pathlib import Path

    from merilo.data.load import Records
    from merilo.engine.budget import Budget, Pricer, Unanswered
    from merilo.engine.progress import Progress
    from merilo.engine.rate_limits import RequestLimits
    from merilo.judges.base import JudgeLike
    from merilo.metrics.base import Definition
    from merilo.providers.prices import PricesLike


_DATA: Final = OptionGroup.DATA
_JUDGES: Final = OptionGroup.JUDGES
_LIMITS: Final = OptionGroup.LIMITS
_OUTPUT: Final = OptionGroup.OUTPUT
_COUNT: Final = (1, 1e9)
_POSITIVE: Final = (1e-9, 1e9)


def judges_or_default(specs: list[str] | None) -> list[str]:
    """Return the judges of a repeatable flag; the embedded one if it is absent."""
    return specs or ["embedded"]


def _mapping_or_none(texts: list[str] | None) -> dict[str, str] | None:
    return column_mapping(texts or []) or None


def _metrics_or_none(texts: list[str] | None) -> list[str] | None:
    return metric_texts(texts) if texts else None


@dataclass(frozen=True)
class Model:
    """A judge with its server, or several judges with the same one."""

    spec: JudgeLike | Sequence[Judges] | Mapping[str, Judges] = opt(
        "embedded",
        _JUDGES,
        "embedded (the default), local:MODEL, PROVIDER:MODEL (decisions, systemone, openai, anthropic, azure, bedrock, "
        "google, ollama), "
        "scripted:FILE or FILE.py:NAME. NAME=SPEC names a judge, KIND,...=SPEC answers only these kinds of question. "
        "embeddings=SPEC and similarities=SPEC compare texts. Repeatable.",
        details='"embedded", "local:MODEL", "PROVIDER:MODEL" (decisions, systemone, openai, anthropic, azure, bedrock, '
        "google or ollama), "
        '"scripted:FILE", a judge, a LangChain chat model, an async callable, or several of these.',
        metavar="SPEC",
        many=True,
        read=judges_or_default,
    )
    _: KW_ONLY
    base_url: str | None = opt(None, _JUDGES, "Address of the server, for the models of a provider.", metavar="URL")
    api_key_env: str | None = opt(
        None, _JUDGES, "Environment variable that holds the key of these models.", metavar="NAME"
    )
    judged: str | None = opt(
        None,
        _JUDGES,
        "Questions of a sample that share a request: as many as possible (together), those that read the same texts "
        "(context), or none (each). Default: context for LLMs, together for decision models.",
        metavar="HOW",
    )
    prompts: str = opt(
        "merilo",
        _JUDGES,
        "Prompts of published metrics: merilo, or installed (those of the package).",
        details='the prompts that published metrics send, such as "ragas-0.4.3:faithfulness". "merilo": those of '
        'merilo. "installed": those of the package, which must be installed here in that release. A published '
        "metric without such prompts is then refused. merilo's own metrics are not affected.",
        metavar="WHOSE",
    )


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of money, requests and time, and the workers that share them."""

    max_cost_usd: float | None = opt(
        None,
        _LIMITS,
        "Stop before this run directory's cost can exceed USD.",
        details="limit of the run directory's cost, earlier calls included. No request is sent that could exceed it. "
        'The run is then returned incomplete: `run.complete` is False and `run.usage["stopped"]` says why. '
        "The same call with a higher limit resumes the run.",
        metavar="USD",
        name="--max-cost",
        type=float,
    )
    max_requests: int | None = opt(
        None, _LIMITS, "Stop after N requests in this run directory, retries included.", metavar="N", type=int
    )
    max_seconds: float | None = opt(
        None,
        _LIMITS,
        "Stop N seconds after the start. Requests in flight get 2 seconds more.",
        metavar="N",
        type=float,
        in_project_file=False,
    )
    concurrency: int | None = opt(
        None,
        _LIMITS,
        "Maximum requests in flight per model. [default: 16 to 128, as many as it accepts]",
        details="maximum requests in flight for each model, at least 1. By default 16 at first, and up to 128 while "
        "the endpoint refuses none and does not slow down. Runs of one process share a model's limit.",
        metavar="N",
        span=_COUNT,
        type=int,
    )
    requests_per_minute: float | None = opt(
        None, _LIMITS, "Maximum requests per minute and model.", metavar="N", name="--rpm", span=_POSITIVE, type=float
    )
    tokens_per_minute: float | None = opt(
        None, _LIMITS, "Maximum tokens per minute and model.", metavar="N", name="--tpm", span=_POSITIVE, type=float
    )
    timeout_s: float | None = opt(
        None,
        _LIMITS,
        "Seconds to wait for a reply before the request is retried. [default: the provider's, 120]",
        metavar="SECONDS",
        name="--timeout",
        span=_POSITIVE,
        type=float,
    )
    unanswered: Unanswered = opt(
        "charged",
        _LIMITS,
        "Requests without a usable reply: charged, or free.",
        details='cost of a request without a usable reply, such as after a timeout. "charged": its input is charged '
        'and the price of its longest possible reply stays reserved. "free": it costs nothing.',
        metavar="HOW",
        read=unanswered_as,
    )
    prices: PricesLike | None = opt(
        None,
        _LIMITS,
        "TOML file with your prices, used before the built-in list prices.",
        details='prices of models, used before the built-in list: a TOML file, or its rows, such as [{"model": '
        '"qwen3", "input": 0.1, "output": 0.4}] in USD per million tokens. None: the file named by '
        "MERILO_PRICES, if any.",
        metavar="FILE",
    )
    runner: str | None = opt(
        None,
        _LIMITS,
        "ray: evaluate on the workers of a Ray cluster. [default: in this process]",
        details='"ray": evaluate shards of the data on the workers of a Ray cluster: the one at RAY_ADDRESS, or a new '
        "one on this machine. The results equal those of one process. None: evaluate in this process.",
        metavar="NAME",
        in_project_file=False,
    )
    workers: int | None = opt(
        None,
        _LIMITS,
        "Number of workers of the runner. [default: the number of CPUs]",
        details="number of workers of `runner`. Rates and budgets apply to all workers together, `concurrency` to "
        "each. None: the number of CPUs.",
        metavar="N",
        span=_COUNT,
        type=int,
        in_project_file=False,
    )

    @property
    def of_requests(self) -> RequestLimits:
        """The limits of requests at each endpoint. Raises UsageError."""
        from merilo.engine.rate_limits import RequestLimits

        return RequestLimits(**{each.name: getattr(self, each.name) for each in fields(RequestLimits)})

    @property
    def budget(self) -> Budget:
        """The limits of spending. Raises UsageError."""
        from merilo.engine.budget import Budget

        return Budget(**{each.name: getattr(self, each.name) for each in fields(Budget)})


@dataclass(frozen=True, kw_only=True)
class Storage:
    """The cache, the log, and batches that one call submits and another one collects."""

    cache: bool | str | PathLike[str] = opt(
        True,
        _OUTPUT,
        "Neither read nor write the verdict cache.",
        details="True: the user's verdict cache. False: none. A path: the cache in that file.",
        name="--no-cache",
        type=bool,
        flag_default=False,
        read=not_,
    )
    retry_failed: bool = opt(
        False, _OUTPUT, "Retry questions that failed in this run.", type=bool, in_project_file=False
    )
    batch: bool = opt(
        False,
        _OUTPUT,
        "Submit the questions as batches, or collect their replies. Repeat until done.",
        details="send the questions as batches, which cost half. The call returns once they are submitted: "
        '`run.complete` is False and `run.usage["waiting"]` names the batches. The same call collects the '
        "replies and submits the next questions.",
        type=bool,
        in_project_file=False,
    )
    batch_files: str | PathLike[str] | None = opt(
        None,
        _OUTPUT,
        "The same with files of requests and results in this directory, for vllm run-batch.",
        details="a directory for batches as files: it receives files of requests in OpenAI's format, and their "
        "results are expected there. Implies `batch`.",
        metavar="DIR",
        in_project_file=False,
    )

    @property
    def batched(self) -> bool:
        """True if the questions are sent as batches."""
        return self.batch or self.batch_files is not None


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The records to read, and the files that judge what was retrieved."""

    skip_invalid: bool = opt(False, _DATA, "Skip invalid records instead of stopping.", type=bool)
    shard: str | None = opt(
        None,
        _DATA,
        "Evaluate shard I of N only; merilo runs merge makes one run of all shards.",
        details='evaluate one of several shards of the data, such as "2/8": every eighth sample, from the second on. '
        "`merge` makes one run of all shards. None: all samples.",
        metavar="I/N",
        in_project_file=False,
    )
    sample: int | None = opt(
        None, _DATA, "Draw N records at random; read them all.", metavar="N", type=int, in_project_file=False
    )
    seed: int = opt(0, _DATA, "Seed of --sample.", metavar="N", type=int, in_project_file=False)
    qrels: str | PathLike[str] | None = opt(
        None,
        _DATA,
        "TREC qrels of DATA, a TREC run; or span labels (.jsonl), with --documents.",
        details="TREC qrels of the data, a TREC run; or span labels (.jsonl), with `documents`.",
        metavar="FILE",
        in_project_file=False,
    )
    tools: Sequence[str] | None = opt(
        None,
        _DATA,
        "Tools whose results are the contexts of a conversation; all that return passages if not given.",
        details="the names of tools whose results are the contexts of a conversation. None: all that return passages.",
        metavar="A,B",
        name="--tool",
        many=True,
        read=_metrics_or_none,
    )
    measures: Sequence[str] | None = opt(
        None,
        _DATA,
        "Read a column as a measure, which is not a score. Lower is better unless COLUMN=higher. Repeatable.",
        details='columns that are measures, not scores: "COLUMN", "COLUMN=UNIT" or "COLUMN=higher". Lower is better by '
        "default. latency_ms, latency_s, cost_usd, tokens, input_tokens and output_tokens are known.",
        metavar="COLUMN[=UNIT]",
        name="--measure",
        many=True,
    )
    documents: str | PathLike[str] | None = opt(
        None,
        _DATA,
        "Documents (file or folder) that contexts come from, for span metrics.",
        metavar="FILE",
        in_project_file=False,
    )


Judges: TypeAlias = "JudgeLike | Model | Mapping[str, Any] | Sequence[Any]"  # Any: judges, or the fields of a Model
AsDict: TypeAlias = Mapping[str, Any]
"""The fields of a part, as a dict."""


@dataclass(frozen=True)
class Options:
    """The options of one evaluation, with their defaults."""

    metrics: str | Sequence[str | Definition] | None = opt(
        None,
        _JUDGES,
        "Comma-separated names, FILE.py:CLASS, or all. [default: a core set]",
        details='names such as "faithfulness", or `Metric`s. None: a core set, the same for every judge. "all": all '
        "native metrics that the data and the judge support. Weak metrics are left out unless named. The parts of a "
        "composite are computed too.",
        metavar="A,B",
        many=True,
        read=_metrics_or_none,
    )
    _: KW_ONLY
    judge: Judges = part(
        Model,
        'a judge such as "embedded" or "openai:gpt-4.1-mini" (see `Model`), or a list of these. "NAME=SPEC" names a '
        "judge. The first one answers unless a metric asks for another one. A judge for each kind of question: "
        '{"support": "local:factcg", "embeddings": "openai:MODEL", "rest": Model("openai:MODEL", base_url=...)}, '
        "where embeddings and similarities compare texts.",
        default="embedded",
    )
    mapping: Mapping[str, str] | None = opt(
        None,
        _DATA,
        "Read a field from this column. Repeatable.",
        details="column → field, for columns with other names.",
        metavar="COLUMN=FIELD",
        name="--map",
        many=True,
        read=_mapping_or_none,
    )
    language: str | None = opt(
        None,
        _DATA,
        "Language of the data and, for run and show, of the screen, such as ru.",
        details='language of rubrics, of sentence splitting and of the summary, such as "ru". None: the language of '
        "each sample, and a summary in English.",
        metavar="CODE",
    )
    cluster: str | None = opt(
        None,
        _DATA,
        "Group samples that share this field or metadata key; intervals are over groups.",
        details="a sample field or metadata key, such as a document or a conversation. Samples with the same value "
        "are not independent, so intervals are computed over these groups. None: each sample is independent.",
        metavar="FIELD",
    )
    limit: int | None = opt(None, _DATA, "Read only the first N records.", metavar="N", type=int, in_project_file=False)
    draws: int = opt(
        1,
        _JUDGES,
        "Ask an LLM judge each question N times; a score is the mean over the draws.",
        details="number of times that an LLM judge is asked each question, from 1 to 100. A score is the mean over "
        "the draws, and the values of the draws are stored with it.",
        metavar="N",
        span=(1, 100),
        type=int,
    )
    out: str | PathLike[str] | None = opt(
        None,
        _OUTPUT,
        "Directory of the run.",
        details="the run directory. It is created if necessary; an interrupted run in it is resumed. None: a new "
        "directory in `.merilo/runs`.",
        metavar="RUN",
        in_project_file=False,
    )
    reading: Reading = part(Reading, "the records to read: a `Reading`, or a dict with its keys.")
    limits: Limits = part(Limits, "limits of money, requests and time: a `Limits`, or a dict with its keys.")
    storage: Storage = part(Storage, "cache, log and batches: a `Storage`, or a dict with its keys.")
    progress: Progress | None = keyword(
        None, "a `Progress` that receives the state of the run. None: nothing is shown."
    )

    lenient: bool = False
    """Leave out metrics that cannot be computed, with the reason, instead of refusing them. Set by merilo only."""
    shared_with: tuple[Path, ...] = ()
    """Other run directories whose spending counts against the same limits. Set by merilo only."""
    first_draw: int = 0
    """Number of the first draw of each question; other draws are not answered from the cache. Set by merilo only."""

    def __post_init__(self) -> None:
        from merilo.data.aliases import language_code  # imports what reads samples, which help does not need

        object.__setattr__(self, "language", language_code(self.language))

    @property
    def of_records(self) -> AsDict:
        """The keywords with which `load` reads the data."""
        own = {"mapping": self.mapping, "language": self.language, "limit": self.limit}
        return {**own, "sample": self.reading.sample, "seed": self.reading.seed, "tools": self.reading.tools}

    @cached_property
    def price(self) -> Pricer:
        """The price of a number of tokens at a provider, by the user's prices and the list. Raises UsageError."""
        from merilo.providers.prices import prices_from

        prices = prices_from(self.limits.prices)
        return prices.batch_usd if self.storage.batched else prices.usd


ABOUT_DATA: Final = (
    "metrics",
    "judge.prompts",
    "mapping",
    "language",
    "cluster",
    "limit",
    "draws",
    *(name for name in flags_of(Options) if name.startswith("reading.")),
    "limits.runner",
    "limits.workers",
    "storage.batch",
    "storage.batch_files",
)
"""Options of an evaluation that say nothing about one judge."""


class Keywords(TypedDict, total=False):
    """The keywords of `evaluate` besides data and metrics."""

    judge: Judges
    mapping: Mapping[str, str] | None
    language: str | None
    cluster: str | None
    limit: int | None
    draws: int
    out: str | PathLike[str] | None
    reading: Reading | AsDict | None
    limits: Limits | AsDict | None
    storage: Storage | AsDict | None
    progress: Progress | None


# -- with a pipeline -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Calls:
    """How a pipeline is called, and where its outputs are stored."""

    question_as: str | None = keyword(
        None,
        "the name under which the pipeline takes the question: a keyword of a function or DSPy module (there "
        '"question" by default), a key of the dict for a LangChain chain, "COMPONENT.INPUT" of a Haystack pipeline '
        "(by default all its mandatory inputs). None: the pipeline takes the text itself.",
    )
    version: str | None = keyword(
        None,
        "a name of the pipeline's state, such as a commit. With it, outputs are stored and a repeated call asks "
        "only what is missing. Choose another name whenever the pipeline or its documents change. None: outputs "
        "are not stored.",
    )
    outputs: str | PathLike[str] | None = keyword(
        None, "the JSON Lines file of the stored outputs. None: `.merilo/pipeline-outputs.jsonl`."
    )
    concurrency: int = keyword(8, "maximum questions that the pipeline is asked at the same time.")


@dataclass(frozen=True, kw_only=True)
class PipelineOptions(Options):
    """The options of an evaluation, the questions for the pipeline, and the limits of its calls."""

    questions: str | PathLike[str] | Iterable[str] | Records = keyword(
        (),
        "a list of texts, or data as in `evaluate` with a `user_input` in each sample. Its other fields, such as "
        "`reference`, are kept; the pipeline's output replaces `response` and the retrieved contexts.",
    )
    calls: Calls = part(Calls, "how the pipeline is called: a `Calls`, or a dict with its keys.")


class PipelineKeywords(Keywords, total=False):
    """The keywords of `evaluate_pipeline` besides the pipeline, its questions and metrics."""

    calls: Calls | AsDict | None
