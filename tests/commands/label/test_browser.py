"""The labelling page in a headless Chromium, which the tests start; skipped without one."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from axe import violations
from browser import Browser
from hostile_texts import HOSTILE
from labelled_run import STATEMENT_ROWS, contexts_rows, grade_of, judged_run, read_tasks, says_statements

import merilo
from merilo.commands.calibrate.run import label_agreement
from merilo.commands.label.page import label_page
from merilo.commands.label.run import label_run
from merilo.commands.label.task_file import TaskFile
from merilo.judging.questions import Question

pytestmark = pytest.mark.slow  # they start processes
METRIC = "context_relevance"
TASK = "document.querySelector('.task')"
STATE = "document.querySelector('.state').textContent"


def likes(question: Question[Any]) -> dict[str, Any]:
    """The highest grade for every context."""
    del question
    return {"grade": 2, "evidence": [0]}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> merilo.Run:
    """A run whose texts tell the grade that people would give."""
    return judged_run(tmp_path_factory.mktemp("run") / "run", contexts_rows(30), [METRIC])


@pytest.fixture
def page(run: merilo.Run, tmp_path: Path) -> Path:
    """A page with 12 tasks of 12 samples."""
    path = tmp_path / "tasks.html"
    path.write_text(label_page([line.record() for line in label_run(run, samples=12, items=1).lines]), encoding="utf-8")
    return path


def fresh(browser: Browser, page: Path, width: int = 1440) -> None:
    """Open the page in a browser that has stored nothing."""
    browser.size(width)
    browser.open(page)
    forget(browser)
    browser.open(page)


def forget(browser: Browser) -> None:
    """Remove what the browser stored."""
    browser.run("localStorage.clear(); sessionStorage.clear()")


def begin(browser: Browser, name: str = "ann") -> None:
    """Type a name and start."""
    for letter in name:
        browser.key(letter)
    browser.key("Enter")
    browser.wait(TASK)


def progress(browser: Browser) -> str:
    """The count of answers."""
    return str(browser.run("document.querySelector('.task .row span').textContent"))


def press(browser: Browser, label: str) -> None:
    """Click the button whose text starts so."""
    browser.run(f"[...document.querySelectorAll('button')].find(e => e.textContent.startsWith({label!r})).click()")


def answer_rightly(browser: Browser) -> None:
    """Press the key of the grade that the context tells."""
    text = browser.run("document.querySelector('.texts article p').textContent")
    browser.key(str(grade_of(text)))


def downloaded(browser: Browser, folder: Path, name: str) -> Path:
    """The file that the page's download button gives."""
    folder.mkdir(exist_ok=True)
    browser.downloads(folder)
    press(browser, "Download")
    path, end = folder / name, time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < end, sorted(folder.iterdir())
        time.sleep(0.02)
    return path


def test_ten_answers_by_keyboard_reload_undo_and_attach(
    browser: Browser, run: merilo.Run, page: Path, tmp_path: Path
) -> None:
    """Ten answers by keyboard survive a reload; after undo and the rest, the file attaches and corrects the run."""
    fresh(browser, page)
    begin(browser)
    for _ in range(10):
        answer_rightly(browser)
    assert progress(browser) == "10 of 12"
    browser.run("window.left = true; location.reload()")
    browser.wait(f"!window.left && ({TASK})")
    assert progress(browser) == "10 of 12"
    shown = browser.run("document.querySelector('.texts').textContent")
    browser.key("0")
    assert progress(browser) == "11 of 12"
    browser.key("u")
    assert progress(browser) == "10 of 12"
    assert browser.run("document.querySelector('.texts').textContent") == shown
    answer_rightly(browser)
    answer_rightly(browser)
    browser.wait("document.querySelector('h1').textContent === 'All 12 tasks answered'")
    assert "merilo label RUN --labels labels-ann.jsonl" in browser.run("document.body.innerText")
    assert browser.errors() == []
    path = downloaded(browser, tmp_path / "got", "labels-ann.jsonl")
    assert [(each["label"], each["annotator"]) for each in read_tasks(path)] == [
        (str(grade_of(each["context"])), "ann") for each in read_tasks(path)
    ]
    assert len(TaskFile(path).tasks) == 12
    corrected = label_agreement(run, path, attach=True).metrics[METRIC].correction
    assert (corrected.labelled, corrected.estimate is not None) == (12, True)


