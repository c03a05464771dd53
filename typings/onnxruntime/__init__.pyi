# The parts of onnxruntime that merilo calls.
from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

__version__: str

class SessionOptions:
    intra_op_num_threads: int
    inter_op_num_threads: int
    log_severity_level: int

class NodeArg:
    name: str
    type: str
    shape: list[int | str | None]

class InferenceSession:
    def __init__(
        self,
        path_or_bytes: bytes | str,
        sess_options: SessionOptions | None = None,
        *,
        providers: Sequence[str] | None = None,
    ) -> None: ...
    def get_inputs(self) -> list[NodeArg]: ...
    def get_outputs(self) -> list[NodeArg]: ...
    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]: ...

def disable_telemetry_events() -> None: ...
