"""The encoder and the reader of pairs, held against torch on a tiny model."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from each_case import each_case
from hypothesis import given
from hypothesis import strategies as st
from tiny_encoder import ENCODER, EXPECTED, PATH, READER, WEIGHTS, Alone, Pair

from merilo.errors import UsageError
from merilo.judges.encoder.model import MARKS, Encoded, Graph, Part
from merilo.judges.encoder.wordpiece import Window, windows

NEAR = 2e-5
QUIET = {"CI", "TF_BUILD", "GITHUB_ACTIONS", "ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS"}
"""Variables that keep onnxruntime silent: none may be what the test owes its result to."""
TEXTS = [each["text"] for each in EXPECTED["encoded"]]

READ_ALL = """
import sys
from hashlib import sha256
from pathlib import Path
from merilo.judges.encoder.model import Encoder
from merilo.judges.encoder.model import Weights
encoder = Encoder(Weights.read(Path(sys.argv[1])))
read = [encoder.encode(text) for text in sys.argv[2:]]
print(sha256(b"".join(each.lower.tobytes() + each.pooled.tobytes() for each in read)).hexdigest())
"""


def bytes_of(encoded: Encoded) -> bytes:
    """All numbers of an encoded text."""
    return encoded.lower.tobytes() + encoded.pooled.tobytes()


def features_of(pair: Pair) -> np.ndarray:
    """The features of a pair as the reader takes them."""
    return np.array(pair["features"], dtype=np.float32)


def no_features(short: Encoded) -> np.ndarray:
    """Zeros for each token."""
    return np.zeros((len(short.ids), 2), dtype=np.float32)


@each_case("expected", EXPECTED["encoded"])
def test_a_text_is_encoded_as_by_torch(expected: Alone) -> None:
    """Ids, token vectors behind the lower layers and the vector of the text are those of torch."""
    found = ENCODER.encode(expected["text"])
    assert found.ids.tolist() == expected["ids"]
    np.testing.assert_allclose(found.lower, expected["lower"], atol=NEAR)
    np.testing.assert_allclose(found.pooled, expected["pooled"], atol=NEAR)


@each_case("expected", EXPECTED["read"])
def test_a_pair_is_read_as_by_torch(expected: Pair) -> None:
    """The logits of a pair are those of torch, and heads divide them in their order."""
    short, long = (ENCODER.encode(TEXTS[expected[side]]) for side in ("short", "long"))
    logits = READER.logits(short, long, features=features_of(expected))
    np.testing.assert_allclose(logits, expected["logits"], atol=NEAR)
    parts = [logits[span] for span in READER.heads.values()]
    assert np.concatenate(parts).tolist() == logits.tolist()


@each_case("expected", EXPECTED["read"])
def test_the_nearest_token_is_found(expected: Pair) -> None:
    """The first feature is each token's cosine with the nearest one of the long text; no token is near to nothing."""
    short, long = (ENCODER.encode(TEXTS[expected[side]]) for side in ("short", "long"))
    np.testing.assert_allclose(READER.nearest(short, long), features_of(expected)[:, 0], atol=NEAR)
    assert READER.nearest(short, Part(long, slice(1, 1))).tolist() == [-1] * len(short.ids)


def test_the_sides_of_a_pair_differ() -> None:
    """Holding a text against another is not the same as the other way round."""
    first, second = (ENCODER.encode(text) for text in TEXTS[:2])
    there = READER.logits(first, second, features=no_features(first))
    back = READER.logits(second, first, features=no_features(second))
    assert np.abs(there - back).max() > NEAR


def test_a_sentence_is_read_within_its_window() -> None:
    """A part has the vectors of its place in the window, and is read as a long text of these tokens alone."""
    sentences = ("It was built.", "", "It is long.")
    window = windows(sentences, ENCODER.wordpiece, longest=ENCODER.longest - MARKS)[0]
    whole, short = ENCODER.encode_window(window), ENCODER.encode(TEXTS[0])
    parts = [whole.part(at) for at in range(3)]
    assert [part.ids.tolist() for part in parts] == [ENCODER.wordpiece.ids(sentence) for sentence in sentences]
    np.testing.assert_array_equal(np.concatenate([part.lower for part in parts]), whole.lower[1:-1])
    for part in parts:
        alone = Encoded(Window.of(part.ids.tolist()), part.ids, part.lower, Graph(WEIGHTS["upper.onnx"].tobytes()))
        expected = READER.logits(short, alone, features=no_features(short))
        np.testing.assert_allclose(READER.logits(short, part, features=no_features(short)), expected, atol=NEAR)


@given(st.lists(st.sampled_from(TEXTS), max_size=6), st.sampled_from(TEXTS))
def test_a_text_knows_nothing_of_its_neighbours(before: list[str], text: str) -> None:
    """Whatever was read before, a text has the same bytes."""
    alone = bytes_of(ENCODER.encode(text))
    for each in before:
        assert len(ENCODER.encode(each).pooled) == 32
    assert bytes_of(ENCODER.encode(text)) == alone


def test_threads_share_an_encoder_and_a_reader() -> None:
    """Texts and pairs read by four threads at once have the bytes that one thread gives them."""

    def read(number: int) -> bytes:
        pair = EXPECTED["read"][number % len(EXPECTED["read"])]
        short, long = (ENCODER.encode(TEXTS[pair[side]]) for side in ("short", "long"))
        return bytes_of(short) + READER.logits(short, long, features=features_of(pair)).tobytes()

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(read, range(40))) == list(map(read, range(40)))


def test_another_process_gives_the_same_bytes() -> None:
    """A fresh process reads the texts to the same bytes."""
    command = [sys.executable, "-c", READ_ALL, str(PATH), *TEXTS]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    assert printed == sha256(b"".join(bytes_of(ENCODER.encode(text)) for text in TEXTS)).hexdigest()


def test_the_runtime_reports_to_nobody(tmp_path: Path) -> None:
    """Loading and running a model leaves no file in the user's folder and no thread that could send one."""
    tasks = "\nprint(len(list(Path('/proc/self/task').iterdir())) if Path('/proc/self/task').exists() else 1)"
    command = [sys.executable, "-c", READ_ALL + tasks, str(PATH), *TEXTS]
    home = {name: str(tmp_path) for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "LOCALAPPDATA", "USERPROFILE")}
    single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # numpy's own threads are not what is meant
    kept = {name: value for name, value in os.environ.items() if name not in QUIET}
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=kept | home | single).stdout
    assert printed.splitlines()[-1] == "1"
    assert list(tmp_path.rglob("*")) == []


def test_a_text_that_is_too_long_is_refused() -> None:
    """A text of more tokens than fit is an error that says how many do; none is cut off silently."""
    fits = "1 " * (ENCODER.longest - 2)
    assert len(ENCODER.encode(fits).ids) == ENCODER.longest
    with pytest.raises(UsageError, match="A text of 23 tokens exceeds the maximum of 22"):
        ENCODER.encode(f"{fits} 1")
