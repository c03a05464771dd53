"""A key is read from the environment or asked from a callable, sent, and found nowhere afterwards.

One is planted, the server echoes it wherever it can, and everything that a run leaves behind is searched: files,
databases with what is compressed in them, what was printed and logged, errors and reprs.
"""

import gzip
import html
import json
import logging
import sqlite3
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import server as fake
from command_line import Here
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st
from server import Asked, JudgeServer

import merilo
from merilo.errors import MeriloError, ProviderDown, ProviderError, UsageError
from merilo.judges.llm import LLMJudge
from merilo.providers.anthropic import AnthropicProvider
from merilo.providers.base import Message, Provider, Request
from merilo.providers.bedrock import BedrockProvider
from merilo.providers.google import GoogleProvider
from merilo.providers.ollama import OllamaProvider
from merilo.providers.openai import AzureProvider, OpenAIProvider
from merilo.providers.secrets import ApiKeys, shown_url
from merilo.runs.records import CorruptRow, unpacked

KEY = "sk-planted-0123456789abcdef"
MARK = "The quick brown mark"
REQUEST = Request(messages=(Message("system", "You judge."), Message("user", "Judge this.")), max_tokens=10)
ROWS = [
    {"id": str(n), "user_input": f"How long is river {n}?", "retrieved_contexts": [f"River {n} is long."]}
    for n in range(12)
]
VARIABLES = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "bedrock": "AWS_BEARER_TOKEN_BEDROCK",
    "google": "GEMINI_API_KEY",
    "ollama": "OLLAMA_API_KEY",
}
KINDS = tuple(VARIABLES)
BEARERS = {"openai", "bedrock", "ollama"}
"""The kinds that send their key as a bearer token."""
HEADERS = ("Authorization", "x-api-key", "api-key", "x-goog-api-key")
AT_ROOT: dict[str, Any] = {
    "anthropic": AnthropicProvider,
    "azure": AzureProvider,
    "bedrock": BedrockProvider,
    "google": GoogleProvider,
    "ollama": OllamaProvider,
}


def echo(asked: Asked) -> object:
    """A verdict whose reason repeats the key, as a server that tells too much would."""
    del asked
    return {"reason": f"{MARK}, with the key {KEY}.", "grade": 1, "evidence": [1]}


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer(echo, model=f"model-of-{KEY}") as running:
        yield running


def provider_of(kind: str, server: JudgeServer, **options: Any) -> Provider:
    """A provider of the kind at the server."""
    if kind == "openai":
        return OpenAIProvider("m", base_url=server.base_url, **options)
    provider: Provider = AT_ROOT[kind]("m", base_url=server.root_url, **options)
    return provider


def keys_sent(server: JudgeServer) -> list[str]:
    """The key of each request, as its header has it."""
    return [headers[name] for headers in server.headers for name in HEADERS if name in headers]


