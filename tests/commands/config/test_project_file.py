"""merilo.toml: where it is found, what it may set, and that it gets no key unasked."""

import importlib.util
import json
import os
import py_compile
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import Here
from each_case import each_case
from server import JudgeServer

from merilo.commands.evaluate.options import Options
from merilo.commands.option import flags_of
from merilo.commands.project_file import NO_KEY, project_file, project_suite, uses
from merilo.data.config_files import read_document
from merilo.errors import UsageError
from merilo.judges.scripted import ScriptedJudge
from merilo.plugins import object_in_file
from merilo.providers.prices import prices_from

FLAGS = flags_of(Options)
ROWS = [{"id": "a", "user_input": "Who?", "retrieved_contexts": ["Anna."], "response": "Anna."}]
SERVER = 'metrics = ["faithfulness"]\n[judge]\nspec = "openai:small"\nbase_url = "{url}"\n'


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer() as running:
        yield running


@pytest.fixture
def here(tmp_path: Path) -> Here:
    (tmp_path / "work").mkdir()
    found = Here(tmp_path / "work")
    found.write("data.jsonl", ROWS)
    return found


def written(here: Here, text: str, name: str = "merilo.toml") -> None:
    (here.path / name).write_text(text, encoding="utf-8")


def run(here: Here, *arguments: str) -> tuple[int, str, str]:
    env = {"XDG_CONFIG_HOME": str(here.path.parent / "config"), "OPENAI_API_KEY": "sk-of-the-user-1234567890"}
    done = here.merilo(*arguments, env=env)
    return done.returncode, done.stdout, done.stderr


def test_the_nearest_file_counts(tmp_path: Path) -> None:
    """merilo.toml comes before pyproject.toml of the same folder, and a folder before its parents."""
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "merilo.toml").write_text('judge = "scripted:outer.jsonl"')
    (tmp_path / "a" / "pyproject.toml").write_text(
        '[tool.other]\nx = 1\n[tool.merilo]\njudge = "scripted:pyproject.jsonl"'
    )
    found = project_file(FLAGS, inner)
    assert found is not None
    assert found.settings == {"judge": "scripted:pyproject.jsonl"}
    (tmp_path / "a" / "merilo.toml").write_text('judge = "scripted:inner.jsonl"')
    found = project_file(FLAGS, inner)
    assert found is not None
    assert found.settings == {"judge": "scripted:inner.jsonl"}


