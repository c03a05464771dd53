"""Names of other packages, so that their scripts run after their import lines are changed."""

from __future__ import annotations

from merilo.compat import missing

missing.cover(__name__)
