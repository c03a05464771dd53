"""Every Python and console block of README.md and docs/ runs; how a page steers this: docs_page.py."""

import re
import tomllib
from pathlib import Path

import agent_objects
import docs_page
import pytest
from docs_page import run_page
from each_case import each_case

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
WORDS = ROOT / "tools" / "pages.toml"
ALL_PAGES = [path for path in (ROOT / "README.md", *sorted(DOCS.rglob("*.md"))) if path.is_file()]
PAGES = [path for path in ALL_PAGES if docs_page.needed(path) is None]
FRAMEWORK_PAGES = [path for path in ALL_PAGES if docs_page.needed_somewhere(path)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_runs_as_shown(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """What a page tells the reader to run does run, with the exit status and output that it shows.

    Pages that begin with `merilo demo` find its runs in place, so that it prints the same in a tenth of the time.
    """
    if shown := re.search(r"^\$ merilo demo(?: --out (\S+))?$", page.read_text(encoding="utf-8"), re.MULTILINE):
        request.getfixturevalue("demo").copied(tmp_path / (shown[1] or "merilo-demo"))
    done = run_page(page, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.extras
@pytest.mark.parametrize("page", FRAMEWORK_PAGES, ids=lambda page: page.stem)
def test_a_page_of_a_framework_runs_as_shown(page: Path, tmp_path: Path) -> None:
    """The same holds for a page or section that needs a framework, where it is installed."""
    if not any(map(docs_page.is_installed, docs_page.needed_somewhere(page))):
        pytest.skip("the framework is not installed here")
    names = ("OPENAI_BASE_URL", "OPENAI_API_BASE")  # the clients of the frameworks read one of them
    done = run_page(page, tmp_path, OPENAI_API_KEY="none", **dict.fromkeys(names, agent_objects.address()))
    assert done.returncode == 0, done.stderr


def test_pages_keep_to_their_words() -> None:
    """README and docs have the pages of tools/pages.toml, each with no more words than are given there."""
    most = {f"{name}.md": words for name, words in tomllib.loads(WORDS.read_text(encoding="utf-8")).items()}
    names = [str(page.relative_to(page.parent if page.name == "README.md" else DOCS)) for page in ALL_PAGES]
    words = {name: len(page.read_text(encoding="utf-8").split()) for name, page in zip(names, ALL_PAGES, strict=True)}
    assert words.keys() == most.keys()
    assert {name: count for name, count in words.items() if count > most[name]} == {}


def test_every_page_is_linked_from_the_first_page() -> None:
    """docs/index.md links each page of docs/ once, and no page that is not there."""
    linked = re.findall(r"\]\(([\w./-]+\.md)\)", (DOCS / "index.md").read_text(encoding="utf-8"))
    there = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md") if page.name != "index.md"]
    assert sorted(linked) == sorted(there)


GOOD = """
<!-- file: data/word.txt -->
```text
good
```
```python
word = open("data/word.txt").read().strip()
```
Text between.
```python
print("a", word, "day", 7)
```
<!-- output -->
```text
a  good ... 7
```
<!-- output -->
```console
$ echo one \\
    two
one two
$ make nothing-that-exists
```
<!-- exit: 3 -->
```console
$ exit 3
```
<!-- norun: it would fail -->
```python
raise SystemExit(1)
```
## A section
<!-- needs: nothing.of_this_name -->
```python
raise SystemExit(2)
```
## The next one
```python
word += ", read"
print(word)
```
<!-- output -->
```text
good, read
```
"""


def test_fences_share_a_folder_and_a_namespace(tmp_path: Path) -> None:
    """Files, names, exit statuses, shown output, needs and exceptions of a page are understood."""
    page = tmp_path / "page.md"
    page.write_text(GOOD, encoding="utf-8")
    assert run_page(page, tmp_path).stderr == ""


@each_case(
    ("text", "complaint"),
    [
        ("```python\nx = 1\n1 / 0\n```\n", 'page.md", line 3'),
        ("```console\n$ exit 2\n```\n", "ended with 2, not 0"),
        ("<!-- exit: 2 -->\n```console\n$ true\n```\n", "ended with 0, not 2"),
        ("<!-- output -->\n```console\n$ echo one\ntwo\n```\n", "the page shows\ntwo"),
        ("```python\nprint(1)\n```\n<!-- output -->\n```text\n2\n```\n", "the page shows\n2"),
        ("<!-- norun -->\n```python\n1 / 0\n```\n", "norun needs a reason"),
    ],
)
def test_a_page_that_lies_fails(tmp_path: Path, text: str, complaint: str) -> None:
    """A block that raises, ends otherwise or prints something else is reported with its place."""
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    done = run_page(page, tmp_path)
    assert done.returncode != 0
    assert complaint in done.stderr


OUTDATED = """
<!-- output -->
```console
$ seq 1 3
1
7
$ printf 'alpha 12\\nbeta 3\\ngamma 4\\ndelta 5\\nend 6\\n'
alpha 11
...
delta 4
...
```

- In a list:

  <!-- output -->
  ```console
  $ printf 'took 12 s\\nbeta 3\\n'
  took ... s
  beta 4
  ```
"""


def test_outdated_outputs_are_renewed(tmp_path: Path) -> None:
    """`--outputs` replaces the lines that differ and keeps `...`; a second time changes nothing."""
    page = tmp_path / "page.md"
    page.write_text(OUTDATED, encoding="utf-8")
    assert run_page(page, tmp_path, "--outputs").returncode == 0
    renewed = page.read_text(encoding="utf-8")
    changed = {"7": "2\n3", "alpha 11": "alpha 12", "delta 4": "delta 5", "  beta 4": "  beta 3"}
    assert renewed.splitlines() == [
        new for line in OUTDATED.splitlines() for new in changed.get(line, line).splitlines() or [""]
    ]
    assert run_page(page, tmp_path, "--outputs").returncode == 0
    assert page.read_text(encoding="utf-8") == renewed
