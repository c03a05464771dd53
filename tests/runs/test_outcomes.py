"""An outcome's line is its record as compact JSON, whatever it holds."""

import json

import pytest

from merilo.judging.kinds.contexts import RelevanceVerdict
from merilo.metrics.base import Evidence, EvidenceTarget, Score
from merilo.runs.outcomes import Result, outcome_from

KEY = bytes(range(16))


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
