"""`prompts="installed"`, with a tiny package in the place of ragas: what changes, what does not, and the errors."""

import json
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from each_case import each_case
from grouping import grouped
from server import Asked, JudgeServer

import merilo
from merilo.commands.show.summary import record_of, run_page
from merilo.commands.verify.replay import replay_run
from merilo.data.sample import Sample
from merilo.engine.repeated import wordings_of
from merilo.errors import UsageError
from merilo.judging.ask import Answer
from merilo.judging.kinds.responses import Completion
from merilo.judging.questions import Question
from merilo.metrics.base import NeedsLibrary, drive, is_composite
from merilo.metrics.registry import parse_metric, published_metrics
from merilo_published.installed import Prompt, _ragas_object, _recorder, worded, wording_for

FAITHFULNESS = "ragas-0.4.3:faithfulness"
ROW = {
    "user_input": "Where?",
    "response": "In Paris.",
    "retrieved_contexts": ["It is in Paris."],
    "reference": "Paris.",
}
CLASS = """
class {name}:
    def __init__(self, **arguments):
        self.{attribute} = self
    def input_model(self, **fields):
        return fields
    def to_string(self, given):
        return "{name} of the package: " + repr(given)
"""


class Judge:
    """Replies as ragas asks, first with text that cannot be read if `unreadable`, and keeps what it is sent."""

    def __init__(self, *, unreadable: bool = False) -> None:
        self.sent: list[str] = []
        self.unreadable = unreadable

    def __call__(self, asked: Asked) -> str:
        text = "\n".join(each["content"] for each in asked.messages)
        self.sent.append(text)
        if self.unreadable and len(self.sent) == 1:
            return "none"
        if "FixOutputFormat" in text:
            return json.dumps({"text": json.dumps({"statements": ["In Paris."]})})
        if "NLI" in text:
            return json.dumps({"statements": [{"statement": "In Paris.", "reason": "So.", "verdict": 1}]})
        return json.dumps({"statements": ["In Paris."]})


def make_package(folder: Path, version: str = "0.4.3", *, broken: bool = False) -> None:
    """Write a package `ragas` whose classes have the names in merilo's table, and say their name as a prompt."""
    wording = wording_for(FAITHFULNESS)
    assert wording is not None
    for prompt in wording.prompts.values():
        module, _, name = prompt.source.partition(":")
        path = folder / f"{module.replace('.', '/')}.py"
        for parent in [*path.parents][: module.count(".")]:
            parent.mkdir(parents=True, exist_ok=True)
            (parent / "__init__.py").touch()
        with path.open("a", encoding="utf-8") as file:
            file.write(CLASS.format(name=name, attribute=prompt.attribute or "itself"))
    (folder / "ragas/__init__.py").write_text(
        "import os\nassert os.environ['RAGAS_DO_NOT_TRACK'] == 'true'\n" + ("import absent_module\n" if broken else "")
    )
    info = folder / f"ragas-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: ragas\nVersion: {version}\n")


ANSWERING: list[Judge] = []
"""The judge behind the server: all runs have one address, since it is part of a judge's fingerprint."""


def _answer(asked: Asked) -> str:
    return ANSWERING[0](asked)


@pytest.fixture(autouse=True, scope="module")
def server() -> Iterator[None]:
    with JudgeServer(_answer) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.base_url)
        yield


