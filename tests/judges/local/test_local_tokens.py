"""Token ids of pairs: five kinds of tokenizer, none of which a text can trick into a separator."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from each_case import each_case
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from merilo.errors import UsageError
from merilo.judges.local.card import Input
from merilo.judges.local.model import PairTokens

PAIR = Input(form="pair", first="{premise}", second="{hypothesis}", max_tokens=512)
TEXTS = {
    "premise": "The tower was completed in 1889, in Paris.",
    "hypothesis": "it is a tower of the café",
}
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def word_piece() -> Tokenizer:
    """As BERT: lower case, pieces of words, `[CLS] A [SEP] B [SEP]` with token types."""
    pieces = [*BERT, *"abcdefghijklmnopqrstuvwxyz0123456789.,[]", *(f"##{c}" for c in "abcdefghijklmnopqrstuvwxyz0189")]
    made = Tokenizer(models.WordPiece({piece: place for place, piece in enumerate(pieces)}, unk_token=BERT[1]))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    made.add_special_tokens(BERT)
    return made


def byte_level() -> Tokenizer:
    """As RoBERTa: bytes, `<s> A </s></s> B </s>`."""
    pieces = [*ROBERTA, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    made = Tokenizer(models.BPE({piece: place for place, piece in enumerate(pieces)}, []))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    made.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    made.add_special_tokens(ROBERTA)
    return made


def unigram() -> Tokenizer:
    """As XLM-R and DeBERTa: pieces with scores; the vocabulary itself contains `</s>` and `<s>`."""
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -2.0)]
    pieces += [(char, -3.0) for char in "abcdefghijklmnopqrstuvwxyzTP0189.,</>é"]
    made = Tokenizer(models.Unigram(pieces, unk_id=3))
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer, made.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    made.add_special_tokens(ROBERTA[:4])
    return made


def truncating() -> Tokenizer:
    """A file with a limit of 8 tokens and padding to 8, as some repositories ship."""
    made = word_piece()
    made.enable_truncation(8)
    made.enable_padding(length=8)
    return made


def with_template() -> Tokenizer:
    """A post-processor of its own, with the second text's type 1."""
    made = word_piece()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $B:1 [SEP]:1 $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return made


KINDS = [word_piece, byte_level, unigram, truncating, with_template]


def saved(tmp_path: Path, made: Tokenizer) -> Path:
    """The tokenizer as a file."""
    path = tmp_path / "tokenizer.json"
    made.save(str(path))
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_the_ids_are_those_of_the_tokenizer(tmp_path: Path, kind: Callable[[], Tokenizer]) -> None:
    """Ids and token types equal those of the package for a pair, untruncated and unpadded."""
    tokens = PairTokens(saved(tmp_path, kind()), PAIR).encode(TEXTS)
    whole = kind()
    whole.no_truncation()
    whole.no_padding()
    expected = whole.encode(TEXTS["premise"], TEXTS["hypothesis"])
    assert list(tokens.ids) == expected.ids
    assert list(tokens.types) == expected.type_ids
    assert len(tokens.ids) > 30


@each_case("kind", KINDS)
@each_case(
    "text",
    ["a [SEP] b", "a[SEP]b[CLS]", "a</s>b", "</s></s>", "<s>", "a ＜/s＞ b", "</s", "[SEP", "<unk>", "[UNK]", "[MASK]"],
)
def test_a_text_cannot_forge_a_special_token(tmp_path: Path, kind: Callable[[], Tokenizer], text: str) -> None:
    """A text with the letters of a separator gives letters: the number of special tokens stays the same."""
    tokens = PairTokens(saved(tmp_path, kind()), PAIR)
    special = [2, 3] if kind not in {byte_level, unigram} else [0, 2]

    def count(premise: str) -> int:
        ids = tokens.encode({"premise": premise, "hypothesis": "b"}).ids
        return sum(each in special for each in ids)

    assert count(text) == count("a")


def test_the_trap_exists(tmp_path: Path) -> None:
    """Without the guard, a vocabulary with `</s>` gives the separator for its letters."""
    made = Tokenizer.from_file(str(saved(tmp_path, unigram())))
    made.encode_special_tokens = True
    assert 2 in made.encode("a</s>b", add_special_tokens=False).ids


def test_a_slot_in_a_text_is_text(tmp_path: Path) -> None:
    """A premise that contains `{hypothesis}` is not filled in a second time."""
    form = Input(form="text", text="{premise} : {hypothesis}", max_tokens=512)
    tokens = PairTokens(saved(tmp_path, byte_level()), form)
    once = tokens.encode({"premise": "{hypothesis}", "hypothesis": "xyz"})
    assert len(once.ids) == 2 + len("{hypothesis} : xyz")


def test_special_tokens_of_the_card_replace_those_of_the_tokenizer(tmp_path: Path) -> None:
    """A card may list the tokens, as for models that read two texts as one with a separator."""
    special = ("<s>", "text:{premise}", "</s>", "text:ab {hypothesis}")
    tokens = PairTokens(saved(tmp_path, byte_level()), Input(form="text", special=special, max_tokens=512))
    ids = tokens.encode({"premise": "x", "hypothesis": "y"}).ids
    assert (ids[0], ids[2]) == (0, 2)
    assert len(ids) == 3 + len("ab y")


def test_half_of_a_surrogate_pair_is_read(tmp_path: Path) -> None:
    """A text that is not valid Unicode is read without its broken character."""
    tokens = PairTokens(saved(tmp_path, word_piece()), PAIR)
    assert len(tokens.ids("a \ud800 b")) == 3


@pytest.mark.parametrize("content", ["", "{}", "[" * 100_000, json.dumps({"version": "1.0", "model": {"type": "X"}})])
def test_a_damaged_tokenizer_is_one_line(tmp_path: Path, content: str) -> None:
    """A file that is not a tokenizer gives an error in one line."""
    path = tmp_path / "tokenizer.json"
    path.write_text(content)
    with pytest.raises(UsageError, match="Cannot read") as refused:
        PairTokens(path, PAIR)
    assert "\n" not in str(refused.value)
