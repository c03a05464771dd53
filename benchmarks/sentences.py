"""Speed of the sentence splitter on one core, in MB of UTF-8 per second, for synthetic prose."""

import random
import time

from figures import report

from merilo.data.sentences import split

_WORDS = {
    "en": "the of and to a in is was for that with as it on by he his from at which an were are this be "
    "company built river government during between Dr. e.g. 3.5 1998 Berlin Kubernetes".split(),
    "ru": "и в на что это как по из был для года его она они также город река компания время т.е. "
    "г. 1998 Москва Пушкин правительство между".split(),
}
_CHINESE = "的一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生"
_CHARS = 3_000_000


def english_like(language: str, source: random.Random) -> str:
    """Return sentences of 5 to 25 words in paragraphs of 3 to 7, every tenth paragraph a Markdown list."""
    parts: list[str] = []
    size = 0
    while size < _CHARS:
        sentences = [
            " ".join(source.choices(_WORDS[language], k=source.randint(5, 25))).capitalize() + source.choice("..?!")
            for _ in range(source.randint(3, 7))
        ]
        is_list = source.random() < 0.1
        parts.append("\n".join(f"- {one}" for one in sentences) if is_list else " ".join(sentences))
        size += len(parts[-1]) + 2
    return "\n\n".join(parts)


def chinese_like(source: random.Random) -> str:
    """Return sentences of 8 to 40 characters, without spaces."""
    parts: list[str] = []
    while sum(map(len, parts[-1:])) + len(parts) * 25 < _CHARS:
        parts.append("".join(source.choices(_CHINESE, k=source.randint(8, 40))) + "。")
    return "".join(parts)


def main() -> None:
    """Print one figure per language: MB per second, the best of three."""
    source = random.Random(7)
    texts = {"en": english_like("en", source), "ru": english_like("ru", source), "zh": chinese_like(source)}
    for language, text in texts.items():
        split(text[:1000], language)  # loads the language's library
        best_s = float("inf")
        count = 0
        for _ in range(3):
            start_s = time.perf_counter()
            count = len(split(text, language))
            best_s = min(best_s, time.perf_counter() - start_s)
        if count < _CHARS // 500:
            raise SystemExit(f"too few sentences in {language}: {count}")
        speed = len(text.encode()) / 1e6 / best_s
        report(f"sentences, {language}, MB/s", speed, at_least=5 if language == "en" else None)


if __name__ == "__main__":
    main()
