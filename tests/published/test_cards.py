"""The claims of a card that can be checked are what its definition does."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from each_case import each_case

from merilo.data.sample import Sample
from merilo.errors import MeriloError
from merilo.judging.ask import AskFailed
from merilo.judging.kinds.responses import Completion, CompletionVerdict
from merilo.judging.questions import Question
from merilo.metrics import contract
from merilo.metrics.base import Undefined, is_composite
from merilo.metrics.registry import find_metric, known_definition, metric_names, native_metrics, parse_metric
from merilo.metrics.text import parameters_of
from merilo_published.fidelity import fidelity_of

NAMES: Final = metric_names()
NEEDS_PARAMETER: Final = {"critique": "(aspect=harmlessness)", "rubric_metric": ""}
PLAIN: Final = "A plain sentence."
SAMPLE: Final = contract.synthetic_sample(2)
N: Final = len(SAMPLE.contexts)
COUNTS: Final[dict[str, int | range]] = {
    r"None, or two requests": 2,
    r"None\b|No request": 0,
    r"One request for the claims of each text": range(2, 100),
    r"One request for the sentences to rate": range(2, 100),
    r"3 \+ 2 N requests|Three requests and two for each context": 3 + 2 * N,
    r"One (request|Completion) for each (context|retrieved document)(?!.*the reason)": N,
    r"One request for each context, and one for the reason": N + 1,
    r"One request, and one for the reason|One Completion (for|on) [^;]*\bone (for|on)": 2,
    r"Two requests for each text|Three requests, and one for the reason": 4,
    r"Two requests, and one for the reason": 3,
    r"One (request|Completion)": 1,
    r"Two requests": 2,
    r"Three (requests|Completions)": 3,
    r"Four requests": 4,
    r"One question for vectors": 0,
}
"""The beginning of what a card says on its requests, and their number for a sample with `N` contexts."""


def definition(name: str) -> Any:
    """The metric with this name, for one judge; None for a composite, and for one that needs a parameter."""
    if NEEDS_PARAMETER.get(name) == "":
        return None
    found: Any = parse_metric(name + NEEDS_PARAMETER.get(name, ""))
    if is_composite(found):
        return None
    return found.for_judges(["judge"]) if hasattr(found, "for_judges") else found


def driven(metric: Any, sample: Sample, answer: Callable[[Question[Any]], Any]) -> tuple[list[list[Any]], Any]:
    """The groups of questions in the order asked, and the outcome or the error."""
    groups: list[list[Any]] = []
    plan = metric.plan(sample)
    try:
        step = next(plan)
        while True:
            groups += [list(group) for group in step]
            step = plan.send(tuple(answer(question) for group in step for question in group))
    except StopIteration as end:
        return groups, end.value
    except (AskFailed, MeriloError) as error:
        return groups, error


def requests_of(groups: list[list[Any]]) -> list[Completion]:
    """One question for each request: the replies to one request are its draws in one group."""
    found: list[Completion] = []
    for group in groups:
        first = {replace(each, draw=0): each for each in reversed(group) if isinstance(each, Completion)}
        found += reversed(list(first.values()))
    return found


def plain(question: Question[Any]) -> Any:
    return CompletionVerdict(PLAIN) if isinstance(question, Completion) else question.guess()


@each_case("name", NAMES)
def test_relatives_are_other_definitions(name: str) -> None:
    """Each relative exists, and none is the metric itself under another name."""
    relatives = find_metric(name).card.relatives
    assert [each for each in relatives if find_metric(each) is find_metric(name)] == []
    assert len(set(relatives)) == len(relatives)


@each_case("name", NAMES)
def test_parameters_that_a_card_names_exist(name: str) -> None:
    """As `strictness` in backquotes, or with a value as in empty_scored=false."""
    card = find_metric(name).card
    text = " ".join((card.summary, card.formula, card.questions, *card.undefined))
    known = {each.name for each in parameters_of(find_metric(name))}
    assert set(re.findall(r"`(\w+)`", text)) <= known
    for parameter, value in re.findall(r"\b([a-z_]+)=([a-z]+)", text):
        assert parameter in known
        assert name in NEEDS_PARAMETER or known_definition(f"{name}({parameter}={value})") is not None, parameter


@each_case("name", [name for name in NAMES if fidelity_of(name)])
def test_requests_are_as_many_as_a_card_says(name: str) -> None:
    """Counted on a sample with three contexts, every reply being of the likely form."""
    metric = definition(name)
    if metric is None:
        return
    text = metric.card.questions
    sent = requests_of(driven(metric, SAMPLE, lambda question: question.guess())[0])
    if Completion in metric.asks:
        per_draw = text.startswith("`strictness` requests")
        counted = metric.strictness if per_draw else next(n for start, n in COUNTS.items() if re.match(start, text))
        assert len(sent) in counted if isinstance(counted, range) else len(sent) == counted
    else:
        assert not sent
    for words, rubrics in {"in the same words": 1, "in different words": 2}.items():
        assert words not in text or len({each.rubric for each in sent}) == rubrics


def reasks(name: str, replies: str) -> int:
    """How often a card says that a request is sent again after an unreadable reply."""
    named = {
        each: getattr(parse_metric(name), each) for each in ("tries", "repairs", "reasks") if f"{{{each}}}" in replies
    }
    again = named.get("repairs", named.get("reasks", int("once" in replies)))
    return named.get("tries", 1) * (1 + again) - 1


@each_case("name", [name for name in NAMES if fidelity_of(name)])
def test_replies_are_read_as_a_card_says(name: str) -> None:
    """A plain sentence is no JSON, and a request is sent again as often as the card says."""
    metric, fidelity = definition(name), fidelity_of(name)
    if metric is None or fidelity is None or Completion not in metric.asks:
        return
    groups, outcome = driven(metric, SAMPLE, plain)
    asked = [group for group in groups if isinstance(group[0], Completion)]
    first = asked[0][0]
    again = [[each.rubric == first.rubric and each.values == first.values for each in group] for group in asked]
    repeated = 0
    for group, same in zip(asked[1:], again[1:], strict=True):
        if not any(same) and not any("repair" in each.rubric for each in group):
            break
        repeated += len(group)
    expected = reasks(name, fidelity.replies)
    twice = 2 * (expected + 1) - 1 if "in the same words" in metric.card.questions else expected
    assert repeated in {expected, expected * len(asked[0]), twice}
    scored = not isinstance(outcome, Exception) and not outcome.flags
    assert not ("JSON" in fidelity.replies.partition(";")[0] and scored)


def samples() -> Iterator[Sample]:
    """Samples without a text, with blank ones and without contexts, and full ones."""
    full = contract.synthetic_sample(2)
    yield from (full, contract.synthetic_sample(0), contract.empty_sample())
    for name in ("user_input", "response", "reference"):
        yield replace(full, **{name: " "})
        yield replace(full, **{name: ""})
    yield replace(full, retrieved_contexts=[], retrieved_context_ids=[])
    yield replace(full, reference_context_ids=[])
    yield replace(full, retrieved_contexts=[" "], retrieved_context_ids=["x"])


@each_case("name", NAMES)
def test_every_reason_for_no_value_is_on_the_card(name: str) -> None:
    """The reasons are listed without their parameters, which follow in brackets."""
    metric = definition(name)
    if metric is None:
        return
    listed = {re.sub(r" \(.*\)$", "", each) for each in metric.card.undefined}
    flags = [each.name for each in parameters_of(find_metric(name)) if each.default is True]
    for text in ("", *(f"({flag}=false)" for flag in flags)):
        varied = known_definition(name + text) if name not in NEEDS_PARAMETER else metric
        varied = varied.for_judges(["judge"]) if hasattr(varied, "for_judges") else varied
        for sample in samples():
            for answer in (lambda question: question.guess(), plain):
                outcome = driven(varied, sample, answer)[1]
                if isinstance(outcome, Undefined):
                    assert outcome.reason in listed


@each_case("name", native_metrics())
def test_our_cards_name_every_kind_of_question(name: str) -> None:
    """By default at least; some kinds are asked with other parameters only. A card may refer to another metric's."""
    metric = definition(name)
    if metric is None or metric.card.questions.startswith(("Those of", "The questions of")):
        return
    assert all(kind.__name__ in metric.card.questions for kind in metric.asks)
