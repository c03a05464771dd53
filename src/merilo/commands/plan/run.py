"""What an evaluation would ask and cost, found out without a request and without a key; as a page and as JSON."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from math import floor, inf, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

from merilo.commands.evaluate.preparation import checked, dataset_of, judges_of, prepared
from merilo.engine.amounts import LOOKED_AT, Amount, MetricEstimate
from merilo.engine.answer_store import AnswerStore, LookUp
from merilo.engine.budget import providers_of
from merilo.engine.cache import VerdictCache, default_path
from merilo.engine.dry_run import DryRun, QuestionCounts
from merilo.numbers import count, duration, money
from merilo.providers.prices import Price, outdated, prices_from
from merilo.providers.questions import thread_count
from merilo.rendering.markup import printed_html
from merilo.rendering.page import DEFAULT_WIDTH, Page, Tone, page_width, print_result, tell
from merilo.results.estimate import Basis
from merilo.results.means import WeakMarks
from merilo.results.records import picked
from merilo.runs.directory import broken_files, measured_in
from merilo.runs.files import STORE
from merilo.runs.store import Store
from merilo.short_repr import short_repr

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from merilo.commands.evaluate.options import Options
    from merilo.data.lines import ForeignRecords
    from merilo.data.load import Records
    from merilo.judges.local.judge import LocalTime


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimated questions and cost of an evaluation."""

    data: str
    judge: str
    samples: int
    looked_at: int
    """Samples whose plans were run dry; fewer than `samples` if the amounts are scaled up."""
    metrics: tuple[MetricEstimate, ...]
    left_out: Mapping[str, str]
    typical: Amount
    seconds: float | None
    """Seconds of the whole run at this concurrency; None if no reply time is known."""
    concurrency: int
    measured: bool
    """True if tokens and seconds are means of the run itself, at least for some of the questions."""
    prices: tuple[Price, ...]
    """The prices that the amounts are based on."""
    unpriced: tuple[str, ...]
    """Models whose price is unknown."""
    weak: frozenset[str] = frozenset()
    """The metrics that are weak with the judge, including those that are left out for it."""
    local_time: LocalTime | None = None
    """Time that local models take; None if there is none, or if it is under a minute."""

    def __repr__(self) -> str:
        """Return the main facts, shortened."""
        facts = picked(self, "data judge samples metrics usd=typical.usd")
        return short_repr(self, **facts, requests=round(self.typical.requests))

    def __str__(self) -> str:
        """Return the page that `merilo run --plan` prints, 80 columns wide."""
        return str(plan_page(self, DEFAULT_WIDTH))

    def _repr_html_(self) -> str:
        """Return the printed text for notebooks."""
        return printed_html(self)