@each_case(
    ("text", "message"),
    [
        ("judges = 'embedded'", "unknown setting 'judges'. Did you mean 'judge'"),
        ("out = '/etc/passwd'", "It belongs on the command line"),
        ("concurrency = 4", "unknown setting 'concurrency'. It belongs under [limits]."),
        ("limits.concurrency = 'many'", "limits.concurrency must be a whole number, got 'many'"),
        ("limits.concurrency = true", "concurrency must be a whole number"),
        ("metrics = []", "metrics must be a text or a list of texts"),
        ("limits.max_cost_usd = '1'", "max_cost_usd must be a number"),
        ("mapping = ['a']", "mapping must be a table of texts"),
        ("lenient = true", "unknown setting 'lenient'"),
        ("storage.cache = '/etc/passwd'", "cache must be true or false"),
        ("judge = ", "merilo.toml: not valid TOML"),
        ("rpm = 3", "unknown setting 'rpm'. Did you mean 'limits.requests_per_minute'"),
        ("limits.tpm = 3", "Did you mean 'limits.tokens_per_minute'"),
        ("limits.max_cost = 3", "Did you mean 'limits.max_cost_usd'"),
        ("limits.timeout = 3", "Did you mean 'limits.timeout_s'"),
        ("judge.model = 'embedded'", "Did you mean 'judge.spec'"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """An unknown setting, a wrong type and every setting that names a file to write are refused."""
    (tmp_path / "merilo.toml").write_text(text)
    with pytest.raises(UsageError, match=message.replace("[", r"\[").replace("(", r"\(")):
        project_file(FLAGS, tmp_path)


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    """A price table and a suite lie beside the file, wherever the command runs."""
    (tmp_path / "merilo.toml").write_text("limits.prices = 'prices.toml'\nsuite = 'gates.toml'")
    inner = tmp_path / "deep"
    inner.mkdir()
    found = project_file(FLAGS, inner)
    assert found is not None
    assert found.settings == {"limits.prices": str(tmp_path / "prices.toml"), "suite": str(tmp_path / "gates.toml")}


def test_a_judge_on_the_command_line_leaves_the_address_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file's address, key and pack size belong to its judge, and need no consent if that is not used."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "merilo.toml").write_text(
        SERVER.format(url="http://127.0.0.1:1/v1") + "judged = 'each'\n[limits]\nconcurrency = 3"
    )
    found = project_file(FLAGS, tmp_path)
    assert found is not None
    assert found.options(FLAGS, {"judge"}) == {"metrics": ["faithfulness"], "limits.concurrency": 3}
    found.allow()
    assert found.options(FLAGS, set())["judge.api_key_env"] == NO_KEY


@each_case(
    ("text", "used"),
    [
        ("judge.base_url = 'http://127.0.0.1:8000/v1'", ["the server http://127.0.0.1:8000/v1"]),
        ("judge.api_key_env = 'DATABASE_PASSWORD'", ["the key in DATABASE_PASSWORD"]),
        ("judge = 'openai:m'", ["the judge openai:m"]),
        ("judge = ['embedded', 'second = ollama:m']", ["the judge second = ollama:m"]),
        ("judge = 'support=bedrock:m'", ["the judge support=bedrock:m"]),
        ("judge = 'local:m=openai:m'", ["the judge local:m=openai:m"]),
        ("judge = 'of-a-plugin:m'", ["the judge of-a-plugin:m"]),
        ("judge.spec = ['embedded', 'embeddings=azure:m']", ["the judge embeddings=azure:m"]),
        ("judge = 'similarities=of-a-plugin:m'", ["the judge similarities=of-a-plugin:m"]),
        ("limits.prices = [{model = 'm', input = 0, output = 0}]", ["the prices of the file"]),
        ("limits.unanswered = 'free'", ["the cost of unanswered requests as free"]),
        ("draws = 100", ["100 draws of each question"]),
        ("judge = ['embedded', 'a=scripted:s.jsonl', 'local:m']\ndraws = 1", []),
        ("metrics = ['faithfulness', 'precision(k=3)']\njudge = 'embeddings=embedded'\nlimits.max_cost_usd = 1", []),
    ],
)
def test_what_sends_data_or_costs_money_needs_consent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, used: list[str]
) -> None:
    """Every judge that is not embedded, local or scripted, every address, also a local one, key, and change of cost."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "merilo.toml").write_text(text)
    found = project_file(FLAGS, tmp_path)
    assert found is not None
    assert uses(found.settings) == used
    if used:
        with pytest.raises(UsageError, match=r"needs your consent to use .* run: merilo runs config --allow"):
            found.options(FLAGS, set())
        found.allow()
    assert found.options(FLAGS, set())


def test_the_consent_is_the_users_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the user can read the list of allowed files, and a list that others could write allows nothing."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "merilo.toml").write_text("judge = 'openai:m'")
    found = project_file(FLAGS, tmp_path)
    assert found is not None
    found.allow()
    allowed = tmp_path / "config" / "merilo" / "allowed.json"
    assert found.allowed
    if os.name == "posix":
        assert stat.S_IMODE(allowed.stat().st_mode) == 0o600
        allowed.chmod(0o666)
        assert not found.allowed


@pytest.mark.skipif(os.name != "posix", reason="Windows has other owners")
@pytest.mark.parametrize("name", ["merilo.toml", "pyproject.toml", "mine.py", "."])
@pytest.mark.parametrize("problem", ["owner", "mode"])
def test_a_file_that_another_user_could_have_written_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, problem: str
) -> None:
    """Also in a parent directory, whatever it sets: the file, its directory and the code that it names."""
    text = "metrics = 'mine.py:Mine'\nsuite = 'gates.toml'\n"
    if name == "pyproject.toml":
        (tmp_path / name).write_text(f"[tool.merilo]\n{text}")
    else:
        (tmp_path / "merilo.toml").write_text(text)
    (tmp_path / "mine.py").write_text("Mine = 1")
    inner = tmp_path / "inner"
    inner.mkdir()
    assert project_file(FLAGS, inner) is not None
    if problem == "mode":
        (tmp_path / name).chmod(0o777)
    elif os.geteuid() == 0:
        os.chown(tmp_path / name, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    words = "owned by another user" if problem == "owner" else "writable by all users"
    with pytest.raises(UsageError, match=f"{words}.*so merilo does not read it. To ignore it, add --no-config"):
        project_file(FLAGS, inner)
    monkeypatch.chdir(inner)
    if name != "mine.py":
        with pytest.raises(UsageError, match=words):
            project_suite()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs files of other users")
def test_under_sudo_the_files_of_the_calling_user_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the files of whoever typed the command."""
    (tmp_path / "merilo.toml").write_text("draws = 1")
    os.chown(tmp_path / "merilo.toml", 12345, -1)
    monkeypatch.setenv("SUDO_UID", "12345")
    assert project_file(FLAGS, tmp_path) is not None


def test_consent_ends_when_the_prices_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A price table of zeros would let a run pass --max-cost."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "merilo.toml").write_text("limits.prices = 'prices.toml'")
    for content in ("a = 1", "a = 2"):
        (tmp_path / "prices.toml").write_text(content)
        found = project_file(FLAGS, tmp_path)
        assert found is not None
        assert not found.allowed
        found.allow()


def test_code_needs_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A metric or judge in a file of Python runs only after the user has allowed the project file."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for text in (
        "metrics = ['faithfulness', 'mine.py:Mine']",
        "judge = 'own=judges/mine.py:judge'",
        "judge = 'mine.py:judge'",
        "judge = ['embedded', 'second=mine.py:judge']",
    ):
        (tmp_path / "merilo.toml").write_text(text)
        found = project_file(FLAGS, tmp_path)
        assert found is not None
        with pytest.raises(UsageError, match=r"needs your consent to use .*code in"):
            found.options(FLAGS, set())
        found.allow()
        assert found.options(FLAGS, set())


