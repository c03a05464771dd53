"""What the definitions of each system reproduce, and what differs.

Declared once for each family, in `fidelity.toml`. What is sent with a request is not written there: it is found by
running a definition's own plan, so that it cannot differ from the code.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from merilo.errors import MeriloError
from merilo.judging.kinds.contexts import Support
from merilo.judging.kinds.measured import Embeddings, Sentences, Similarities
from merilo.judging.kinds.responses import Completion
from merilo.metrics import contract
from merilo.metrics.base import Metric, is_composite
from merilo.metrics.registry import find_metric, parse_metric

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Fidelity:
    """The facts about all definitions of a family; parameters in braces stand for a definition's own defaults."""

    replies: str
    """The reading of replies, and the handling of an unreadable one."""
    checked: str
    """The source of the numbers that the definitions were compared with."""
    differs: tuple[str, ...] = ()
    """Known differences, besides those of every family."""


@cache
def families() -> Mapping[str, Fidelity]:
    """Return the facts by the beginning of the names; of several that fit a name the first counts."""
    table = tomllib.loads(files("merilo_published").joinpath("fidelity.toml").read_text("utf-8"))
    return {
        name: Fidelity(each["replies"], each["checked"], tuple(each.get("differs", ())))
        for each in table["families"]
        for name in each["names"]
    }


def fidelity_of(name: str) -> Fidelity | None:
    """Return what holds for the family of a definition with this name; None for one of no published system."""
    return next((each for beginning, each in families().items() if name.startswith(beginning)), None)


WORDING: Final = "the wording of the prompts, which is ours; a judge may reply differently to other words"
_RETRIES: Final = "retries of failed requests and the length limit of replies, which are merilo's"
_OTHER_SAMPLING: Final = "other sampling parameters, such as top_p and seed, which are the judge's"
_NO_SAMPLING: Final = "sampling parameters, the temperature among them, which are the judge's"


class Sampling(NamedTuple):
    """The sampling parameters of one kind of request."""

    temperature: float | None
    """None: the judge's own temperature."""
    replies: int
    """Number of replies that one request asks for."""


def reproduction(name: str) -> dict[str, Any] | None:  # Any: JSON
    """Return the reproduced and missing parts of a definition with its defaults, and what it was compared with.

    `sampling`: the sampling parameters of its requests, as text; empty without requests. None for merilo's own metrics.
    """
    definition = find_metric(name)
    family = fidelity_of(definition.name)
    if family is None:
        return None
    metrics = _metrics(definition.name)
    asks = frozenset[object]().union(*(metric.asks for metric in metrics))
    reproduced = ["the formula, with the edge cases and quirks that the parameters name"]
    missing: list[str] = []
    sampling = ""
    if Completion in asks:
        found = [*dict.fromkeys(each for metric in metrics for each in sampling_of(metric))]
        defaults = {name: getattr(metrics[0], name, "") for name in ("ratings", "tries", "repairs", "reasks")}
        sampled = any(each.temperature is not None for each in found)
        sampling = "; ".join(
            ("one reply for each request, at " if each.replies == 1 else f"{each.replies} replies of one request, at ")
            + ("the judge's own temperature" if each.temperature is None else f"temperature {each.temperature:g}")
            for each in found
        )
        reproduced += [
            "the steps: the same requests about the same texts, each after those whose replies it needs",
            f"the reading of replies: {family.replies.format_map(defaults)}",
            *([f"the sampling: {sampling}"] if sampled else []),
        ]
        missing += [WORDING, _OTHER_SAMPLING if sampled else _NO_SAMPLING, *family.differs, _RETRIES]
    if Support in asks:
        missing += ["the entailment model: the judge answers Support questions instead", *family.differs]
    if Sentences in asks:
        reproduced.append("the sentences, which pysbd splits")
    if Embeddings in asks:
        missing.append("the embedding model: the one that you name is used (--judge embeddings=SPEC)")
    if Similarities in asks:
        missing.append("the cross-encoder or classifier: the one that you name is used (--judge similarities=SPEC)")
    return {"reproduced": reproduced, "not_reproduced": missing, "checked": family.checked, "sampling": sampling}


def sampling_of(metric: Metric) -> list[Sampling]:
    """Return the kinds of requests that a definition sends about a synthetic sample, in the order of first use."""
    found: dict[Sampling, None] = {}
    answers = contract.SyntheticAnswers()
    plan = metric.plan(contract.synthetic_sample(_SPECIMEN))
    try:
        step = next(plan)
        while True:
            for group in step:
                requests = Counter(cast("Completion", each.at(0)) for each in group if isinstance(each, Completion))
                found |= {Sampling(each.temperature, count): None for each, count in requests.items()}
            step = plan.send(tuple([answers(question) for group in step for question in group]))
    except (StopIteration, MeriloError):  # a plan may reject a synthetic reply; the requests so far are enough
        return [*found]


_SPECIMEN: Final = 2
"""The index of a synthetic sample with three contexts and all fields."""


def _metrics(name: str) -> list[Metric]:
    definition = parse_metric(name)
    if not is_composite(definition):
        return [cast("Metric", definition)]  # every definition is a composite or a metric
    return [metric for part in definition.parts for metric in _metrics(part)]