def test_keys_move_skip_fold_and_help(browser: Browser, page: Path) -> None:
    """Arrows walk without answering, s skips, g opens the guidelines, ? lists the keys; unknown keys do nothing."""
    fresh(browser, page)
    begin(browser)
    title = "document.querySelector('h1').textContent"
    for key, place in (("ArrowRight", 2), ("s", 3), ("ArrowLeft", 2), ("x", 2), ("3", 2), ("ArrowLeft", 1)):
        browser.key(key)
        assert browser.run(title) == f"Task {place} of 12"
    assert progress(browser) == "0 of 12"
    browser.key("g")
    assert browser.run("document.querySelector('.guide').open") is True
    browser.key("1")
    assert browser.run("document.querySelector('.guide').open") is True
    browser.key("?")
    assert browser.run("document.querySelector('dialog').open") is True
    browser.key("1")
    assert progress(browser) == "1 of 12"
    browser.key("Escape")
    for _ in range(11):
        browser.key("s")
    assert browser.run(title) == "1 of 12 tasks answered"


def test_annotators_are_blind_to_each_other(browser: Browser, page: Path, tmp_path: Path) -> None:
    """A second annotator starts without answers, and each file has only its own; the first can continue."""
    fresh(browser, page)
    begin(browser)
    browser.key("2")
    press(browser, "ann")
    begin(browser, "安娜 b")
    assert progress(browser) == "0 of 12"
    assert browser.run("document.querySelectorAll('[aria-pressed=true]').length") == 0
    browser.key("0")
    press(browser, "Finish")
    assert "--labels labels-ann.jsonl --labels labels-安娜-b.jsonl" in browser.run("document.body.innerText")
    path = downloaded(browser, tmp_path / "got", "labels-安娜-b.jsonl")
    assert [each["label"] for each in read_tasks(path)] == ["0", *[None] * 11]
    press(browser, "Another")
    press(browser, "ann 1 of 12")
    browser.wait(TASK)
    assert progress(browser) == "1 of 12"


def test_a_downloaded_file_continues_elsewhere(browser: Browser, page: Path, tmp_path: Path) -> None:
    """A file from another machine brings its answers and name; one of other tasks is refused with a sentence."""
    fresh(browser, page)
    begin(browser)
    for key in "0120":
        browser.key(key)
    press(browser, "Finish")
    text = downloaded(browser, tmp_path / "got", "labels-ann.jsonl").read_text(encoding="utf-8")
    forget(browser)
    browser.open(page)
    for content in ('{"task": "t0", "label": "2"}\nnot json\n', text):
        browser.run(
            "(input => { const found = new DataTransfer(); "
            f"found.items.add(new File([{json.dumps(content)}], 'labels-ann.jsonl')); input.files = found.files; "
            "input.dispatchEvent(new Event('change')); })(document.querySelector('#file'))"
        )
        if content != text:
            browser.wait("document.querySelector('.bad').textContent.includes('no answers to these tasks')")
    browser.wait(TASK)
    assert progress(browser) == "4 of 12"
    assert browser.run("document.querySelector('.name').textContent") == "ann"


