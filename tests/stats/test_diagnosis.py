"""Causes of failing answers from repeated draws: known values, the rule of each verdict, and its error rates."""

from math import comb

import numpy as np
import pytest

from merilo.stats.diagnosis import ARMS, Arm, Case, Cause, Form, exact_table, power, verdicts, wanted

NAMED = {Cause.MISSING, Cause.ORDER, Cause.OTHERS, Cause.WORDING}


def diagnosed(
    rng: np.random.Generator, form: Form, chances: tuple[float, float, float], only: float, number: int = 20
) -> tuple[list[Cause], list[int]]:
    """Return the verdicts on questions of one kind, and the draws that each took."""
    own = {Arm.ONLY: only, **dict(zip(ARMS[form], chances, strict=True))}
    draws: list[dict[Arm, list[bool]]] = [{} for _ in range(number)]
    while any(lacking := wanted([Case(form, each) for each in draws])):
        for each, arms in zip(draws, lacking, strict=True):
            for arm, most in arms.items():
                known = each.setdefault(arm, [])
                known += (rng.random(most - len(known)) < own[arm]).tolist()
    found = verdicts([Case(form, each) for each in draws])
    return [each.cause for each in found], [sum(map(len, each.values())) for each in draws]


def test_the_exact_test_has_known_p_values() -> None:
    """Boschloo's p of 4 of 4 against 0 of 4 is (1/2)^8: both outcomes under the least favourable probability."""
    assert exact_table(4)[4, 0] == pytest.approx(1 / 256, rel=1e-3)
    assert exact_table(8)[8, 0] == pytest.approx(1 / 65_536, rel=1e-3)
    assert exact_table(4)[2, 2] > 0.5


@pytest.mark.parametrize("draws", [4, 8])
def test_the_exact_test_keeps_its_level(draws: int) -> None:
    """Under any common probability, a p-value of at most x has at most the probability x."""
    table = exact_table(draws)
    k = np.arange(draws + 1)
    ways = np.array([comb(draws, each) for each in k])
    for chance in np.linspace(0.05, 0.95, 19):
        mass = ways * chance**k * (1 - chance) ** (draws - k)
        both = np.outer(mass, mass)
        for level in (0.01, 0.02, 0.05, 0.2):
            assert both[table <= level].sum() <= level + 1e-6


@pytest.mark.parametrize(
    ("form", "right", "cause"),
    [
        (Form.MISSING, (0, 0, 4), Cause.MISSING),
        (Form.WHOLE, (0, 4, 4), Cause.ORDER),
        (Form.WHOLE, (0, 0, 4), Cause.OTHERS),
        (Form.CUT, (0, 0, 4), Cause.WORDING),
        (Form.CUT, (0, 4, 4), Cause.ORDER),
        (Form.MISSING, (2, 0, 4), Cause.UNSTABLE),
        (Form.MISSING, (0, 3, 4), Cause.NOT_SHOWN),
    ],
)
def test_each_pattern_has_its_verdict(form: Form, right: tuple[int, ...], cause: Cause) -> None:
    """The verdict on the first look, in the order of the table of verdicts."""
    arms = {arm: [True] * number + [False] * (4 - number) for arm, number in zip(ARMS[form], right, strict=True)}
    (found,) = verdicts([Case(form, arms)])
    assert found.cause is cause


def test_evidence_that_does_not_heal_is_not_retrieval() -> None:
    """Eight draws with nothing but the evidence, of which at most one is right, show that retrieval is not at fault."""
    arms = {arm: [False] * 4 for arm in ARMS[Form.MISSING]}
    assert wanted([Case(Form.MISSING, arms)]) == [{Arm.ONLY: 8}]
    for right, cause in ((1, Cause.ELSEWHERE), (2, Cause.NOT_SHOWN)):
        only = [True] * right + [False] * (8 - right)
        (found,) = verdicts([Case(Form.MISSING, {**arms, Arm.ONLY: only})])
        assert found.cause is cause


def test_an_arm_with_the_contexts_of_a_control_is_no_candidate() -> None:
    """It gets no draws and names no cause; the other candidate is compared with the unchanged application."""
    wrong, right = [False] * 4, [True] * 4
    idle = frozenset({Arm.FIRST})
    assert wanted([Case(Form.WHOLE, idle=idle)]) == [{Arm.UNCHANGED: 4, Arm.ONLY: 4}]
    arms = {Arm.UNCHANGED: wrong, Arm.FIRST: right}
    assert verdicts([Case(Form.WHOLE, {**arms, Arm.ONLY: wrong}, idle=idle)])[0].cause is Cause.NOT_SHOWN
    assert verdicts([Case(Form.WHOLE, {Arm.UNCHANGED: wrong, Arm.ONLY: right}, idle=idle)])[0].cause is Cause.OTHERS
    none = Case(Form.WHOLE, {Arm.UNCHANGED: wrong}, idle=frozenset({Arm.FIRST, Arm.ONLY}))
    assert verdicts([none]) == [(Cause.NOT_SHOWN, 1.0)]
    assert wanted([none]) == [{Arm.ONLY: 8}], "the evidence alone may still show that retrieval is not at fault"


@pytest.mark.parametrize(
    ("form", "chances", "cause", "least"),
    [
        (Form.MISSING, (0.05, 0.05, 0.9), Cause.MISSING, 0.93),
        (Form.WHOLE, (0.1, 0.9, 0.9), Cause.ORDER, 0.84),
        (Form.WHOLE, (0.1, 0.1, 0.9), Cause.OTHERS, 0.78),
        (Form.CUT, (0.1, 0.1, 0.9), Cause.WORDING, 0.78),
        (Form.MISSING, (0.05, 0.05, 0.05), Cause.ELSEWHERE, 0.86),
    ],
)
def test_true_causes_are_found(form: Form, chances: tuple[float, float, float], cause: Cause, least: float) -> None:
    """Evidence that heals nine times of ten is named at the simulated rate, with about 20 draws and at most 28."""
    rng = np.random.default_rng(7)
    found = [diagnosed(rng, form, chances, chances[2]) for _ in range(30)]
    assert np.mean([each is cause for causes, _ in found for each in causes]) > least
    draws = [number for _, numbers in found for number in numbers]
    assert np.mean(draws) < 23
    assert max(draws) <= 28


@pytest.mark.parametrize("form", [Form.MISSING, Form.WHOLE])
@pytest.mark.parametrize("chance", [0.2, 0.45])
def test_answers_right_by_chance_have_no_cause(form: Form, chance: float) -> None:
    """If no passage matters, a cause is named in at most one of a hundred failures."""
    rng = np.random.default_rng(8)
    found = [cause for _ in range(40) for cause in diagnosed(rng, form, (chance, chance, chance), chance)[0]]
    assert np.mean([each in NAMED for each in found]) < 0.01


def test_more_questions_show_a_gain_more_often() -> None:
    """A gain of 14 in 100 is rarely shown by 30 questions, and mostly by 100; none is shown only by chance."""
    assert power(30) < 0.3
    assert power(100) > 0.6
    assert power(100, gain=0.0) <= 0.03
