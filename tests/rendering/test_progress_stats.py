"""What a run is said to cost in the end and to take still, from made-up runs whose end is known."""

import pytest
from each_case import each_case

from merilo.engine.progress import Traffic
from merilo.rendering.progress_line import ProgressMeter, ProgressStats

SAMPLE_USD = 0.02


def run_to(
    share: float, *, samples: int = 1_000, per_s: float = 10.0, block: int = 1, ahead: int = 0, known: int = 0
) -> ProgressStats:
    """What is said when so much of a run is done that is looked at four times a second.

    `block` samples at a time are finished, `ahead` more are always paid for; `known` ones were answered before.
    """
    pacer, now, paid = ProgressMeter(samples, 0.0), 0.0, 0.0
    if known:
        pacer.look(0.1, known, Traffic(known=known))
    while True:
        now += 0.25
        paid = min(samples - known, now * per_s)
        done = known + int(max(0.0, paid - ahead) // block) * block
        done = samples if paid == samples - known else done
        traffic = Traffic(sent=1 + int(paid), in_flight=16, cost_usd=paid * SAMPLE_USD)
        pace = pacer.look(now, done, traffic)
        if done >= share * samples:
            return pace


@each_case("known", [0, 400])
@each_case(("block", "ahead"), [(1, 0), (32, 0), (1, 20), (32, 30)])
@each_case("share", [0.5, 0.7, 0.95])
def test_time_and_cost_of_a_steady_run(share: float, block: int, ahead: int, known: int) -> None:
    """It is told from the middle on; the more exactly, the fewer samples are paid for and not finished."""
    pace = run_to(share, block=block, ahead=ahead, known=known)
    assert pace.seconds_left is not None
    assert pace.cost_in_all_usd is not None
    left = (1_000 - pace.done) / 10.0 - ahead / 10.0
    assert pace.seconds_left == pytest.approx(max(0, left), rel=0.35 if ahead else 0.12, abs=(32 + ahead) / 10)
    assert pace.cost_in_all_usd == pytest.approx((1_000 - known) * SAMPLE_USD, rel=0.25 if ahead else 0.06)


def test_a_run_that_slows_down_takes_longer() -> None:
    """The last minute counts: a minute after the rate fell to a tenth, the time left is by the new rate."""
    pacer, done = ProgressMeter(100_000, 0.0), 0.0
    for quarter in range(4 * 600):
        done += 25 if quarter < 4 * 300 else 2.5
        pace = pacer.look(quarter / 4, int(done), Traffic(sent=int(done)))
    assert pace.seconds_left == pytest.approx((100_000 - done) / 10, rel=0.05)


def test_without_a_request_there_is_no_rate_and_no_cost() -> None:
    """A judge on this machine costs nothing and sends nothing; the time left is told all the same."""
    pacer = ProgressMeter(100, 0.0)
    for quarter in range(1, 41):
        pace = pacer.look(quarter / 4, quarter, Traffic(in_flight=3))
    assert (pace.requests_per_s, pace.in_flight, pace.cost_usd, pace.cost_in_all_usd) == (None, 0, None, None)
    assert pace.seconds_left == pytest.approx(15.0, rel=0.1)


def test_a_cost_that_is_not_known_stays_so() -> None:
    """None is unknown: it becomes neither 0 nor an estimate."""
    pacer = ProgressMeter(100, 0.0)
    for quarter in range(1, 200):
        pace = pacer.look(quarter / 4, min(100, quarter), Traffic(sent=quarter, cost_usd=None))
    assert (pace.cost_usd, pace.cost_in_all_usd) == (None, None)
