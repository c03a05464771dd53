"""Where onnxruntime is imported: a graph of tensor operations, made ready to run on one core of the CPU.

onnxruntime from 1.29 on writes an identifier of the machine to the user's folder and reports its use to its maker,
unless `ORT_DISABLE_TELEMETRY` is set before it is loaded. merilo sends nothing to anybody, so it is set here. The
wheels for Windows raise events of the system's own tracing instead; those are switched off after the import.
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
    """A graph that takes named arrays and gives one array of 32-bit floats; threads may share it.

    Equal arrays give equal bytes, in other processes of the machine too: one thread works on a call.
    """

    def __init__(self, content: bytes) -> None:
        """`content`: a serialised ONNX model; its weights become floats here, once."""
        self._session = _session(content)

    def __call__(self, **arrays: NDArray[Any]) -> NDArray[np.float32]:  # Any: the graph says which types it takes
        """The output for these inputs."""
        return self._session.run(None, arrays)[0]


def _session(content: bytes) -> InferenceSession:
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
