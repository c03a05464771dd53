from collections.abc import Iterable
from typing import Self

MODEL_FILE: str

class LanguageIdentifier:
    @classmethod
    def from_model_file(cls, model_file: str, *, norm_probs: bool = False) -> Self: ...
    def set_languages(self, langs: Iterable[str] | None = None) -> None: ...
    def classify(self, instance: str) -> tuple[str, float]: ...
