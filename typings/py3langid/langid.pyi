from collections.abc import Iterable, Sequence
from typing import Any, Self

from numpy.typing import NDArray

MODEL_FILE: str

class LanguageIdentifier:
    nb_ptc: NDArray[Any]
    nb_pc: NDArray[Any]
    nb_classes: Sequence[str]
    tk_nextmove: Sequence[int]
    tk_output: Sequence[int]
    tk_row: Sequence[int]
    def __init__(
        self,
        nb_ptc: NDArray[Any],
        nb_pc: NDArray[Any],
        nb_classes: Sequence[str],
        tk_nextmove: Sequence[int],
        tk_output: Sequence[int],
        *,
        norm_probs: bool = False,
        tk_row: Sequence[int],
    ) -> None: ...
    @classmethod
    def from_model_file(cls, model_file: str, *, norm_probs: bool = False) -> Self: ...
    def set_languages(self, langs: Iterable[str] | None = None) -> None: ...
    def classify(self, instance: str) -> tuple[str, float]: ...