async def run_estimate(
    data: str | PathLike[str] | Records | ForeignRecords, options: Options, *, sample: int | None = LOOKED_AT
) -> Estimate:
    """Run the plans of an evaluation dry.

    `sample`: how many samples to look at, spread evenly; None for all. Nothing is written but a copy of the data in a
    temporary directory.
    """
    options = checked(options)
    judges = judges_of(options)
    dataset = dataset_of(data, options)
    prices = prices_from(options.limits.prices)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="merilo-"))
        store = Store.open(Path(folder, STORE), create=True)
        stack.callback(store.close)
        intake, roles, selection = await prepared(dataset, store, judges, options)
        store.accept_samples()
        begun = None if options.out is None else Path(options.out, STORE)
        look_up = _look_up(begun, options, stack)
        dry = DryRun(AnswerStore(roles, store, None), look_up.held, options.price, measured_in(begun) if begun else {})
        step = 1 if sample is None else -(-intake.samples // sample)
        looked_at = 0
        for each in islice(store.samples(), 0, None, step):
            dry.add(each, selection.metrics)
            looked_at += 1
        scale = intake.samples / looked_at
        local_time = dry.local.time(scale)
    metrics = _metrics(dry.counted, scale)
    typical = sum((each.added for each in metrics), Amount())
    return Estimate(
        data=dataset.name,
        judge=roles.judges["judge"].name if selection.kinds else Basis.NO_JUDGE.value,
        samples=intake.samples,
        looked_at=looked_at,
        metrics=metrics,
        left_out=selection.left_out,
        typical=typical,
        seconds=_seconds(typical, options),
        concurrency=options.limits.of_requests.max_in_flight,
        measured=dry.measured_used,
        prices=prices.known(provider for _, provider in providers_of(judges.values())),
        unpriced=tuple(dry.unpriced),
        weak=selection.weak,
        local_time=local_time,
    )


def _look_up(begun: Path | None, options: Options, stack: ExitStack) -> LookUp:
    """Return the look-up of answers that are there already."""
    run = cache = None
    if begun is not None and begun.exists():
        broken_files(begun.parent)  # raises if the store is damaged or belongs to another run
        run = Store.read(begun)
        stack.callback(run.close)
    path = default_path() if options.storage.cache is True else Path(options.storage.cache or "")
    if options.storage.cache is not False and path.is_file():
        cache = VerdictCache(path)
        stack.callback(cache.close)
    return LookUp(run, cache, failures=not options.storage.retry_failed)


def _metrics(counted: Mapping[str, QuestionCounts], scale: float) -> tuple[MetricEstimate, ...]:
    return tuple(
        MetricEstimate(text, each.questions, each.held, each.alone.times(scale), each.added.times(scale))
        for text, each in counted.items()
    )


def _seconds(typical: Amount, options: Options) -> float | None:
    """Return the duration that concurrency and rate limits imply; None if the time of a reply is unknown."""
    if not typical.requests:
        return 0.0
    if typical.seconds is None:
        return None
    minutes = [
        typical.requests / (options.limits.requests_per_minute or inf),
        (typical.input_tokens + typical.output_tokens) / (options.limits.tokens_per_minute or inf),
    ]
    return max(typical.seconds / options.limits.of_requests.max_in_flight, 60 * max(minutes))


# -- text of an estimate -------------------------------------------------------------------------------

_HEADINGS = ("metric", "requests", "tokens in", "out", "USD", "USD alone")
_LIKELY = "4 characters per token; replies of the usual length, each readable at once"
_MEASURED = "the means of this run so far, re-asks included; 4 characters per token where it has asked too little"
_DIGITS = 3
_WITHOUT_CENTS = 100
_UNITS = ((1_000_000, "M"), (1_000, "k"))


def plan_record(found: Estimate) -> dict[str, Any]:  # Any: JSON
    """The estimate as a JSON-able object; `usd` is None when it is unknown and 0.0 only when it is free."""
    return {
        **picked(found, "data judge samples looked_at"),
        "metrics": {
            each.metric: {
                "questions": each.questions,
                "weak": each.metric in found.weak,
                "held": each.held,
                "added": _record(each.added),
                "alone": _record(each.alone),
            }
            for each in found.metrics
        },
        "left_out": dict(found.left_out),
        "typical": _record(found.typical),
        "seconds": None if found.seconds is None else round(found.seconds, 1),
        **({} if found.local_time is None else {"local_seconds": round(found.local_time.seconds, 1)}),
        **picked(found, "concurrency measured"),
        "prices": [
            {
                **picked(price, "model input cached_input output"),
                "read": None if price.read is None else price.read.isoformat(),
                "source": price.source,
            }
            for price in found.prices
        ],
        "unpriced": list(found.unpriced),
    }


def plan_page(found: Estimate, width: int, *, run: str = "", thing: str = "sample") -> Page:
    """Return the page: a table by metric, the totals, and the basis of the estimate.

    `run`: the command that starts the run; shown if given. `thing`: what is judged.
    """
    page = Page(width)
    by = found.judge if found.judge == Basis.NO_JUDGE else f"to be judged by {found.judge}"
    page.text(f"{found.data}: {count(found.samples, thing)}, {by}", tone=Tone.STRONG)
    page.text("Nothing was sent. All amounts are estimates.")
    page.blank()
    _table(page, found)
    page.heading("Total")
    page.entries(_totals(found))
    if found.left_out:
        page.heading("Left out")
        page.entries(found.left_out.items())
    if basis := _basis(found):
        page.heading("Basis")
        page.entries(basis)
    if run:
        page.heading("Next")
        page.line("  " + run)
    return page


def print_plan(found: Estimate, *, json: bool, run: str = "") -> None:
    """Print an estimate. `run`: as in `plan_page`."""
    if warning := outdated(found.prices, datetime.now(UTC).date()):
        tell(warning)
    print_result(plan_record(found) if json else plan_page(found, page_width(), run=run))


def _record(amount: Amount) -> dict[str, Any]:  # Any: JSON
    return {
        "requests": round(amount.requests),
        "input_tokens": round(amount.input_tokens),
        "output_tokens": round(amount.output_tokens),
        "usd": None if amount.usd is None else round(amount.usd, 6),
    }


def amount_rows(found: Estimate) -> list[tuple[str, ...]]:
    """Return the table of amounts: headings, one row per metric, and the total."""
    marks = WeakMarks(found.weak)
    total = ("total", *_amounts(found.typical), "")
    rows = [(marks.name(each.metric), *_amounts(each.added), money(each.alone.usd)) for each in found.metrics]
    return [_HEADINGS, *rows, total]


def weak_note(found: Estimate) -> str:
    """Return the sentence that explains the marker of weak metrics; empty if there are none."""
    return WeakMarks(found.weak).legend(each.metric for each in found.metrics)


def _table(page: Page, found: Estimate) -> None:
    rows = amount_rows(found)
    page.table(rows, [Tone.STRONG, *[Tone.PLAIN] * (len(rows) - 2), Tone.STRONG])
    if legend := weak_note(found):
        page.text(legend, tone=Tone.QUIET)


def _amounts(amount: Amount) -> tuple[str, ...]:
    counted = (amount.requests, amount.input_tokens, amount.output_tokens)
    return (*(f"{round(number):,}" for number in counted), money(amount.usd))


def _totals(found: Estimate) -> list[tuple[str, str]]:
    rows = [("expected", _text(found.typical))]
    if found.typical.requests:
        rows.append(("assuming", _MEASURED if found.measured else _LIKELY))
    if found.seconds is not None and found.typical.requests:
        rows.append(("time", f"about {duration(found.seconds)} with {found.concurrency} requests in flight"))
    if found.local_time is not None:
        threads = f"{count(thread_count(), 'thread')} of this machine"
        measured = f"measured on {count(found.local_time.questions, 'question')}"
        rows.append(("local model", f"about {duration(found.local_time.seconds)} on {threads}, {measured}"))
    questions, held = (sum(getattr(each, name) for each in found.metrics) for name in ("questions", "held"))
    if held:
        rows.append(("held", f"{held:,} of {count(questions, 'question')} are answered in the run or the cache"))
    return rows


def _text(amount: Amount) -> str:
    if not amount.requests:
        return "no request, nothing to pay"
    tokens = f"{rounded(amount.input_tokens)} tokens in, {rounded(amount.output_tokens)} out"
    requests = count(1, "request") if round(amount.requests) == 1 else f"{rounded(amount.requests)} requests"
    return f"{requests}, {tokens}, {_usd(amount.usd)}"


def rounded(amount: float) -> str:
    """Return an amount with at most three significant digits and a unit: `352`, `18.2 k`, `583 M`, `1,580 M`."""
    whole = round(amount)
    value = round(whole, _DIGITS - 1 - floor(log10(whole))) if whole else 0
    for size, unit in _UNITS:
        if value >= size:
            decimals = max(0, _DIGITS - 1 - floor(log10(value / size)))
            return f"{value / size:,.{decimals}f} {unit}"
    return f"{whole:,}"


def _usd(usd: float | None) -> str:
    if usd is None:
        return "price unknown"
    if not usd:
        return "free of charge"
    return f"{usd:,.0f} USD" if usd >= _WITHOUT_CENTS else f"{money(usd)} USD"


def _basis(found: Estimate) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    if found.looked_at < found.samples:
        looked_at = f"{found.looked_at:,} of {found.samples:,} were looked at, spread evenly"
        rows.append(("samples", f"{looked_at}; the amounts are scaled up"))
    rows += [("price", _price_text(price)) for price in found.prices]
    if found.unpriced:
        models = ", ".join(found.unpriced)
        rows.append(("price", f"unknown for {models}; name it in a file (--prices FILE)"))
    if found.typical.requests and len(found.metrics) > 1:
        rows.append(
            ("shared", "a question that several metrics ask counts for the first one. USD alone: each metric by itself")
        )
    return rows


def _price_text(price: Price) -> str:
    text = f"{price.model}: {price.input:g} USD per million tokens in, {price.output:g} out"
    if price.cached_input != price.input:
        text += f", {price.cached_input:g} for cached input (not assumed here)"
    if price.read is not None:
        text += f"; read on {price.read.isoformat()}"
    return f"{text} ({price.source})" if price.source else text
