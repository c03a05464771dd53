"""`merilo judge probe` as people type it."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from server import Asked, JudgeServer

if TYPE_CHECKING:
    from command_line import Here

COUNT = 60
LABELS = [
    {
        "id": f"n{n}",
        "source": "ours",
        "task": "nli",
        "context": f"Tower T{n}x was built in Leeds in 1{200 + n}. It is tall.",
        "statement": f"Tower T{n}x was built in Leeds in 1{200 + n}.",
        "label": 1,
    }
    for n in range(COUNT)
]
KEY = {"OPENAI_API_KEY": "sk-test"}


def literal(asked: Asked) -> object:
    """Supported if the very statement stands in a context."""
    return "supported" if asked.about.strip() in asked.user.split("<<<statement")[0] else "not_stated"


def probe(here: Here, server: JudgeServer, *more: str) -> Any:  # Any: a finished process
    """The command with our labels, a model at an address and the probe of numbers."""
    here.write("ours.jsonl", LABELS)
    words = ["judge", "probe", "--judge", "openai:test-model", "--base-url", server.base_url, "--judged", "each"]
    return here.merilo(*words, "--labels", "ours.jsonl", "--probe", "number", *more, env=KEY)


def test_a_model_that_notices_passes(here: Here) -> None:
    """The card says so, --json has the effect with its limits, --out keeps both, and the status is 0."""
    with JudgeServer(literal) as server:
        done = probe(here, server, "--json", "--out", "kept", "--quiet")
        assert done.returncode == 0, done.stderr
        assert server.count == 2 * COUNT
        page = probe(here, server)
    assert page.returncode == 0
    row = next(line.split() for line in page.stdout.splitlines() if line.startswith("  number "))
    assert row[1:4] == [str(COUNT), "0.0", "%"]
    assert row[-1] == "passes"
    found = json.loads(done.stdout)
    number = found["probes"]["number"]
    assert number["value"] == 0.0
    assert number["upper"] < number["limit"] == 0.2
    assert found["verdict"] == "pass"
    assert json.loads((here.path / "kept" / "probe.json").read_text(encoding="utf-8"))["probes"] == found["probes"]
    shown = here.merilo("show", "kept/run", "--sample", "number/nli:n3")
    assert shown.returncode == 0, shown.stderr


def test_a_model_that_says_yes_fails(here: Here) -> None:
    """The status is 1; with a limit of 100 % nothing can be too much, and it is 0."""
    with JudgeServer() as server:
        done = probe(here, server)
        assert done.returncode == 1, done.stderr
        assert "FAILS" in done.stdout
        done = probe(here, server, "--limit", "number=100%")
    assert done.returncode == 0


def test_few_pairs_cannot_tell(here: Here) -> None:
    """With eight pairs a limit of 20 % cannot be shown to hold, and the status is 3."""
    with JudgeServer(literal) as server:
        done = probe(here, server, "--sample", "8")
    assert done.returncode == 3
    assert "more pairs (--sample)" in " ".join(done.stdout.split())


def test_a_dry_call_costs_nothing(here: Here) -> None:
    """--dry says how many requests there would be, and sends none."""
    with JudgeServer(literal) as server:
        found = json.loads(probe(here, server, "--dry", "--json").stdout)
        assert server.count == 0
    assert found["typical"]["requests"] == 2 * COUNT


def test_a_limit_stops_it_and_it_goes_on(here: Here) -> None:
    """--max-requests holds, the status is 5, and the same command asks only for the rest."""
    with JudgeServer(literal) as server:
        done = probe(here, server, "--out", "kept", "--max-requests", "50")
        assert done.returncode == 5, done.stderr
        assert server.count == 50
        done = probe(here, server, "--out", "kept")
        assert done.returncode == 0, done.stderr
        assert server.count == 2 * COUNT


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--probe", "noise"), "No probe 'noise'"),
        (("--limit", "order"), "NAME=SHARE"),
        (("--limit", "order=2"), "A share is"),
        (("--labels", "none.jsonl"), "No such file"),
        (("--judge", "gpt"), "Unknown judge"),
    ],
)
def test_wrong_use(here: Here, arguments: tuple[str, ...], says: str) -> None:
    """What cannot be is told in one sentence, status 2."""
    done = here.merilo("judge", "probe", *arguments)
    assert done.returncode == 2
    assert says in done.stderr


def test_columns_of_data_are_mapped(here: Here) -> None:
    """--map fills fields of --data as in `merilo run`; a column that is nowhere, or no data to map in, is refused.

    An estimate calls what is asked by the names of the probes.
    """
    here.write("own.jsonl", [{"frage": f"Who built tower {n}?", "texte": [f"Ann built tower {n}."]} for n in range(5)])
    words = ["judge", "probe", "--data", "own.jsonl", "--probe", "padding", "--dry"]
    mapped = [*words, "--map", "frage=user_input", "--map", "texte=retrieved_contexts"]
    done = here.merilo(*mapped, "--json")
    assert done.returncode == 0, done.stderr
    assert list(json.loads(done.stdout)["metrics"]) == ["padding"]
    refused = here.merilo(*mapped, "--map", "fehlt=response")
    assert (refused.returncode, "mapped columns: fehlt" in refused.stderr) == (2, True)
    refused = here.merilo("judge", "probe", "--map", "a=response", "--dry")
    assert (refused.returncode, "--data" in refused.stderr) == (2, True)


def drifting(asked: Asked) -> object:
    """Another verdict at every second asking for one tower in three; else the same one."""
    tower = int(asked.about.split("T")[2].split("x")[0]) if asked.about.count("T") > 1 else 0
    SEEN[tower] += 1
    return "not_stated" if tower % 3 == 0 and SEEN[tower] % 2 == 0 else "supported"


SEEN = Counter[int]()


def test_a_judge_that_drifts_is_measured_by_asking_again(here: Here) -> None:
    """The repeat probe sends each question twice; its effect is the rate of changed verdicts, with an interval."""
    SEEN.clear()
    here.write("ours.jsonl", LABELS)
    with JudgeServer(drifting) as server:
        words = ["judge", "probe", "--judge", "openai:test-model", "--base-url", server.base_url, "--labels"]
        done = here.merilo(*words, "ours.jsonl", "--probe", "repeat", "--json", "--out", "kept", env=KEY)
        assert server.count == 2 * COUNT
        assert {each.body["temperature"] for each in server.asked} == {0.0}
        again = here.merilo(*words, "ours.jsonl", "--probe", "repeat", "--json", env=KEY)
        assert server.count == 2 * COUNT  # the second draw is cached too
    assert done.returncode == 1, done.stderr
    repeat = json.loads(done.stdout)["probes"]["repeat"]
    assert repeat["value"] == pytest.approx(1 / 3, abs=1e-6)
    assert repeat["interval"][0] < 1 / 3 < repeat["interval"][1]
    assert repeat["limit"] == 0.02
    assert json.loads(again.stdout)["probes"]["repeat"] == repeat


def test_a_deterministic_judge_is_not_asked_again(here: Here) -> None:
    """The embedded judge leaves the repeat probe out with the reason; alone it is a usage error."""
    here.write("ours.jsonl", LABELS)
    done = here.merilo("judge", "probe", "--labels", "ours.jsonl", "--probe", "repeat")
    assert done.returncode == 2
    assert "the judge embedded always gives the same verdict" in " ".join(done.stderr.split())
    done = here.merilo("judge", "probe", "--labels", "ours.jsonl", "--probe", "repeat", "--probe", "number", "--json")
    found = json.loads(done.stdout)
    assert list(found["probes"]) == ["number"]
    assert found["left_out"] == {"repeat": "the judge embedded always gives the same verdict"}
