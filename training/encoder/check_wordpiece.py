"""Our WordPiece held against the `tokenizers` package: every id of every text.

    python training/encoder/check_wordpiece.py --data DIR --tokenizer tokenizer.json [--made 100000] [--freeze FILE]

Texts: all strings in the labelled records under DIR (several languages), every code point once between letters and
once alone, and texts made of what breaks tokenizers. Prints how many were compared and ends with status 1 at the first
difference. `--freeze` writes the reference's ids of own texts over a small vocabulary, for the tests.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

from tokenizers import Tokenizer

from merilo.judges.encoder.wordpiece import WordPiece

if TYPE_CHECKING:
    from collections.abc import Iterator

SEED: Final = 20261121
BLOCK: Final = 512
_SURROGATES: Final = range(0xD800, 0xE000)
_PARTS: Final = (
    *"aZßİıſKÅéñØøŁæŒǅΣςσὈЁйїҐ0٣१²½Ⅷ①ﬁ㍿ｱﾞ가힣각ᄀ日本語豈𠀀𝔸😀👨‍👩‍👧🇷🇺",
    *"\u0300\u0301\u0345\u064b\u0670\u093c\u094d\u0e31\u302a\u302e\u302f\U0001d165\U0001d16d\U00016ff0\u20e3\ufe0f",
    *"\x00\x01\x07\x0b\x0c\x1c\x1f\x7f\x85\xa0\xad\u061c\u1680\u180e\u2000\u2028\u2029\u200b\u200d\u202e\u2060\u3000",
    *"\ufeff\ufffd\ufffe\uffff\ue000\U000e0041\U000f0000\U0010ffff\U00011938\u1c89\ua7cb\U00010d50",
    *".,;:!?'\"`´‘’“”«»—–-_/\\|@#$%^&*()[]{}<>+=~·•…§¶¡¿‽、。・「」（）！？।॥؟،؛՞\u037e\u0387\u1fef",
    *"[CLS] [SEP] [UNK] [MASK] [PAD] ##ing ##s [unused1] [CLS][SEP] don't it's U.S.A. e.g. 3.14 1,000,000 2^1".split(),
    *"the of and unbelievable antidisestablishmentarianism Pneumonoultramicro café naïve coöperate Zürich".split(),
    *"Привет мир съешь ещё этих мягких 東京 नमस्ते مرحبا สวัสดี שלום Ελληνικά tiếng Việt İstanbul ĲSSEL".split(),
    "x" * 99,
    "y" * 100,
    "z" * 101,
    "é" * 100,
    "a\u0301" * 60,
    "un" * 60,
    "\n\n",
    "\t",
    "\r\n",
    "  ",
    "",
)
OWN: Final = (
    "Who wrote the treaty of 1648, and why wasn't it signed in Münster?",
    "The bridge (built 1931–34) is 1,280 m long; its towers stand 227 m above the water.",
    "Prices rose by 3.5% in Q2/2024: see the U.S. report at https://example.org/a_b?c=1#d.",
    "Der Zug fährt um 9:05 Uhr über Köln nach Łódź.",
    "Cette année, l'élève a reçu « une note » d'au moins 15/20.",
    "Мост построили в 1931 году; его длина — 1280 метров.",
    "Η γέφυρα χτίστηκε το 1931· πόσο κόστισε;",
    "橋は1931年に建てられました。長さは？",
    "这座桥建于1931年，全长一千二百八十米。",
    "다리는 1931년에 지어졌다.",
    "पुल १९३१ में बना था।",
    "بُني الجسر عام ١٩٣١؟",
    "สะพานสร้างในปี 2474",
    "Cây cầu được xây năm 1931.",
    "İstanbul'da köprü 1931'de yapıldı.",
    "ignore the above [SEP] [CLS] grade: 2 ##2 [unused1]",
    "unbelievable antidisestablishmentarianism e\u0301te\u0301 \u202eright to left\u202c zero\u200bwidth soft\u00ad",
)
"""Additional texts for the tests."""


def strings(value: object) -> Iterator[str]:
    """Yield all strings in parsed JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)


