"""DeepEval's errors."""

from __future__ import annotations

from merilo.errors import DataError, MeriloError

DeepEvalError = MeriloError
"""Every error of merilo is one."""


class MissingTestCaseParamsError(DataError):
    """A test case lacks a field that a metric needs."""
