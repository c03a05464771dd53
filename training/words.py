"""Write the table of words of the embedded judge: weights of stems by rarity, and irregular English forms.

    python training/words.py --data DIR --out src/merilo/judges/words.v1.json

DIR holds `train/`. No label is used: a stem's weight is its inverse document frequency over that of a word seen in no
passage, the lowest over the languages that have it ("de" is a function word in several). A word that is frequent in
questions ("what") says as little as one that is frequent in passages.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from merilo.judges import words

if TYPE_CHECKING:
    from collections.abc import Iterator

LEVELS: Final = 50
"""Weights are stored in steps of 1/LEVELS."""
MAX_BYTES: Final = 200_000
"""Size of all stems in the table; the rarest ones are left out."""
MIN_PASSAGES: Final = 60
MIN_QUESTIONS: Final = 100
"""Texts of a language from which its words are counted."""
IRREGULAR: Final = """
be:am,is,are,was,were,been,being have:has,had,having do:does,did,done,doing go:went,gone,goes
begin:began,begun write:wrote,written take:took,taken become:became give:gave,given make:made
come:came know:knew,known find:found think:thought tell:told say:said leave:left hold:held lead:led
build:built win:won lose:lost sell:sold send:sent buy:bought bring:brought teach:taught fight:fought
catch:caught sing:sang,sung drink:drank,drunk run:ran swim:swam,swum grow:grew,grown
throw:threw,thrown fly:flew,flown draw:drew,drawn see:saw,seen speak:spoke,spoken break:broke,broken
choose:chose,chosen drive:drove,driven rise:rose,risen ride:rode,ridden wear:wore,worn
fall:fell,fallen eat:ate,eaten forget:forgot,forgotten hide:hid,hidden meet:met feed:fed
get:got,gotten sit:sat stand:stood understand:understood keep:kept sleep:slept feel:felt mean:meant
spend:spent lend:lent pay:paid lay:laid die:died,dying,dead,death strike:struck bear:born,borne,bore
shoot:shot steal:stole,stolen freeze:froze,frozen shake:shook,shaken man:men woman:women
child:children person:people foot:feet tooth:teeth mouse:mice wife:wives life:lives
marry:married,marriage bury:buried
2:two 3:three 4:four 5:five 6:six 7:seven 8:eight 9:nine 10:ten 11:eleven 12:twelve 20:twenty 30:thirty 40:forty
50:fifty 60:sixty
"""


def main() -> None:
    """Count, weigh, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name in ("data", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    chosen = parser.parse_args()
    bases = {base: forms.split(",") for base, _, forms in (entry.partition(":") for entry in IRREGULAR.split())}
    words._table = lambda: ({}, {form: base for base, forms in bases.items() for form in forms})  # type: ignore[assignment]  # noqa: SLF001  no table is needed to make one
    fields = {
        "levels": LEVELS,
        "weights": _grouped(weights(chosen.data / "train")),
        "bases": {base: " ".join(forms) for base, forms in bases.items()},
    }
    text = json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n"
    chosen.out.write_text(text, encoding="utf-8")


def weights(folder: Path) -> dict[str, float]:
    """Return the weight of each stem that is in the table."""
    lowest: dict[str, float] = {}
    seen: Counter[str] = Counter()
    for texts, needed, divisor in ((_passages(folder), MIN_PASSAGES, 1), (_questions(folder), MIN_QUESTIONS, 3)):
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        totals: Counter[str] = Counter()
        for language, text in dict.fromkeys(texts):
            totals[language] += 1
            counts[language].update(dict.fromkeys(words.stems(text), 1))
        for language in (each for each, total in totals.items() if total >= needed):
            for stem, count in counts[language].items():
                value = _weight(max(1.0, count / divisor), totals[language])
                lowest[stem] = min(lowest.get(stem, 1.0), value)
                seen[stem] += count
    kept: dict[str, float] = {}
    room = MAX_BYTES
    for stem in sorted((each for each in lowest if seen[each] > 1), key=lambda each: (-seen[each], each)):
        room -= len(stem.encode()) + 1
        if room < 0:
            break
        kept[stem] = lowest[stem]
    return kept


def _weight(count: float, total: int) -> float:
    return math.log(1 + (total - count + 0.5) / (count + 0.5)) / math.log(1 + (total + 0.5) / 0.5)


def _passages(folder: Path) -> Iterator[tuple[str, str]]:
    for record in _read(folder, "chunk_relevance"):
        yield record["lang"], record["context"]
    for record in _read(folder, "sentence_relevance"):
        yield record["lang"], " ".join(record["sentences"])


def _questions(folder: Path) -> Iterator[tuple[str, str]]:
    for record in (*_read(folder, "chunk_relevance"), *_read(folder, "sentence_relevance")):
        if record["source"] != "fm2":  # claims, not questions
            yield record["lang"], record["query"]


def _read(folder: Path, task: str) -> Iterator[dict[str, Any]]:  # Any: parsed JSON
    for path in (folder / f"{task}.jsonl.gz", folder / f"{task}.more.jsonl.gz"):
        if path.is_file():
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                yield from map(json.loads, lines)


def _grouped(found: dict[str, float]) -> dict[str, str]:
    levels: dict[int, list[str]] = {}
    for stem, value in found.items():
        levels.setdefault(round(value * LEVELS), []).append(stem)
    return {str(level): " ".join(sorted(own)) for level, own in sorted(levels.items()) if level < LEVELS}


if __name__ == "__main__":
    main()
