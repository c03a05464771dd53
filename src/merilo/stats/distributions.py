"""Distribution functions and quantiles: normal, Student's t, beta and gamma; and a root by bisection.

merilo needs these few functions only, so it does not install scipy (139 MB with its linear algebra). The tests compare
them with scipy over the range in use: relative error below 1e-9, also far in the tails and for large parameters.

Sources: NIST Digital Library of Mathematical Functions (dlmf.nist.gov), sections 5.11 (Stirling's series), 8.7 and 8.9
(incomplete gamma function), 8.17 (incomplete beta function).
"""

from __future__ import annotations

from functools import lru_cache
from math import erfc, exp, fabs, inf, lgamma, log, log1p, nan, pi, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np
    from numpy.typing import NDArray

_NORMAL: Final = NormalDist()
_TINY: Final = 1e-300
_EPSILON: Final = 1e-16
_STIRLING_FROM: Final = 10.0
"""From here 8 terms of Stirling's series are exact to the last bit."""
_EXPANSION_FROM: Final = 3.0
"""Fewer degrees of freedom are too far from the normal distribution for the expansion."""
_STIRLING: Final = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
"""Coefficients of 1/x, 1/x³, ...; DLMF 5.11.1."""


def normal_cdf(x: float) -> float:
    """Return the probability that a standard normal variable is at most `x`."""
    return 0.5 * erfc(-x / sqrt(2))


def normal_cdfs(values: Iterable[float]) -> NDArray[np.float64]:
    """Return `normal_cdf` of each value."""
    import numpy as np

    return np.asarray([normal_cdf(value) for value in values])


def normal_quantile(p: float) -> float:
    """Return the standard normal quantile; -inf for 0, inf for 1 and nan for anything outside 0 to 1.

    Source: Wichura, Applied Statistics 37 (1988), AS 241, as implemented by `statistics.NormalDist`.
    """
    if 0 < p < 1:
        return _NORMAL.inv_cdf(p)
    return -inf if p == 0 else inf if p == 1 else nan


def t_cdf(freedom: float, t: float) -> float:
    """Return the probability that Student's t with `freedom` > 0 degrees of freedom is at most `t`. DLMF 8.17."""
    if t == 0:
        return 0.5
    tail = 0.5 * _beta_cdf(freedom / 2, 0.5, freedom / (freedom + t * t), t * t / (freedom + t * t))
    return tail if t < 0 else 1 - tail


@lru_cache(maxsize=4096)
def student_quantile(freedom: float, p: float) -> float:
    """Return the quantile of Student's t with `freedom` > 0 degrees of freedom, for 0 < p < 1."""
    if p == 0.5:
        return 0.0
    tail = min(p, 1 - p)
    found = _student_by_newton(freedom, tail) if freedom >= _EXPANSION_FROM else None
    if found is None:
        high = 1.0
        while t_cdf(freedom, -high) > tail:
            high *= 2
        found = root(lambda t: t_cdf(freedom, -t) - tail, 0.0, high)
    return found if p > 0.5 else -found


def _student_by_newton(freedom: float, tail: float) -> float | None:
    """Return the upper quantile by Newton's method from an expansion; None if it does not converge.

    Source of the expansion: Cornish & Fisher; Abramowitz & Stegun 26.7.5.
    """
    z = -normal_quantile(tail)
    cube, fifth = z**3, z**5
    t = z + (cube + z) / (4 * freedom) + (5 * fifth + 16 * cube + 3 * z) / (96 * freedom**2)
    log_scale = lgamma((freedom + 1) / 2) - lgamma(freedom / 2) - 0.5 * log(freedom * pi)
    for _ in range(12):
        density = exp(log_scale - (freedom + 1) / 2 * log1p(t * t / freedom))
        step = (t_cdf(freedom, -t) - tail) / density
        t += step
        if fabs(step) <= 4e-15 * t:
            return t
    return None