@pytest.fixture(autouse=True)
def without_package(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Leave no module of the package behind."""
    monkeypatch.setenv("RAGAS_DO_NOT_TRACK", "false")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "ragas"]:
        del sys.modules[name]
    _ragas_object.cache_clear()
    _recorder.cache_clear()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_package(tmp_path / "packages")
    monkeypatch.syspath_prepend(tmp_path / "packages")


def evaluate(tmp_path: Path, name: str, judge: Judge, **options: Any) -> merilo.Run:
    """A run of one sample, with a cache of the test's own."""
    given = {"metrics": [FAITHFULNESS], "cache": tmp_path / "cache.sqlite", **options}
    ANSWERING[:] = [judge]
    return merilo.evaluate([{"id": "a", **ROW}], **grouped(judge="openai:test-model", out=tmp_path / name, **given))


@pytest.mark.usefixtures("package")
def test_nothing_is_imported_or_recorded_without_the_option(tmp_path: Path) -> None:
    """By default the package is not imported, the words are merilo's, and the manifest says nothing about words."""
    judge = Judge()
    run = evaluate(tmp_path, "run", judge)
    assert "ragas" not in sys.modules
    assert not any("of the package" in each for each in judge.sent)
    assert "wordings" not in json.loads((run.path / "manifest.json").read_text(encoding="utf-8"))
    assert "wording" not in str(run_page(run, 80, full=True))


@pytest.mark.usefixtures("package")
def test_the_package_words_the_requests_and_no_verdict_is_shared(tmp_path: Path) -> None:
    """The judge is sent the package's text alone; answers in merilo's words are not reused, those in its words are."""
    evaluate(tmp_path, "own", Judge())
    judge = Judge()
    run = evaluate(tmp_path, "installed", judge, prompts="installed")
    first = {"question": "Where?", "answer": "In Paris."}
    second = {"context": "It is in Paris.", "statements": ["In Paris."]}
    assert judge.sent == [
        f"StatementGeneratorPrompt of the package: {first}",
        f"NLIStatementPrompt of the package: {second}",
    ]
    assert run.metrics[FAITHFULNESS].mean == 1.0
    again = Judge()
    evaluate(tmp_path, "again", again, prompts="installed")
    assert again.sent == []


@pytest.mark.usefixtures("package")
def test_a_repair_is_worded_by_the_package(tmp_path: Path) -> None:
    """The repair of an unreadable reply shows the package's prompt and the reply."""
    judge = Judge(unreadable=True)
    run = evaluate(tmp_path, "run", judge, prompts="installed")
    given = {"output_string": "none", "prompt_value": judge.sent[0]}
    assert judge.sent[1] == f"FixOutputFormat of the package: {given}"
    assert run.metrics[FAITHFULNESS].mean == 1.0


@pytest.mark.usefixtures("package")
def test_the_run_says_who_worded_what(tmp_path: Path) -> None:
    """Manifest, summary and JSON name the package; merilo's own metrics are unaffected and named apart."""
    metrics = [FAITHFULNESS, "answer_completeness"]
    chosen = worded({text: parse_metric(text) for text in metrics})  # type: ignore[misc]  # no composite is among them
    assert wordings_of(chosen) == {FAITHFULNESS: "ragas 0.4.3"}
    run = evaluate(tmp_path, "run", Judge(), prompts="installed")
    assert run.manifest.wordings == {FAITHFULNESS: "ragas 0.4.3"}
    assert record_of(run)["wordings"] == {FAITHFULNESS: "ragas 0.4.3"}
    assert "ragas 0.4.3 (installed)" in str(run_page(run, 80, full=True))


@pytest.mark.usefixtures("package")
def test_replay_and_resume_keep_the_words(tmp_path: Path) -> None:
    """A replay finds every answer under the package's text; a run cannot be resumed in other words."""
    evaluate(tmp_path, "run", Judge(), prompts="installed")
    replayed = replay_run(tmp_path / "run", out=tmp_path / "replayed")
    assert (replayed.equal, replayed.different) == (1, 0)
    assert replayed.run.manifest.wordings == {FAITHFULNESS: "ragas 0.4.3"}
    with pytest.raises(merilo.MeriloError, match="differs in wordings"):
        evaluate(tmp_path, "run", Judge())


@pytest.mark.usefixtures("package")
def test_other_words_are_not_comparable(tmp_path: Path) -> None:
    """Two runs of one definition in different words are not compared."""
    judge = Judge()
    runs = [evaluate(tmp_path, "own", judge), evaluate(tmp_path, "installed", judge, prompts="installed")]
    with pytest.raises(UsageError, match=r"in the words of merilo there and of ragas 0\.4\.3 here"):
        merilo.compare(*runs)


@each_case(
    ("version", "metric", "says"),
    [
        (None, FAITHFULNESS, r"needs the prompts of ragas 0\.4\.3, and it is not installed here"),
        ("0.4.2", FAITHFULNESS, r"needs the prompts of ragas 0\.4\.3, and 0\.4\.2 is installed here"),
        ("0.4.3", "trulens:groundedness", "no package is known to have the prompts of trulens:groundedness"),
        ("0.4.3", "ragas-0.3.0:faithfulness", "no package is known to have the prompts of ragas-0.3.0:faithfulness"),
        ("0.4.3", f"{FAITHFULNESS}(reasks=1)", r"ragas 0\.4\.3 does not send the requests of .* Leave reasks out"),
        ("0.4.3", "faithfulness", "needs a metric that is worded by a package"),
        ("broken", FAITHFULNESS, "cannot be imported"),
    ],
)
def test_what_cannot_be_worded_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, metric: str, says: str
) -> None:
    """Another release, an absent or broken package and a metric without prompts are errors before any request."""
    if version is None:
        monkeypatch.setattr("importlib.metadata.version", Mock(side_effect=PackageNotFoundError))
    else:
        make_package(tmp_path / "packages", "0.4.3" if version == "broken" else version, broken=version == "broken")
        monkeypatch.syspath_prepend(tmp_path / "packages")
    judge = Judge()
    with pytest.raises(UsageError, match=says) as caught:
        evaluate(tmp_path, "run", judge, metrics=[metric], prompts="installed")
    assert "\n" not in str(caught.value)
    assert judge.sent == []
    assert not (tmp_path / "run").exists()


def test_an_unknown_value_is_refused(tmp_path: Path) -> None:
    """The option takes two values."""
    with pytest.raises(UsageError, match="prompts must be merilo or installed, got 'theirs'"):
        evaluate(tmp_path, "run", Judge(), prompts="theirs")


@each_case(
    "name",
    [
        each.name
        for each in published_metrics()
        if each.name.startswith(("ragas-0.4.3:", "deepeval-4.3.1:"))
        and not is_composite(each)
        and not issubclass(each, NeedsLibrary)
    ],
)
def test_each_request_of_a_definition_has_a_prompt(name: str) -> None:
    """The table has a prompt for every request that a definition sends, and every value that a prompt takes."""
    metric = parse_metric(name)
    assert not is_composite(metric)
    wording, sent = wording_for(name), list[Completion]()

    def answer(question: Question[Any]) -> Answer:
        if isinstance(question, Completion):
            sent.append(question)
        return question.guess()

    if metric.needs <= ROW.keys():
        drive(metric.plan(Sample("a", **ROW)), answer)
    if Completion in metric.asks:
        assert wording is not None
        assert sent
    for question in sent:
        assert wording is not None
        prompt = wording.prompts[question.rubric.rpartition("/")[2].rpartition(".v")[0]]
        assert _named(prompt) <= {*question.names, *metric.__dataclass_fields__}


def _named(prompt: Prompt) -> set[str]:
    """The values that a prompt takes."""
    values = [*prompt.fields.values(), *prompt.arguments.values()]
    values += [value for function in prompt.functions for value in function.values]
    return {value.strip("[]") for value in values if not value.startswith("=") and " " not in value}
