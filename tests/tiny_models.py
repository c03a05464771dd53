"""Folders that look like downloaded cross-encoders, made on the spot: model.onnx, tokenizer.json, config.json, card."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

UNKNOWN = "[UNK]"
KEYS = ("paris", "tower", "1889", "eiffel", "rome", "hills")
"""Words that a rigged model knows."""
OTHER_WORDS = "the was is in of completed designed by seven it has a never . ? , ! when what"
NLI_LABELS = {0: "contradiction", 1: "entailment", 2: "neutral"}
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def tokenizer(words: Sequence[str]) -> Tokenizer:
    """A tokenizer of whole words, with the form `[CLS] A [SEP] B [SEP]`."""
    vocabulary = {word: place for place, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *dict.fromkeys(words)])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    made.normalizer, made.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    made.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    return made


def rigged(folder: Path, labels: Mapping[int, str] = NLI_LABELS, *, yes: str = "entailment") -> Path:
    """Write a model that says yes if the second text's key words are all in the first one.

    The logit of yes is -2 + 4 * (keys in both texts) - 8 * (keys of the second text alone). That of contradiction is
    12 if the first text contains "never". All others are 0.
    """
    words = [*KEYS, *OTHER_WORDS.split()]
    vocabulary = _begin(folder, labels, tokenizer(words))
    size = len(KEYS) + 1
    embeddings = np.zeros((len(vocabulary), size), "f4")
    for place, word in enumerate((*KEYS, "never")):
        embeddings[vocabulary[word], place] = 1
    place = {name: index for index, name in labels.items()}
    row = np.zeros((1, len(labels)), "f4")
    row[0, place[yes]] = 1
    against = np.zeros((size, len(labels)), "f4")
    if "contradiction" in place:
        against[-1, place["contradiction"]] = 12
    mask = np.ones((1, size), "f4")
    mask[0, -1] = 0
    constants = {"emb": embeddings, "mask": mask, "row": row, "against": against} | {
        name: np.array(value, "f4") for name, value in (("a", 4), ("b", -8), ("bias", -2), ("unit", 1))
    }
    nodes = [
        _node("Gather", "emb input_ids", "x"),
        _node("Cast", "token_type_ids", "flat", to=TensorProto.FLOAT),
        _node("Unsqueeze", "flat axis", "type"),
        _node("Sub", "unit type", "other"),
        _node("Mul", "x other", "x0"),
        _node("Mul", "x type", "x1"),
        _node("ReduceMax", "x0", "first", axes=[1], keepdims=0),
        _node("ReduceMax", "x1", "second_all", axes=[1], keepdims=0),
        _node("Mul", "second_all mask", "second"),
        _node("Mul", "first second", "both"),
        _node("ReduceSum", "both one", "overlap"),
        _node("Sub", "second first", "difference"),
        _node("Relu", "difference", "alone"),
        _node("ReduceSum", "alone one", "missing"),
        _node("Mul", "overlap a", "plus"),
        _node("Mul", "missing b", "minus"),
        _node("Add", "plus minus", "sum"),
        _node("Add", "sum bias", "yes"),
        _node("MatMul", "yes row", "yes_logits"),
        _node("MatMul", "first against", "against_logits"),
        _node("Add", "yes_logits against_logits", "logits"),
    ]
    _save(folder, nodes, constants, len(labels))
    return folder


def random_model(folder: Path, labels: Mapping[int, str], words: str, *, external: bool = False) -> Path:
    """Write a model with one layer of attention and random weights; `external`: in a separate file."""
    vocabulary = _begin(folder, labels, tokenizer(words.split()))
    constants = random_weights(len(vocabulary), len(labels))
    nodes = [
        _node("Gather", "emb input_ids", "e"),
        _node("Gather", "seg token_type_ids", "s"),
        _node("Add", "e s", "x"),
        _node("MatMul", "x q", "xq"),
        _node("MatMul", "x k", "xk"),
        _node("MatMul", "x v", "xv"),
        _node("Transpose", "xk", "kt", perm=[0, 2, 1]),
        _node("MatMul", "xq kt", "weights"),
        _node("Softmax", "weights", "p", axis=-1),
        _node("MatMul", "p xv", "y"),
        _node("Gather", "y zero", "cls", axis=1),
        _node("MatMul", "cls out", "logits"),
        _node("Identity", "attention_mask", "unused"),
    ]
    _save(folder, nodes, constants, len(labels), external=external)
    return folder


def random_weights(words: int, labels: int, dim: int = 16) -> dict[str, np.ndarray[Any, Any]]:
    """The weights of `random_model`."""
    draw = np.random.default_rng(0)
    shapes = {"emb": (words, dim), "seg": (2, dim), "q": (dim, dim), "k": (dim, dim), "v": (dim, dim)}
    shapes["out"] = (dim, labels)
    return {name: (draw.normal(size=shape) / dim**0.5).astype("f4") for name, shape in shapes.items()}


def random_logits(ids: Sequence[int], types: Sequence[int], words: int, labels: int) -> list[float]:
    """The logits of `random_model`, computed by numpy."""
    weights = {name: value.astype("f8") for name, value in random_weights(words, labels).items()}
    x = weights["emb"][list(ids)] + weights["seg"][list(types)]
    scores = (x @ weights["q"]) @ (x @ weights["k"]).T
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    return [float(each) for each in (p @ (x @ weights["v"]))[0] @ weights["out"]]


def _begin(folder: Path, labels: Mapping[int, str], made: Tokenizer) -> dict[str, int]:
    folder.mkdir(parents=True, exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    config = {"architectures": ["TinyForSequenceClassification"], "max_position_embeddings": 512}
    (folder / "config.json").write_text(json.dumps({**config, "id2label": {str(k): v for k, v in labels.items()}}))
    return made.get_vocab()


def _node(kind: str, inputs: str, output: str, **options: Any) -> onnx.NodeProto:
    return helper.make_node(kind, inputs.split(), [output], **options)


def _save(
    folder: Path,
    nodes: Sequence[onnx.NodeProto],
    constants: Mapping[str, np.ndarray[Any, Any]],
    labels: int,
    *,
    external: bool = False,
) -> None:
    whole = {"axis": np.array([2], "i8"), "one": np.array([1], "i8"), "zero": np.array(0, "i8")}
    tensors = [numpy_helper.from_array(value, name) for name, value in {**constants, **whole}.items()]
    inputs = [helper.make_tensor_value_info(each, TensorProto.INT64, ["batch", "length"]) for each in _INPUTS]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", labels])
    graph = helper.make_graph(nodes, "tiny", inputs, [output], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = str(folder / "model.onnx")
    if external:
        onnx.save_model(model, path, save_as_external_data=True, location="model.onnx_data", size_threshold=200)
    else:
        onnx.save(model, path)


NLI_CARD = """
card = 1
name = "rigged"
languages = ["en"]
[input]
form = "pair"
first = "{premise}"
second = "{hypothesis}"
max_tokens = 64
[output]
head = "softmax"
labels = ["contradiction", "entailment", "neutral"]
yes = "entailment"
[answers.support]
use = { premise = "context", hypothesis = "statement" }
cut = 0.5
[answers.usefulness]
use = { premise = "context", hypothesis = "reference" }
cut = 0.5
"""

RERANKER_CARD = """
card = 1
name = "reranker"
languages = ["en"]
[input]
form = "pair"
first = "{premise}"
second = "{query}"
max_tokens = 64
[output]
head = "sigmoid"
labels = ["relevant"]
yes = "relevant"
[answers.relevance]
use = { query = "user_input", premise = "context" }
cuts = [0.1, 0.9]
[answers.usefulness]
use = { query = "reference", premise = "context" }
cut = 0.5
[answers.sufficiency]
use = { query = "user_input", premise = "context" }
cuts = [0.1, 0.9]
[answers.addresses]
use = { query = "user_input", premise = "statement" }
cut = 0.5
[answers.similarities]
use = { query = "left", premise = "right" }
"""


def nli(folder: Path, card: str = NLI_CARD, labels: Mapping[int, str] = NLI_LABELS) -> Path:
    """Write the rigged model with a card for support."""
    rigged(folder, labels)
    (folder / "judge.toml").write_text(card)
    return folder


def reranker(folder: Path, card: str = RERANKER_CARD) -> Path:
    """Write the rigged model with one logit and a card for relevance."""
    rigged(folder, {0: "LABEL_0"}, yes="LABEL_0")
    (folder / "judge.toml").write_text(card)
    return folder


OPTIONS_CARD = """
card = 1
name = "decider"
languages = ["en"]
[input]
form = "options"
first = "{premise} {option}"
second = "{question}"
max_tokens = 64
[questions.support]
wording = "{hypothesis} ?"
options = ["paris tower", "it", "was"]
yes = ["it", "was"]
temperature = 12.0
[questions.relevance]
wording = "{query}"
options = ["paris tower", "it", "was"]
yes = ["it", "was"]
[questions.sufficiency]
wording = "{query}"
options = ["paris tower", "it", "was"]
yes = ["it", "was"]
[answers.support]
use = { premise = "context", hypothesis = "statement" }
[answers.relevance]
use = { premise = "context", query = "user_input" }
cuts = [0.3, 0.3]
[answers.sufficiency]
use = { premise = "context", query = "user_input" }
cuts = [0.5, 0.5]
"""


def decider(folder: Path, card: str = OPTIONS_CARD) -> Path:
    """Write the rigged model with one logit and a card of options.

    The option "paris tower" brings the key words of a question along, so its logit is higher than that of "it" and of
    "was" by 12 for each key word that the context lacks.
    """
    rigged(folder, {0: "LABEL_0"}, yes="LABEL_0")
    (folder / "judge.toml").write_text(card)
    return folder
