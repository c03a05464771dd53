"""The ledger of a run directory: what it keeps whatever ends its process."""

import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merilo.errors import RunError
from merilo.runs.ledger import Balance, Charge, Charges, Ledger

tokens = st.none() | st.integers(0, 10**7)
dollars = st.none() | st.floats(0, 1e6, allow_subnormal=False)
inputs = st.builds(
    Charge,
    tokens,
    st.just(0),
    dollars,
    st.just(True),
    st.integers(0, 10**5),
    st.floats(0, 1e3),
    cached_tokens=st.just(0),
)
replies = st.builds(Charge, tokens, tokens, dollars, st.booleans(), st.just(0), st.just(0.0), st.integers(0, 10**7))
Step = Callable[[Ledger, int], None]
ends: st.SearchStrategy[Step | None] = st.one_of(
    st.none(),
    replies.map(lambda charge: lambda ledger, number: ledger.replied(number, charge)),
    st.just(Ledger.not_billed),
    st.just(Ledger.not_sent),
    st.just(Ledger.leave),
    st.integers(0, 2 * 10**5).map(lambda received: lambda ledger, number: ledger.lost(number, received)),
    st.just(lambda ledger, number: ledger.lost(number, complete=True)),
)


def filled(path: Path, steps: list[tuple[Charge, Step | None]]) -> Ledger:
    """A ledger with these requests, each with what ended it; None: it is in flight."""
    ledger = Ledger.open(path)
    numbers = [ledger.sent(charge) for charge, _ in steps]
    for number, (_, end) in zip(reversed(numbers), reversed(steps), strict=True):
        if end is not None:
            end(ledger, number)
    return ledger


@given(st.lists(st.tuples(inputs, ends), min_size=1, max_size=8))
def test_a_killed_process_leaves_the_same_balance(steps: list[tuple[Charge, Step | None]]) -> None:
    """What another process reads without the first having closed its file equals what the first one knew."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ledger.jsonl")
        ledger = filled(path, steps)
        found, known = Ledger.open(path).balance, ledger.balance
        assert found.answered == known.answered
        assert found.requests == known.requests == ledger.requests
        assert found.unanswered.requests == known.unanswered.requests
        assert found.unanswered.usd == pytest.approx(known.unanswered.usd)
        assert found.unanswered.output_tokens == known.unanswered.output_tokens
        assert found.unanswered.reply_usd == pytest.approx(known.unanswered.reply_usd)
        ledger.close()


@given(st.lists(st.tuples(inputs, ends), min_size=1, max_size=5), st.data())
def test_a_ledger_cut_anywhere_is_continued_or_refused(
    steps: list[tuple[Charge, Step | None]], data: st.DataObject
) -> None:
    """Cut at any byte, a ledger is read up to its last whole line and continued there; nothing is read as 0."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ledger.jsonl")
        filled(path, steps).close()
        whole = path.read_bytes()
        end = data.draw(st.integers(0, len(whole)))
        path.write_bytes(whole[:end])
        lines = whole[:end].count(b"\n")
        if not lines:
            with pytest.raises(RunError, match="damaged"):
                Ledger.open(path)
            return
        ledger = Ledger.open(path)
        assert ledger.lines == lines
        before = ledger.requests
        ledger.sent(Charge(1, 0, 0.1, estimated=True))
        ledger.close()
        assert Ledger.open(path, lines=lines + 1).requests == before + 1


def test_lines_with_a_checksum_are_read_and_others_are_damage(tmp_path: Path) -> None:
    """A ledger of an earlier release, whose lines end in a checksum, is continued; one with other lines is refused."""
    path = tmp_path / "ledger.jsonl"
    path.write_text('["ledger",1,"5b0c1a2f"]\n["sent",1,400,0.25,0,0.0,"00c0ffee"]\n["unbilled",1,"deadbeef"]\n')
    ledger = Ledger.open(path)
    ledger.replied(ledger.sent(Charge(400, 0, 0.25, estimated=True)), Charge(380, 20, 0.5))
    ledger.close()
    assert Ledger.open(path, lines=5).balance == Balance(Charges(1, 380, 20, 0.5), unbilled=1)
    for line in ('["reply",7,1,1,0.1,0]', '["sold",2]', "[]", "{}", "7", "sent"):
        other = tmp_path / "other.jsonl"
        other.write_text(f'["ledger",1]\n{line}\n')
        with pytest.raises(RunError, match="damaged"):
            Ledger.open(other)


def test_a_line_is_written_before_its_request_is_sent(tmp_path: Path) -> None:
    """`sent` returns once the entry is in the file."""
    ledger = Ledger.open(tmp_path / "l")
    assert not (tmp_path / "l").exists()
    ledger.sent(Charge(400, 0, 0.25, estimated=True))
    assert Ledger.open(tmp_path / "l", lines=2).balance == Balance(unanswered=Charges(1, 400, 0, 0.25, 0.25))
    ledger.close()


@pytest.mark.parametrize(
    ("received", "complete", "charge"),
    [
        (0, False, (0, 0.25, 2.0)),
        (30, False, (30, 0.85, 1.4)),
        (150, False, (100, 2.25, 0.0)),
        (0, True, (0, 0.25, 0.0)),
    ],
)
def test_what_arrived_of_a_lost_reply_is_charged(
    tmp_path: Path, received: int, complete: bool, charge: tuple[int, float, float]
) -> None:
    """What arrived of the longest reply is charged, at most its limit, and the rest may be billed."""
    ledger = Ledger.open(tmp_path / "l")
    number = ledger.sent(Charge(400, 0, 0.25, estimated=True, reply_tokens=100, reply_usd=2.0))
    ledger.lost(number, received, complete=complete)
    ledger.close()
    for found in (ledger.balance.unanswered, Ledger.open(tmp_path / "l", lines=3).balance.unanswered):
        assert (found.output_tokens, found.usd, found.reply_usd) == pytest.approx(charge)


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that fails is taken back, and its request is not counted as sent."""
    ledger = Ledger.open(tmp_path / "l")
    ledger.sent(Charge(400, 0, 0.25, estimated=True))
    whole = (tmp_path / "l").read_bytes()
    write = os.write

    def full(file: int, data: bytes) -> int:
        if len(data) < 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data[:-19])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        ledger.sent(Charge(400, 0, 0.25, estimated=True))
    monkeypatch.undo()
    assert (tmp_path / "l").read_bytes() == whole
    assert ledger.requests == 1
    ledger.sent(Charge(400, 0, 0.25, estimated=True))
    ledger.close()
    assert Ledger.open(tmp_path / "l", lines=3).requests == 2


def test_a_newer_ledger_is_refused(tmp_path: Path) -> None:
    """A ledger of a later format is not read as this one."""
    ledger = Ledger(tmp_path / "l")
    ledger._file = os.open(tmp_path / "l", os.O_WRONLY | os.O_CREAT)
    ledger.lines = 1
    ledger._write('["ledger",2')
    ledger.close()
    with pytest.raises(RunError, match="has format 2; this merilo reads format 1"):
        Ledger.open(tmp_path / "l")
