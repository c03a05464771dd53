"""The keywords of `evaluate`: parts as objects and dicts, and what a wrong keyword is told."""

import ast
import inspect
import re
from collections import Counter
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case

import merilo
from merilo.commands.evaluate.options import Options
from merilo.commands.keywords import public
from merilo.commands.option import flags_of, options_from

ROW = {"user_input": "When?", "retrieved_contexts": ["It was completed in 1889."]}
WRONG: Any = 3
KEYWORDS = "judge mapping language cluster limit draws out reading limits storage progress".split()


def test_evaluate_has_twelve_keywords() -> None:
    """Data and metrics come first; the other functions of evaluation take the same."""
    for function in (merilo.evaluate, merilo.aevaluate, merilo.plan):
        assert [*inspect.signature(function).parameters] == ["data", "metrics", *KEYWORDS]
    for function in (merilo.evaluate_pipeline, merilo.aevaluate_pipeline):
        assert [*inspect.signature(function).parameters] == ["pipeline", "questions", "metrics", *KEYWORDS, "calls"]


@pytest.mark.parametrize("as_dict", [True, False])
def test_a_part_is_an_object_or_a_dict(as_dict: bool, tmp_path: Path) -> None:
    """Both mean the same."""
    storage: Any = {"cache": tmp_path / "c.sqlite"} if as_dict else merilo.Storage(cache=tmp_path / "c.sqlite")
    limits: Any = {"concurrency": 3} if as_dict else merilo.Limits(concurrency=3)
    run = merilo.evaluate([ROW], "context_relevance", out=tmp_path / "run", storage=storage, limits=limits)
    assert list(run.metrics) == ["context_relevance"]
    assert (tmp_path / "c.sqlite").exists()


@each_case(
    ("wrong", "advice"),
    [
        ({"concurrency": 4}, "use limits=Limits(concurrency=4)"),
        ({"max_workers": 4}, "use limits=Limits(concurrency=4)"),
        ({"n_jobs": 4}, "use limits=Limits(concurrency=4)"),
        ({"max_cost": 2}, "use limits=Limits(max_cost_usd=2)"),
        ({"cache": False}, "use storage=Storage(cache=False)"),
        ({"shard": "1/2"}, "use reading=Reading(shard=...)"),
        ({"base_url": "http://a"}, 'use judge=Model("openai:MODEL", base_url=...)'),
        ({"api_key": "sk-1"}, 'use judge=Model("openai:MODEL", api_key_env="NAME")'),
        ({"model": "gpt"}, 'use judge="openai:gpt-4.1-mini"'),
        ({"llm": object()}, 'use judge="openai:gpt-4.1-mini"'),
        ({"evaluator": object()}, 'use judge="openai:gpt-4.1-mini"'),
        ({"embeddings": "openai:e"}, 'use judge={"embeddings": ..., "rest": ...}'),
        ({"embedder": "openai:e"}, 'use judge={"embeddings": ..., "rest": ...}'),
        ({"cross_encoder": "local:c"}, 'use judge={"similarities": ..., "rest": ...}'),
        ({"threshold": 0.8}, "a threshold belongs to merilo.gate(run, minimums={...})"),
        ({"metric": "faithfulness"}, "did you mean metrics="),
        ({"question": "When?"}, 'put the row into a list: merilo.evaluate([{"question": ...}])'),
        ({"nonsense": 1}, "help(merilo.evaluate) shows those that it has"),
    ],
)
def test_a_wrong_keyword_is_told_the_one_that_is_meant(wrong: dict[str, Any], advice: str) -> None:
    """It never prints the list of all keywords, and no value that could be a secret."""
    with pytest.raises(merilo.UsageError) as caught:
        merilo.evaluate([ROW], **wrong)
    assert str(caught.value) == f"evaluate() has no {next(iter(wrong))}=: {advice}."


