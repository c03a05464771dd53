from collections.abc import Mapping, Sequence

class DataFrame:
    def __init__(self, data: Sequence[Mapping[str, object]]) -> None: ...
