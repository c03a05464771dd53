"""A metric whose requests are worded by an installed package instead of merilo.

The plan is the metric's own: it gives the same steps, reads the same replies, and computes the same number. Each
request is replaced by one whose rubric is nothing but the package's text. So keys, cached answers and stored questions
are those of that text, and no verdict is shared with merilo's wording. `installed.toml` has, for each definition and
each of its requests, the object that words it.
"""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib import import_module, metadata
from importlib.resources import files
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from merilo.engine.repeated import Reworded
from merilo.errors import UsageError
from merilo.judging.json_types import as_list, as_object
from merilo.judging.kinds.responses import Completion, CompletionVerdict
from merilo.metrics.base import Metric, Score, Undefined, plan_of
from merilo_published.asking import Listed, without_halves

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Plan
    from merilo.judging.questions import Question


ANSWERED: Final = "answered"
"""The name of the value that holds the whole prompt to which the value `reply` is the reply."""
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class PackageFunction(NamedTuple):
    """A function of the package that makes fields of a prompt from values.

    `fields` names its results; if empty, it returns a mapping of names to results.
    """

    source: str
    values: tuple[str, ...]
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt object of a package, and the values of merilo's request with which its input is filled.

    A value is the name of a text in the request or of a parameter of the metric. `[name]` is that value as a list: the
    texts that merilo lists, or the parsed JSON. `=text` is a fixed text. If the only field is `**`, its value is an
    object with all fields of the input.
    """

    source: str
    """Module and class, as `module:Class`."""
    fields: Mapping[str, str]
    """Field of the input → value."""
    arguments: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """Argument of the class → value; most classes take none."""
    attribute: str = ""
    """The attribute of the object that holds the prompt, or the template of the class; empty for the object itself."""
    functions: tuple[PackageFunction, ...] = ()
    """Functions of the package that make more fields."""

    @property
    def structured(self) -> bool:
        """True if the package sends it through instructor, which adds the schema of the reply and words the re-asks."""
        return self.source.startswith("ragas.metrics.collections.")


@dataclass(frozen=True, slots=True)
class Package:
    """An upstream package, in the release that the names of its definitions contain."""

    name: str
    release: str
    quiet: Mapping[str, str]
    """Environment variables, set before its import, that switch off telemetry and settings files."""

    def __str__(self) -> str:
        return f"{self.name} {self.release}"


ONE_TEXT: Final = "text only"
"""The name of the value that is always False: no prompt contains an image."""
DEEPEVAL: Final = Package(
    "deepeval",
    "4.3.1",
    MappingProxyType(
        {
            "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
            "DEEPEVAL_UPDATE_WARNING_OPT_IN": "0",  # its import would ask a server for a newer version
            "DEEPEVAL_DISABLE_DOTENV": "1",  # its import would read the keys in .env files
        }
    ),
)
RAGAS: Final = Package("ragas", "0.4.3", MappingProxyType({"RAGAS_DO_NOT_TRACK": "true"}))


class Wording(NamedTuple):
    """The upstream prompts that word the requests of a definition."""

    package: Package
    prompts: Mapping[str, Prompt]
    """By merilo's rubric."""


@cache
def wording_for(name: str) -> Wording | None:
    """Return the upstream prompts of a definition; None if no package is known to have them."""
    system, _, metric = name.partition(":")
    package = next((each for each in (RAGAS, DEEPEVAL) if system == f"{each.name}-{each.release}"), None)
    if package is None:
        return None
    known = tomllib.loads(files("merilo_published").joinpath("installed.toml").read_text("utf-8"))[package.name]
    rows = known.get(metric if package is DEEPEVAL or "." in metric else "legacy")
    if rows is None:
        return None
    return Wording(package, {rubric: _prompt(**row) for rubric, row in rows.items()})


def _prompt(*, functions: Sequence[Mapping[str, Any]] = (), **row: Any) -> Prompt:  # Any: a row of the table
    return Prompt(**row, functions=tuple(PackageFunction(**each) for each in functions))


# -- the requests in those words ----------------------------------------------------------------------

_LOCK: Final = Lock()
_MAX_TURNS: Final = 100
_WORDS: Final = "deepeval.metrics.base_metric:Verdict"
_RENDER: Final = "deepeval.templates.resolver:resolve_template"


class _Recorded(BaseException):
    """Ends a request that is only recorded. Packages do not catch it, unlike an Exception."""


def load(package: str, prompt: Prompt) -> None:
    """Import the objects that make a prompt. Raises whatever the package raises at import."""
    for source in (prompt.source, *(function.source for function in prompt.functions)):
        imported(source)
    if package == "deepeval":
        imported(_RENDER)
    if prompt.structured:
        _recorder()


