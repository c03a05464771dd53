"""Writes tests/judges/local/exported: small random models in four architectures, exported as a user exports one.

Each folder has model.onnx, tokenizer.json, config.json and golden.json: pairs of texts with the logits that torch
gives for them, at three lengths. It needs a separate environment, because the exporter pins older packages:

    uv run --no-project --with torch --with "optimum-onnx[onnxruntime]" python tools/exported_models.py
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
import transformers
from optimum.exporters.onnx import main_export
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

OUT = Path(__file__).parent.parent / "tests" / "judges" / "local" / "exported"
LABELS = {0: "contradiction", 1: "entailment", 2: "neutral"}
POSITIONS = 160
WORDS = ("the", "tower", "paris", "a", "b?", "it,")
PAIRS = ((1, 2), (10, 3), (28, 5))
"""Words of the two texts; the pairs have from 8 to more than 100 tokens."""
CHARS = "abcdefghijklmnopqrstuvwxyz0123456789.,?!()</>[]"
BERT = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
ROBERTA = {"cls_token": "<s>", "pad_token": "<pad>", "sep_token": "</s>", "unk_token": "<unk>"}


class Architecture(NamedTuple):
    """A tokenizer, the names of its special tokens, and a model."""

    tokenizer: Tokenizer
    special: dict[str, str]
    model: str
    options: dict[str, Any]


def word_piece() -> Tokenizer:
    """Pieces of words, as BERT and ModernBERT have them here."""
    pieces = [*BERT.values(), *CHARS, *(f"##{char}" for char in CHARS), "the", "tower", "paris"]
    made = Tokenizer(models.WordPiece({each: place for place, each in enumerate(pieces)}, unk_token=BERT["unk_token"]))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    return finished(made, BERT, "[CLS] $A [SEP] $B:1 [SEP]:1")


def unigram(special: dict[str, str], pair: str) -> Tokenizer:
    """Pieces with scores, as DeBERTa-v3 and XLM-R have them."""
    pieces = [*((each, 0.0) for each in special.values()), ("▁", -2.0), ("▁the", -1.5), ("▁tower", -1.6)]
    unknown = [*special].index("unk_token")
    made = Tokenizer(models.Unigram([*pieces, *((char, -3.0) for char in CHARS)], unk_id=unknown))
    made.normalizer, made.pre_tokenizer = normalizers.NFKC(), pre_tokenizers.Metaspace()
    return finished(made, special, pair)


def byte_level() -> Tokenizer:
    """Bytes, as RoBERTa has them."""
    pieces = [*ROBERTA.values(), *sorted(pre_tokenizers.ByteLevel.alphabet())]
    made = Tokenizer(models.BPE({each: place for place, each in enumerate(pieces)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return finished(made, ROBERTA, "<s> $A </s> </s> $B </s>")


def finished(made: Tokenizer, special: dict[str, str], pair: str) -> Tokenizer:
    """The tokenizer with its special tokens and its form for two texts."""
    made.add_special_tokens([*special.values()])
    used = [(each, made.token_to_id(each)) for each in (special["cls_token"], special["sep_token"])]
    single = f"{special['cls_token']} $A {special['sep_token']}"
    made.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=used)
    return made


def architectures() -> dict[str, Architecture]:
    """The architectures of well-known checkers and rerankers."""
    deberta = {
        "relative_attention": True,
        "position_buckets": 32,
        "norm_rel_ebd": "layer_norm",
        "share_att_key": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "type_vocab_size": 0,
        "max_position_embeddings": POSITIONS,
    }
    modern = {"max_position_embeddings": POSITIONS, "pad_token_id": 0, "cls_token_id": 2, "sep_token_id": 3}
    roberta = {"max_position_embeddings": POSITIONS + 2, "type_vocab_size": 1, "pad_token_id": 1}
    bert_pair = "[CLS] $A [SEP] $B:1 [SEP]:1"
    return {
        "deberta-v3": Architecture(unigram(BERT, bert_pair), BERT, "DebertaV2", deberta),
        "modernbert": Architecture(word_piece(), BERT, "ModernBert", {**modern, "bos_token_id": 2, "eos_token_id": 3}),
        "roberta": Architecture(byte_level(), ROBERTA, "Roberta", roberta),
        "xlm-r": Architecture(unigram(ROBERTA, "<s> $A </s> </s> $B </s>"), ROBERTA, "XLMRoberta", roberta),
    }


def write(name: str, made: Architecture) -> None:
    """Make, export and measure one model."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{made.model}Config")(
        vocab_size=made.tokenizer.get_vocab_size(),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        id2label=LABELS,
        label2id={label: place for place, label in LABELS.items()},
        **made.options,
    )
    model = getattr(transformers, f"{made.model}ForSequenceClassification")(config).eval()
    for weights in model.parameters():
        if weights.dim() > 1:
            torch.nn.init.normal_(weights, std=0.3)  # the usual 0.02 would make all logits nearly equal
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made.tokenizer, **made.special)
    with TemporaryDirectory() as scratch:
        source, exported = Path(scratch, "source"), Path(scratch, "exported")
        model.save_pretrained(source)
        tokenizer.save_pretrained(source)
        main_export(str(source), output=str(exported), task="text-classification", no_post_process=True)
        (OUT / name).mkdir(parents=True, exist_ok=True)
        for file in ("model.onnx", "tokenizer.json", "config.json"):
            shutil.copy(exported / file, OUT / name / file)
    (OUT / name / "golden.json").write_text(json.dumps(golden(model, tokenizer), indent=1) + "\n", encoding="utf-8")


def golden(model: Any, tokenizer: Any) -> list[dict[str, object]]:
    """Pairs of texts, their numbers of tokens and torch's logits for them."""
    draw = random.Random(0)
    found: list[dict[str, object]] = []
    for lengths in PAIRS:
        premise, hypothesis = (" ".join(draw.choices(WORDS, k=length)) for length in lengths)
        pair = tokenizer(premise, hypothesis, return_tensors="pt", return_token_type_ids=False)
        with torch.no_grad():
            logits = model(**pair).logits[0].tolist()
        tokens = int(pair["input_ids"].shape[1])
        found.append({"premise": premise, "hypothesis": hypothesis, "tokens": tokens, "logits": logits})
    return found


if __name__ == "__main__":
    for each, architecture in architectures().items():
        write(each, architecture)
        sys.stdout.write(f"{OUT / each}\n")
