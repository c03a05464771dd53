"""The table of Russian messages, and how a line finds its translation."""

import ast
import json
import re
import time
from pathlib import Path

from each_case import each_case

import merilo
from merilo.data.aliases import aliases
from merilo.rendering.page import Page
from merilo.rendering.translation import PLACEHOLDER, plural, translation

PACKAGE = Path(merilo.__file__).parent
TABLE = json.loads((PACKAGE / "rendering" / "messages" / "ru.json").read_text(encoding="utf-8"))
ENTRIES = [(english, russian) for part in ("messages", "phrases") for english, russian in TABLE[part].items()]
RU = translation("ru")


def texts_of_the_source() -> str:
    """Every text constant in the source; a formatted text is cut at its values."""
    found: list[str] = []
    for path in PACKAGE.rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        found += [each.value for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return "\n".join(found)


def words_of(english: str) -> list[str]:
    """The fixed texts of a message between placeholders and punctuation, and its counted things in the singular."""
    counted = [place[3].partition("/")[0] for place in PLACEHOLDER.finditer(english) if place[3]]
    fixed = re.split(r"""[][()<>,;:."'$~%|]""", PLACEHOLDER.sub("|", english))
    return [*counted, *(words.strip() for words in fixed if re.search("[a-z]", words))]


def is_composed(words: str, source: str) -> bool:
    """True if a text is in the source, or is at most four parts of it one after the other, as f-strings have them."""
    rest, parts = re.split(r"[ /]", words), 0
    while rest and parts < 4:
        size = next((size for size in range(len(rest), 0, -1) if " ".join(rest[:size]) in source), 0)
        if not size:
            return False
        rest, parts = rest[size:], parts + 1
    return not rest


def test_every_entry_is_used() -> None:
    """The words of each message occur in the source, so that no entry outlives the message that it translates."""
    source = texts_of_the_source()
    source += source.replace("_", " ")  # names of counts are shown with blanks
    source += " ".join(map(str.title, aliases().languages))
    missing = [english for english, _ in ENTRIES if not all(is_composed(words, source) for words in words_of(english))]
    assert missing == []


def test_every_entry_has_the_same_placeholders() -> None:
    """A translation has each placeholder of its message once, and three forms of each counted thing."""
    for english, russian in ENTRIES:
        places = [sorted(place[1] + place[2] for place in PLACEHOLDER.finditer(text)) for text in (english, russian)]
        assert places[0] == places[1], english
        assert len(set(places[0])) == len(places[0]), english
        forms = [len(place[3].split(",")) for place in PLACEHOLDER.finditer(russian) if place[3]]
        assert set(forms) <= {3}, english


@each_case(
    ("amount", "said"),
    [
        *((n, "образец") for n in (1, 21, 101, 1001)),
        *((n, "образца") for n in (2, 3, 4, 22, 1004)),
        *((n, "образцов") for n in (0, 5, 11, 12, 14, 20, 25, 111, 112)),
    ],
)
def test_a_russian_noun_agrees_with_its_number(amount: int, said: str) -> None:
    """1 образец, 2 образца, 5 образцов; 11 to 14 take the third form."""
    assert plural(amount, "образец", "образца", "образцов") == said


@each_case(("english", "russian"), [
        ("data: 1 sample, judged by embedded", "data: 1 образец, судья embedded"),
        ("data: 2 samples, by the judge alone (embedded)", "data: 2 образца, только по оценке судьи (embedded)"),
        ("my: data, v2: 1,204 samples, judged by a, b", "my: data, v2: 1 204 образца, судья a, b"),
        ("Interrupted. 3 of 20 samples are done. All answers are kept.",
         "Прервано. Готово образцов: 3 из 20. Все ответы сохранены."),
        ("To resume: merilo run a.jsonl --out 'b. C'", "Продолжить: merilo run a.jsonl --out 'b. C'"),
        ("Cost: 2 requests (1 unanswered), 1,204 tokens in, 5 out, 0.42 USD, 1.0 s.",
         "Стоимость: 2 запроса (без ответа 1), токенов на входе 1 204, на выходе 5, 0.42 USD, 1.0 с."),
        ("a, 2 undefined: the response is blank.", "a, не определено 2: ответ пуст."),
        ("relevance: grade 2 of 2, p(relevant) = 0.95. Because so.",
         "релевантность: оценка 2 из 2, p(релевантно) = 0.95. Because so."),
        ("A message that no table has.", "A message that no table has."),
    ])  # fmt: skip
def test_a_line_is_translated(english: str, russian: str) -> None:
    """As a whole or by sentence; values, names and unknown texts stay."""
    assert RU.line(english) == russian
    assert translation(None).line(english) == english


@each_case("language", [None, "en", "en-US", "de", "../ru", "", "xx"])
def test_other_languages_are_english(language: str | None) -> None:
    """A language without a table, or a code that is not one, gives English."""
    assert translation(language).line("Next") == "Next"


def test_regions_use_the_table_of_their_language() -> None:
    """ru-RU and ru_RU are Russian."""
    assert {translation(each).line("Next") for each in ("ru", "ru-RU", "RU_ru")} == {"Дальше"}


def test_texts_of_the_user_are_not_translated() -> None:
    """A text that happens to equal a word of merilo's is shown as it was written."""
    page = Page(80, "ru")
    for label in ("user input", "response", "reference", "metadata"):
        page.entry(label, "Next", column=15)
    page.text("Next", verbatim=True)
    page.text("supported")
    page.entry("user input", "(blank)", column=15)
    assert str(page).split() == (
        "вопрос Next ответ Next эталон Next метаданные Next Next supported вопрос (пусто)".split()
    )


@each_case("part", ["a: b. ", "a (1); ", "a: b, ", "a 1 (", "1 of 2 a, 1 (", "a of context 1: ", "A. "])
def test_a_text_that_looks_like_nested_messages_takes_no_time(part: str) -> None:
    """Judges write reasons of any shape, so the work is bounded."""
    began = time.process_time()
    text = part * (1_900 // len(part))
    assert RU.line(f"relevance: grade 2 of 2. {text}").startswith(("relevance", "релевантность"))
    assert time.process_time() - began < 5
