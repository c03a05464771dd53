"""`merilo report`."""

from command_line import Here

from merilo.commands.report.run import report_run
from merilo.commands.report.run_page import run_page


def test_one_run_is_a_report_and_two_are_a_comparison(run: Here) -> None:
    """The command writes one run as a report, two as a comparison, and prints the name of the file."""
    done = run.merilo("report", "out", "-o", "one.html")
    assert (done.returncode, done.stdout) == (0, "saved in one.html\n")
    assert (run.path / "one.html").read_text(encoding="utf-8") == run_page(report_run(run.path / "out"))
    assert run.merilo("report", "out", "out", "-o", "two.html").returncode == 0
    assert "Differences" in (run.path / "two.html").read_text(encoding="utf-8")


def test_errors_write_no_file(run: Here) -> None:
    """A missing run and a missing argument are errors in a sentence, and write no file."""
    missing = run.merilo("report", "none", "-o", "x.html")
    assert missing.returncode != 0
    assert "none" in missing.stderr
    assert run.merilo("report", "-o", "x.html").returncode != 0
    assert not (run.path / "x.html").exists()
