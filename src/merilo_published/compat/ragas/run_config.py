"""ragas' settings of a run."""

from __future__ import annotations

__all__ = ["RunConfig"]


class RunConfig:
    """Settings under ragas' names. `max_workers` limits the requests in flight; merilo has its own retries."""

    def __init__(self, *, max_workers: int = 16, **others: object) -> None:
        self.__dict__.update(others)
        self.max_workers = max_workers
