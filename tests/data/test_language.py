"""The language of a text: from its script, or identified in Latin script."""

from each_case import each_case

from merilo.data.context import Context
from merilo.data.language import identify_language
from merilo.data.sample import Sample, with_identified_language

GERMAN = "Wann wurde der Turm in Paris fertiggestellt?"


@each_case(
    ("text", "language"),
    [
        (GERMAN, "de"),
        ("Quelle est la hauteur de la tour Eiffel ?", "fr"),
        ("¿Cuándo se terminó de construir la torre?", "es"),
        ("Quanto è alta la torre di Parigi?", "it"),
        ("Hoe hoog is de toren in Parijs precies?", "nl"),
        ("Hvor mange mennesker bor det i Oslo kommune i dag?", "no"),
        ("Kule ne zaman tamamlandı ve kaç metre yüksekliğinde?", "tr"),
        ("Когда построили башню?", "ru"),
        ("塔有多高？", "zh"),
        ("ಗೋಪುರವನ್ನು ಯಾವಾಗ ನಿರ್ಮಿಸಲಾಯಿತು?", "kn"),
        ("টাওয়ারটি কখন তৈরি হয়েছিল?", "bn"),
        ("টাৱাৰটো কেতিয়া নিৰ্মাণ কৰা হৈছিল?", "unknown"),  # Assamese
        ("கோபுரம் எப்போது கட்டப்பட்டது?", "ta"),
        ("როდის აშენდა კოშკი?", "ka"),
        ("Ե՞րբ է կառուցվել աշտարակը:", "hy"),
        ("ប៉មនេះសាងសង់នៅពេលណា?", "km"),
        ("ຫໍຄອຍຖືກສ້າງຂຶ້ນເມື່ອໃດ?", "lo"),
        ("ግንቡ መቼ ተሠራ?", "unknown"),  # Amharic and Tigrinya share the script
        ("မျှော်စင်ကို ဘယ်အချိန်က ဆောက်ခဲ့သလဲ။", "unknown"),
        ("ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ (Cherokee)", "unknown"),
        ("𞤀𞤁𞤂𞤢𞤃", "unknown"),
    ],
)
def test_other_languages_are_identified(text: str, language: str) -> None:
    """A question of ordinary length shows its language, in Latin script and in others."""
    assert identify_language(text) == language


@each_case(
    "text",
    [
        "",
        "330",
        "How tall is the tower?",
        "Tell me more please",
        "Gerhard Schröder",
        "Wie hoch?",
        "SELECT name FROM town LIMIT 10",
        "What does the German word 'Schadenfreude' mean?",
        "How do you say ಗೋಪುರ in English?",
    ],
)
def test_uncertain_texts_are_english(text: str) -> None:
    """English, names, code, and texts that are too short to show their language."""
    assert identify_language(text) == "en"


def test_a_sample_gets_the_language_of_its_first_text() -> None:
    """Its contexts keep their own languages, so that each is split by the rules of its language."""
    contexts = ["Der Turm wurde im Jahr 1889 gebaut.", "The tower was built in 1889.", Context("Turm", language="nl")]
    sample = with_identified_language(Sample("1", user_input=GERMAN, retrieved_contexts=contexts))
    assert sample.language == "de"
    assert [each.language for each in sample.contexts] == ["de", "en", "nl"]
    assert with_identified_language(sample) == sample


@each_case(
    "sample",
    [
        Sample("1", user_input="When was the tower in Paris completed?", retrieved_contexts=[GERMAN]),
        Sample("1", user_input="Когда построили башню?"),
        Sample("1", user_input=GERMAN, language="en"),
        Sample("1"),
    ],
)
def test_other_samples_do_not_change(sample: Sample) -> None:
    """A named language counts, and nothing is added if the script shows the same language."""
    assert with_identified_language(sample).to_record() == sample.to_record()


@each_case(
    "text",
    [
        "The Basic plan costs 10 euros per month.",
        "What does the Basic plan cost?",
        "A Premium subscription includes these articles.",
        "How do I cancel?",
    ],
)
def test_a_word_that_only_english_has_decides_a_doubtful_text(text: str) -> None:
    """Short texts of product names and English words are English, unless another language is nearly certain."""
    assert identify_language(text) == "en"
    assert identify_language("De cursus 'Who killed Amanda' kost tien euro per maand en is gratis voor leden.") == "nl"
