"""The card of a local model: what is read, and what is refused."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case
from tiny_models import NLI_CARD, OPTIONS_CARD, RERANKER_CARD

from merilo.errors import UsageError
from merilo.judges.local.card import Card, builtin_card_for, builtin_cards, card_of, forbids_commercial_use, read_card
from merilo.judges.local.find import label_problem


def card(text: str = NLI_CARD, **changes: Any) -> Card:
    """A card with other values at some dotted places; `__` stands for the dot."""
    fields: dict[str, Any] = tomllib.loads(text)
    for place, value in changes.items():
        *path, last = place.split("__")
        part = fields
        for name in path:
            part = part.setdefault(name, {})
        part[last] = value
    return card_of(fields, "judge.toml")


def test_every_shipped_card_is_valid() -> None:
    """Each shipped card has its file's name, a model on the hub, a licence and the mark that nobody proved it."""
    cards = builtin_cards()
    assert {"factcg", "nli", "nli-multilingual", "ms-marco", "mxbai-v1", "bge-base", "bge-m3", "nano-jev"} <= {*cards}
    for name, each in cards.items():
        assert each.name == name
        assert each.model
        assert each.licence != "unknown"
        assert each.sources
        assert not each.proved
        assert not each.calibration


def test_the_text_of_factcg_ends_in_a_space() -> None:
    """FactCG was trained with a prompt that ends in a space, and its second logit means yes."""
    each = builtin_cards()["factcg"]
    assert each.input.text.startswith("{premise}\n\nChoose your answer: based on the paragraph above can we")
    assert each.input.text.endswith("I think the answer is ")
    assert each.output.labels.index(each.output.yes) == 1


@pytest.mark.parametrize(
    ("model", "name", "place"),
    [
        ("cross-encoder/nli-deberta-v3-xsmall", "nli", 1),
        ("MoritzLaurer/DeBERTa-v3-base-mnli-fever-anli", "nli-multilingual", 0),
    ],
)
def test_families_with_other_label_orders_have_other_cards(model: str, name: str, place: int) -> None:
    """Entailment is the second label of one family and the first of the other."""
    found = builtin_card_for(model)
    assert found is not None
    assert found.name == name
    assert found.output.labels.index("entailment") == place


