"""Settings of a comparison, apart from its result, so that the command line starts without the statistics."""

from __future__ import annotations

from typing import Final

SHOWN: Final = 20
"""Default number of samples that changed most in a comparison."""