def left_behind(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file under the folder with its bytes, and what is compressed in it or in a database's columns."""
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        data = path.read_bytes()
        yield path.name, data
        if data[:2] == b"\x1f\x8b":
            yield f"{path.name}, unpacked", gzip.decompress(data)
        if data[:15] == b"SQLite format 3":
            yield from ((f"{path.name}, {table}", value) for table, value in _values(path))


def _values(path: Path) -> Iterator[tuple[str, bytes]]:
    with closing(sqlite3.connect(path)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            for row in database.execute(f'SELECT * FROM "{table}"'):  # noqa: S608  the names are the database's own
                for value in row:
                    data = value.encode() if isinstance(value, str) else value
                    if isinstance(data, bytes):
                        yield table, data
                        yield f"{table}, unpacked", _unpacked(data)


def _unpacked(data: bytes) -> bytes:
    try:
        return unpacked(data).encode()
    except CorruptRow:
        return b""


def places(text: str, folder: Path) -> set[str]:
    """Where under the folder a text is found."""
    return {name for name, data in left_behind(folder) if text.encode() in data}


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_leaves_no_key_behind(server: JudgeServer, tmp_path: Path, kind: str) -> None:
    """After successes, re-asks, retries and failures, all with the key echoed, the key is in no file and no output."""
    here = Here(tmp_path)
    here.write("data.jsonl", ROWS)
    told = json.dumps({"error": {"message": f"{KEY} is not well", "type": KEY, "code": f"code {KEY}"}})
    server.fail_next(
        fake.bare(told, 400),
        fake.bare(told, 429, Retry_After="0"),
        fake.bare(told, 500),
        fake.bare(f"<html>{KEY}</html>"),
        fake.says(f'{{"key": "{KEY}"}}'),
        fake.refusal(f"I will not, {KEY}."),
    )
    address = server.base_url if kind == "openai" else server.root_url
    done = here.merilo(
        *("run", "data.jsonl", "--metrics", "context_relevance", "--judge", f"{kind}:m", "--base-url", address),
        *("--out", "run", "--max-failed", "100%", "--concurrency", "2", "--debug"),
        env={VARIABLES[kind]: KEY},
    )
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "run" / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()
    judged = next(json.loads(line)["sample"] for line in lines if MARK in line)
    shown = here.merilo("show", "run", "--sample", judged, "--json")
    assert MARK in shown.stdout
    assert "[secret]" in shown.stdout
    assert set(keys_sent(server)) == {f"Bearer {KEY}" if kind in BEARERS else KEY}
    kept = places(MARK, tmp_path)
    assert any(name.startswith("cache") for name in kept)
    assert any(name.startswith("store") for name in kept)
    assert places(KEY, tmp_path) == set()
    assert KEY not in done.stdout + done.stderr + shown.stdout + shown.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_ends_at_the_key_leaves_none_behind(server: JudgeServer, tmp_path: Path, kind: str) -> None:
    """A key that is refused, with a message that repeats it, is in no file and no output either."""
    here = Here(tmp_path)
    here.write("data.jsonl", ROWS)
    server.fail(fake.bare(json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}}), 401))
    address = server.base_url if kind == "openai" else server.root_url
    done = here.merilo(
        *("run", "data.jsonl", "--metrics", "context_relevance", "--judge", f"{kind}:m", "--base-url", address),
        *("--out", "run", "--api-key-env", "MY_KEY", "--debug"),
        env={"MY_KEY": KEY},
    )
    assert done.returncode == 2
    assert "rejected the key (401); check the variable MY_KEY" in done.stderr
    assert places("MY_KEY", tmp_path) <= {"run.log"}
    assert places(KEY, tmp_path) == set()
    assert KEY not in done.stdout + done.stderr


