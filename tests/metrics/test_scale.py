"""Scales that people write: what is read, and what is said of what is not one."""

from typing import Any

import pytest
from each_case import each_case

from merilo.data.config_files import validated
from merilo.errors import UsageError
from merilo.metrics.choice_metrics import Scale

FIELDS: dict[str, Any] = {
    "name": "politeness",
    "question": " How polite is it? ",
    "texts": ["response"],
    "labels": [
        {"label": "rude", "points": 1, "definition": "it insults"},
        {"label": "plain", "points": 2.5},
        {"label": "polite", "points": 5},
    ],
}
ITSELF: list[object] = []
ITSELF.append(ITSELF)
"""What a YAML alias can make: a list that holds itself."""
BOMB: list[object] = ["a"]
for _ in range(40):
    BOMB = [BOMB, BOMB]
"""What forty YAML aliases can make: a list of a million million texts in a few hundred bytes."""


def scale(**changed: object) -> Scale:
    fields = {key: value for key, value in (FIELDS | changed).items() if value != "left out"}
    return validated(Scale, fields, "polite.yaml")


def test_a_scale_is_read() -> None:
    """Four keys are enough; the range is that of the labels, and more is better."""
    found = scale()
    assert (found.question, found.version, found.digest) == ("How polite is it?", 1, "fae28acc0c21")
    assert [found.share(found.points(each.label)) for each in found.labels] == [0, 0.375, 1]


def test_one_is_the_best_also_where_fewer_points_are_better() -> None:
    """The share is turned round, so that higher values are better in every scale."""
    found = scale(higher_is_better=False)
    assert [found.share(points) for points in (1, 5)] == [1, 0]


@each_case(
    "changed",
    [
        {"name": "manners"},
        {"question": "How rude is it?"},
        {"texts": ["response", "user_input"]},
        {"labels": FIELDS["labels"][::-1]},
        {"labels": [{"label": "rude", "points": 1}, *FIELDS["labels"][1:]]},
        {"range": [0, 5]},
        {"version": 2},
        {"higher_is_better": False},
    ],
)
def test_the_digest_names_all_that_bears_on_a_value(changed: dict[str, object]) -> None:
    """Whatever is changed gives another digest; what is only written out gives the same."""
    assert scale(**changed).digest != scale().digest
    assert scale(version=1, range=[1, 5], higher_is_better=True).digest == scale().digest


@each_case(
    ("changed", "message"),
    [
        ({"name": "left out"}, "polite.yaml: name: Field required."),
        ({"colour": "red"}, "colour: no such key"),
        ({"question": "  "}, "question: String should have at least 1 character"),
        ({"name": 3}, "name: Input should be a valid string"),
        ({"name": "a\0"}, "name: String should match pattern"),
        ({"name": ITSELF}, "name: Input should be a valid string"),
        ({"name": BOMB}, "name: Input should be a valid string"),
        ({"question": "a\ud800"}, "question: Input should be a valid string"),
        ({"texts": []}, "texts: List should have at least 1 item"),
        ({"texts": ["answer"]}, "texts.0: Input should be 'user_input', 'retrieved_contexts'"),
        ({"texts": ["response", "response"]}, "texts: expected each field once"),
        ({"labels": [{"label": "a", "points": 1}]}, "labels: List should have at least 2 items"),
        ({"labels": [{"label": True, "points": 1}, {}]}, "labels.0.label: Input should be a valid string"),
        ({"labels": [{"label": "a", "points": "1"}, {}]}, "labels.0.points: Input should be a valid number"),
        ({"labels": [{"label": "a", "points": float("nan")}, {}]}, "labels.0.points: Input should be a finite number"),
        ({"labels": [{"label": "a", "points": 10**400}, {}]}, "labels.0.points: Input should be a valid number"),
        ({"labels": [{"label": "a", "points": -1.7e308}, {}]}, "labels.0.points: Input should be greater"),
        ({"labels": ["a", "b"]}, "labels.0: Input should be a valid dictionary"),
        ({"labels": [{"label": "a", "points": 1}, {"label": "A", "points": 2}]}, "labels: expected each label once"),
        ({"labels": [{"label": "a", "points": 1}, {"label": "b", "points": 1}]}, "labels: expected different points"),
        ({"range": [0, 4]}, "labels: expected points within the range 0 to 4"),
        ({"range": [4, 0]}, "range: expected the lower number first"),
        ({"range": 5}, "range: Input should be a valid list"),
        ({"version": 16**5000}, "version: Input should be less than"),
        ({"version": 0}, "version: Input should be greater"),
        ({"higher_is_better": "no"}, "higher_is_better: Input should be a valid boolean"),
    ],
)
def test_what_is_no_scale_says_where_and_why(changed: dict[str, object], message: str) -> None:
    """The error names the file, the key and what was expected."""
    with pytest.raises(UsageError) as error:
        scale(**changed)
    assert message in str(error.value)
