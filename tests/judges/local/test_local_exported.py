"""Models as the usual exporter writes them: torch's logits at three lengths (tools/exported_models.py)."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from merilo.judges.local.find import draft_card
from merilo.judges.local.judge import LocalJudge, local_judge
from merilo.judges.local.model import golden_check

EXPORTED = Path(__file__).parent / "exported"
NAMES = ("deberta-v3", "modernbert", "roberta", "xlm-r")


def golden(name: str) -> list[dict[str, Any]]:
    """The pairs of a model with torch's logits."""
    pairs: list[dict[str, Any]] = json.loads((EXPORTED / name / "golden.json").read_text(encoding="utf-8"))
    return pairs


def judge(name: str, folder: Path) -> LocalJudge:
    """A copy of a model as a judge, by the draft of its card."""
    shutil.copytree(EXPORTED / name, folder)
    card = (
        draft_card(folder)
        .replace('licence = "?"', 'licence = "MIT"')
        .replace('languages = ["?"]', 'languages = ["en"]')
    )
    pairs = "".join(
        f"[[golden]]\npremise = {json.dumps(each['premise'])}\nhypothesis = {json.dumps(each['hypothesis'])}\n"
        f"logits = {each['logits']}\n"
        for each in golden(name)
    )
    (folder / "judge.toml").write_text(card + pairs, encoding="utf-8")
    return local_judge(str(folder))


@pytest.mark.parametrize("name", NAMES)
def test_the_logits_are_those_of_torch(tmp_path: Path, name: str) -> None:
    """Tokens and logits agree with the original implementation for short, middle and long pairs."""
    scorer = judge(name, tmp_path / name).provider.scorer()
    lengths = [each["tokens"] for each in golden(name)]
    assert lengths == sorted(lengths)
    assert lengths[-1] > 6 * lengths[0]
    for each in golden(name):
        texts = {"premise": each["premise"], "hypothesis": each["hypothesis"]}
        assert len(scorer.tokens.encode(texts).ids) == each["tokens"]
        assert scorer.logits(texts) == pytest.approx(each["logits"], abs=1e-4)


@pytest.mark.parametrize("name", NAMES)
def test_golden_pairs_of_a_card_agree(tmp_path: Path, name: str) -> None:
    """The check of golden pairs accepts the model, and its inputs have the length that the model can read."""
    made = judge(name, tmp_path / name)
    check = golden_check(made.provider.scorer())
    assert check.agree
    assert made.card.input.max_tokens == 160
