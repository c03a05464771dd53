"""The model itself: its logits, the same ones in any order, thread and process, and files that cannot be run."""

import json
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import onnx
import pytest
from local_asking import ask, ask_all
from onnx import TensorProto, helper
from tiny_models import NLI_CARD, NLI_LABELS, nli, random_logits, random_model

from merilo.errors import ProviderDown, UsageError
from merilo.judges.local.judge import LocalJudge, local_judge
from merilo.judges.local.model import ModelSession, TokenIds, golden_check
from merilo.judging.ask import Answer
from merilo.judging.kinds.contexts import Support
from merilo.judging.verdicts import Failure, FailureKind

WORDS = "the tower is in paris it was completed 1889 rome has seven hills a ."
SPECIAL = 4
"""Special tokens before the words in the vocabulary."""
LENGTHS = (7, 33, 120)


def random_judge(folder: Path, *, external: bool = False) -> LocalJudge:
    """A judge with random weights and inputs of up to 400 tokens."""
    random_model(folder, NLI_LABELS, WORDS, external=external)
    (folder / "judge.toml").write_text(NLI_CARD.replace("max_tokens = 64", "max_tokens = 400"))
    return local_judge(str(folder))


def text(words: int, seed: int) -> str:
    """Some words of the vocabulary."""
    return " ".join(random.Random(seed).choices(WORDS.split(), k=words))


def questions(count: int) -> list[Support]:
    """Questions of many lengths."""
    return [Support(text(3 + n % 20, n), (text(5 + n % 150, n + 1), text(9, n + 2))) for n in range(count)]


def stored(answers: list[Answer]) -> list[str]:
    """The answers as they are stored, to the last digit."""
    return [answer.message if isinstance(answer, Failure) else answer.to_json() for answer in answers]


@pytest.mark.parametrize("external", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
def test_the_logits_are_those_of_numpy(tmp_path: Path, length: int, *, external: bool) -> None:
    """The logits agree with a second implementation at three lengths, also with weights in a separate file."""
    scorer = random_judge(tmp_path, external=external).provider.scorer()
    texts = {"premise": text(length - 6, 1), "hypothesis": text(3, 2)}
    ids, types = scorer.tokens.encode(texts)
    assert len(ids) == length
    expected = random_logits(ids, types, len(WORDS.split()) + SPECIAL, len(NLI_LABELS))
    assert scorer.logits(texts) == pytest.approx(expected, abs=1e-5)


def test_golden_pairs_are_compared(tmp_path: Path) -> None:
    """Golden pairs of the right logits agree; other logits differ."""
    judge = random_judge(tmp_path)
    golden = ""
    for place, length in enumerate(LENGTHS):
        texts = {"premise": text(length, place), "hypothesis": "the tower ."}
        ids, types = judge.provider.scorer().tokens.encode(texts)
        logits = random_logits(ids, types, len(WORDS.split()) + SPECIAL, len(NLI_LABELS))
        golden += f'[[golden]]\npremise = "{texts["premise"]}"\nhypothesis = "the tower ."\nlogits = {logits}\n'
    card = (tmp_path / "judge.toml").read_text()
    (tmp_path / "judge.toml").write_text(card + golden)
    check = golden_check(local_judge(str(tmp_path)).provider.scorer())
    assert check.agree
    assert check.note.startswith("Golden logits agree (3 pairs, largest difference ")
    wrong = '[[golden]]\npremise = "a"\nhypothesis = "a"\nlogits = [9.0, 9.0, 9.0]\n'
    (tmp_path / "judge.toml").write_text(card + wrong)
    check = golden_check(local_judge(str(tmp_path)).provider.scorer())
    assert check.note.startswith("Golden logits DIFFER (1 pairs")


def test_a_pair_is_judged_the_same_among_others(tmp_path: Path) -> None:
    """Alone, among 60 others, in another order and by another copy of the judge: equal bytes."""
    asked = questions(60)
    judge = random_judge(tmp_path)
    together = stored(ask_all(judge, asked))
    order = list(range(len(asked)))
    random.Random(3).shuffle(order)
    shuffled = stored(ask_all(judge, [asked[place] for place in order]))
    assert [shuffled[order.index(place)] for place in range(len(asked))] == together
    fresh = local_judge(str(tmp_path))
    assert [stored([ask(fresh, question)])[0] for question in asked[:10]] == together[:10]


def test_threads_share_a_session(tmp_path: Path) -> None:
    """Four threads that run 200 pairs on one session get the bytes of one thread."""
    session = ModelSession(random_model(tmp_path, NLI_LABELS, WORDS) / "model.onnx", len(NLI_LABELS))
    draw = random.Random(0)
    pairs = [TokenIds(tuple(draw.choices(range(4, 18), k=n % 90 + 3)), (0,) * (n % 90 + 3)) for n in range(200)]
    alone = [session.logits(pair) for pair in pairs]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(session.logits, pairs)) == alone