@pytest.mark.parametrize("setting", ["metrics = ['mine.py:Mine']", "judge = 'own=mine.py:Mine'"])
def test_permission_for_code_ends_when_the_code_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    """The user allows the code that he has read, not what a later checkout puts in its place."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "merilo.toml").write_text(setting)
    (tmp_path / "mine.py").write_text("Mine = 1\n")
    found = project_file(FLAGS, tmp_path)
    assert found is not None
    found.allow()
    (tmp_path / "mine.py").write_text("Mine = 2\n")
    changed = project_file(FLAGS, tmp_path)
    assert changed is not None
    with pytest.raises(UsageError, match=r"needs your consent to use .*code in"):
        changed.options(FLAGS, set())


@pytest.mark.parametrize("folder", ["re=po", "re:po", "a=b:c"])
def test_permission_for_code_ends_in_folders_of_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """The signs of a named judge may be in the path of the checkout."""
    (tmp_path / folder).mkdir()
    test_permission_for_code_ends_when_the_code_changes(tmp_path / folder, monkeypatch, "judge = 'mine.py:Mine'")


def test_code_from_pycache_does_not_run(tmp_path: Path) -> None:
    """The code that runs is the source that the user has read, not a compiled file of the same checkout."""
    source = tmp_path / "mine.py"
    source.write_text("text = 'compiled'\n")
    py_compile.compile(
        str(source),
        cfile=importlib.util.cache_from_source(str(source)),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    source.write_text("text = 'source'\n")
    assert object_in_file(f"{source}:text") == "source"


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a device without an end")
@pytest.mark.parametrize("name", ["merilo.toml", "prices.toml", "script.jsonl"])
def test_a_link_to_a_device_is_refused(tmp_path: Path, name: str) -> None:
    """A checkout may contain a link to /dev/zero, which would fill the memory."""
    (tmp_path / name).symlink_to("/dev/zero")
    (tmp_path / "pyproject.toml").symlink_to("/dev/zero")
    if name == "merilo.toml":
        assert project_file(FLAGS, tmp_path) is None
    elif name == "prices.toml":
        with pytest.raises(UsageError, match="must be at most 1,048,576 bytes long"):
            prices_from(tmp_path / name)
        with pytest.raises(UsageError, match="must be at most 1,048,576 bytes long"):
            read_document(tmp_path / name)
    else:
        with pytest.raises(UsageError, match="it is a device"):
            ScriptedJudge.from_file(tmp_path / name)


@pytest.mark.parametrize("setting", ["judge", "judge.spec"])
def test_long_texts_are_read_in_time(tmp_path: Path, setting: str) -> None:
    """A text of the largest size of the file takes milliseconds, and a path that is too long is no file."""
    (tmp_path / "merilo.toml").write_text(f"{setting} = '{'a' * 1_000_000}.py:judge'")
    found = project_file(FLAGS, tmp_path)
    assert found is not None
    assert uses(found.settings)
    for text in ("a" * 1_000_000, " " * 1_000_000, "a=" * 500_000, "a>" * 500_000):
        (tmp_path / "merilo.toml").write_text(f"{setting} = '{text}'")
        found = project_file(FLAGS, tmp_path)
        assert found is not None
        assert all(len(each) < 300 for each in uses(found.settings))


def test_a_variable_that_the_file_names_needs_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an address too: another secret of the user would go to the usual server as a key."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "merilo.toml").write_text("[judge]\nspec = 'openai:small'\napi_key_env = 'DATABASE_PASSWORD'\n")
    found = project_file(FLAGS, tmp_path)
    assert found is not None
    with pytest.raises(UsageError, match="the key in DATABASE_PASSWORD"):
        found.options(FLAGS, set())
    found.allow()
    assert found.options(FLAGS, set())["judge.api_key_env"] == "DATABASE_PASSWORD"


def test_a_server_of_the_file_gets_no_key_unasked(here: Here, server: JudgeServer) -> None:
    """An address without a key variable is sent no key, although OPENAI_API_KEY is set."""
    written(here, SERVER.format(url=server.base_url))
    for command in (["run", "data.jsonl"], ["run", "--plan", "data.jsonl"], ["questions", "data.jsonl"]):
        code, _, errors = run(here, *command)
        assert (code, server.count) == (2, 0)
        assert f"needs your consent to use the judge openai:small; the server {server.base_url}." in errors
    assert "not allowed" in run(here, "runs", "config")[1]
    assert run(here, "runs", "config", "--allow")[0] == 0
    code, _, errors = run(here, "run", "data.jsonl")
    assert code == 0, errors
    assert "Settings from merilo.toml: metrics, judge, judge.base_url, judge.api_key_env" in errors
    assert server.count > 0
    assert not any("authorization" in {name.lower() for name in headers} for headers in server.headers)


def test_a_key_is_sent_after_permission_for_this_content(here: Here, server: JudgeServer) -> None:
    """The user allows the file once; after any change of its settings he is asked again."""
    text = SERVER.format(url=server.base_url) + 'api_key_env = "OPENAI_API_KEY"\n'
    written(here, text)
    code, _, errors = run(here, "run", "data.jsonl", "--out", "out")
    assert (code, server.count) == (2, 0)
    assert "merilo runs config --allow" in errors
    code, printed, _ = run(here, "runs", "config", "--allow")
    assert code == 0
    assert "allowed" in printed
    code, _, errors = run(here, "run", "data.jsonl", "--out", "out")
    assert code == 0, errors
    assert {headers["Authorization"] for headers in server.headers} == {"Bearer sk-of-the-user-1234567890"}
    written(here, text + "[limits]\nconcurrency = 2\n")
    assert run(here, "run", "data.jsonl", "--out", "again")[0] == 2


def test_a_key_from_the_command_line_does_not_go_to_the_address_of_the_file(here: Here, server: JudgeServer) -> None:
    """--api-key-env needs --base-url, so that the user names both."""
    written(here, SERVER.format(url=server.base_url))
    code, _, errors = run(here, "run", "data.jsonl", "--api-key-env", "OPENAI_API_KEY")
    assert (code, server.count) == (2, 0)
    assert "add --base-url" in errors


def test_the_settings_are_shown_with_their_source(here: Here) -> None:
    """`merilo runs config` names each value and its source; --no-config ignores the file."""
    written(here, "judge = 'embedded'\nmetrics = 'context_relevance'\n[mapping]\nwho = 'user_input'\n")
    _, printed, _ = run(here, "runs", "config")
    rows = [line.split() for line in printed.splitlines()]
    assert ["judge", "embedded", "merilo.toml"] in rows
    assert ["limits.concurrency", "-", "default"] in rows
    here.write("data.jsonl", [{**ROWS[0], "who": "Who is it?"}])
    _, printed, errors = run(here, "run", "data.jsonl", "--json")
    assert "Settings from merilo.toml: judge, metrics, mapping" in errors
    assert [*json.loads(printed)["metrics"]] == ["context_relevance"]
    here.write("data.jsonl", ROWS)
    _, printed, errors = run(here, "run", "data.jsonl", "--json", "--no-config")
    assert "merilo.toml" not in errors
    assert len(json.loads(printed)["metrics"]) > 1


def test_the_gate_takes_the_suite_of_the_file(here: Here) -> None:
    """`merilo gate` checks the suite of merilo.toml; a gate given as a flag replaces it."""
    (here.path / "gates.toml").write_text("[minimums]\ncontext_relevance = 0.9\n", encoding="utf-8")
    written(here, "suite = 'gates.toml'\nmetrics = 'context_relevance'\n")
    assert run(here, "run", "data.jsonl", "--out", "out")[0] == 0
    _, printed, errors = run(here, "gate", "out")
    assert "Suite from merilo.toml: " in errors
    assert "minimum 0.9" in printed or "0.9" in printed
    _, printed, errors = run(here, "gate", "out", "--min", "context_relevance=0.1")
    assert "Suite from" not in errors
    assert "No gate given" in run(here, "gate", "out", "--no-config")[2]
