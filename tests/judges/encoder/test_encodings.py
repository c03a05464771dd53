"""Encoded texts, kept for a run."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from tiny_encoder import ENCODER, WEIGHTS

from merilo.judges.encoder.model import Encoded, Encoder, Encodings
from merilo.judges.encoder.wordpiece import Window


class CountingEncoder(Encoder):
    """Counts how often each text was read; breaks where it is told to."""

    def __init__(self) -> None:
        super().__init__(WEIGHTS)
        self.read: Counter[tuple[int, ...]] = Counter()
        self.broken = False

    def encode_window(self, window: Window) -> Encoded:
        """As the encoder does."""
        self.read[window.pieces] += 1
        if self.broken:
            raise RuntimeError("out of order")
        return super().encode_window(window)


def test_a_text_is_encoded_once() -> None:
    """A text that is asked for again is not read again, as a string or as sentences."""
    encoder = CountingEncoder()
    encodings = Encodings(encoder)
    sentences = ("It was built in 1931.", "It is 1,280 m long.")
    assert encodings.read("the bridge") is encodings.read("the bridge")
    assert encodings.read(sentences) is encodings.read(tuple(sentences))
    assert set(encoder.read.values()) == {1}


def test_threads_that_ask_for_one_text_wait_for_one_reading() -> None:
    """Eight threads that ask for the same texts at once have each read once."""
    encoder = CountingEncoder()
    encodings = Encodings(encoder)
    together = Barrier(8)

    def ask(_: int) -> list[tuple[Encoded, ...]]:
        together.wait()
        return [encodings.read(f"the bridge of {year}") for year in range(1900, 1930)]

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(ask, range(8)))
    assert all(answer == answers[0] for answer in answers)
    assert set(encoder.read.values()) == {1}


def test_what_is_kept_is_bounded() -> None:
    """Texts used longest ago are forgotten, and read again to the same bytes when they are asked for."""
    encoder = CountingEncoder()
    encodings = Encodings(encoder, tokens=40)
    first = encodings.read("1 1 1 1 1 1 1 1")
    encodings.read("2 2 2 2 2 2 2 2")
    encodings.read("1 1 1 1 1 1 1 1")
    for number in "3456":
        encodings.read(" ".join(number * 8))
        encodings.read("1 1 1 1 1 1 1 1")
    assert max(encoder.read.values()) == 1
    again = encodings.read("2 2 2 2 2 2 2 2")
    assert encoder.read[tuple(encoder.wordpiece.ids("2 2 2 2 2 2 2 2"))] == 2
    assert encodings.read("1 1 1 1 1 1 1 1") is first
    assert again[0].lower.tobytes() == encoder.encode("2 2 2 2 2 2 2 2").lower.tobytes()


def test_a_failure_is_not_kept() -> None:
    """A text whose reading failed is read anew when it is asked for again."""
    encoder = CountingEncoder()
    encodings = Encodings(encoder)
    encoder.broken = True
    with pytest.raises(RuntimeError, match="out of order"):
        encodings.read("the bridge")
    encoder.broken = False
    assert len(encodings.read("the bridge")) == 1


def test_a_long_text_is_read_in_windows_of_its_sentences() -> None:
    """A string that does not fit is cut where its sentences end, and every window fits."""
    text = "It was built in 1931. It is 1280 m long. It was built in 1932. It is 1281 m long."
    read = Encodings(ENCODER).read(text)
    assert len(read) > 1
    assert {at for each in read for at in each.window.sentences} == {0, 1, 2, 3}
    assert max(len(each.ids) for each in read) <= ENCODER.longest