def ragas_text(prompt: Prompt, values: Mapping[str, Any]) -> str:
    """Return the text of a prompt object of the package, filled with the values of merilo's request."""
    arguments = tuple((name, values[value]) for name, value in prompt.arguments.items())
    made = _ragas_object(prompt.source, arguments, prompt.attribute)
    fields = {name: value_of(values, value) for name, value in prompt.fields.items()}
    if isinstance(made, str):
        return made.format(**fields)
    given = made.input_model(**fields.pop("**", {}), **fields)
    if hasattr(made, "process_input"):
        given = made.process_input(given)
    text: str = made.to_string(given)
    return text


def conversation(prompt: Prompt, text: str, replies: Sequence[str]) -> list[tuple[str, str]]:
    """Return role and text of the messages that ragas sends through instructor after these unreadable replies.

    ragas's own client runs on a transport that gives the replies and sends nothing.
    """
    model = _ragas_object(prompt.source, (), prompt.attribute).output_model
    with _LOCK:
        found: list[tuple[str, str]] = _recorder()(text, model, replies)
    return found


@cache
def _recorder() -> Any:  # Any: objects of packages that merilo does not depend on
    httpx: Any = import_module("httpx")  # a dependency of the package
    client_class = imported("openai:OpenAI")
    adapter = imported("ragas.llms.adapters:get_adapter")("instructor")
    sent: list[list[dict[str, str]]] = []
    coming: list[str] = []

    def reply(request: Any) -> Any:
        sent.append(json.loads(request.content)["messages"])
        if len(sent) > len(coming):
            raise _Recorded
        message = {"role": "assistant", "content": coming[len(sent) - 1]}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        body = {"id": "recorded", "object": "chat.completion", "created": 0, "model": "gpt-4o", "choices": [choice]}
        return httpx.Response(200, json=body)

    http = httpx.Client(transport=httpx.MockTransport(reply), trust_env=False)
    client = client_class(api_key="none", base_url="http://127.0.0.1:9/v1", http_client=http, max_retries=0)
    llm = adapter.create_llm(client, "gpt-4o", "openai", max_retries=_MAX_TURNS)

    def messages(text: str, model: object, replies: Sequence[str]) -> list[tuple[str, str]]:
        sent.clear()
        coming[:] = replies
        try:
            llm.generate(text, model)
        except _Recorded:
            return [(each["role"], each["content"]) for each in sent[-1]]
        raise ValueError("The installed instructor accepts a reply that this definition cannot read.")

    return messages


@cache
def _ragas_object(source: str, arguments: tuple[tuple[str, str], ...], attribute: str) -> Any:
    made = imported(source)(**dict(arguments))
    return getattr(made, attribute) if attribute else made


def deepeval_text(prompt: Prompt, values: Mapping[str, Any]) -> str:
    """Return a template of the package, filled with the values of merilo's request."""
    given = {**values, ONE_TEXT: False}
    fields = {name: _with_words(value_of(given, value)) for name, value in prompt.fields.items()}
    for function in prompt.functions:
        found = imported(function.source)(*(value_of(given, value) for value in function.values))
        results = found if len(function.fields) > 1 else (found,)
        fields |= zip(function.fields, results, strict=True) if function.fields else found
    class_name = prompt.source.partition(":")[2]
    text: str = imported(_RENDER)("metrics", class_name, prompt.attribute, multimodal=False, strict=True, **fields)
    return text


def _with_words(value: Any) -> Any:
    """Return a list of verdicts with members of DeepEval's enumeration as words, because its prompt shows them so."""
    listed = [as_object(each) for each in as_list(value) or ()]
    verdicts = [each for each in listed if each is not None]
    if not verdicts:
        return value
    words = imported(_WORDS)
    return [{**each, "verdict": words(each["verdict"])} for each in verdicts]


def value_of(values: Mapping[str, Any], value: str) -> Any:  # Any: what a package takes
    """Return a value as `Prompt` describes it."""
    if value.startswith("="):
        return value[1:]
    if not value.startswith("["):
        return values[value]
    found = values[value[1:-1]]
    return list(found.items) if isinstance(found, Listed) else json.loads(found)


def imported(source: str) -> Any:  # Any: an object of a package that merilo does not depend on
    """Return the object that `module:name` names."""
    module, _, name = source.partition(":")
    return getattr(import_module(module), name)


_RUBRIC: Final = "en/published/installed/prompt.v1"
_RUBRIC_WITH_SYSTEM: Final = "en/published/installed/system_prompt.v1"
_AUTHORS: Final = ("assistant", "user")


