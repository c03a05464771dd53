"""Reports for build servers: escaping, limits and the step summary."""

from pathlib import Path

import pytest
from each_case import each_case

from merilo.errors import UsageError
from merilo.rendering.ci import MAX_CHARS, Annotation, blocks_within, check_reports, details, publish_on_github


@each_case(
    ("title", "message", "line"),
    [
        ("gate", "95 % of a", "::error title=gate::95 %25 of a"),
        ("a:b,c", "x:y,z", "::error title=a%3Ab%2Cc::x:y,z"),
        ("gate", "one\n::error::two", "::error title=gate::one%0A::error::two"),
        ("gate", "one\r::set-env::two", "::error title=gate::one ::set-env::two"),
        ("a\n::debug::b", "c", "::error title=a %3A%3Adebug%3A%3Ab::c"),
        ("gate", "\x1b[31m", "::error title=gate::\\x1b[31m"),
    ],
)
def test_an_annotation_is_one_line(title: str, message: str, line: str) -> None:
    """Percent signs, line ends, colons and commas are escaped as GitHub decodes them; no text starts a command."""
    assert str(Annotation("error", title, message)) == line


def test_a_report_fits_into_a_comment() -> None:
    """Optional blocks are left out from the end once the report would be too long."""
    text = blocks_within(["head"], ["a" * 40_000, "b" * 40_000, "c"])
    assert text == f"head\n\n{'a' * 40_000}\n"
    assert len(text) < MAX_CHARS


def test_data_is_code_in_a_details_block() -> None:
    """Tags in a summary are escaped, and backticks in the text cannot end its fence."""
    text = details("</code><b>", "```\n@you\n")
    assert "<b>" not in text
    assert "````text\n```\n@you\n````" in text


def test_the_step_summary_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture) -> None:
    """Each report is appended; at most ten errors and ten warnings are printed, on standard error."""
    path = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    publish_on_github("one\n", [Annotation(level, "t", "m") for level in ("warning", "error") for _ in range(12)])
    publish_on_github("two\n", [])
    assert path.read_text(encoding="utf-8") == "one\n\ntwo\n\n"
    out, err = capfd.readouterr()
    assert out == ""
    assert err.splitlines() == ["::error title=t::m"] * 10 + ["::warning title=t::m"] * 10


def test_reports_are_checked_before_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """--github outside a workflow, and two reports on standard output, are usage errors."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    with pytest.raises(UsageError, match="GITHUB_STEP_SUMMARY"):
        check_reports(markdown=None, json=False, github=True)
    with pytest.raises(UsageError, match="give --markdown a file"):
        check_reports(markdown="-", json=True, github=False)
