"""Plays a case of one sample through the real engine: scripted provider, judge, answers, store, plan, outcome."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from plan_running import run_plan
from published.cases import Case
from published.naming import metric_of
from published.replying import local_judges, queues

from merilo.data.load import load
from merilo.data.sample import BadRecord, Sample
from merilo.engine.answer_store import AnswerStore, JudgeRoles
from merilo.engine.dispatcher import Dispatcher
from merilo.engine.drivers import AsyncDriver
from merilo.engine.plan_run import PlanRun
from merilo.engine.rate_limits import RequestLimits
from merilo.errors import UsageError
from merilo.judges.base import Packing
from merilo.judges.llm import LLMJudge
from merilo.metrics.base import Metric, Outcome
from merilo.metrics.text import metric_text
from merilo.providers.base import Request
from merilo.runs.store import Store

COLUMNS: Final = {
    "document": "retrieved_contexts",
    "passage": "retrieved_contexts",
}
"""Inputs that no loader knows, since they mean this in golden cases only."""

IN_METADATA: Final = {"axion": frozenset({"conversation"}), "autonuggetizer": frozenset({"nuggets"})}
"""Inputs that are no field, and that metrics of a system read from the metadata."""


@dataclass(frozen=True)
class Played:
    """What a case came to: an outcome, or the sentence with which the metric refused an option."""

    outcome: Outcome | None
    refusal: str
    requests: tuple[Request, ...]


async def play(case: Case, cases: Mapping[str, Case], folder: Path) -> Played:
    """The outcome of a case, in a run store that the cases before it (`after`) have filled."""
    store = Store.open(folder / "store.sqlite", create=True)
    try:
        for earlier in _before(case, cases):
            await _play(earlier, store)
        return await _play(case, store)
    finally:
        store.close()


def sample_of(case: Case) -> Sample:
    """The inputs as a sample, by the names that the loaders know. Fails the test for an input that nothing reads."""
    mapping = {column: name for column, name in COLUMNS.items() if column in case.inputs}
    if isinstance(case.inputs.get("context"), str):
        mapping["context"] = "retrieved_contexts"
    data = load([_one_reference(case.inputs)], mapping=mapping)
    (sample,) = data
    if isinstance(sample, BadRecord):
        pytest.fail(f"{case.id}: {' '.join(map(str, sample.problems))}")
    kept = [column for column in data.columns.kept if column not in IN_METADATA.get(case.system, ())]
    unread = [column for column in kept if case.inputs[column] is not None]
    if unread:
        pytest.fail(f"{case.id}: nothing reads the inputs {unread}.")
    return sample


def _one_reference(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs with several `ground_truths` as one text, a line break between two, as ragas 0.0 joins them."""
    several = inputs.get("ground_truths")
    return {**inputs, "ground_truths": ["\n".join(several)]} if isinstance(several, list) else dict(inputs)


async def _play(case: Case, store: Store) -> Played:
    make = metric_of(case)
    replies = queues(case)
    # the recorded replies answer one question each
    judges = {role: LLMJudge(provider, judged=Packing.QUESTION) for role, provider in replies.items()}
    roles = JudgeRoles({**judges, **local_judges(case)})
    try:
        metric = make()
        bind: Callable[[Sequence[str]], Metric] | None = getattr(metric, "for_judges", None)
        metric = metric if bind is None else bind(roles.named)
    except UsageError as error:
        return Played(None, str(error), ())
    for role in metric.roles:
        if (lacking := roles.lacking(metric.asks, role)) is not None:
            pytest.fail(f"{case.id}: {lacking}.")
    walk = PlanRun(metric, metric_text(metric), sample_of(case))
    async with Dispatcher(RequestLimits(concurrency=1)) as dispatcher:
        driver = AsyncDriver(AnswerStore(roles, store, None), dispatcher)
        try:
            await run_plan(driver, walk)
        finally:
            await driver.close()
    result = walk.result()
    json.dumps(result.record(), allow_nan=False)  # an outcome that no file can hold is none
    sent = tuple(request for provider in replies.values() for request in provider.requests)
    return Played(result.outcome, "", sent)


def _before(case: Case, cases: Mapping[str, Case]) -> list[Case]:
    """The cases that this one comes after, first one first."""
    chain: list[Case] = []
    while (named := (chain[0] if chain else case).raw.get("after")) is not None:
        if named not in cases or cases[named] in chain or cases[named] is case:
            pytest.fail(f"{case.id}: it comes after {named!r}, which is no case before it.")
        chain.insert(0, cases[named])
    return chain
