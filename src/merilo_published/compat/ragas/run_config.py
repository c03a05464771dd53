"""ragas' settings of a run."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["RunConfig"]


@dataclass
class RunConfig:
    """Settings under ragas' names. `max_workers` limits the requests in flight; merilo has its own retries."""

    timeout: int = 180
    max_retries: int = 10
    max_wait: int = 60
    max_workers: int = 16
    log_tenacity: bool = False
    seed: int = 42
