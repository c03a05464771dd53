"""The only module that opens sessions of onnxruntime: a graph of tensor operations, ready to run on one CPU core.

From version 1.29, onnxruntime writes a machine identifier to the user's folder and reports its use to its maker,
unless `ORT_DISABLE_TELEMETRY` is set before it is loaded. merilo sends no telemetry, so it is set here. The wheels
for Windows emit events of the system's own tracing instead; those are switched off after the import.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession

_ERRORS_ONLY: Final = 3


class Graph:
    """A graph that takes named arrays and returns one array of 32-bit floats; threads may share it.

    Equal arrays give equal bytes, also in other processes of the machine: each call uses one thread.
    """

    def __init__(self, content: bytes) -> None:
        """Load a serialised ONNX model; its weights are converted to floats here, once."""
        self._session = open_session(content)

    def __call__(self, **arrays: NDArray[Any]) -> NDArray[np.float32]:  # Any: the graph defines the types it takes
        """Return the output for these inputs."""
        return self._session.run(None, arrays)[0]


def open_session(model: bytes | str) -> InferenceSession:
    """Return a session on one CPU core for a serialised model, or for the path of a model file."""
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