def test_numbers_are_typed_and_checked(browser: Browser, tmp_path: Path) -> None:
    """A task that asks for a value takes a number in its range; letters of commands work in the field."""
    run = judged_run(tmp_path / "run", contexts_rows(4), ["context_relevance(unit=sentence)"])
    page = tmp_path / "tasks.html"
    page.write_text(label_page([line.record() for line in label_run(run, samples=3).lines]), encoding="utf-8")
    fresh(browser, page)
    begin(browser)
    for typed, answered in (("2", 0), ("", 0), ("0,5", 1)):
        browser.run("document.querySelector('#value').value = ''")
        for letter in typed:
            browser.key(letter)
        browser.key("Enter")
        assert progress(browser) == f"{answered} of 3"
    browser.key("s")
    browser.key("u")
    assert progress(browser) == "0 of 3"


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1440])
def test_statement_stays_in_sight(browser: Browser, tmp_path: Path, width: int, dark: bool) -> None:
    """Long contexts scroll below a pinned statement, in any script; answers are at least 52 pixels high."""
    rows = [
        {
            **row,
            "user_input": "מי כתב את הספר?",
            "retrieved_contexts": ["安娜写了这本书。" * 2000, "Ann wrote it. " * 2000],
        }
        for row in STATEMENT_ROWS[:3]
    ]
    run = judged_run(tmp_path / "run", rows, ["faithfulness"], says_statements)
    page = tmp_path / "tasks.html"
    page.write_text(label_page([line.record() for line in label_run(run).lines]), encoding="utf-8")
    fresh(browser, page, width)
    browser.size(width, 844, dark=dark)
    begin(browser)
    browser.run("document.querySelector('.texts').scrollTo(0, 1e6)")
    place = browser.run("(r => [r.top, r.bottom])(document.querySelector('.pin .st').getBoundingClientRect())")
    assert 0 <= place[0] < place[1] < 400
    heights = browser.run("[...document.querySelectorAll('.answer')].map(e => e.getBoundingClientRect().height)")
    assert len(heights) == 2
    assert min(heights) >= 52
    assert browser.run("document.querySelector('.answer').getBoundingClientRect().bottom") < 844
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.run("getComputedStyle(document.querySelector('.pin p')).unicodeBidi") == "plaintext"
    assert browser.errors() == []
    assert set(browser.requests()) == {page.as_uri()}


def test_without_scripts_the_tasks_are_listed(browser: Browser, page: Path) -> None:
    """With scripts off, every task is in sight, with a note that answers need scripts."""
    browser.scripts(enabled=False)
    browser.open(page)
    browser.scripts(enabled=True)
    seen = browser.run("document.body.innerText")
    assert "Answers need scripts" in seen
    assert seen.count("How far does this context help") == 12
    assert browser.run("document.querySelector('#label').checkVisibility()") is False


def test_axe_finds_nothing(browser: Browser, axe: str, page: Path) -> None:
    """At 1440 and 390 pixels, light and dark: the start, a task with its guidelines, the end and the plain list."""
    fresh(browser, page)
    steps = [(restart, "html"), (begin, "html"), (finish, "html"), (without_scripts, "#plain")]
    assert violations(browser, axe, page.as_uri(), steps) == []


def restart(browser: Browser) -> None:
    """Show the start again if a name is stored."""
    if browser.run("document.querySelector('#name') === null"):
        press(browser, "ann")


def finish(browser: Browser) -> None:
    """Go to the end."""
    press(browser, "Finish")
    browser.wait("!document.querySelector('.task')")


def without_scripts(browser: Browser) -> None:
    """Show what is seen without scripts."""
    browser.run("document.documentElement.classList.remove('js')")


def test_hostile_texts_run_nothing(browser: Browser, tmp_path: Path) -> None:
    """200 hostile texts in every field: each task is opened and answered, and nothing runs."""
    rows = [
        {"id": f"{at}{text}", "user_input": f"What?{text}", "retrieved_contexts": [f"It is truly 1.{text}"]}
        for at, text in enumerate(HOSTILE)
    ]
    tasks = label_run(judged_run(tmp_path / "run", rows, [METRIC], likes), samples=200)
    page = tmp_path / "tasks.html"
    page.write_text(label_page([line.record() for line in tasks.lines]), encoding="utf-8")
    fresh(browser, page)
    browser.run("window.canary = () => { document.title = 'ran'; }; 0")
    begin(browser, "<img>")
    browser.run(
        "for (let at = 0; at < 200; at++) document.body.dispatchEvent("
        "new KeyboardEvent('keydown', { key: '1', bubbles: true })); 0"
    )
    assert browser.run("document.querySelector('h1').textContent") == "All 200 tasks answered"
    press(browser, "Look")
    for _ in range(3):
        browser.key("ArrowRight")
    assert browser.run("document.title") != "ran"
    assert browser.run("document.querySelectorAll('img, iframe, object, embed, svg, base').length") == 0
    assert browser.run("document.querySelectorAll('[onerror], [onload], [onfocus], [style]').length") == 0
    assert browser.errors() == []