def test_another_process_gives_the_same(tmp_path: Path) -> None:
    """A new process returns equal logits and an equal fingerprint."""
    judge = random_judge(tmp_path)
    texts = {"premise": text(50, 1), "hypothesis": text(5, 2)}
    script = f"""
import json
from merilo.judges.local.judge import local_judge
judge = local_judge({str(tmp_path)!r})
print(json.dumps([judge.provider.scorer().logits({texts!r}), judge.fingerprint()]))
"""
    printed = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    logits = judge.provider.scorer().logits(texts)
    assert json.loads(printed) == [list(logits), judge.fingerprint()]


def test_the_fingerprint_covers_every_file(tmp_path: Path) -> None:
    """One byte of the weights, the tokenizer or a cut of the card changes the fingerprint; a licence does not."""
    prints: list[object] = [random_judge(tmp_path, external=True).fingerprint()]
    for name in ("model.onnx_data", "tokenizer.json", "model.onnx"):
        content = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content + b" ")
        prints.append(local_judge(str(tmp_path)).fingerprint())
        (tmp_path / name).write_bytes(content)
    card = (tmp_path / "judge.toml").read_text()
    (tmp_path / "judge.toml").write_text(card.replace("cut = 0.5", "cut = 0.6"))
    prints.append(local_judge(str(tmp_path)).fingerprint())
    assert len({json.dumps(each) for each in prints}) == len(prints)
    (tmp_path / "judge.toml").write_text(card.replace("card = 1", 'card = 1\nlicence = "MIT"'))
    assert local_judge(str(tmp_path)).fingerprint() == prints[0]


def refused(path: Path, labels: int = 3) -> str:
    """The error of loading a model, which is one line."""
    with pytest.raises(UsageError) as error:
        ModelSession(path, labels).logits(TokenIds((2, 3), (0, 0)))
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("content", [b"", b"no model", b"\x08\x09" * 1000])
def test_a_damaged_model_is_one_line(tmp_path: Path, content: bytes) -> None:
    """A file that is not ONNX is refused."""
    (tmp_path / "model.onnx").write_bytes(content)
    assert "Cannot load" in refused(tmp_path / "model.onnx")


def identity(path: Path, name: str, kind: int, shape: list[str | int]) -> Path:
    """Write a model that returns its only input."""
    made = helper.make_graph(
        [helper.make_node("Identity", [name], ["out"])],
        "identity",
        [helper.make_tensor_value_info(name, kind, shape)],
        [helper.make_tensor_value_info("out", kind, shape)],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(path / "model.onnx"))
    return path / "model.onnx"


@pytest.mark.parametrize(
    ("name", "kind", "shape", "message"),
    [
        ("pixels", TensorProto.INT64, ["b", "l"], "takes pixels; a model of pairs takes"),
        ("input_ids", TensorProto.FLOAT, ["b", "l"], "not a table of integers"),
        ("input_ids", TensorProto.INT64, [1, 128], "Export it with dynamic axes"),
        ("input_ids", TensorProto.INT64, ["b", "l"], "returns 1 by 2 numbers for a pair; the card has 3 labels"),
        ("input_ids", TensorProto.INT32, ["b", "l"], "returns 1 by 2 numbers for a pair; the card has 3 labels"),
    ],
)
def test_a_model_of_something_else_is_refused(
    tmp_path: Path, name: str, kind: int, shape: list[str | int], message: str
) -> None:
    """Models of images, of one length or of another number of labels are refused with the reason."""
    assert message in refused(identity(tmp_path, name, kind, shape))


def test_a_model_that_cannot_be_loaded_stops_the_run(tmp_path: Path) -> None:
    """A damaged model stops a run at once, instead of failing question by question."""
    folder = nli(tmp_path / "m")
    (folder / "model.onnx").write_bytes(b"no model")
    with pytest.raises(ProviderDown, match="Cannot load"):
        ask(local_judge(str(folder)), Support("a", ("b",)))


def test_a_number_that_is_not_finite_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NaN among the logits fails the question as broken."""
    monkeypatch.setattr(ModelSession, "logits", lambda *_: (float("nan"), 0.0, 0.0))
    answer = ask(local_judge(str(nli(tmp_path / "m"))), Support("a", ("b",)))
    assert isinstance(answer, Failure)
    assert (answer.kind, answer.message) == (FailureKind.BROKEN, "the local model returned a number that is not finite")


def test_equal_pairs_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions that read the same pair run the model once."""
    judge = local_judge(str(nli(tmp_path / "m")))
    runs: list[object] = []
    real = ModelSession.logits

    def counted(self: ModelSession, tokens: TokenIds) -> tuple[float, ...]:
        runs.append(tokens)
        return real(self, tokens)

    monkeypatch.setattr(ModelSession, "logits", counted)
    judge.provider.scorer()
    runs.clear()
    ask_all(judge, [Support("The tower.", ("The tower.",)), Support("The tower.", ("The tower.", "The tower."))])
    assert len(runs) == 1
