"""What a user meant: files that can be read are read, and everything else is refused with the form that is meant."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from command_line import Here
from each_case import each_case

import merilo
from merilo.cli import commands, outcome
from merilo.data.guesses import guesses

ROW = {"question": "When was the mill built?", "contexts": ["The mill was built in 1820."], "answer": "In 1820."}
LINE = json.dumps(ROW) + "\n"
CSV = "question,context,answer\nWhen was the mill built?,The mill was built in 1820.,In 1820.\n"
RUN = "run d.jsonl --metrics faithfulness"
NEEDS = "faithfulness needs retrieved_contexts."
DECIDES_NOTHING = "faithfulness is always between 0 and 1, so"


def line(**columns: object) -> str:
    return json.dumps(columns) + "\n"


def wrong(here: Here, files: dict[str, str | bytes], command: str) -> str:
    """The message of a command that is refused."""
    for name, content in files.items():
        path = here.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    done = here.merilo(*shlex.split(command), env={"OLLAMA_HOST": "127.0.0.1:9"} if "ollama" in command else None)
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


@pytest.mark.parametrize(
    ("content", "command", "message"),
    [
        # columns
        (
            line(question="When was it built?", pieces=["The mill was built in 1820."], answer="In 1820."),
            RUN,
            f"{NEEDS} Unread columns: 'pieces' (lists of texts). Read it: --map pieces=retrieved_contexts",
        ),
        (
            line(frage="Wann?", fundus=["Die Mühle steht."]),
            RUN,
            "Read it: --map fundus=retrieved_contexts",
        ),
        (line(question="When?", answer="In 1820."), RUN, f"{NEEDS} Check the columns: answer was read as response."),
        (line(question="When?", answer="In 1820."), RUN, "If it is the expected answer, add --map answer=reference."),
        (line(**ROW | {"contexts": None}), RUN, f"{NEEDS} No record has a value in 'contexts'."),
        (LINE, f"{RUN} --map user_input=q", "No field 'q'. The other way round: --map q=user_input"),
        (LINE, f"{RUN} --map q=answer", "No field 'answer'. Did you mean --map q=response?"),
        (
            LINE,
            f"{RUN} --map qestion=user_input",
            "No record has the mapped column 'qestion'; did you mean 'question'?",
        ),
        (LINE, f"{RUN} --map q:user_input", "--map takes column=field, such as question=user_input"),
        # files
        (LINE[:-20], RUN, "d.jsonl, line 1: expected a complete file, got one that ends inside this line."),
        ("<!DOCTYPE html>\n", RUN, "d.jsonl: expected UTF-8 text, got an HTML page."),
        ("version https://git-lfs.github.com/spec/v1\n", RUN, "got a pointer of Git LFS; fetch the file with git lfs"),
        (LINE, "run e.jsonl", "No such file: e.jsonl. Did you mean d.jsonl?"),
        (LINE, "run .", ". is a directory. Files in it: d.jsonl"),
        (LINE, "run when", "No such file: when."),
        (LINE, "show d.jsonl", "d.jsonl is a file, not a run. To evaluate it: merilo run d.jsonl"),
        (LINE, "gate runs/x --min faithfulness=1", "No such run: runs/x. To list runs: merilo runs"),
        (LINE, f"{RUN} --out r.html", "A run is a directory, such as runs/r, but r.html looks like a file."),
        (LINE, f"{RUN} --out -", "but - looks like a file."),
        # judges
        (LINE, f"{RUN} --judge gpt-4o", "No judge 'gpt-4o'. Did you mean openai:gpt-4o?"),
        (LINE, f"{RUN} --judge openai/gpt-4o", "Did you mean openai:gpt-4o?"),
        (LINE, f"{RUN} --judge opanai:gpt-4o", "Did you mean openai:gpt-4o?"),
        (LINE, f"{RUN} --judge claude-sonnet-4", "Did you mean anthropic:claude-sonnet-4?"),
        (LINE, f"{RUN} --judge llama3.1:8b", "Did you mean ollama:llama3.1:8b?"),
        (LINE, f"{RUN} --judge embeded", "Did you mean embedded?"),
        (LINE, f"{RUN} --judge openai", "Did you mean openai:MODEL?"),
        (LINE, f"{RUN} --judge groq:m", "For a server with OpenAI's protocol: --judge openai:m --base-url URL."),
        (LINE, f"{RUN} --judge ollama:qwen3", "No Ollama server at 127.0.0.1:9. Start it: ollama serve"),
        (
            LINE,
            f"{RUN} --judge openai:m --base-url http://127.0.0.1:9/v1",
            "No server at 127.0.0.1:9. Check the base URL and the network.",
        ),
        # words
        (LINE, f"{RUN} --language Klingon", "The language must be a code or a name, such as 'en' or 'english'"),
        (LINE, f"{RUN} --language Germann", "Did you mean 'german'?"),
        (LINE, "run d.jsonl --metrics hallucination", "No metric 'hallucination'; did you mean faithfulness?"),
        (LINE, "run d.jsonl --metrics HallucinationMetric", "did you mean faithfulness?"),
        (LINE, "run d.jsonl --metrics correctness", "did you mean answer_correctness?"),
        (LINE, "run d.jsonl --metrics relevancy", "did you mean answer_relevancy or context_relevance?"),
        (LINE, "run d.jsonl --metrics qa", "No metric 'qa'; to list all: merilo metrics."),
        (LINE, f"{RUN} context_relevance", "Separate metrics and other lists by commas: --metrics A,B."),
        (LINE, "run d.jsonl --metric faithfulness", "No such option: --metric. Did you mean --metrics?"),
        (LINE, "run d.jsonl --model gpt-4o", "Did you mean --judge openai:gpt-4.1-mini?"),
        (LINE, "run d.jsonl --html x.html", "Did you mean merilo report RUN?"),
        (LINE, "run --data d.jsonl", "Did you mean merilo run FILE?"),
        (LINE, "run d.jsonl --verbose", "Did you mean --debug?"),
        (LINE, "run d.jsonl --output x", "Did you mean --out?"),
        (LINE, "run d.jsonl --threshold 1", "Did you mean merilo gate RUN --min METRIC=X?"),
        (LINE, "run d.jsonl --frobnicate", "No such option: --frobnicate. See merilo run --help."),
        (LINE, "d.jsonl", "Did you mean: merilo run d.jsonl?"),
        (LINE, "help", "Did you mean: merilo --help?"),
        (LINE, "evaluate d.jsonl", "Did you mean: merilo run?"),
    ],
)
def test_a_mistake_is_told_what_is_meant(here: Here, content: str, command: str, message: str) -> None:
    """In one message on standard error, with exit code 2."""
    assert message in wrong(here, {"d.jsonl": content}, command)


def is_gone(former: str) -> bool:
    """True unless the command has the option."""
    *words, option = former.split()
    return all(each.name != " ".join(words) or option not in flags(each.call) for each in commands(words[0]))


def flags(call: Any) -> set[str]:
    """The options of a command."""
    app = typer.Typer()
    app.command()(call)
    return {name for each in typer.main.get_command(app).params for name in each.opts}


@each_case(("former", "message"), [(each, advice[0]) for each, advice in guesses("gone").items() if is_gone(each)])
def test_a_former_option_names_what_to_use(former: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In one message that has nothing else, with exit code 2."""
    assert outcome([*former.split(), "x"]) == 2
    assert " ".join(capsys.readouterr().err.split()) == message


