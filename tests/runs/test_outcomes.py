"""An outcome's line is its record as compact JSON, whatever it holds."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from merilo.judging.kinds.relevance import RelevanceVerdict
from merilo.judging.kinds.statements import Statement, StatementsVerdict
from merilo.judging.kinds.support import SupportLabel, SupportVerdict
from merilo.judging.matrix import MatrixVerdict
from merilo.judging.verdicts import Failure, FailureKind, Verdict
from merilo.metrics.base import Evidence, EvidenceTarget, Failed, Outcome, Score, Undefined
from merilo.runs.outcomes import Result, outcome_from

KEY = bytes(range(16))
TEXTS = st.text(st.characters(codec="utf-8"))
NUMBERS = st.floats(allow_nan=False)
VERDICTS: st.SearchStrategy[Verdict] = st.one_of(
    st.builds(RelevanceVerdict, st.integers(0, 2), st.tuples(st.integers(0, 9)), TEXTS, st.none() | st.floats(0, 1)),
    st.builds(SupportVerdict, st.sampled_from(SupportLabel), reason=TEXTS),
    st.builds(StatementsVerdict, st.lists(st.builds(Statement, TEXTS, st.integers(0, 9))).map(tuple)),
    st.just(MatrixVerdict.of([[0.1, 2.0], [3.0, -1.5]])),
)
PIECES = st.builds(Evidence, st.sampled_from(EvidenceTarget), st.integers(0, 99), VERDICTS, TEXTS, st.none() | NUMBERS)
OUTCOMES: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(
        Score,
        NUMBERS | st.integers(0, 1),
        st.lists(PIECES, max_size=3).map(tuple),
        st.dictionaries(TEXTS, st.none() | st.integers(), max_size=3),
        st.lists(TEXTS, max_size=2).map(tuple),
    ),
    st.builds(Undefined, TEXTS),
    st.builds(Failed, st.builds(Failure, st.sampled_from(FailureKind), TEXTS)),
)


@given(OUTCOMES, TEXTS, TEXTS, st.lists(st.just(KEY), max_size=3).map(tuple))
def test_a_line_says_what_the_record_says(outcome: Outcome, sample: str, metric: str, trail: tuple[bytes, ...]) -> None:
    """The line ends in one line end, holds no other, and reads back as the record."""
    evidence = outcome.evidence if isinstance(outcome, Score) else ()
    result = Result(sample, metric, outcome, trail, {id(piece.verdict): KEY for piece in evidence[:1]})
    line = result.line()
    assert line.count("\n") == 1
    assert json.loads(line) == json.loads(json.dumps(result.record()))
    assert list(json.loads(line)) == list(result.record())


def test_a_line_is_compact_and_keeps_signs() -> None:
    """No blanks between tokens, and no sign outside ASCII is escaped."""
    piece = Evidence(EvidenceTarget.CONTEXT, 0, RelevanceVerdict(1, (0,), 'Да, "so"', 0.25))
    line = Result("река", "m", Score(0.5, (piece,), {"contexts": 1}), (KEY,), {id(piece.verdict): KEY}).line()
    hexed = KEY.hex()
    assert line == (
        '{"sample":"река","metric":"m","outcome":"score","value":0.5,"counts":{"contexts":1},"evidence":[{"about":'
        '"context","index":0,"kind":"relevance","verdict":{"grade":1,"evidence":[0],"reason":"Да, \\"so\\"",'
        f'"probability":0.25}},"question":"{hexed}"}}],"trail":["{hexed}"]}}\n'
    )


@pytest.mark.parametrize("value", [0.0, 1.0, 1e-9, 1e300, 1 / 3, float("inf")])
def test_a_number_is_read_back_exactly(value: float) -> None:
    """A score comes back from its line bit for bit, infinite ones too."""
    read = outcome_from(json.loads(Result("s", "m", Score(value)).line()))
    assert isinstance(read, Score)
    assert read.value == value
