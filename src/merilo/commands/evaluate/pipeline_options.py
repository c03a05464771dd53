"""The options of an evaluation that asks the user's pipeline first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from merilo.commands.evaluate.options import AsDict, Keywords, Options
from merilo.commands.option import keyword, part

if TYPE_CHECKING:
    from collections.abc import Iterable
    from os import PathLike

    from merilo.data.load import Records


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
