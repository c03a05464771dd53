# The one part of razdel 0.5 that merilo calls; the package ships no types.
from collections.abc import Iterator

class Substring:
    start: int
    stop: int
    text: str

def sentenize(text: str) -> Iterator[Substring]: ...
