"""What a notebook and a console show of results: short texts, and HTML in which everything is escaped."""

from html.parser import HTMLParser

import pytest
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st
from labelled_run import by_grade, contexts_rows, fill_in, judged_run

import merilo
import merilo as api
from merilo.commands.check.page import JudgeCheck
from merilo.judges.embedded import EmbeddedJudge
from merilo.short_repr import LIMIT, SCREEN_LINES, short_repr

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&\x1b[31m\u202e"


class Tags(HTMLParser):
    """The tags and the text of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """A result of each public function that has no judge to check, from two runs with hostile ids, texts and paths."""
    folder = tmp_path_factory.mktemp("reprs") / "<b>runs"
    folder.mkdir()
    data = [{**row, "id": f"{HOSTILE}{at}", "response": HOSTILE * 9} for at, row in enumerate(contexts_rows(24))]
    first, second = (judged_run(folder / name, data, ["context_relevance"]) for name in "ab")
    tasks = api.label(first, metric="context_relevance", number=20, out=folder / "tasks.jsonl")
    return {
        "run": first,
        "sample": merilo.Sample(**data[0], reference=HOSTILE),
        "result": first.samples[0],
        "context": merilo.Context(HOSTILE * 99),
        "data": merilo.load(data),
        "plan": api.plan(data, metrics=["context_relevance"]),
        "compare": api.compare(first, second),
        "gate": api.gate(first, minimums={"context_relevance": 0.9}, baseline=second, max_drop=0.1),
        "one gate": api.gate(first, minimums={"context_relevance": 0.9}).gates[0],
        "label": tasks,
        "labelled": api.label(first, labels=fill_in(folder / "tasks.jsonl", by_grade)),
    }


def test_a_representation_is_short(results: dict[str, object]) -> None:
    """A result is a line; a run, a comparison and a sample are a screen of at most 12 lines; no control characters."""
    shown = {name: repr(result) for name, result in results.items()}
    screens = {name: len(shown.pop(name).splitlines()) for name in ("run", "compare", "result")}
    assert all(2 < lines <= SCREEN_LINES for lines in screens.values()), screens
    assert [name for name, text in shown.items() if len(text) > LIMIT or "\n" in text] == []
    assert not [name for name, result in results.items() if {"\x1b", "\u202e"} & {*repr(result)}]


def test_a_check_is_short_with_any_number_of_labels() -> None:
    """The labels, which may be thousands, are not in the representation."""
    judge, many = EmbeddedJudge(), {"task": [HOSTILE] * 5_000}
    check = JudgeCheck(judge, (), {}, None, {}, 0, many, many, items=many)  # type: ignore[arg-type]
    shown = "files=<0 items>, tables=<0 items>"
    assert repr(check) == f"JudgeCheck(judge='EmbeddedJudge', {shown})"


@each_case("name", ["run", "result", "plan", "compare", "gate"])
def test_html_of_hostile_texts_is_text(results: dict[str, object], name: str) -> None:
    """Ids, texts and paths with markup and control characters are shown as text, in every HTML representation."""
    html = results[name]._repr_html_()  # type: ignore[attr-defined]
    found = Tags(html)
    assert (found.tags, found.attributes) == ({"pre"}, set())
    assert not {"\x1b", "\u202e"} & {*html}


def test_a_sample_shows_texts_and_outcomes(results: dict[str, object]) -> None:
    """A result of a sample has its id, question, response, and the score of each metric."""
    text = Tags(results["result"]._repr_html_()).text  # type: ignore[attr-defined]
    assert "<script>alert(1)</script>" in text
    assert "question: What is 0?" in text
    assert "context_relevance" in text


def test_gates_show_each_decision(results: dict[str, object]) -> None:
    """Each gate has a line with its verdict and numbers, those that did not pass first."""
    text = " ".join(Tags(results["gate"]._repr_html_()).text.split())  # type: ignore[attr-defined]
    gates = results["gate"].gates  # type: ignore[attr-defined]
    assert [gate.reading in text for gate in gates] == [True, True]
    assert text.index(results["gate"].obstacles[0].reading) == min(text.index(gate.reading) for gate in gates)  # type: ignore[attr-defined]


def test_a_plan_prints_as_the_command_does(results: dict[str, object]) -> None:
    """`print(plan)` is the page of `merilo run --plan`, and a notebook shows the same."""
    text = str(results["plan"])
    assert "Nothing was sent. All amounts are estimates." in text
    assert Tags(results["plan"]._repr_html_()).text == text  # type: ignore[attr-defined]


@given(st.dictionaries(st.text("abc", min_size=1), st.text() | st.integers() | st.lists(st.none())))
def test_short_repr_is_always_short(facts: dict[str, object]) -> None:
    """Whatever the facts, the text has at most 300 characters and one line."""
    text = short_repr(object(), **facts)
    assert len(text) <= LIMIT
    assert len(text.splitlines()) == 1
