"""What one evaluation is asked for: the arguments of `merilo.evaluate`, checked, and the judges that they name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from merilo.engine.budget import Budget
from merilo.engine.limits import CONCURRENCY, Limits
from merilo.errors import UsageError
from merilo.judges.spec import CascadeOptions, cross_encoder_from, embedder_from, judges_from, wire_kinds
from merilo.judges.splitter import SplitterJudge
from merilo.providers.prices import prices_from
from merilo.rendering.event_log import check_log_path
from merilo.results.early_stopping import Until
from merilo.runs.tape import check_tape_path

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from merilo.engine.budget import Pricer, Unanswered
    from merilo.engine.progress import Progress
    from merilo.judges.base import Judge
    from merilo.judges.spec import JudgeLike
    from merilo.metrics.base import Definition
    from merilo.providers.prices import PricesLike


class EvaluateArguments(TypedDict, total=False):
    """What `merilo.evaluate` takes besides the data; explained there."""

    metrics: Sequence[str | Definition] | None
    judge: JudgeLike | Sequence[JudgeLike]
    embedder: JudgeLike
    cross_encoder: JudgeLike
    out: str | PathLike[str] | None
    limit: int | None
    mapping: Mapping[str, str] | None
    language: str | None
    cluster: str | None
    concurrency: int
    requests_per_minute: float | None
    tokens_per_minute: float | None
    timeout_s: float | None
    max_cost_usd: float | None
    max_requests: int | None
    max_seconds: float | None
    unanswered: Unanswered
    base_url: str | None
    api_key_env: str | None
    embedder_base_url: str | None
    embedder_api_key_env: str | None
    judged: str | None
    max_error: float | None
    cascade_pilot: int | None
    skip_invalid: bool
    cache: bool | str | PathLike[str]
    retry_failed: bool
    record: str | PathLike[str] | None
    prices: PricesLike | None
    progress: Progress | None
    log_json: str | PathLike[str] | None
    until_decided: str | PathLike[str] | Until | None


@dataclass(frozen=True, kw_only=True)
class Options:
    """The arguments of one evaluation, with their defaults."""

    metrics: Sequence[str | Definition] | None = None
    judge: JudgeLike | Sequence[JudgeLike] = "embedded"
    embedder: JudgeLike = "embedded"
    cross_encoder: JudgeLike = "embedded"
    out: str | PathLike[str] | None = None
    limit: int | None = None
    mapping: Mapping[str, str] | None = None
    language: str | None = None
    cluster: str | None = None
    concurrency: int = CONCURRENCY
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout_s: float | None = None
    max_cost_usd: float | None = None
    max_requests: int | None = None
    max_seconds: float | None = None
    unanswered: Unanswered = "charged"
    base_url: str | None = None
    api_key_env: str | None = None
    embedder_base_url: str | None = None
    embedder_api_key_env: str | None = None
    judged: str | None = None
    max_error: float | None = None
    cascade_pilot: int | None = None
    skip_invalid: bool = False
    cache: bool | str | PathLike[str] = True
    retry_failed: bool = False
    record: str | PathLike[str] | None = None
    prices: PricesLike | None = None
    progress: Progress | None = None
    log_json: str | PathLike[str] | None = None
    until_decided: str | PathLike[str] | Until | None = None
    lenient: bool = False
    """Leave out named metrics that cannot be computed, with the reason, instead of refusing them."""
    shared_with: tuple[Path, ...] = ()
    """Other run directories whose spending counts against the same limits."""

    @property
    def limits(self) -> Limits:
        """How much each endpoint is asked. Raises UsageError."""
        return Limits(
            concurrency=self.concurrency,
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=self.tokens_per_minute,
            timeout_s=self.timeout_s,
        )

    @property
    def budget(self) -> Budget:
        """What the run may spend. Raises UsageError."""
        return Budget(
            max_cost_usd=self.max_cost_usd,
            max_requests=self.max_requests,
            max_seconds=self.max_seconds,
            unanswered=self.unanswered,
        )

    @property
    def until(self) -> Until | None:
        """What may end the run early; a suite in a file has been read by whoever made these options."""
        if isinstance(self.until_decided, Until | None):
            return self.until_decided
        raise UsageError(f"A suite is read before it can end a run, got the file {str(self.until_decided)!r}.")

    @cached_property
    def price(self) -> Pricer:
        """What so much costs at a provider, by the user's prices and the list. Raises UsageError."""
        return prices_from(self.prices).usd


def options_from(**arguments: Unpack[EvaluateArguments]) -> Options:
    """Return the options for the arguments of `evaluate`, with the suite of `until_decided` read from its file.

    Raises TypeError for an unknown argument, and DataError or UsageError for a suite that cannot be used.
    """
    known = EvaluateArguments.__annotations__
    unknown = [name for name in arguments if name not in known]
    if unknown:
        raise TypeError(f"evaluate() has no argument {', '.join(unknown)}; it takes {', '.join(known)}.")
    options = Options(**arguments)
    if options.until_decided is None:
        return options
    from merilo.commands.gate.suite import until_from

    return replace(options, until_decided=until_from(options.until_decided))


def checked(options: Options) -> Options:
    """The options, as they are meant. Raises UsageError for those that cannot be."""
    if isinstance(options.metrics, str):
        options = replace(options, metrics=[options.metrics])
    if options.metrics is not None and not options.metrics:
        raise UsageError("No metric is named; leave metrics out for every one that data and judge allow.")
    _ = options.limits, options.budget
    if options.record is not None:
        check_tape_path(Path(options.record))
    if options.log_json is not None:
        check_log_path(options.log_json)
    return options


def judges_of(options: Options) -> dict[str, Judge]:
    """Who answers in which role; embedder, similarity and splitter are always there."""
    given = options.judge
    specs: list[JudgeLike]
    if isinstance(given, str) or not isinstance(given, Sequence):  # noqa: SIM108  else the types get lost
        specs = [given]
    else:
        specs = [*given]
    address = {"base_url": options.base_url, "api_key_env": options.api_key_env}
    own = {"base_url": options.embedder_base_url, "api_key_env": options.embedder_api_key_env}
    wire = wire_kinds([options.embedder])
    shares = bool(wire) and options.embedder_base_url is None and wire_kinds(specs) <= wire
    if shares:
        own = {name: value if value is not None else address[name] for name, value in own.items()}
    cascades = CascadeOptions(options.max_error, options.cascade_pilot)
    judges = judges_from(specs, **address, judged=options.judged, address_used=shares, cascades=cascades)
    instruments: dict[str, Judge] = {
        "embedder": embedder_from(options.embedder, **own),
        "similarity": cross_encoder_from(options.cross_encoder),
        "splitter": SplitterJudge(),
    }
    return instruments | judges