@each_case(
    ("changes", "message"),
    [
        ({"colour": "red"}, "colour: no such key"),
        ({"input__colour": "red"}, "input.colour: no such key"),
        ({"a\nb": "red"}, "a b: no such key"),
        ({"answers__support__colour": 1}, "answers.support.colour: no such key"),
        ({"card": 2}, "card: Input should be 1"),
        ({"name": "../up"}, "name: String should match"),
        ({"input__second": "{claim}"}, "unknown slot {claim}"),
        ({"input__second": "{premise}"}, "two slots are needed"),
        ({"input__text": "{premise}"}, 'form "pair" needs first and second'),
        ({"input__form": "chat"}, "input.form: Input should be 'pair', 'text' or 'options'"),
        ({"input__special": ["[CLS]", "text:{premise}"]}, "special replaces first"),
        ({"input__max_tokens": 4}, "input.max_tokens: Input should be greater than or equal to 16"),
        ({"output__yes": "supported"}, "'supported' is not one of the labels"),
        ({"output__contradiction": "entailment"}, "yes and contradiction must be different"),
        ({"output__labels": ["entailment", "Entailment"]}, "labels must differ"),
        ({"output__labels": ["entailment"]}, "a softmax over one label is always 1"),
        ({"output__head": "tokens"}, "output.head"),
        ({"answers__support__cut": 1.5}, "answers.support.cut"),
        ({"answers__support__cut": float("nan")}, "answers.support.cut"),
        ({"answers": {}}, "at least one kind is needed"),
        ({"answers__support__use": {"premise": "context"}}, "use of support must give a slot to each"),
        ({"answers__support__use": {"premise": "context", "query": "statement"}}, "use of support must name the slots"),
        ({"calibration__relevance": {"scale": 1.0, "shift": 0.0}}, "calibration.relevance is for a kind"),
        ({"calibration__support": {"scale": -1.0, "shift": 0.0}}, "calibration.support.scale"),
        ({"golden": [{"premise": "a", "logits": [1, 2, 3]}]}, "golden pair 1 needs hypothesis, premise"),
        ({"golden": [{"premise": "a", "hypothesis": "b", "logits": [1]}]}, "one logit per label"),
        ({"files__model": "../model.onnx"}, "must be a file below the folder"),
        ({"files__model": "/etc/model.onnx"}, "must be a file below the folder"),
        ({"files__model": "..\\model.onnx"}, "must be a file below the folder"),
        ({"files__model": "C:model.onnx"}, "must be a file below the folder"),
        ({"files__model": "pytorch_model.bin"}, "files.model: must be a file with the suffix .onnx"),
        ({"files__tokenizer": "tokenizer.py"}, "files.tokenizer: must be a file with the suffix .json"),
        ({"revision": "main"}, "revision: String should match"),
        ({"languages": []}, "languages"),
        ({"output__yes": "?"}, 'the card is a draft. Replace "?" in output.yes.'),
        ({"output__labels": ["?", "b"]}, 'Replace "?" in output.labels[0].'),
    ],
)
def test_a_wrong_card_is_refused_in_one_line(changes: dict[str, Any], message: str) -> None:
    """Unknown keys, slots, labels, files and undecided places are named."""
    with pytest.raises(UsageError) as refused:
        card(**changes)
    assert str(refused.value).startswith("judge.toml: ")
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@each_case(
    ("changes", "message"),
    [
        ({"questions": {}}, 'questions.relevance and answers.relevance need each other, in form "options" alone'),
        ({"questions__colour": {"wording": "", "options": ["a", "b"], "yes": ["a"]}}, "questions.colour and answers"),
        ({"answers__addresses": {"use": {"premise": "statement", "query": "user_input"}}}, "questions.addresses and"),
        ({"questions__support__yes": ["yes"]}, "questions.support: 'yes' is not one of the options (paris tower, it,"),
        ({"questions__support__yes": []}, "questions.support.yes"),
        ({"questions__support__yes": ["it", "was", "paris tower"]}, "at least one option must not mean yes"),
        ({"questions__support__options": ["it"]}, "questions.support.options"),
        ({"questions__support__options": ["it", "was", "it"]}, "options must differ"),
        ({"questions__support__temperature": 0}, "questions.support.temperature"),
        ({"questions__support__wording": "{claim}"}, "use of support must name the slots of the input: claim, premise"),
        ({"input__first": "{premise}"}, 'form "options" needs the slot {option}'),
        ({"input__second": "{claim}: {question}"}, "unknown slot {claim}"),
        ({"input__text": "{premise}"}, 'form "options" needs first and second'),
        ({"output": {"head": "sigmoid", "labels": ["a"], "yes": "a"}}, 'except in form "options", which has none'),
        ({"calibration__support": {"scale": 1.0, "shift": 0.0}}, "and no calibration"),
        ({"golden": [{"premise": "a", "question": "b", "logits": [1]}]}, "golden pair 1 needs option, premise, que"),
    ],
)
def test_a_wrong_card_of_options_is_refused(changes: dict[str, Any], message: str) -> None:
    """Tables that are missing, unknown or contradict one another are named."""
    with pytest.raises(UsageError) as refused:
        card(OPTIONS_CARD, **changes)
    assert message in str(refused.value)


def test_cuts_ascend() -> None:
    """The cut of grade 2 may not be below that of grade 1."""
    with pytest.raises(UsageError, match="must not be above"):
        card(RERANKER_CARD, answers__relevance__cuts=[0.9, 0.1])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"card = [", "not valid TOML"),
        (b"\xff\xfe", "not UTF-8"),
        (b"a = " + b"[" * 3000 + b"]" * 3000, "nested too deeply"),
        (b"#" * (2**20 + 1), "at most 1,048,576 bytes"),
        (b"", "card: Field required"),
    ],
)
def test_a_malformed_file_is_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    """Damaged, huge and deeply nested TOML gives an error in one line."""
    path = tmp_path / "judge.toml"
    path.write_bytes(content)
    with pytest.raises(UsageError) as refused:
        read_card(path)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        ({0: "contradiction", 1: "entailment", 2: "neutral"}, None),
        ({0: "CONTRADICTION", 1: "Entailment", 2: "NEUTRAL"}, None),
        ({0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}, None),
        ({}, None),
        ({0: "entailment", 1: "neutral", 2: "contradiction"}, "the model's labels are entailment, neutral, contradict"),
        ({0: "LABEL_0", 1: "LABEL_1"}, "the model has 2 labels (LABEL_0, LABEL_1), the card 3"),
    ],
)
def test_labels_are_compared_with_the_model(labels: dict[int, str], problem: str | None) -> None:
    """Another order or number is a problem; generated names say nothing about the order."""
    found = label_problem(card(), labels)
    assert found == problem if problem is None else (found or "").startswith(problem)


def test_the_digest_covers_what_affects_a_verdict() -> None:
    """A cut changes the digest; a licence does not."""
    assert card(answers__support__cut=0.6).digest != card().digest
    assert card(output__yes="neutral").digest != card().digest
    assert card(licence="MIT").digest == card().digest


@pytest.mark.parametrize(("licence", "forbidden"), [("CC BY-NC 4.0", True), ("MIT", False), ("Apache-2.0", False)])
def test_a_non_commercial_licence_is_recognised(licence: str, *, forbidden: bool) -> None:
    """Licences with NC forbid commercial use."""
    assert forbids_commercial_use(licence) is forbidden