@pytest.mark.parametrize("kind", KINDS)
def test_a_callable_gives_the_key_of_each_request(
    tmp_path: Path,
    kind: str,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Keys may change during a run; every one of them is hidden, also after the next has come."""
    caplog.set_level(logging.DEBUG)
    given: list[str] = []

    async def next_key() -> str:
        given.append(f"{KEY}-{len(given)}")
        return given[-1]

    def echo_all(_: Asked) -> object:
        return {"reason": f"{MARK}, with the keys {given}.", "grade": 1, "evidence": [1]}

    with JudgeServer(echo_all) as server:
        server.fail_next(*(fake.bare(f"echo {KEY}-{number}", 500) for number in range(3)))
        judge = LLMJudge(provider_of(kind, server, api_key=next_key))
        run = merilo.evaluate(
            ROWS,
            metrics=["context_relevance"],
            judge=judge,
            out=tmp_path / "run",
            storage={"cache": tmp_path / "cache.sqlite"},
        )
    assert run.metrics["context_relevance"].scored == len(ROWS)
    sent = keys_sent(server)
    about_the_model = 2 if kind == "ollama" else 0
    assert len(set(sent)) == len(sent) == server.count == len(given) - about_the_model
    assert places(MARK, tmp_path)
    assert places(KEY, tmp_path) == set()
    output = capsys.readouterr()
    assert KEY not in f"{caplog.text} {output.out} {output.err} {judge!r} {judge.fingerprint()} {run!r}"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_callable_that_gives_no_key_ends_the_run(server: JudgeServer, kind: str) -> None:
    """One that raises or gives something else is named as the reason, without what it said; nothing is sent."""

    def broken() -> str:
        raise RuntimeError(f"no token for {KEY}")

    for source, words in (
        (broken, "raised RuntimeError"),
        (lambda: "", "did not return a valid key"),
        (lambda: "a\nb", "did not return a valid key"),
    ):
        async with provider_of(kind, server, api_key=source).connect() as connection:
            with pytest.raises(ProviderDown, match=words) as caught:
                await connection.send(REQUEST)
        assert KEY not in "".join(traceback.format_exception(caught.value))
    assert server.count == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("code", [400, 401, 403, 404, 429, 500, 529, 200])
async def test_no_error_repeats_what_was_sent(
    server: JudgeServer, monkeypatch: pytest.MonkeyPatch, kind: str, code: int
) -> None:
    """Whatever status the echo has, neither the error nor a notice nor the provider shows key or headers."""
    monkeypatch.setenv(VARIABLES[kind], KEY)
    header = "gateway-word-42"
    provider = provider_of(kind, server, headers=(("X-Gateway", header),))
    refused = "think" if kind == "ollama" else "temperature"
    server.fail_next(fake.bare(json.dumps({"error": {"message": f"{refused} not supported {KEY} {header}"}}), 400))
    async with provider.connect() as connection:
        await connection.send(replace(REQUEST, temperature=0.0))
        server.fail(fake.bare(f"echo {KEY} {header}", code))
        with pytest.raises(ProviderError) as caught:
            await connection.send(replace(REQUEST, temperature=0.0))
        shown = (
            f"{caught.value!r} {connection.notices()} {connection.adaptations()} {provider!r} {provider.fingerprint()}"
        )
    assert connection.notices()
    assert KEY not in shown
    assert header not in shown
    assert caught.value.__cause__ is None


def test_headers_of_the_user_go_before_the_key() -> None:
    """Who gives the header of the key in another way is not sent a second one; short values are no secrets."""
    keys = ApiKeys(
        "Authorization", prefix="Bearer ", key=KEY, others=(("authorization", f"Basic {KEY}x"), ("X-Id", "7"))
    )
    assert keys.fixed == {"authorization": f"Basic {KEY}x", "X-Id": "7"}
    assert keys.clean(f"7 Basic {KEY}x or {KEY}") == "7 [secret] or [secret]"


@each_case("spell", [json.dumps, lambda key: quote(key, safe=""), html.escape])
def test_a_key_in_other_spellings_is_hidden(spell: Callable[[str], str]) -> None:
    """A key is hidden as JSON, addresses and HTML write it."""
    key = 'sk-/0123456789+a"b<c>&d=Zq'
    cleaned = ApiKeys("Authorization", key=key).clean(f"the key {spell(key)} is wrong")
    assert "[secret]" in cleaned
    assert "0123" not in cleaned


def test_a_key_that_no_header_can_hold_is_an_error(monkeypatch: pytest.MonkeyPatch, server: JudgeServer) -> None:
    """A key with a line break inside is refused unshown, when the connection is opened."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted\nsk-other")
    with pytest.raises(MeriloError, match="OPENAI_API_KEY has characters that are not valid in a key") as caught:
        merilo.evaluate(
            ROWS[:1], judge={"spec": f"openai:{'m'}", "base_url": server.base_url}, metrics=["context_relevance"]
        )
    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_variable_has_a_name(server: JudgeServer, kind: str) -> None:
    """The error for a name that no variable has comes where the provider is made, and does not repeat it."""
    with pytest.raises(UsageError, match="Do not give the key itself") as caught:
        provider_of(kind, server, api_key_env=KEY)
    assert KEY not in str(caught.value)


@each_case("spell", [lambda key: f"{key[:20]}...", lambda key: f"...{key[-18:]}"])
def test_the_end_of_a_long_key_is_hidden(spell: Callable[[str], str]) -> None:
    """Sixteen characters at either end of a long key are hidden."""
    key = "sk-proj-Zx9+Kq/7Lm-2Wd4Yb8Tn"
    cleaned = ApiKeys("Authorization", key=key).clean(f"The key {spell(key)} is wrong.")
    assert "[secret]" in cleaned
    assert key[:16] not in cleaned
    assert key[-16:] not in cleaned


@given(st.text(st.sampled_from('abcdeABCDE0123456789 .-_{}"\\u&%'), max_size=300))
def test_texts_without_a_key_stay(text: str) -> None:
    """No text is changed by a key that shares no long fragment with it."""
    assert ApiKeys("Authorization", key="sk-zyxwvutsrqponmlkji").clean(text) == text


def test_a_key_shown_by_its_ends_stays() -> None:
    """A server that shows the first and last four characters helps to find the wrong key, and gives nothing away."""
    shown = f"Incorrect API key provided: {KEY[:4]}*******{KEY[-4:]}."
    assert ApiKeys("Authorization", key=KEY).clean(shown) == shown


SECRETS = {
    "api_key": "plain-words-only",
    "nested": {"access_token": "ab12cd34ef56gh78"},
    "internal_id": "kq83hf72jd91ms0x",
    "labels": ["gateway-customer-name"],
    "owner": "${GATEWAY_OWNER}",
    "access_key": 4711081547,
}
IN_PATH = "tk9f8e7d6c5b4a3z2y"
OWNER = "owner-from-environment"


