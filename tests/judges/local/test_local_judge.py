"""`--judge local:MODEL`: how it presents itself, and a run with it."""

import json
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case
from grouping import grouped
from tiny_models import NLI_CARD, nli, reranker, rigged

from merilo import evaluate
from merilo.errors import UsageError
from merilo.judges.local.find import fetched_folder
from merilo.judges.local.judge import UNPROVED, LocalJudge, local_judge
from merilo.judges.spec import cross_encoder_from, judge_from

ROW = {
    "user_input": "Is the tower in Paris?",
    "retrieved_contexts": ["The tower is in Paris.", "Rome has seven hills."],
    "response": "The tower is in Paris. It was designed by Eiffel.",
    "reference": "The tower is in Paris.",
}


def test_a_spec_leads_to_the_judge(tmp_path: Path) -> None:
    """`local:FOLDER` is a judge with the name of its card; a tokenizer alone does not load the model."""
    judge = judge_from(f"local:{nli(tmp_path / 'm')}")
    assert isinstance(judge, LocalJudge)
    assert judge.name == "local:rigged"
    assert judge.supports_batches
    assert judge.cacheable
    assert judge.together == frozenset()
    assert not judge.rubric(None)  # type: ignore[arg-type]  unused


def test_the_note_says_what_is_not_known(tmp_path: Path) -> None:
    """Without labels, calibration and proof, the summary says so, and it names a non-commercial licence."""
    rigged(fetched_folder("nli"))
    note = local_judge("nli").agreement_note or ""
    assert note.startswith("model ")
    assert note.endswith(f"not checked against human labels; its scores are not calibrated; {UNPROVED}")
    card = NLI_CARD.replace("card = 1", 'card = 1\nlicence = "CC BY-NC 4.0"') + (
        "[calibration.support]\nscale = 1.0\nshift = 0.0\n"
    )
    note = local_judge(str(nli(tmp_path / "m", card))).agreement_note or ""
    assert note.endswith("not checked against human labels; licence CC BY-NC 4.0: NO COMMERCIAL USE")


def test_derived_answers_are_weak(tmp_path: Path) -> None:
    """A reranker is not trained to tell whether texts are sufficient or address a question."""
    assert local_judge(str(reranker(tmp_path / "r"))).weak_metrics == {"context_sufficiency", "answer_relevancy"}
    assert local_judge(str(nli(tmp_path / "n"))).weak_metrics == frozenset()


@each_case(
    ("languages", "texts", "supported"),
    [
        (["en"], ("When was the tower completed?", "It was completed in 1889."), True),
        (["en"], ("Wann wurde der Turm fertig?", "Er wurde 1889 fertig."), False),
        (["en"], ("塔是什么时候完成的？", "它于一八八九年完成。"), False),
        (["en", "zh"], ("塔是什么时候完成的？", "它于一八八九年完成。"), True),
        (["en", "zh"], ("Wann wurde der Turm fertig?", "Er wurde 1889 fertig."), False),
        (["en", "de"], ("Wann wurde der Turm fertig?", "Er wurde 1889 fertig."), True),
        (["de"], ("When was the tower completed?", "It was completed in 1889."), False),
        (["multi"], ("Wann wurde der Turm fertig?",), True),
        (["en"], ("When was the tower completed?",), True),
    ],
)
def test_languages_are_those_of_the_card(
    tmp_path: Path, languages: list[str], texts: tuple[str, ...], *, supported: bool
) -> None:
    """English is recognised, and other languages by their script."""
    card = NLI_CARD.replace('["en"]', json.dumps(languages))
    assert local_judge(str(nli(tmp_path / "m", card))).supports_language(texts) is supported


def test_the_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without tokenizers, the message is the command that installs it."""
    folder = nli(tmp_path / "m")
    monkeypatch.setattr("merilo.judges.local.judge.find_spec", lambda _: None)
    with pytest.raises(UsageError) as refused:
        local_judge(str(folder))
    assert str(refused.value) == ("Local judges need the package tokenizers; install it: pip install 'merilo[local]'.")


def scores(judge: str, metrics: list[str], tmp_path: Path, **options: Any) -> dict[str, float | None]:
    """The means of a run of one row."""
    run = evaluate([ROW], **grouped(metrics=metrics, judge=judge, out=tmp_path / "run", cache=False, **options))
    return {name: metric.mean for name, metric in run.metrics.items()}


def test_it_serves_as_cross_encoder(tmp_path: Path) -> None:
    """A reranker gives similarities; a model without them is refused."""
    assert cross_encoder_from(f"local:{reranker(tmp_path / 'r')}").name == "local:reranker"
    with pytest.raises(UsageError, match="cannot answer questions of kind 'similarities'"):
        cross_encoder_from(f"local:{nli(tmp_path / 'm')}")
