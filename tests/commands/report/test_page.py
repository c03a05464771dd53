"""The report as bytes: its counts, its texts and its content security policy."""

import base64
import hashlib
import html
import json
import re
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from compared import compare_runs
from faulty_run import METRICS, faulty, rows
from labelled_run import fill_in

import merilo
from merilo.commands.report.run import compared_samples, report_run
from merilo.commands.report.run_page import comparison_page, run_page
from merilo.metrics.answer_metrics import AnswerRelevancy
from merilo.metrics.statement_metrics import Faithfulness
from merilo.rendering.markup import json_text
from merilo.rendering.run_doc import fault_sentence, fault_share
from merilo.results.faults import DECLINES, FAULTS, PLACES

HOSTILE = "<script>canary()</script><img src=x onerror=canary()></style>'\"&lt;\u202eevil\x1b[31m\u2028</script>"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report on a run with samples in every cell."""
    return run_page(report_run(faulty(tmp_path_factory.mktemp("runs") / "first")))


def data_of(page: str, name: str) -> Any:
    """The JSON in a script element."""
    found = re.search(f'<script type="application/json" id="{name}">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def details_of(page: str, kind: str = "details") -> list[Any]:
    """All unpacked details or passages."""
    return [
        each for block in data_of(page, "blocks")[kind] for each in json.loads(zlib.decompress(base64.b64decode(block)))
    ]


def test_counts_of_the_fault_table(page: str) -> None:
    """Each cell counts the samples with its verdicts; a failed verdict counts as "Cannot tell"."""
    cells = {FAULTS[int(at)].key: int(label) for at, label in re.findall(r'data-fault="(\d+)"><b>([^<]+)</b>', page)}
    assert cells == {
        "right": 5,
        "beyond_evidence": 4,
        "declined_wrongly": 3,
        "evidence_missing": 2,
        "invented": 1,
        "rightly_declined": 2,
        "cannot tell": 1,
    }


def test_lead_counts_the_faults_and_names_the_worst_sample(page: str) -> None:
    """The first sentence is that of every screen; a link opens the worst sample."""
    lead = re.search('<p class="lead">(.*?)</p>', page)[1]  # type: ignore[index]
    assert lead.startswith(
        "18 answers: 5 right, 4 beyond the evidence, 3 wrongly declined, 2 evidence missing, 2 rightly declined, "
        "1 invented, 1 cannot tell. The worst: <a"
    )
    assert 'href="#sample=short-strayed-0"' in lead


def test_labels_turn_the_table_into_shares(tmp_path: Path) -> None:
    """With labels, lead and table have the corrected shares and their intervals; the counts still filter."""
    right, short = ("enough", "supported"), ("short", "supported")
    samples = [{**row, "reference": None} for row in rows({right: 15, short: 15})]
    run = faulty(tmp_path / "run", samples, metrics=("answering",))
    tasks = tmp_path / "tasks.jsonl"
    merilo.label(run, metric="answering", number=30, out=tasks)
    fill_in(
        tasks,
        lambda task: "yes" if "labels" in task and "yes" in str(task["labels"]) else "sufficient",
        annotator="ann",
    )
    merilo.label(run, labels=tasks)
    found = report_run(run.path)
    page = run_page(found)
    share = fault_share(found.faults, "right")
    assert share.startswith("100 %")
    assert f"30 answers, corrected by human labels: right {share}." in page
    assert re.search(r"<b>100 %</b><span>\u2713 Right<i>\d+ to 100 %</i></span>", page)
    assert data_of(page, "rows")["f"].count(PLACES["evidence_missing"]) == 15


def test_report_and_run_name_the_same_faults(tmp_path: Path) -> None:
    """The counts of lead, table and samples are those of `run.faults`."""
    run = faulty(tmp_path / "run")
    page = run_page(report_run(run))
    cells = {FAULTS[int(at)].key: int(label) for at, label in re.findall(r'data-fault="(\d+)"><b>([^<]+)</b>', page)}
    listed = Counter(FAULTS[at].key for at in data_of(page, "rows")["f"])
    assert {key: amount for key, amount in cells.items() if amount} == dict(listed) == dict(run.faults)
    assert fault_sentence(run.faults) in page


@pytest.mark.parametrize(("judge", "named"), [(None, False), ("scripted", True)])
def test_only_a_checked_judge_names_a_component(tmp_path: Path, judge: str | None, named: bool) -> None:
    """The embedded judge names no component to look at first while nobody has checked it; another judge does."""
    run = faulty(tmp_path / "run") if judge else merilo.evaluate(rows()[:2], metrics=[*METRICS], out=tmp_path / "run")
    assert ("Look first at" in run_page(report_run(run))) is named


def test_reason_of_declining_is_that_of_the_metrics() -> None:
    """The metrics that ask whether the response declines list a reason that the report recognises."""
    for metric in (Faithfulness, AnswerRelevancy):
        assert any(reason.startswith(DECLINES) for reason in metric.card.undefined)


def test_policy_allows_only_what_the_page_holds(page: str) -> None:
    """The policy lists the digest of the style and of each script, and forbids everything else."""
    policy = html.unescape(re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1])  # type: ignore[index]
    texts = re.findall(r"<(script|style)>(.*?)</\1>", page, re.DOTALL)
    assert [tag for tag, _ in texts] == ["style", "script", "script"]
    for tag, text in texts:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert re.search(rf"{tag}-src [^;]*'sha256-{re.escape(digest)}'", policy)
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert "require-trusted-types-for 'script'; trusted-types 'none'" in policy
    assert not re.search(r'\s(src|style|on\w+)="', page)
    assert set(re.findall(r'href="([^"]{0,7})', page)) == {"#sample"}


def test_hostile_text_is_text(tmp_path: Path) -> None:
    """Markup in every field is escaped in the HTML and in the JSON; control characters are shown as their codes."""
    samples = rows({("short", "strayed"): 2}, extra=HOSTILE)
    run = faulty(tmp_path / "<b>run", samples)
    better = [{**each, "response": f"It is supported.{HOSTILE}"} for each in samples]
    found = compare_runs([run, faulty(tmp_path / "<b>other", better)])
    assert found.moved
    for page in (run_page(report_run(run)), comparison_page(found)):
        assert "<b>run" not in page
        assert "<img" not in page
        assert "<script>canary" not in page
        assert page.count("</style>") == 1
        assert not re.search("[\x00-\x09\x0b-\x1f\u202e\u2028]", page)
        assert "U+202Eevil" in page
    assert any("<script>" in each["q"] for each in details_of(run_page(report_run(run))))


def test_json_holds_no_character_that_ends_a_script() -> None:
    """JSON in a script element has no markup characters, and unsafe characters of texts are shown as codes."""
    assert not set("<>&") & set(json_text({HOSTILE: [HOSTILE]}))
    assert "\u202e" not in json_text({HOSTILE: [HOSTILE]})


def test_statements_cite_sentences(page: str) -> None:
    """A statement names context and sentence: the evidence if it is supported, otherwise the closest one."""
    ids, details = data_of(page, "rows")["id"], details_of(page)
    found = details[ids.index("enough-strayed-0")]["st"][0]["st"]
    assert [(each["l"], each["c"]) for each in found] == [("supported", [[0, 1]]), ("unsupported", [[1, 0]])]


def test_a_statement_without_a_verdict_is_shown(page: str) -> None:
    """A statement that the judge did not judge is in its sample, with the reason, although no metric counts it."""
    ids, details = data_of(page, "rows")["id"], details_of(page)
    (group,) = details[ids.index("enough-fails-0")]["st"]
    assert [(each["t"], each["l"]) for each in group["st"]] == [("It is fails 0.", "none")]
    assert "It will not <b>." in group["st"][0]["said"][0][1]


def test_verdicts_on_a_statement_name_the_text_that_was_checked(tmp_path: Path) -> None:
    """With a reference, each verdict names its text and has its own label; the sentence of a context stays cited."""
    row = {
        "user_input": "When does the hall open?",
        "retrieved_contexts": ["The hall opens at 9:30. It closes at noon.", "The garden is behind the hall."],
        "response": "The hall opens at 9:30.",
        "reference": "The library of the town was built in 1907.",
    }
    metrics = ["faithfulness", "answer_correctness"]
    runs = [
        merilo.evaluate([row], metrics=metrics, out=tmp_path / name, storage={"cache": False}) for name in ("a", "b")
    ]
    pages = {"details": run_page(report_run(runs[0])), "details1": comparison_page(compare_runs(runs))}
    for kind, page in pages.items():
        (detail,) = details_of(page, kind)
        groups = {each["m"]: each["st"] for each in detail["st"]}
        (statement,) = groups["faithfulness"]
        assert statement["t"] == "The hall opens at 9:30."
        assert (statement["l"], statement["by"], statement["c"]) == ("supported", 0, [[0, 0]])
        texts = {(said[0], said[3]) for group in groups.values() for each in group for said in each["said"]}
        assert ("support, checked against the reference", "unsupported") in texts


def test_failed_and_undefined_say_why(page: str) -> None:
    """A sample without a score has the reason, and its value is neither 0 nor missing."""
    rows_, details = data_of(page, "rows"), details_of(page)
    at = rows_["id"].index("enough-fails-0")
    assert rows_["v"][METRICS.index("faithfulness")][at] is False
    assert details[at]["why"]["faithfulness"][0] == "failed"
    declined = rows_["id"].index("enough-declined-0")
    assert rows_["v"][METRICS.index("faithfulness")][declined] is None
    assert details[declined]["why"]["faithfulness"][1].startswith(DECLINES)


def test_plain_copy_has_every_score(page: str) -> None:
    """Without scripts, the page lists every sample with every score, failures first, and its texts."""
    plain = page[page.index('id="plain"') :]
    for row in rows():
        assert f'id="sample={row["id"]}"' in plain
        assert html.escape(row["response"]) in plain
    assert plain.count("undefined</td>") == 5
    assert plain.count("failed</td>") == 1
    assert plain.index("short-strayed-0") < plain.index("enough-strayed-0") < plain.index("enough-supported-0")


def test_large_runs_show_the_worst_samples(tmp_path: Path) -> None:
    """Above the limit, the page lists the worst samples only, says so, and still counts all."""
    found = report_run(faulty(tmp_path / "run"), most=6)
    assert [len(found.entries), found.samples, sum(found.faults.counts.values())] == [6, 18, 18]
    assert found.entries[0].row.id == "short-strayed-0"
    assert "the worst 6 of 18 samples" in run_page(found)


def test_comparison_shows_both_runs(tmp_path: Path) -> None:
    """A comparison has a row for each metric, and each sample that moved with its contexts in both runs."""
    first = faulty(tmp_path / "first", rows({("enough", "supported"): 12}))
    worse = [
        {**row, "retrieved_contexts": [{"id": "x", "text": "This holds short. No."}, row["retrieved_contexts"][0]]}
        for row in rows({("enough", "supported"): 12})
    ]
    second = faulty(tmp_path / "second", worse)
    page = comparison_page(compare_runs([first, second]))
    assert page[: page.index("<details")].count('<th scope="row">') == 3
    assert page.count('<details class="move"') == 12
    assert "second is worse, by the judge alone" in page
    assert "there: 2" in page
    assert "only here" in page


def test_comparison_has_all_common_samples(tmp_path: Path) -> None:
    """The table of a comparison has the values and faults of both runs, those that changed most first."""
    first = faulty(tmp_path / "first")
    rows_ = [{**row, "retrieved_contexts": row["retrieved_contexts"][:1]} for row in rows()]
    found = compare_runs([first, faulty(tmp_path / "second", rows_)])
    page = comparison_page(found)
    table = data_of(page, "rows")
    assert (sorted(table["id"]), table["total"]) == (sorted(found.ids), 18)
    at = [each["id"] for each in table["metrics"]].index("context_relevance")
    changes = [abs(a - b) for a, b in zip(*table["v"][at], strict=True)]
    by = [each["id"] for each in table["metrics"]].index(table["by"])
    assert by == at
    assert changes == sorted(changes, reverse=True)
    assert changes[0] > 0
    for place, run in enumerate(("first", "second")):
        faults = {name: table["f"][place][where] for where, name in enumerate(table["id"])}
        found_ = report_run(tmp_path / run)
        assert faults == {each.row.id: each.row.fault for each in found_.entries}
        assert len(details_of(page, f"details{place}")) == 18


def test_large_comparisons_show_what_changed_most(tmp_path: Path) -> None:
    """Above the limit, the page has the samples that changed most, and the number of all."""
    first = faulty(tmp_path / "first")
    rows_ = [{**row, "retrieved_contexts": row["retrieved_contexts"][:1]} for row in rows()]
    found = compare_runs([first, faulty(tmp_path / "second", rows_)])
    whole, part = compared_samples(found), compared_samples(found, most=6)
    assert [each.row.id for each in part.entries[0]] == [each.row.id for each in whole.entries[0][:6]]
    table = data_of(comparison_page(found, part), "rows")
    assert (len(table["id"]), table["total"]) == (6, 18)