def gamma_quantile(a: float, p: float) -> float:
    """Return the quantile of the gamma distribution with shape `a` > 0 and scale 1, for 0 < p < 1."""
    # The smaller tail has the digits: P(a, x), which grows with x, or Q(a, x), which falls.
    tail, wanted, high = (0, p, a + 1.0) if p <= 0.5 else (1, 1 - p, a + 1.0)
    while (_gammas(a, high)[tail] - wanted) * (1 - 2 * tail) < 0:
        high *= 2
    return root(lambda x: _gammas(a, x)[tail] - wanted, 0.0, high)


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function with opposite signs at both ends is 0, to the last bits.

    Source: the ITP method of Oliveira & Takahashi, ACM Transactions on Mathematical Software 47 (2021): interpolation
    that never needs many more steps than bisection.
    """
    at_low, at_high = function(low), function(high)
    if at_low == 0 or at_high == 0:
        return low if at_low == 0 else high
    sign = 1.0 if at_high > 0 else -1.0
    for step in range(200):
        width = high - low
        middle = low + width / 2
        tolerance = 4 * _EPSILON * max(fabs(low), fabs(high))
        if width <= 2 * tolerance or middle in {low, high}:
            break
        # Interpolated, but every third time the middle, so that the bracket always shrinks.
        at, margin = (at_high * low - at_low * high) / (at_high - at_low), 1e-9 * (high - low)
        at = middle if step % 3 == 2 else min(max(at, low + margin), high - margin)
        value = function(at)
        if value * sign > 0:
            high, at_high = at, value
        elif value * sign < 0:
            low, at_low = at, value
        else:
            return at
    return low + (high - low) / 2


# -- the incomplete beta and gamma functions --------------------------------------------------------


def _stirling(x: float) -> float:
    """Return ln Γ(x) - ((x - 1/2) ln x - x + ln(2π)/2) for x >= 10. DLMF 5.11.1."""
    inverse = 1 / x
    square, term, total = inverse * inverse, inverse, 0.0
    for coefficient in _STIRLING:
        total += coefficient * term
        term *= square
    return total


def _beta_factor(a: float, b: float, x: float, y: float) -> float:
    """Return x^a y^b / B(a, b), where y = 1 - x is given because it may have more digits.

    For large parameters the logarithms of gamma functions cancel, so Stirling's series is used for their differences.
    """
    if min(a, b) >= _STIRLING_FROM:
        total = a + b
        # x a/(a+b) ... : both logarithms are near 0 where the result is large.
        from_x, from_y = _log_ratio(x * total, a), _log_ratio(y * total, b)
        scale = sqrt(a * b / (2 * pi * total))
        return scale * exp(a * from_x + b * from_y + _stirling(total) - _stirling(a) - _stirling(b))
    small, large = min(a, b), max(a, b)
    if large < _STIRLING_FROM:
        return exp(a * log(x) + b * log(y) + lgamma(a + b) - lgamma(a) - lgamma(b))
    # ln Γ(large + small) - ln Γ(large), without the difference of two large numbers
    difference = (
        (large - 0.5) * log1p(small / large)
        + small * log(large + small)
        - small
        + _stirling(large + small)
        - _stirling(large)
    )
    log_x = log1p(-y) if y < x else log(x)
    log_y = log1p(-x) if x < y else log(y)
    return exp(a * log_x + b * log_y + difference - lgamma(small))


def _log_ratio(value: float, base: float) -> float:
    """Return ln(value / base), exact also where they are nearly equal."""
    return log1p((value - base) / base) if fabs(value - base) < base / 2 else log(value / base)


def _beta_cdf(a: float, b: float, x: float, y: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b), y = 1 - x. DLMF 8.17.22."""
    if x <= 0 or y <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_cdf_below_mean(b, a, y, x)
    return _beta_cdf_below_mean(a, b, x, y)


def _beta_cdf_below_mean(a: float, b: float, x: float, y: float) -> float:
    """Return I_x(a, b) by its continued fraction, which converges fast below the mean (Lentz's method)."""
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 100_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d, c = 1 / _not_zero(1 + even * d), _not_zero(1 + even / c)
        value *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d, c = 1 / _not_zero(1 + odd * d), _not_zero(1 + odd / c)
        step = d * c
        value *= step
        if fabs(step - 1) < _EPSILON:
            break
    return _beta_factor(a, b, x, y) * value / a


def _not_zero(value: float) -> float:
    return value if fabs(value) > _TINY else _TINY


def _gamma_factor(a: float, x: float) -> float:
    """Return x^a e^-x / Γ(a)."""
    if a < _STIRLING_FROM:
        return exp(a * log(x) - x - lgamma(a))
    return sqrt(a / (2 * pi)) * exp(a * _log_ratio(x, a) - (x - a) - _stirling(a))


def _gammas(a: float, x: float) -> tuple[float, float]:
    """Return the regularised lower and upper incomplete gamma functions, P(a, x) and Q(a, x)."""
    if x <= 0:
        return 0.0, 1.0
    if x < a + 1:
        lower = _gamma_series(a, x)
        return lower, 1 - lower
    upper = _gamma_fraction(a, x)
    return 1 - upper, upper


def _gamma_series(a: float, x: float) -> float:
    """Return P(a, x) by its power series, for x below a + 1. DLMF 8.7.1."""
    term = total = 1 / a
    for n in range(1, 1_000_000):
        term *= x / (a + n)
        total += term
        if term < total * _EPSILON:
            break
    return _gamma_factor(a, x) * total


def _gamma_fraction(a: float, x: float) -> float:
    """Return Q(a, x) by its continued fraction, for x above a + 1. DLMF 8.9.2."""
    b = x + 1 - a
    c, d = 1 / _TINY, 1 / _not_zero(b)
    value = d
    for n in range(1, 1_000_000):
        coefficient = -n * (n - a)
        b += 2
        d, c = 1 / _not_zero(coefficient * d + b), _not_zero(b + coefficient / c)
        step = d * c
        value *= step
        if fabs(step - 1) < _EPSILON:
            break
    return _gamma_factor(a, x) * value
