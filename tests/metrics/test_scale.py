"""Scales that people write: what is read, and what is said of what is not one."""

from typing import Any

import pytest
from each_case import each_case

from merilo.errors import UsageError
from merilo.metrics.choice_metrics import Label, Scale

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
TEXTS = ("user_input", "response")
ITSELF: list[object] = []
ITSELF.append(ITSELF)
"""What a YAML alias can make: a list that holds itself."""
BOMB: list[object] = ["a"]
for _ in range(40):
    BOMB = [BOMB, BOMB]
"""What forty YAML aliases can make: a list of a million million texts in a few hundred bytes."""


def scale(**changed: object) -> Scale:
    fields = {key: value for key, value in (FIELDS | changed).items() if value != "left out"}
    return Scale.of(fields, source="polite.yaml", texts=TEXTS)


def test_a_scale_is_read() -> None:
    """Four keys are enough; the range is that of the labels, and more is better."""
    found = scale()
    assert (found.name, found.question, found.texts, found.version) == (
        "politeness",
        "How polite is it?",
        ("response",),
        1,
    )
    assert found.labels == (Label("rude", 1, "it insults"), Label("plain", 2.5), Label("polite", 5))
    assert [found.share(found.points(each.text)) for each in found.labels] == [0, 0.375, 1]


def test_points_stand_in_the_range_that_is_declared() -> None:
    """With a range of 0 to 10, five points are a half."""
    assert scale(range=[0, 10]).share(5) == 0.5


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
        ({"name": "left out"}, "polite.yaml, key 'name': expected a value, got nothing."),
        ({"colour": "red"}, "key 'colour': expected only the keys name, question, texts, labels, version, range, "),
        ({"question": "  "}, "key 'question': expected a text that is not blank, got \"  \"."),
        ({"name": 3}, "key 'name': expected a text (put it in quotation marks), got 3."),
        ({"texts": []}, "key 'texts': expected a list of fields, each once, of user_input, response, got []."),
        (
            {"texts": ["answer"]},
            "key 'texts': expected a list of fields, each once, of user_input, response, got \"answer\".",
        ),
        ({"texts": ["response", "response"]}, 'got "response".'),
        ({"texts": [["response"]]}, 'got ["response"].'),
        ({"labels": [{"label": "a", "points": 1}]}, "key 'labels': expected a list of at least two labels, got [{"),
        ({"labels": [{"label": True, "points": 1}, {}]}, "key 'labels[1].label': expected a text (put it in quotation"),
        ({"labels": [{"label": "a", "points": "1"}, {}]}, "key 'labels[1].points': expected a number, got \"1\"."),
        (
            {"labels": [{"label": "a", "points": float("nan")}, {}]},
            "key 'labels[1].points': expected a number, got NaN.",
        ),
        ({"labels": [{"label": "a"}, {}]}, "key 'labels[1].points': expected a value, got nothing."),
        ({"labels": ["a", "b"]}, "key 'labels[1]': expected an object with label, points and"),
        (
            {"labels": [{"label": "a", "points": 1}, {"label": "A", "points": 2}]},
            "key 'labels[2].label': expected a label that is in the list once, got \"A\".",
        ),
        (
            {"labels": [{"label": "a", "points": 1}, {"label": "b", "points": 1}]},
            "key 'labels': expected labels with different points, got 1.0.",
        ),
        ({"range": [0, 4]}, "key 'labels': expected points within the range 0 to 4, got 5.0."),
        ({"range": [4, 0]}, "key 'range': expected two numbers, the lower one first, got 4.0."),
        ({"range": 5}, "key 'range': expected two numbers, [lowest, highest], got 5."),
        (
            {"labels": [{"label": "a", "points": 10**400}, {}]},
            'expected a number between -10^15 and 10^15, got "a lar',
        ),
        (
            {"labels": [{"label": "a", "points": -1.7e308}, {}]},
            "expected a number between -10^15 and 10^15, got -1.7",
        ),
        ({"version": 16**5000}, "key 'version': expected a whole number of at least 1, got \"a larger number\"."),
        (
            {"question": "a\ud800"},
            "key 'question': expected a text without NUL and half surrogate pairs, got \"a\ufffd\".",
        ),
        ({"name": "a\0"}, "key 'name': expected a text without NUL and half surrogate pairs"),
        ({"name": ITSELF}, "key 'name': expected a text, got [[[\"...\"]]]."),
        ({"name": BOMB}, "key 'name': expected a text, got [["),
        ({"version": 0}, "key 'version': expected a whole number of at least 1, got 0."),
        ({"higher_is_better": "no"}, "key 'higher_is_better': expected true or false, got \"no\"."),
    ],
)
def test_what_is_no_scale_says_where_and_why(changed: dict[str, object], message: str) -> None:
    """The error names the file, the key, what was expected and what came."""
    with pytest.raises(UsageError) as error:
        scale(**changed)
    assert message in str(error.value)
