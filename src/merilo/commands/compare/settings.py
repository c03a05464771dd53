"""Defaults of a comparison, in their own module so that the command line starts without importing the statistics."""

from __future__ import annotations

from typing import Final

SHOWN: Final = 20
"""Default number of samples that changed most in a comparison."""