@each_case(
    ("wrong", "message"),
    [
        ({"limits": {"max_cost": 2}}, "Limits has no 'max_cost'; did you mean 'max_cost_usd'?"),
        ({"limits": {"rpm": 2}}, "Limits has no 'rpm'; did you mean 'requests_per_minute'?"),
        ({"limits": 3}, "limits takes Limits(...) or a dict with its fields, got int."),
        ({"limits": {"concurrency": "4"}}, "limits.concurrency must be a whole number, got '4'."),
        ({"limits": merilo.Limits(concurrency=True)}, "limits.concurrency must be a whole number, got True."),
        ({"limits": {"max_cost_usd": nan}}, "limits.max_cost_usd must be from 0 to 1e+15, got nan."),
        ({"limits": {"concurrency": 0}}, "limits.concurrency must be from 1 to 1e+09, got 0."),
        ({"limits": {"timeout_s": inf}}, "limits.timeout_s must be from 1e-09 to 1e+09, got inf."),
        ({"limits": {"max_cost_usd": "2"}}, "limits.max_cost_usd must be a number, got '2'."),
        ({"judge": merilo.Model("embedded", base_url=WRONG)}, "judge.base_url must be a text, got 3."),
        ({"storage": {"cache": 5}}, "storage.cache must be true or false or a text or a path, got 5."),
        ({"draws": "2"}, "draws must be a whole number, got '2'."),
        ({"mapping": ["a"]}, "mapping must be a table of texts, got ['a']."),
        ({"metrics": [None]}, "metrics must be a text or a list of metrics, got [None]."),
        ({"out": 5}, "out must be a text or a path, got 5."),
        ({"judge": {"spec": "embedded", "url": "a"}}, "Model has no 'url'; it has spec, base_url, api_key_env,"),
    ],
)
def test_a_wrong_part_is_told_what_it_takes(wrong: dict[str, Any], message: str) -> None:
    """A part has few fields, so those are listed."""
    with pytest.raises(merilo.UsageError) as caught:
        merilo.evaluate([ROW], **wrong)
    assert str(caught.value).startswith(message)


def test_functions_of_runs_check_the_types_of_their_arguments() -> None:
    """Before they read the run."""
    with pytest.raises(merilo.UsageError, match="metric must be a text, got 3"):
        merilo.label("runs/none", metric=WRONG)
    with pytest.raises(merilo.UsageError, match="cluster must be a text, got 3"):
        merilo.compare("runs/none", "runs/other", cluster=WRONG)


def test_flags_make_the_same_options() -> None:
    """The flags of a command become the parts."""
    values = {
        name: flag.default if flag.read is None else flag.read(flag.default) for name, flag in flags_of(Options).items()
    }
    made = options_from(Options, values)
    assert (made.limits, made.storage, made.reading) == (Options().limits, Options().storage, Options().reading)


def in_python(message: str) -> str:
    """The message of an error as a public function raises it."""

    @public()
    def fail() -> None:
        raise merilo.UsageError(message)

    with pytest.raises(merilo.UsageError) as caught:
        fail()
    return str(caught.value)


@each_case(
    ("message", "expected"),
    [
        ("--max-drop needs a baseline: add --baseline RUN.", "max_drop needs a baseline: add baseline='RUN'."),
        ("--baseline needs a drop: add --max-drop 0.05.", "baseline needs a drop: add max_drop=0.05."),
        ("g.toml: --baseline needs a suite with max_drop.", "g.toml: baseline needs a suite with max_drop."),
        ("--map takes column=field; got 'a'.", "mapping takes column=field; got 'a'."),
        ("--max-drop: give either one number", "max_drop: give either one number"),
        ("other metrics (--metrics), or use --judge-only", "other metrics (metrics), or use --judge-only"),
        ("set OLLAMA_HOST or --base-url.", "set OLLAMA_HOST or base_url."),
        ("Use --min METRIC=X, --baseline RUN with", "Use minimums={'METRIC': X}, baseline='RUN' with"),
        ("--max-drop D, or --suite FILE.", "max_drop=D, or suite='FILE'."),
        ("run them by name (--metrics faithfulness).", "run them by name (metrics='faithfulness')."),
        ("use --map a=b or --map c=d to take", "use mapping={'a': 'b'} or mapping={'c': 'd'} to take"),
        ("Add it: merilo run ... --metrics faithfulness", "Add it: merilo run ... --metrics faithfulness"),
    ],
)
def test_a_flag_in_a_message_is_a_keyword(message: str, expected: str) -> None:
    """With its value if it has one; the words after a flag without a value stay as they are."""
    assert in_python(message) == expected


def test_no_message_loses_a_word_to_a_keyword() -> None:
    """Of every text in the code that has a flag, all words of the sentence are still there."""
    flags = re.compile(r"--(map|min|max|judge|metrics|suite|max-drop|baseline|base-url)\b")
    word = re.compile(r"(?:(?<=[\s(])|^)[a-z]+(?=[.,;)]*(?:\s|$))")
    seen = 0
    for path in sorted(Path(merilo.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                text = "".join(str(each.value) if isinstance(each, ast.Constant) else "a=b1" for each in node.values)
            else:
                text = str(node.value) if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if flags.search(text) and "\n" not in text:
                seen += 1
                assert not Counter(word.findall(text)) - Counter(word.findall(in_python(text))), (path.name, text)
    assert seen > 30
