"""The rubrics and the temperatures of ragas 0.0."""

from __future__ import annotations

from typing import Final

SYSTEM: Final = "ragas-0.0"
"""The folder of the rubrics; the versions differ in how replies are read, not in what is asked."""
SAMPLING_TEMPERATURE: Final = 0.2
"""Sent where a metric asks for several replies and looks at how they differ."""
STEADY_TEMPERATURE: Final = 0.0
"""Sent by all other metrics."""
