import copy
import pickle

import pytest

from merilo import errors
from merilo.errors import DataError, MeriloError, MissingField, Problem, RateLimited


def test_everything_raised_on_purpose_is_a_merilo_error() -> None:
    """Whoever catches MeriloError catches every error class of the module."""
    classes = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert len(classes) == 19
    assert all(issubclass(one, MeriloError) for one in classes)


def test_a_problem_is_one_sentence_with_its_place() -> None:
    """A problem says where, what was expected and what came, and then what to do."""
    problem = Problem("a list", "the number 3", "retrieved_contexts", "data.jsonl", 17, advice="wrap it")
    assert problem.message == (
        "data.jsonl, line 17, field 'retrieved_contexts': expected a list, got the number 3. Wrap it."
    )


@pytest.mark.parametrize(
    "error",
    [
        MissingField("response", "s1"),
        DataError.of(Problem("text", "null")),
        RateLimited("Slow down.", retry_after_s=2.5, status=429),
    ],
)
def test_errors_survive_copying(error: MeriloError) -> None:
    """An error that crosses a process boundary keeps its message and its attributes."""
    for twin in (copy.copy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301  our own bytes
        assert type(twin) is type(error)
        assert str(twin) == str(error)
        assert vars(twin) == vars(error)
