"""The options of an evaluation, each declared once: in Python, on the command line and in the reference pages.

A field of `Options` is an option; `commands/option.py` describes its metadata.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from merilo.commands.flags import column_mapping, metric_texts, share, unanswered_as
from merilo.commands.option import Flag, OptionGroup, option
from merilo.engine.rate_limits import CONCURRENCY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike
    from pathlib import Path

    from merilo.commands.gate.suite import Suite
    from merilo.engine.budget import Budget, Pricer, Unanswered
    from merilo.engine.leases import SharedLimits
    from merilo.engine.progress import Progress
    from merilo.engine.rate_limits import Limits
    from merilo.judges.base import JudgeLike
    from merilo.metrics.base import Definition
    from merilo.providers.prices import PricesLike
    from merilo.results.early_stopping import EarlyStop
    from merilo.runs.run import Run


def judges_or_default(specs: list[str] | None) -> list[str]:
    """Return the judges of a repeatable flag; the embedded one if it is absent."""
    return specs or ["embedded"]


def _share_or_none(text: str | None) -> float | None:
    return None if text is None else share(text)


def mapping_or_none(texts: list[str] | None) -> dict[str, str] | None:
    """Return column → field from texts `COLUMN=FIELD`; None if there are none."""
    return column_mapping(texts or []) or None


def _metrics_or_none(texts: list[str] | None) -> list[str] | None:
    return metric_texts(texts) if texts else None


def use_cache(no_cache: bool) -> bool:  # noqa: FBT001  typer passes the value of --no-cache
    """Return the value of `cache` for the flag --no-cache."""
    return not no_cache


_DATA: Final = OptionGroup.DATA
_JUDGES: Final = OptionGroup.JUDGES
_LIMITS: Final = OptionGroup.LIMITS
_OUTPUT: Final = OptionGroup.OUTPUT


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of one evaluation, with their defaults."""

    metrics: Sequence[str | Definition] | None = field(
        default=None,
        metadata=option(
            'names such as "faithfulness", or `Metric`s. None: all native metrics that the data and the judge support, '
            "except weak ones. The parts of a composite are computed too.",
            Flag(
                help="Comma-separated names or FILE.py:CLASS. [default: all supported, except weak]",
                metavar="A,B",
                many=True,
                read=_metrics_or_none,
                group=_JUDGES,
            ),
        ),
    )
    judge: JudgeLike | Sequence[JudgeLike] | Mapping[str, JudgeLike] = field(
        default="embedded",
        metadata=option(
            '"embedded", "local:MODEL", "PROVIDER:MODEL" (openai, anthropic, azure, bedrock, google or ollama), '
            '"scripted:FILE", a judge, a LangChain chat model, an async callable, or a list of these. '
            '"NAME=SPEC" names a judge. '
            '"FIRST>SECOND" is a cascade: the second judge answers what the first one is not confident about. The '
            "first judge of a list answers unless a metric asks for another one. A judge per kind of question: "
            '{"support": "embedded", "rest": "openai:MODEL"}, or "support=embedded" in a list.',
            Flag(
                help="embedded (the default), local:MODEL, PROVIDER:MODEL (openai, anthropic, azure, bedrock, google, "
                "ollama), scripted:FILE, FILE.py:NAME or a cascade FIRST>SECOND. NAME=SPEC names a judge, "
                "KIND,...=SPEC answers only these kinds of question. Repeatable.",
                metavar="SPEC",
                many=True,
                read=judges_or_default,
                group=_JUDGES,
            ),
        ),
    )
    embedder: JudgeLike = field(
        default="embedded",
        metadata=option(
            'the embedding model: "embedded" (its encoder for English, n-grams for other languages), "openai:MODEL", '
            '"azure:DEPLOYMENT", "scripted:FILE", a judge or a callable. Used only by metrics that compare vectors.',
            Flag(
                help="Embedding model: embedded, openai:MODEL, azure:DEPLOYMENT or scripted:FILE.",
                metavar="SPEC",
                default="embedded",
                group=_JUDGES,
            ),
        ),
    )
    cross_encoder: JudgeLike = field(
        default="embedded",
        metadata=option(
            'the model that rates the similarity of two texts: "embedded", "local:MODEL", "scripted:FILE", a judge or '
            "a callable.",
            Flag(
                help="Model for text similarity: embedded, local:MODEL or scripted:FILE.",
                metavar="SPEC",
                default="embedded",
                group=_JUDGES,
            ),
        ),
    )
    base_url: str | None = field(
        default=None,
        metadata=option(
            "address of the server, for the judges and embedders of a provider.",
            Flag(
                help="Address of the server, for the judges and embedders of a provider.",
                metavar="URL",
                group=_JUDGES,
            ),
        ),
    )
    api_key_env: str | None = field(
        default=None,
        metadata=option(
            "name of the environment variable that holds the key, for the same.",
            Flag(
                help="Environment variable that holds the key, for judges and embedders at an address.",
                metavar="NAME",
                group=_JUDGES,
            ),
        ),
    )
    embedder_base_url: str | None = field(
        default=None,
        metadata=option(
            "address of the embedder's server, if different. It is not sent the judges' key then.",
            Flag(
                help="Address of the embedder's server, if different; it is not sent the judges' key.",
                metavar="URL",
                group=_JUDGES,
            ),
        ),
    )
    embedder_api_key_env: str | None = field(
        default=None,
        metadata=option(
            "name of the environment variable that holds the embedder's own key.",
            Flag(help="Environment variable that holds the embedder's own key.", metavar="NAME", group=_JUDGES),
        ),
    )
    judged: str | None = field(
        default=None,
        metadata=option(
            'for LLM judges: "together" sends statements in packs of at most ten (the default), "each" one by one.',
            Flag(
                help="LLM judges: statements one by one (each) or in packs of ten (together).",
                metavar="HOW",
                group=_JUDGES,
            ),
        ),
    )
    max_error: float | None = field(
        default=None,
        metadata=option(
            "of a cascade: the largest fraction of the first judge's answers that may differ from the last judge's. "
            "None: 0.05.",
            Flag(
                help="Cascade: fraction of earlier answers that may differ from the last judge. [default: 5%]",
                metavar="RATE",
                read=_share_or_none,
                group=_JUDGES,
            ),
        ),
    )
    cascade_pilot: int | None = field(
        default=None,
        metadata=option(
            "of a cascade: the number of questions of each kind that all its judges answer first, to measure the "
            "confidence threshold. None: 10 / max_error, so 200 by default.",
            Flag(
                help="Cascade: pilot questions per kind and judge. [default: 10 / --max-error]",
                metavar="N",
                type=int,
                group=_JUDGES,
            ),
        ),
    )
    draws: int = field(
        default=1,
        metadata=option(
            "number of times that an LLM judge is asked each question, from 1 to 100. A score is the mean over the "
            "draws, and the values of the draws are stored with it.",
            Flag(
                help="Ask an LLM judge each question N times; a score is the mean over the draws.",
                metavar="N",
                type=int,
                default=1,
                group=_JUDGES,
            ),
        ),
    )
    prompts: str = field(
        default="merilo",
        metadata=option(
            'the prompts that published metrics send, such as "ragas-0.4.3:faithfulness". "merilo": those of merilo. '
            '"installed": those of the package, which must be installed here in that release. A published metric '
            "without such prompts is then refused. merilo's own metrics are not affected.",
            Flag(
                help="Prompts of published metrics: merilo, or installed (those of the package).",
                metavar="WHOSE",
                default="merilo",
                group=_JUDGES,
            ),
        ),
    )
    limit: int | None = field(
        default=None,
        metadata=option(
            "read only the first `limit` records.",
            Flag(help="Read only the first N records.", metavar="N", type=int, group=_DATA, in_project_file=False),
        ),
    )
    shard: str | None = field(
        default=None,
        metadata=option(
            'evaluate one of several shards of the data, such as "2/8": every eighth sample, from the second on. '
            "`merge` makes one run of all shards. None: all samples.",
            Flag(
                help="Evaluate shard I of N only; merilo merge makes one run of all shards.",
                metavar="I/N",
                group=_DATA,
                in_project_file=False,
            ),
        ),
    )
    mapping: Mapping[str, str] | None = field(
        default=None,
        metadata=option(
            "column → field, for columns with other names.",
            Flag(
                help="Read a field from this column. Repeatable.",
                metavar="COLUMN=FIELD",
                name="--map",
                many=True,
                read=mapping_or_none,
                group=_DATA,
            ),
        ),
    )
    language: str | None = field(
        default=None,
        metadata=option(
            'language of rubrics, of sentence splitting and of the summary, such as "ru". None: the language of each '
            "sample, and a summary in English.",
            Flag(
                help="Language of the data and, for run and show, of the screen, such as ru.",
                metavar="CODE",
                group=_DATA,
            ),
        ),
    )
    cluster: str | None = field(
        default=None,
        metadata=option(
            "a sample field or metadata key, such as a document or a conversation. Samples with the same value are not "
            "independent, so intervals are computed over these groups. None: each sample is independent.",
            Flag(
                help="Group samples that share this field or metadata key; intervals are over groups.",
                metavar="FIELD",
                group=_DATA,
            ),
        ),
    )
    skip_invalid: bool = field(
        default=False,
        metadata=option(
            "skip invalid records instead of refusing the data.",
            Flag(help="Skip invalid records instead of stopping.", type=bool, default=False, group=_DATA),
        ),
    )
    concurrency: int = field(
        default=CONCURRENCY,
        metadata=option(
            "maximum requests in flight for each model, at least 1. Runs of one process share a model's limit.",
            Flag(
                help="Maximum requests in flight per model.",
                metavar="N",
                type=int,
                default=CONCURRENCY,
                group=_LIMITS,
            ),
        ),
    )
    requests_per_minute: float | None = field(
        default=None,
        metadata=option(
            "maximum requests per minute for each model. None: no limit.",
            Flag(help="Maximum requests per minute and model.", metavar="N", name="--rpm", type=float, group=_LIMITS),
        ),
    )
    tokens_per_minute: float | None = field(
        default=None,
        metadata=option(
            "maximum tokens per minute for each model. None: no limit.",
            Flag(help="Maximum tokens per minute and model.", metavar="N", name="--tpm", type=float, group=_LIMITS),
        ),
    )
    timeout_s: float | None = field(
        default=None,
        metadata=option(
            "seconds to wait for a reply before the request is retried. None: the provider's default (120).",
            Flag(
                help="Time to wait for a reply before retrying.",
                metavar="SECONDS",
                name="--timeout",
                type=float,
                group=_LIMITS,
            ),
        ),
    )
    max_cost_usd: float | None = field(
        default=None,
        metadata=option(
            "limit of the run directory's cost, earlier calls included. No request is sent that could exceed it. "
            'The run is then returned incomplete: `run.complete` is False and `run.usage["stopped"]` says why. The '
            "same call with a higher limit resumes the run.",
            Flag(
                help="Stop before this run directory's cost can exceed USD.",
                metavar="USD",
                name="--max-cost",
                type=float,
                group=_LIMITS,
            ),
        ),
    )
    max_requests: int | None = field(
        default=None,
        metadata=option(
            "the same for the number of requests, retries included.",
            Flag(
                help="Stop after N requests in this run directory, retries included.",
                metavar="N",
                type=int,
                group=_LIMITS,
            ),
        ),
    )
    max_seconds: float | None = field(
        default=None,
        metadata=option(
            "the same for the duration of this call.",
            Flag(
                help="Stop N seconds after the start. Requests in flight get 2 seconds more.",
                metavar="N",
                type=float,
                group=_LIMITS,
                in_project_file=False,
            ),
        ),
    )
    unanswered: Unanswered = field(
        default="charged",
        metadata=option(
            'cost of a request without a usable reply, such as after a timeout. "charged": its input is charged and '
            'the price of its longest possible reply stays reserved. "free": it costs nothing.',
            Flag(
                help="Requests without a usable reply: charged, or free.",
                metavar="HOW",
                default="charged",
                read=unanswered_as,
                group=_LIMITS,
            ),
        ),
    )
    prices: PricesLike | None = field(
        default=None,
        metadata=option(
            'prices of models, used before the built-in list: a TOML file, or its rows, such as [{"model": "qwen3", '
            '"input": 0.1, "output": 0.4}] in USD per million tokens. None: the file named by MERILO_PRICES, if any.',
            Flag(
                help="TOML file with your prices, used before the built-in list prices.",
                metavar="FILE",
                group=_LIMITS,
            ),
        ),
    )
    out: str | PathLike[str] | None = field(
        default=None,
        metadata=option(
            "the run directory. It is created if necessary; an interrupted run in it is resumed. None: a new directory "
            "in `.merilo/runs`.",
            Flag(help="Directory of the run.", metavar="RUN", group=_OUTPUT, in_project_file=False),
        ),
    )
    cache: bool | str | PathLike[str] = field(
        default=True,
        metadata=option(
            "True: the user's verdict cache. False: none. A path: the cache in that file.",
            Flag(
                help="Neither read nor write the verdict cache.",
                name="--no-cache",
                type=bool,
                default=False,
                read=use_cache,
                group=_OUTPUT,
            ),
        ),
    )
    retry_failed: bool = field(
        default=False,
        metadata=option(
            "ask the failed questions of a resumed run again.",
            Flag(
                help="Retry questions that failed in this run.",
                type=bool,
                default=False,
                group=_OUTPUT,
                in_project_file=False,
            ),
        ),
    )
    outcomes: str | None = field(
        default=None,
        metadata=option(
            'the form in which outcomes are stored: "jsonl" or "parquet" (needs the extra `parquet`). Both hold the '
            "same outcomes. None: the form that the run has; JSON Lines for a new run.",
            Flag(
                help="Store the outcomes as jsonl or parquet. [default: jsonl]",
                metavar="FORM",
                group=_OUTPUT,
            ),
        ),
    )
    record: str | PathLike[str] | None = field(
        default=None,
        metadata=option(
            'a file that receives the run with every reply (a tape), such as "tape.jsonl.gz", also if the run stops '
            "early. None: no tape.",
            Flag(
                help="Also store the run with every reply in one file, such as tape.jsonl.gz.",
                metavar="TAPE",
                group=_OUTPUT,
                in_project_file=False,
            ),
        ),
    )
    log_json: str | PathLike[str] | None = field(
        default=None,
        metadata=option(
            "a file to which the run's events are appended, one JSON object per line. None: no log.",
            Flag(
                help="Append events to this file, one JSON object per line.",
                metavar="FILE",
                group=_OUTPUT,
                in_project_file=False,
            ),
        ),
    )
    until_decided: str | PathLike[str] | EarlyStop | Suite | None = field(
        default=None,
        metadata=option(
            "a suite file (see `gate`). Samples, or whole clusters, are taken in random order, and the run stops when "
            "each gate of the suite is decided. None: all samples are evaluated.",
            Flag(
                help="Take samples in random order; stop when each gate of this suite is decided.",
                metavar="SUITE",
                group=_OUTPUT,
                in_project_file=False,
            ),
        ),
    )
    baseline: Run | str | PathLike[str] | None = field(
        default=None,
        metadata=option(
            "the run, or its directory, that `max_drop` of the suite of `until_decided` compares with. None: the suite "
            "has no `max_drop`.",
            Flag(
                help="The run that max_drop of the suite of --until-decided compares with.",
                metavar="RUN",
                group=_OUTPUT,
                in_project_file=False,
            ),
        ),
    )
    batch: bool = field(
        default=False,
        metadata=option(
            "send the questions as batches, which cost half. The call returns once they are submitted: `run.complete` "
            'is False and `run.usage["waiting"]` names the batches. The same call collects the replies and submits the '
            "next questions.",
            Flag(
                help="Submit the questions as batches, or collect their replies. Repeat until done.",
                type=bool,
                default=False,
                group=_OUTPUT,
                in_project_file=False,
            ),
        ),
    )
    batch_files: str | PathLike[str] | None = field(
        default=None,
        metadata=option(
            "a directory for batches as files: it receives files of requests in OpenAI's format, and their results are "
            "expected there. Implies `batch`.",
            Flag(
                help="The same with files of requests and results in this directory, for vllm run-batch.",
                metavar="DIR",
                group=_OUTPUT,
                in_project_file=False,
            ),
        ),
    )
    runner: str | None = field(
        default=None,
        metadata=option(
            '"ray": evaluate shards of the data on the workers of a Ray cluster: the one at RAY_ADDRESS, or a new one '
            "on this machine. The results equal those of one process. None: evaluate in this process.",
            Flag(
                help="ray: evaluate on the workers of a Ray cluster. [default: in this process]",
                metavar="NAME",
                group=_OUTPUT,
                in_project_file=False,
            ),
        ),
    )
    workers: int | None = field(
        default=None,
        metadata=option(
            "number of workers of `runner`. Rates and budgets apply to all workers together, `concurrency` to each. "
            "None: the number of CPUs.",
            Flag(
                help="Number of workers of --runner. [default: the number of CPUs]",
                metavar="N",
                type=int,
                group=_OUTPUT,
                in_project_file=False,
            ),
        ),
    )
    progress: Progress | None = field(
        default=None, metadata=option("a `Progress` that receives the state of the run. None: nothing is shown.")
    )

    lenient: bool = False
    """Leave out metrics that cannot be computed, with the reason, instead of refusing them. Set by merilo only."""
    shared_with: tuple[Path, ...] = ()
    """Other run directories whose spending counts against the same limits. Set by merilo only."""
    shared_limits: SharedLimits | None = None
    """The limits that this run shares with runs in other processes. Set by merilo only."""
    reports_local_time: bool = True
    """Report the estimated time of local models before the first question. Set by merilo only."""

    @property
    def request_limits(self) -> Limits:
        """The limits of requests at each endpoint. Raises UsageError."""
        from merilo.engine.rate_limits import Limits

        return Limits(
            concurrency=self.concurrency,
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=self.tokens_per_minute,
            timeout_s=self.timeout_s,
        )

    @property
    def budget(self) -> Budget:
        """The limits of spending. Raises UsageError."""
        from merilo.engine.budget import Budget

        return Budget(
            max_cost_usd=self.max_cost_usd,
            max_requests=self.max_requests,
            max_seconds=self.max_seconds,
            unanswered=self.unanswered,
        )

    @property
    def until(self) -> EarlyStop | Suite | None:
        """The gates that may end the run early, after `checked` has read them from their file.

        A `Suite`: they are decided at planned looks only.
        """
        from merilo.commands.gate.suite import Suite
        from merilo.results.early_stopping import EarlyStop

        if isinstance(self.until_decided, EarlyStop | Suite | None):
            return self.until_decided
        raise TypeError(f"The suite in {str(self.until_decided)!r} has not been read.")

    @cached_property
    def price(self) -> Pricer:
        """The price of a number of tokens at a provider, by the user's prices and the list. Raises UsageError."""
        from merilo.providers.prices import prices_from

        prices = prices_from(self.prices)
        return prices.batch_usd if self.batched else prices.usd

    @property
    def batched(self) -> bool:
        """True if the questions are sent as batches."""
        return self.batch or self.batch_files is not None
