"""Select the metrics of a run: the requested ones, or all native ones that data and judges support."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from merilo.data.problem_report import unread_columns
from merilo.data.sample import FIELDS
from merilo.errors import UsageError
from merilo.judges.measured_agreement import decided_kinds, is_weak
from merilo.metrics.base import CompositeOfRun, NeedsLibrary, is_composite
from merilo.metrics.registry import ALL, all_metrics, core_metrics, parse_metric
from merilo.metrics.text import metric_text
from merilo.plugins import Group, plugin
from merilo.runs.run_metrics import WEAK_LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from merilo.engine.answer_store import JudgeRoles
    from merilo.judging.questions import Question
    from merilo.metrics.base import Composite, Definition, Metric
    from merilo.runs.ingest import Intake


_NAMED = 3


@dataclass(frozen=True, slots=True)
class Selection:
    """The metrics of a run by text, its composites, and the metrics that are left out with the reason."""

    metrics: Mapping[str, Metric]
    left_out: Mapping[str, str]
    composites: Mapping[str, Chosen] = field(default_factory=dict[str, "Chosen"])
    weak: frozenset[str] = frozenset()
    """The metrics and composites that are weak with their judge, including those that are left out for it."""

    @property
    def kinds(self) -> frozenset[type[Question[Any]]]:
        """The types of all questions that the metrics may ask."""
        return frozenset(kind for metric in self.metrics.values() for kind in metric.asks)


class Chosen(NamedTuple):
    """A composite and the texts of its parts, in its order."""

    composite: Composite
    parts: tuple[str, ...]


def select(
    asked: Sequence[str | Definition] | None, intake: Intake, roles: JudgeRoles, *, lenient: bool = False
) -> Selection:
    """Return the metrics to compute. The parts of a composite are among them, each once.

    Of the core set and of `all`, metrics that are weak with their judge are left out.

    Raises UsageError if a requested metric cannot be computed (unless `lenient`), or if none is left.
    """
    metrics: dict[str, Metric] = {}
    composites: dict[str, Chosen] = {}
    left_out: dict[str, str] = {}
    weak = set[str]()
    named_by_user = 0 if asked is None else len([each for each in asked if each != ALL])
    wanted = definitions_of(requested(asked, intake.in_some))
    for place, given in enumerate(wanted, start=named_by_user - len(wanted)):
        named = place >= 0 and not lenient
        parts = metrics_of(given, lambda: roles.named)
        obstacles = (_obstacle(metric, intake, roles) for metric in parts.values())
        reason = next((reason for reason in obstacles if reason is not None), None)
        text = metric_text(given) if is_composite(given) else next(iter(parts))
        if reason is None:
            found = {part for part, metric in parts.items() if _is_weak(metric, roles)}
            weak |= {*found, text} if found else found
            if found and place < 0:
                left_out[text] = f"{WEAK_LEFT_OUT} (--metrics {text})"
                continue
            metrics |= {part: metrics.get(part, metric) for part, metric in parts.items()}
            if is_composite(given):
                composites[text] = Chosen(given, tuple(parts))
        elif named:
            raise UsageError(_refusal(text, parts, reason, intake))
        else:
            left_out[text] = reason
    if not metrics and asked is None:  # such as questions with responses alone
        return select((ALL,), intake, roles, lenient=lenient)
    if not metrics:  # to compute weak metrics silently would mislead
        why = (
            f"The only metrics that this data supports are weak with the {roles.judges['judge'].name} judge (not "
            f"clearly better than chance): {', '.join(sorted(weak))}. Use another judge (--judge openai:MODEL), or run "
            f"them by name (--metrics {','.join(sorted(weak))})."
            if weak
            else f"No metric can be computed on this data ({_reasons(left_out)})."
        )
        raise UsageError(why + _unread(intake, frozenset(FIELDS) - intake.in_some))
    return Selection(metrics, left_out, composites, frozenset(weak))


def requested(
    asked: Sequence[str | Definition] | None, fields: Collection[str] | None = None
) -> list[str | Definition]:
    """Return the metrics to compute: the core set if `asked` is None; first all others if `all` is among them.

    `fields`: the fields of the data, which decide what the core set is. None: unknown, so all that it may be.
    """
    if asked is None:
        return [
            *dict.fromkeys(
                (*core_metrics(("response",)), *core_metrics(())) if fields is None else core_metrics(fields)
            )
        ]
    named = [each for each in asked if each != ALL]
    return [*(name for name in all_metrics() if name not in named), *named] if ALL in asked else named


def _refusal(text: str, parts: Mapping[str, Metric], reason: str, intake: Intake) -> str:
    missing = frozenset[str]().union(*(metric.needs for metric in parts.values())) - intake.in_some
    if not missing:
        families = cast("Mapping[str, str]", plugin(Group.PARTS, "families") or {})
        formula = f" Its formula over verdicts: merilo metrics {families[text]} --on DATA" if text in families else ""
        return f"{text} cannot be computed: {reason}.{formula}"
    return f"{text} needs {' and '.join(sorted(missing))}.{_unread(intake, missing)}"


def _unread(intake: Intake, missing: frozenset[str]) -> str:
    """Return sentences, each after a space, on columns that may have the missing fields; empty if there are none.

    Without an unread column, a doubtful reading of any other one is stated.
    """
    columns = intake.columns
    empty = [repr(column) for column, name in columns.recognised.items() if name in missing]
    unread = unread_columns(columns, missing)
    said = (
        f"No record has a value in {', '.join(empty)}." if empty else "",
        *columns.doubts(missing if unread else intake.in_some, intake.in_some),
        unread,
        columns.note() if columns.note is not None and "retrieved_contexts" in missing else "",
    )
    return "".join(f" {each}" for each in said if each)


def _is_weak(metric: Metric, roles: JudgeRoles) -> bool:
    """Return True if a judge is weak in a decision of this metric."""
    kinds = decided_kinds(metric)
    return any(is_weak(roles.judge(kind, role), kind, metric.name) for role in metric.roles for kind in kinds)


def definitions_of(asked: Sequence[str | Definition]) -> list[Definition]:
    """Return what was asked for, each composite made of the other metrics that were asked for if it takes those."""
    given = [parse_metric(each) if isinstance(each, str) else each for each in asked]
    metrics = [metric_text(each) for each in given if not is_composite(each)]
    return [each.of_run(metrics) if isinstance(each, CompositeOfRun) else each for each in given]


def _reasons(left_out: Mapping[str, str]) -> str:
    """Return the reasons why metrics are left out, each once with its first metrics."""
    metrics: dict[str, list[str]] = {}
    for text, reason in left_out.items():
        metrics.setdefault(reason, []).append(text)
    return "; ".join(
        f"{', '.join(texts[:_NAMED])}{f' and {len(texts) - _NAMED} more' * (len(texts) > _NAMED)}: {reason}"
        for reason, texts in metrics.items()
    )


def metrics_of(given: Definition, judges: Callable[[], Sequence[str]]) -> dict[str, Metric]:
    """Return by text the metrics that are computed for a definition: itself, or the parts of a composite.

    `judges` returns the names of the run's judges, for metrics that ask several.

    Raises UsageError for a part that is itself a composite.
    """
    if not is_composite(given):
        metric = cast("Metric", given)  # anything but a composite is a metric
        bind: Callable[[Sequence[str]], Metric] | None = getattr(metric, "for_judges", None)  # of several judges
        metric = metric if bind is None else bind(judges())
        return {metric_text(metric): metric}
    found: dict[str, Metric] = {}
    for text in given.parts:
        part = parse_metric(text)
        if is_composite(part):
            raise UsageError(f"{given.name} combines {text}, which has no value for a sample. Parts must be metrics.")
        found |= metrics_of(part, judges)
    return found


def missing_fields(metric: Metric, in_some: frozenset[str]) -> str | None:
    """Return why a metric cannot be computed on data with these fields; None if it can."""
    missing = sorted(metric.needs - in_some)
    return f"no sample has {' or '.join(missing)}" if missing else None


def _obstacle(metric: Metric, intake: Intake, roles: JudgeRoles) -> str | None:
    if isinstance(metric, NeedsLibrary):
        metric.load_library()
    if (missing := missing_fields(metric, intake.in_some)) is not None:
        return missing
    lacking = (roles.lacking(metric.asks, role) for role in sorted(metric.roles))
    return next((reason for reason in lacking if reason is not None), None)
