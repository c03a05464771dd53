"""The options of `merilo judge check`, and of an evaluation in which one judge answers chosen questions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, TypeVar

from merilo.commands.evaluate.options import Model, Options
from merilo.commands.exit_codes import Exit
from merilo.commands.keywords import keyword_options
from merilo.commands.option import Flag, OptionGroup, flags_of, opt
from merilo.errors import Interrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from merilo.judges.base import Judge
    from merilo.judging.questions import Question
    from merilo.runs.run import Run


def _one_judge(specs: list[str] | None) -> list[str]:
    from merilo.judges.routed import one_judge

    return one_judge(specs or ["embedded"])


ONE_JUDGE: Final = Flag(
    help="embedded (the default), local:MODEL, PROVIDER:MODEL (as openai:MODEL), scripted:FILE or FILE.py:NAME. "
    "Repeat KIND,...=SPEC for a judge per kind of question.",
    metavar="SPEC",
    many=True,
    read=_one_judge,
    group=OptionGroup.JUDGES,
)
"""The flag of a command that asks one judge, which may have a route for each kind of question."""
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


def _given(texts: list[str] | None) -> Sequence[str]:
    return texts or ()


@dataclass(frozen=True, kw_only=True)
class CheckOptions(Options):
    """The questions with which a judge is checked, and the options of the evaluation.

    Of these, `metrics`, `draws`, `mapping`, `limit` and `language` have no effect.
    """

    labels: Sequence[str | PathLike[str]] = opt(
        (),
        OptionGroup.DATA,
        "File of human labels. Repeatable. [default: the sample in merilo]",
        metavar="FILE",
        many=True,
        read=_given,
        in_project_file=False,
    )
    tasks: Sequence[str] = opt(
        (),
        OptionGroup.DATA,
        "Only trial, edits, a task of the labels or one edit. Repeatable.",
        name="--task",
        metavar="NAME",
        many=True,
        read=_given,
        in_project_file=False,
    )
    number: int | None = opt(
        None,
        OptionGroup.DATA,
        "Maximum records per task and source, and pairs per edit, always the same ones. [default: all, 40]",
        metavar="N",
        type=int,
        in_project_file=False,
    )


def check_options(
    *,
    labels: str | PathLike[str] | Sequence[str | PathLike[str]] | None,
    tasks: Sequence[str] | None,
    **given: Any,  # Any: fields of the options
) -> CheckOptions:
    """Return the options of a check from the arguments of `merilo.judge_check`. Raises UsageError for another limit."""
    files = [labels] if isinstance(labels, str | PathLike) else labels or ()
    return keyword_options(CheckOptions, {**given, "labels": files, "tasks": tasks or ()})


def judges_each(specs: Sequence[str], server: Model) -> list[Judge]:
    """Return each judge that is named, at the server; routes by kind of question are one judge. Raises UsageError."""
    from merilo.commands.evaluate.settings import named_judges
    from merilo.judges.routed import is_route, one_judge
    from merilo.judges.spec import judges_from

    named = named_judges(replace(server, spec=specs))
    parts = [named] if any(is_route(each.name) for each in named) and one_judge(specs) else [[each] for each in named]
    return [judges_from(each)["judge"] for each in parts]


# -- an evaluation by one judge ------------------------------------------------------------------------

T = TypeVar("T")

_GOES_ON = "Repeat the command to resume; answers in --out and the cache are reused."
_REUSED = "Answers in --out and in the verdict cache are reused at no cost."
_MAX_FAILED_RATE = 0.01
_USAGE = ("requests", "cached", "input_tokens", "output_tokens", "cost_usd", "estimated_usd", "seconds")


def for_one_judge(options: Options, judge: Judge) -> Options:
    """Return the options of an evaluation by this judge, without those that apply to another judge or to data."""
    return replace(options, judge=judge, draws=1, mapping=None, limit=None, language=None)


def answerable(
    items: Sequence[T], judge: Judge, task_of: Callable[[T], str], kind_of: Callable[[T], type[Question[Any]]]
) -> tuple[list[T], dict[str, str]]:
    """Return the items whose kind of question the judge can answer, and the tasks of the others with the reason."""
    from merilo.judges.routed import unavailable_reason

    left_out: dict[str, str] = {}
    for task, kind in dict.fromkeys((task_of(item), kind_of(item)) for item in items):
        if kind not in judge.answers:
            left_out[str(task)] = f"the judge {judge.name} cannot answer '{kind.kind}' questions"
        elif (reason := unavailable_reason(judge, [kind])) is not None:
            left_out[str(task)] = reason
    return [item for item in items if str(task_of(item)) not in left_out], left_out


def usage_of(run: Run) -> dict[str, Any]:  # Any: numbers and nulls
    """Return requests, tokens, cost and seconds of a run."""
    return {name: run.usage.get(name) for name in _USAGE}


def until_done(work: Coroutine[Any, Any, T], stored: str = _GOES_ON) -> T:  # Any: what a coroutine yields to its loop
    """Run a check of a judge and return its result. After Ctrl-C, raise Interrupted with what is `stored`."""
    import asyncio

    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        raise Interrupted(f"Stopped. {stored}") from None


def check_whole(
    stopped: str | None, failed: int, asked: int, what: str, *, retry: str = "use --out and --retry-failed"
) -> None:
    """Exit with an error code if a limit was reached, which `stopped` says, or more than 1 % failed.

    `what`: the things asked about, in the plural. `retry`: what to do about those that failed.
    """
    import typer

    from merilo.rendering.page import tell

    if stopped is not None:
        tell(f"{stopped} {_REUSED}")
        raise typer.Exit(Exit.LIMIT_REACHED)
    if failed > _MAX_FAILED_RATE * asked:
        tell(f"{failed:,} of {asked:,} {what} failed (more than 1%). To retry them, {retry}.")
        raise typer.Exit(Exit.TOO_MANY_FAILED)