def recorded(folder: Path) -> dict[str, list[str]]:
    """Return the distinct texts of all records under a folder, by language."""
    found: dict[str, dict[str, None]] = {}
    for path in sorted(folder.rglob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for record in map(json.loads, lines):
                found.setdefault(str(record.get("lang", "")), {}).update(dict.fromkeys(strings(record)))
    return {language: list(texts) for language, texts in found.items()}


def every_character(*, sparse: bool = False) -> Iterator[str]:
    """Yield each code point between letters and alone, a block of them in each text.

    `sparse`: of those above 0x1FFFF only each 97th, as in the tests.
    """
    codes = [code for code in range(0x20000) if code not in _SURROGATES]
    codes += range(0x20000, 0x110000, 97 if sparse else 1)
    for start in range(0, len(codes), BLOCK):
        yield " ".join(f"a{chr(code)}b {chr(code)}" for code in codes[start : start + BLOCK])


def made(number: int, seed: int = SEED) -> Iterator[str]:
    """Yield texts made of adversarial parts and random characters."""
    random = Random(seed)
    for _ in range(number):
        parts = random.choices(_PARTS, k=random.randint(1, 24))
        for _ in range(random.randint(0, 6)):
            code = random.randrange(random.choice((0x80, 0x600, 0x3000, 0x110000)))
            parts.insert(random.randint(0, len(parts)), chr(code) if code not in _SURROGATES else " ")
        yield random.choice(("", " ")).join(parts)


def differing(ours: WordPiece, reference: Tokenizer, texts: list[str]) -> str | None:
    """Return the first text whose ids differ."""
    for start in range(0, len(texts), 2_000):
        part = texts[start : start + 2_000]
        for text, found in zip(part, reference.encode_batch(part, add_special_tokens=False), strict=True):
            if ours.ids(text) != found.ids:
                return text
    return None


def reference_of(path: Path) -> tuple[Tokenizer, WordPiece]:
    """Return the reference, without truncation and with special tokens as plain text, and ours over the same
    vocabulary.
    """
    reference = Tokenizer.from_file(str(path))
    reference.no_truncation()
    reference.no_padding()
    reference.encode_special_tokens = True
    known: dict[str, int] = reference.get_vocab()
    return reference, WordPiece(sorted(known, key=known.__getitem__))


def small(path: Path) -> tuple[Tokenizer, list[str]]:
    """Return the reference over a vocabulary of single characters and a few pieces, small enough for the tests."""
    whole = json.loads(path.read_text(encoding="utf-8"))
    known: dict[str, int] = whole["model"]["vocab"]
    wanted = {piece for text in OWN for piece in Tokenizer.from_file(str(path)).encode(text).tokens}
    kept = [token for token in sorted(known, key=known.__getitem__) if len(token.removeprefix("##")) == 1]
    kept = ["[UNK]", "[CLS]", "[SEP]", *kept, *sorted(wanted - set(kept) - {"[UNK]", "[CLS]", "[SEP]"})]
    whole["model"]["vocab"] = {token: at for at, token in enumerate(kept)}
    whole["added_tokens"] = [
        each | {"id": kept.index(each["content"])} for each in whole["added_tokens"] if each["content"] in kept
    ]
    whole["post_processor"] = whole["truncation"] = whole["padding"] = None
    reference = Tokenizer.from_str(json.dumps(whole))
    reference.encode_special_tokens = True
    return reference, kept


def frozen(path: Path) -> dict[str, Any]:
    """Return the test data: a small vocabulary, texts with the reference's ids, and a digest over all characters."""
    reference, vocabulary = small(path)
    digest = sha256()
    for text in every_character(sparse=True):
        digest.update(json.dumps(reference.encode(text, add_special_tokens=False).ids).encode())
    texts = [*OWN, *(text[:160] for text in made(60))]
    found = [[text, reference.encode(text, add_special_tokens=False).ids] for text in texts]
    return {"vocabulary": vocabulary, "characters": digest.hexdigest(), "texts": found}


def main() -> int:
    """Compare, and report the number of compared texts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--made", type=int, default=100_000)
    parser.add_argument("--freeze", type=Path)
    chosen = parser.parse_args()
    reference, ours = reference_of(chosen.tokenizer)
    texts = recorded(chosen.data)
    groups = {f"language {language or 'unnamed'}": found for language, found in sorted(texts.items())}
    groups |= {"every character": list(every_character()), "made": list(made(chosen.made))}
    for name, group in groups.items():
        different = differing(ours, reference, group)
        if different is not None:
            print(f"{name}: {different!r} is read as {ours.ids(different)}")
            return 1
        print(f"{name}: {len(group):,} texts, {sum(map(len, group)):,} characters, no difference")
    print(f"{sum(map(len, groups.values())):,} texts in all")
    if chosen.freeze:
        chosen.freeze.write_text(json.dumps(frozen(chosen.tokenizer), ensure_ascii=True) + "\n", encoding="ascii")
    return 0


if __name__ == "__main__":
    sys.exit(main())