@dataclass(frozen=True)
class RewordedMetric(Reworded):
    """A metric whose requests are in a package's words."""

    wording: Wording

    def plan(self, sample: Sample) -> Plan[Score | Undefined]:
        """Run the metric's plan, with each request in the package's words."""
        answered: dict[str, str] = {}
        plan = plan_of(self.metric, sample)
        try:
            step = next(plan)
            while True:
                asked = tuple(tuple(self._worded(question, answered) for question in group) for group in step)
                answers = yield asked
                for question, answer in zip((each for group in asked for each in group), answers, strict=True):
                    if isinstance(question, Completion) and isinstance(answer, CompletionVerdict):
                        answered[without_halves(answer.text)] = question.values[-1]
                step = plan.send(answers)
        except StopIteration as stop:
            outcome: Score | Undefined = stop.value
            return outcome
        finally:
            plan.close()

    def _worded(self, question: Question[Any], answered: Mapping[str, str]) -> Question[Any]:
        """Return a request in the package's words; any other question as it is.

        `answered`: reply → the prompt that it answered, which a repair shows too; the last prompt if replies are equal.
        """
        if not isinstance(question, Completion):
            return question
        rubric = question.rubric.rpartition("/")[2].rpartition(".v")[0]
        package, prompts = self.wording
        prompt = prompts.get(rubric)
        if prompt is None:
            raise UsageError(f"{package} has no prompt for the request {rubric!r}.")
        metric: Any = self.metric  # a Protocol cannot say that it is a dataclass
        values = {each.name: getattr(metric, each.name) for each in fields(metric)}
        values |= zip(question.names, question.values, strict=True)
        if ANSWERED in prompt.fields.values():
            values[ANSWERED] = answered[str(values["reply"])]
        text = (ragas_text if package is RAGAS else deepeval_text)(prompt, values)
        if prompt.structured:
            return _in_conversation(question, conversation(prompt, text, question.earlier[::2]))
        return replace(question, rubric=_RUBRIC, names=("prompt",), values=(text,))


def worded(metrics: Mapping[str, Metric]) -> dict[str, RewordedMetric]:
    """Return the definitions of an installed package in its words.

    merilo's own metrics and those that send no prompt are left out. No package is imported before all metrics are
    checked.

    Raises UsageError if a published metric has no installed prompts, or if no metric has.
    """
    sending = {text: metric for text, metric in metrics.items() if ":" in metric.name and Completion in metric.asks}
    found = {text: _wording(text, metric) for text, metric in sending.items()}
    if not found:
        raise UsageError(
            "--prompts installed needs a metric that is worded by a package, such as ragas-0.4.3:faithfulness. Choose "
            "one (--metrics), or leave --prompts out."
        )
    for text, wording in found.items():
        package, prompts = wording
        os.environ.update(package.quiet)
        try:
            for prompt in prompts.values():
                load(package.name, prompt)
        except Exception as error:
            raise UsageError(
                f"--prompts installed: {package} is installed, but the prompts of {text} cannot be imported "
                f"({type(error).__name__}: {error})."
            ) from error
    return {text: RewordedMetric(metrics[text], str(wording.package), wording) for text, wording in found.items()}


def _wording(text: str, metric: Metric) -> Wording:
    """Return the upstream prompts of a published metric. Raises UsageError if they are not installed."""
    wording = wording_for(metric.name)
    if wording is None:
        raise UsageError(f"--prompts installed: no package is known to have the prompts of {text}. Leave it out.")
    package = wording.package
    if getattr(metric, "reasks", None) is not None and not any(each.structured for each in wording.prompts.values()):
        raise UsageError(f"--prompts installed: {package} does not send the requests of {text}. Leave reasks out.")
    try:
        there = metadata.version(package.name)
    except metadata.PackageNotFoundError:
        there = None
    if there != package.release:
        found = f"{there} is" if there else "it is not"
        raise UsageError(
            f"--prompts installed: {text} needs the prompts of {package}, and {found} installed here "
            f"(pip install {package.name}=={package.release})."
        )
    return wording


def _in_conversation(question: Completion, messages: list[tuple[str, str]]) -> Completion:
    """Return a question asked by these messages: the prompt, turns after it, and a system part if there is one."""
    system = messages.pop(0)[1] if messages[0][0] == "system" else None
    (_, prompt), *turns = messages
    if [role for role, _ in turns] != [_AUTHORS[place % 2] for place in range(len(turns))]:
        raise UsageError("The installed package sends a conversation that merilo cannot send.")
    given = {"prompt": prompt} if system is None else {"system": system, "prompt": prompt}
    rubric = _RUBRIC if system is None else _RUBRIC_WITH_SYSTEM
    earlier = tuple(text for _, text in turns)
    return replace(question, rubric=rubric, names=tuple(given), values=tuple(given.values()), earlier=earlier)
