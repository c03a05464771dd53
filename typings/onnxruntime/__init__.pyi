# The parts of onnxruntime that merilo calls.
from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

class SessionOptions:
    intra_op_num_threads: int
    inter_op_num_threads: int
    log_severity_level: int

class InferenceSession:
    def __init__(
        self,
        path_or_bytes: bytes,
        sess_options: SessionOptions | None = None,
        *,
        providers: Sequence[str] | None = None,
    ) -> None: ...
    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]: ...

def disable_telemetry_events() -> None: ...