@pytest.mark.parametrize("kind", KINDS)
def test_secrets_of_body_and_address_are_not_stored(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Texts of the body and random parts of the path are sent, and are in no file, message or repr; settings are."""
    monkeypatch.setenv("GATEWAY_OWNER", OWNER)
    texts = ["plain-words-only", "ab12cd34ef56gh78", "kq83hf72jd91ms0x", "gateway-customer-name", OWNER]
    texts += ["4711081547"]

    def echo_all(asked: Asked) -> object:
        assert asked.body["api_key"] == SECRETS["api_key"]
        assert asked.body["owner"] == OWNER
        reason = f"{MARK} {asked.body['api_key']} {OWNER} {IN_PATH} kq83hf72jd91ms0x 4711081547"
        return {"reason": reason, "grade": 1, "evidence": [1]}

    with JudgeServer(echo_all, prefix=f"/{IN_PATH}") as server:
        body = {**SECRETS, "top_k": 3, "reasoning_effort": "low"}
        provider = provider_of(kind, server, body=body)
        server.fail_next(fake.bare(f"no route {IN_PATH}", 500), fake.reset())
        run = merilo.evaluate(ROWS, metrics=["context_relevance"], judge=LLMJudge(provider), out=tmp_path / "run")
    assert run.metrics["context_relevance"].scored == len(ROWS)
    manifest = (tmp_path / "run" / "manifest.json").read_text(encoding="utf-8")
    assert '"reasoning_effort": "low"' in manifest
    assert '"owner": "${GATEWAY_OWNER}"' in manifest
    output = capsys.readouterr()
    for secret in (*texts, IN_PATH):
        assert places(secret, tmp_path) == set()
        assert secret not in f"{provider!r} {provider.fingerprint()} {output.out} {output.err} {manifest}"


def test_a_new_key_in_the_body_is_not_another_judge_but_another_setting_is() -> None:
    """A fingerprint changes with a text that may move a verdict, and not with one whose name is that of a secret."""
    usual = OpenAIProvider("m", base_url="http://host/v1", body={"api_key": "one", "flavour": "plain"})
    assert usual.fingerprint() == replace(usual, body={"api_key": "two", "flavour": "plain"}).fingerprint()
    assert usual.fingerprint() != replace(usual, body={"api_key": "one", "flavour": "other"}).fingerprint()
    assert usual.fingerprint() != replace(usual, body={"flavour": "plain"}, model="n").fingerprint()


def test_two_random_paths_are_two_judges() -> None:
    """Addresses that differ in a part that is not shown have different fingerprints, the same on every machine."""
    urls = [f"https://gateway.example/v1/{part}/openai" for part in ("a1b2c3d4e5f6a7b8c9", "b1b2c3d4e5f6a7b8c9")]
    shown = [OpenAIProvider("m", base_url=url).fingerprint()["base_url"] for url in urls]
    assert shown == [
        "https://gateway.example/v1/[digest:3f143bc8e14346b5]/openai",
        "https://gateway.example/v1/[digest:9a2762de3eb12498]/openai",
    ]


def test_usual_addresses_are_shown_as_they_are() -> None:
    """Names of deployments, versions and short paths are not taken for secrets."""
    for url in (
        "http://localhost:8000/v1",
        "https://openrouter.ai/api/v1",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "https://host/openai/deployments/gpt-4o-mini-2024-07-18",
        "https://api.cloudflare.com/client/v4/accounts/acme/ai",
    ):
        assert shown_url(url) == url


def test_a_variable_that_is_not_set_is_named(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reference to an environment variable that is missing is an error before anything is sent."""
    monkeypatch.delenv("GATEWAY_OWNER", raising=False)
    for changed in ({"body": {"owner": "${GATEWAY_OWNER}"}}, {"base_url": f"{server.root_url}/${{GATEWAY_OWNER}}/v1"}):
        provider = replace(OpenAIProvider("m", base_url=server.base_url), **changed)
        with pytest.raises(UsageError, match="GATEWAY_OWNER is not set"):
            merilo.evaluate(ROWS[:1], judge=LLMJudge(provider), metrics=["context_relevance"])
    assert server.count == 0


@each_case("written", ["user:SECRET@host", "user:SECRET/1@host", "user:12/SECRET@host", "SECRET@host"])
def test_a_password_in_an_address_is_refused_and_not_repeated(written: str) -> None:
    """Wherever a slash makes a parser see it, also where the address could be used."""
    for provider in (OpenAIProvider, AnthropicProvider, AzureProvider):
        with pytest.raises(UsageError, match="must not contain a password") as caught:
            provider("m", base_url=f"http://{written}/v1")
        assert "SECRET" not in str(caught.value)