@each_case(
    ("name", "content", "message"),
    [
        ("d.xlsx", b"PK\x03\x04", "Unknown format of 'd.xlsx'. Supported suffixes:"),
        ("d.zip", b"PK\x03\x04", "Unpack it and name the file."),
        ("d.csv", b"PK\x03\x04", "got a zip archive or an Excel workbook; unpack it, or save the sheet as CSV."),
        ("d.csv", CSV.encode("utf-16"), "got UTF-16 or UTF-32; save the file as UTF-8."),
        (
            "w.json",
            json.dumps([ROW] * 3, indent=1)[:-9],
            "record 3: expected a complete file, got one that ends inside",
        ),
        ("w.json", json.dumps([ROW] * 3, indent=1)[:-40], "this record (line 19)."),
        ("w.json", '[{"question": "When?",}]', "got invalid JSON"),
        (
            "w.json",
            "[{'question': 'When?'}]",
            "invalid JSON (' instead of \": write it with json.dumps at character 3)",
        ),
    ],
)
def test_a_file_is_refused_by_what_it_holds(name: str, content: str | bytes, message: str, tmp_path: Path) -> None:
    """The message says what was found, and where the file ends."""
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(merilo.MeriloError) as caught:
        merilo.evaluate(tmp_path / name, "faithfulness", out=tmp_path / "run")
    assert message in str(caught.value)


@each_case(
    ("name", "content", "count"),
    [
        ("d.jsonl", json.dumps([ROW, ROW]), 2),
        ("d.jsonl", json.dumps(ROW, indent=2), 1),
        ("d.jsonl", json.dumps([ROW, ROW], indent=2), 2),
        ("d.json", LINE * 3, 3),
        ("d.json", json.dumps({"a": ROW, "b": ROW}), 2),
        ("d.json", json.dumps({name: [value] * 2 for name, value in ROW.items()}), 2),
        ("d.json", json.dumps({"results": [{"query": "When?", "response": "Now.", "retrieved_context": []}]}), 1),
        ("d.csv", CSV.replace(",", "\t"), 1),
        ("d.csv", CSV.replace(",", ";"), 1),
        ("d.csv", "\ufeff" + CSV, 1),
        ("d.jsonl", line(input=[{"role": "user", "content": "When?"}], answer="Now."), 1),
        ("d.jsonl", line(**ROW, language="English"), 1),
        ("d.jsonl", line(**ROW | {"answer": 1820}), 1),
        ("d.jsonl", line(**ROW | {"question": ["When was the mill built?"]}), 1),
        ("d.jsonl", line(Question="When?", Context="The mill was built in 1820.", Answer="In 1820."), 1),
        ("d.jsonl", line(question="When?", context_1="In 1820.", context_2="Bread is food.", answer="In 1820."), 1),
        ("d.jsonl", line(question="When?", answer="In 1820.", ground_truth=["In 1820."]), 1),
    ],
)
def test_what_can_be_read_without_doubt_is_read(name: str, content: str, count: int, tmp_path: Path) -> None:
    """The content of a file counts, whatever its suffix, and names of columns count without case."""
    (tmp_path / name).write_text(content, encoding="utf-8")
    dataset = merilo.load(tmp_path / name)
    read = [each for each in dataset if isinstance(each, merilo.Sample)]
    assert len(read) == count
    assert all(each.user_input and each.response for each in read)
    assert dataset.columns.reading()


