"""A model file, loaded once and run one pair at a time.

One pair per call and one thread per call: the result of a pair then depends on nothing else, and batches save no time
on a CPU. Several threads share a session.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from merilo.errors import UsageError
from merilo.judges.encoder.graphs import open_session

if TYPE_CHECKING:
    from merilo.judges.local.tokens import TokenIds

_INPUTS: Final = frozenset({"input_ids", "attention_mask", "token_type_ids", "position_ids"})
_MEMORY_FACTOR: Final = 1.6
"""Memory of a loaded model by the size of its file: 532 MB for 350 MB, measured with a DeBERTa of base size."""
_THREAD_BYTES: Final = 100_000_000
"""Memory of one running call."""
_INSIDE: Final = "escapes"
"""A word of onnxruntime's error about external data behind a link."""


def memory_problem(files: tuple[Path, ...], threads: int, free: int | None) -> str | None:
    """Return why a model does not fit into the free memory, as a sentence; None if it does or that is unknown."""
    size = sum(path.stat().st_size for path in files)
    needed = int(size * _MEMORY_FACTOR) + threads * _THREAD_BYTES
    if free is None or needed <= free:
        return None
    return (
        f"{files[0]} needs about {needed / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free. "
        "Close other programs, or use a smaller model."
    )


def free_memory() -> int | None:
    """Return the bytes of memory that new programs can use; None if unknown."""
    if sys.platform != "linux":
        return None
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    amounts = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(amounts[0]) * 1024 if amounts else None


class ModelSession:
    """A loaded model. Equal ids give equal logits, in any thread and any process of the machine."""

    def __init__(self, model: Path, labels: int) -> None:
        """Load an ONNX file. Raises UsageError if it is damaged, or is not a model of pairs with this many labels."""
        self._labels = labels
        self._model = model
        try:
            self._session = open_session(str(model))  # by path: external data cannot be read from bytes
        except Exception as error:  # noqa: BLE001  onnxruntime has one type for each kind of damage
            raise UsageError(f"Cannot load {model}: {_advice(error)}") from None
        self._inputs = [(each.name, each.type, each.shape) for each in self._session.get_inputs()]
        self._check_inputs()
        outputs = [each.name for each in self._session.get_outputs()]
        self._output = "logits" if "logits" in outputs else outputs[0]

    def _check_inputs(self) -> None:
        names = {name for name, _, _ in self._inputs}
        if "input_ids" not in names or names - _INPUTS:
            shown = ", ".join(sorted(names))
            raise UsageError(f"{self._model} takes {shown}; a model of pairs takes {', '.join(sorted(_INPUTS))}.")
        for name, kind, shape in self._inputs:
            if kind not in {"tensor(int64)", "tensor(int32)"} or len(shape) != 2:
                raise UsageError(f"{self._model}: the input {name} is {kind} {shape}, not a table of integers.")
            if isinstance(shape[1], int) or (isinstance(shape[0], int) and shape[0] != 1):
                raise UsageError(f"{self._model} takes inputs of the shape {shape} only. Export it with dynamic axes.")

    def logits(self, tokens: TokenIds) -> tuple[float, ...]:
        """Return one logit per label. Raises UsageError if the model returns something else."""
        import numpy as np

        length = len(tokens.ids)
        values = {
            "input_ids": tokens.ids,
            "attention_mask": (1,) * length,
            "token_type_ids": tokens.types,
            "position_ids": tuple(range(length)),
        }
        arrays = {
            name: np.array([values[name]], np.int64 if kind == "tensor(int64)" else np.int32)
            for name, kind, _ in self._inputs
        }
        try:
            (first,) = self._session.run([self._output], arrays)
        except Exception as error:  # noqa: BLE001  onnxruntime has one type for each kind of failure
            raise UsageError(f"{self._model} cannot be run: {_advice(error)}") from None
        if first.size != self._labels or first.ndim > 2:
            shape = " by ".join(map(str, first.shape))
            raise UsageError(f"{self._model} returns {shape} numbers for a pair; the card has {self._labels} labels.")
        return tuple(float(each) for each in first.reshape(-1))


def _advice(error: Exception) -> str:
    import onnxruntime

    text = " ".join(str(error).split())[:300]
    if _INSIDE in text:
        return (
            f"onnxruntime {onnxruntime.__version__} refuses weights in a file behind a link, as 1.24 does. "
            "Use another version: pip install -U onnxruntime."
        )
    return f"{text.rstrip('.')}."