def test_one_line_says_how_a_file_was_read(here: Here) -> None:
    """The separator if the suffix does not say it, and the columns under other names."""
    (here.path / "answers.csv").write_text(CSV.replace(",", "\t"), encoding="utf-8")
    done = here.merilo("run", "answers.csv", "--metrics", "faithfulness", "--no-cache")
    read = "read question as user_input, context as retrieved_contexts, answer as response"
    assert f"answers: tab-separated; {read}\n" in done.stderr


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> merilo.Run:
    """A run of the embedded judge."""
    return merilo.evaluate([ROW], out=tmp_path_factory.mktemp("messages") / "run", storage={"cache": False})


@each_case(
    ("asked", "message"),
    [
        ({"minimums": {"faithfulness": 80}}, f"{DECIDES_NOTHING} a limit of 80 decides nothing. For 80 %, write 0.8."),
        ({"max_drop": 5}, f"{DECIDES_NOTHING.replace('faithfulness', 'answering')} an allowed drop of 5 decides"),
        ({"max_drop": {"faithfulness": 5}}, "an allowed drop of 5 decides nothing. For 5 %, write 0.05."),
        ({"max_drop": {"faithfulness": 1}}, "an allowed drop of 1 decides nothing. Choose a value in this range."),
        (
            {"minimums": {"answer_relevancy": 0.3}},
            " has no answer_relevancy: the embedded judge is weak at it. Add it: merilo run ... --metrics",
        ),
        ({"minimums": {"nDCG": 0.3}}, " has no nDCG: no sample has reference_context_ids or retrieved_context_ids."),
        ({"minimums": {"hallucination": 0.3}}, "did you mean faithfulness?"),
        ({}, "No gate given. Use minimums={'METRIC': X}, baseline='RUN' with max_drop=D, or suite='FILE'."),
        ({"min": {"faithfulness": 0.5}}, "gate() has no min=: use minimums={...}."),
        ({"max": {"faithfulness": 0.5}}, "gate() has no max=: use maximums={...}."),
        ({"threshold": 0.5}, "gate() has no threshold=: use minimums={...}."),
        ({"minimums": 0.5}, "minimums must give a number for each metric"),
    ],
)
def test_a_gate_is_told_what_is_meant(asked: dict[str, Any], message: str, run: merilo.Run) -> None:
    """A limit that decides nothing, a metric that the run has not, and a keyword of another name."""
    with pytest.raises(merilo.UsageError) as caught:
        merilo.gate(run, **({"baseline": run} if "max_drop" in asked else {}), **asked)
    assert message in str(caught.value)


@pytest.mark.parametrize("limits", ["--min faithfulness=1%", "--min faithfulness>=0.01", "--min faithfulness=0,x=1"])
def test_limits_are_read_as_users_write_them(here: Here, limits: str, run: merilo.Run) -> None:
    """A percentage, a comparison, and several limits at once, each of which must be one."""
    (here.path / "gates.toml").write_text("trust_judge = true\n", encoding="utf-8")
    done = here.merilo("gate", str(run.path), "--suite", "gates.toml", *limits.split())
    assert ("at least 0.01" in done.stdout) is ("x=1" not in limits)
    assert ("No metric 'x'" in done.stderr) is ("x=1" in limits)


def test_a_report_goes_to_standard_output(here: Here, run: merilo.Run) -> None:
    """`--out -` prints the page and writes no file; another suffix than that of HTML is refused."""
    done = here.merilo("report", str(run.path), "--out", "-")
    assert done.stdout.startswith("<!doctype html>")
    assert not (here.path / "-").exists()
    assert "A report is one HTML file: name it r.html." in here.merilo("report", str(run.path), "-o", "r.pdf").stderr


@each_case(
    ("data", "count"),
    [
        (ROW, 1),
        ({name: [value] * 2 for name, value in ROW.items()}, 2),
        ({"a": ROW, "b": ROW}, 2),
        ({name: {0: value, 1: value} for name, value in ROW.items()}, 2),
    ],
)
def test_a_notebook_guess_is_data(data: Any, count: int) -> None:
    """One row, columns, rows by id, and what `to_dict` of pandas returns."""
    run = merilo.evaluate(data, "faithfulness,context_relevance", storage={"cache": False})
    assert len(run.samples) == count
    assert [*run.metrics] == ["faithfulness", "context_relevance"]
