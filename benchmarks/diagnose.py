"""Error rates, power and cost of `merilo diagnose`, by simulation through the shipped classes and the whole command.

    python benchmarks/diagnose.py            about 15 minutes
    python benchmarks/diagnose.py --quick    a tenth of the studies, with wider limits

The seeds differ from those used while the code was written.
"""

from __future__ import annotations

import argparse
import json
import random
import runpy
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from figures import report as figure

import merilo
from merilo.commands.diagnose.page import ONLY, THERE, Diagnosis
from merilo.commands.diagnose.result import Draw
from merilo.stats.diagnosis import ARMS, Arm, Case, Cause, Form, verdicts, wanted

if TYPE_CHECKING:
    from collections.abc import Sequence

SEED = 770_000
NAMED = {Cause.MISSING, Cause.ORDER, Cause.OTHERS, Cause.WORDING}
LEVEL_1 = (Arm.UNCHANGED, Arm.PLACEBO, Arm.FIRST, Arm.ONLY, Arm.NONE)


@dataclass(frozen=True)
class Kind:
    """A kind of failing question: the chances to be right in its three arms, and with only the evidence."""

    form: Form
    chances: tuple[float, float, float]
    only: float
    cause: Cause | None = None
    """The true cause; None if no passage matters."""


def report(name: str, measured: float, limit: float | None = None) -> None:
    """Print one figure with its upper limit."""
    figure(name, measured, at_most=limit)


def chance(p: float, form: Form) -> Kind:
    """Return a kind that is right by chance, whatever the passages are."""
    return Kind(form, (p, p, p), p)


def fault(cause: Cause, heals: float) -> Kind:
    """Return a fault that the right arm heals with this chance."""
    forms = {Cause.MISSING: Form.MISSING, Cause.ORDER: Form.WHOLE, Cause.OTHERS: Form.WHOLE, Cause.WORDING: Form.CUT}
    low = 0.05 if cause is Cause.MISSING else 0.1
    return Kind(forms[cause], (low, heals if cause is Cause.ORDER else low, heals), heals, cause)


CHANCE = {
    **{f"chance {p} {form}": chance(p, form) for p in (0.2, 0.4, 0.45, 0.6) for form in (Form.MISSING, Form.WHOLE)},
    "harmed by insertions": Kind(Form.MISSING, (0.3, 0.1, 0.1), 0.3),
    "healed by any insertion": Kind(Form.MISSING, (0.05, 0.6, 0.6), 0.05),
    "harmed by any change": Kind(Form.WHOLE, (0.3, 0.1, 0.1), 0.1),
}
FOUND = {Cause.MISSING: 0.95, Cause.ORDER: 0.85, Cause.OTHERS: 0.8, Cause.WORDING: 0.8}
AMONG = {Cause.MISSING: 0.8, Cause.ORDER: 0.7, Cause.OTHERS: 0.6, Cause.WORDING: 0.6}


def study(kinds: Sequence[Kind], rng: np.random.Generator) -> tuple[list[Cause], list[int]]:
    """Return the verdicts of one study of failing questions, and the calls for each."""
    draws: list[dict[Arm, list[bool]]] = [{} for _ in kinds]
    while any(lacking := wanted([Case(kind.form, own) for kind, own in zip(kinds, draws, strict=True)])):
        for kind, own, arms in zip(kinds, draws, lacking, strict=True):
            chances = {Arm.ONLY: kind.only, **dict(zip(ARMS[kind.form], kind.chances, strict=True))}
            for arm, number in arms.items():
                known = own.setdefault(arm, [])
                known += (rng.random(number - len(known)) < chances[arm]).tolist()
    found = verdicts([Case(kind.form, own) for kind, own in zip(kinds, draws, strict=True)])
    return [each.cause for each in found], [sum(map(len, own.values())) for own in draws]


def causes(studies: int, slack: float) -> None:
    """Report level 2: false causes, true ones, and calls."""
    rng = np.random.default_rng(SEED)
    worst = beside = any_of_20 = 0.0
    for kind in CHANCE.values():
        found = [study([kind] * 20, rng)[0] for _ in range(studies)]
        worst = max(worst, float(np.mean([each in NAMED for own in found for each in own])))
        any_of_20 = max(any_of_20, float(np.mean([any(each in NAMED for each in own) for own in found])))
        mixed = [study([kind] * 2 + [fault(Cause.MISSING, 0.9)] * 18, rng)[0][:2] for _ in range(studies)]
        beside = max(beside, float(np.mean([each in NAMED for own in mixed for each in own])))
    report("diagnose: no cause, a cause named", worst, 0.05 + slack)
    report("diagnose: no cause, beside 18 true causes", beside, 0.05 + slack)
    report("diagnose: no cause, any in a study of 20", any_of_20, 0.05 + slack)
    calls: list[int] = []
    for cause, least in FOUND.items():
        for heals in (0.9, 0.8, 0.6):
            found = [study([fault(cause, heals)] * 20, rng) for _ in range(studies)]
            calls += [each for _, own in found for each in own]
            right = float(np.mean([each is cause for own, _ in found for each in own]))
            limit = 1 - least + slack if heals == 0.9 else None
            report(f"diagnose: {cause}, heals {heals}, not named", 1 - right, limit)
        few = [study([fault(cause, 0.9)] * 2 + [chance(0.2, Form.WHOLE)] * 18, rng)[0][:2] for _ in range(studies)]
        right = float(np.mean([each is cause for own in few for each in own]))
        report(f"diagnose: {cause}, 2 among 18 chance failures, not named", 1 - right, 1 - AMONG[cause] + slack)
    for kind in CHANCE.values():
        calls += study([kind] * 20, rng)[1]
    report("diagnose: calls for a failing question, mean", float(np.mean(calls)), 23)
    report("diagnose: calls for a failing question, largest", max(calls), 28)


# -- level 1 ---------------------------------------------------------------------------------------------


def level_1(right: dict[Arm, np.ndarray[Any, Any]], missing: np.ndarray[Any, Any], clusters: Any = None) -> Diagnosis:
    """Return a diagnosis of these answers, without files."""
    found = Diagnosis(Path("simulated"))
    draws = [
        Draw(
            f"q{at}",
            arm,
            0,
            bool(own[at]),
            failed=False,
            text="",
            reference="",
            answer="",
            error="",
            metadata={"form": form, "cluster": at if clusters is None else clusters[at]},
        )
        for arm, own in right.items()
        for at, form in enumerate(np.where(missing, Form.MISSING, Form.WHOLE).tolist())
    ]
    run = SimpleNamespace(manifest=SimpleNamespace(judges={}, cluster=None if clusters is None else "cluster"))
    found.__dict__.update(samples=draws, labelled={}, run=run)
    return found


def effects(studies: int, slack: float) -> None:
    """Report coverage, the error rate of the family, and the power of a true gain of 14 in 100."""
    rng = np.random.default_rng(SEED + 1)
    for number, size in ((30, 1), (100, 1), (100, 5), (300, 5)):
        covered = {"equal": [], "gain": []}
        named, shown, halves = [], [], []
        for truth in ("equal", "gain"):
            for _ in range(studies):
                hard = np.repeat(rng.random(number // size) < 0.4, size)
                base = np.where(hard, 0.1, 0.9)
                lost = hard & (rng.random(number) < (0.5 if truth == "gain" else 0.0))
                better = np.where(lost, 0.8, base)
                chances = dict.fromkeys(LEVEL_1, base) | {Arm.FIRST: better, Arm.ONLY: better}
                right = {arm: rng.random(number) < own for arm, own in chances.items()}
                clusters = None if size == 1 else (np.arange(number) // size).tolist()
                missing = lost if truth == "gain" else rng.random(number) < 0.2
                found = level_1(right, missing, clusters).effects
                true = 0.4 * 0.5 * 0.7 if truth == "gain" else 0.0
                for name in (THERE, ONLY):
                    ends = found[name].interval
                    covered[truth].append(ends is None or ends[0] <= true <= ends[1])
                if truth == "equal":
                    named.append(any(each.verdict in {"better", "worse"} for each in found.values()))
                else:
                    shown.append(found[THERE].verdict == "better")
                    ends = found[THERE].interval
                    halves.append((ends[1] - ends[0]) / 2 if ends else np.nan)
        what = f"diagnose: {number} questions" + (f", clusters of {size}" if size > 1 else "")
        report(f"{what}, not covered", 1 - min(map(np.mean, covered.values())), 0.07 + slack)
        report(f"{what}, equal arms, an effect named", float(np.mean(named)), 0.055 + slack)
        report(f"{what}, a gain of 14, shown", float(np.mean(shown)))
        report(f"{what}, a gain of 14, half width", float(np.nanmean(halves)))


def labels(studies: int, slack: float) -> None:
    """Report how often an effect is named if the judge is kinder to quotations and 40 questions are labelled."""
    rng = np.random.default_rng(SEED + 2)
    for kinder in (0.0, 0.3, 0.6):
        named, alone = [], []
        for _ in range(studies):
            truth = {arm: rng.random(100) < 0.6 for arm in LEVEL_1}
            quotes = {Arm.FIRST, Arm.ONLY}
            judged = {
                arm: own ^ (rng.random(100) < np.where(own, 0.1, 0.1 + kinder * (arm in quotes)))
                for arm, own in truth.items()
            }
            missing = rng.random(100) < 0.5
            alone.append(any(each.verdict == "better" for each in level_1(judged, missing).effects.values()))
            found = level_1(judged, missing)
            drawn = rng.choice(100, 40, replace=False).tolist()
            known = {f"q{at}/{arm}": (float(truth[arm][at]), float(judged[arm][at])) for at in drawn for arm in LEVEL_1}
            found.__dict__["labelled"] = known
            named.append(any(each.verdict in {"better", "worse"} for each in found.effects.values()))
        report(f"diagnose: judge kinder by {kinder}, 40 labels, an effect named", float(np.mean(named)), 0.05 + slack)
        report(f"diagnose: judge kinder by {kinder}, no labels, an effect named", float(np.mean(alone)))


# -- the whole command ---------------------------------------------------------------------------------


class Simulated:
    """An application whose chance to be right depends on what it reads, by a fault of each question."""

    def __init__(self, seed: int, chances: dict[str, tuple[float, float]], *, by_prompt: bool) -> None:
        """`chances`: fault → the chance if it is not healed, and if it is. `by_prompt`: temperature 0."""
        self._random, self._seed, self._chances, self._by_prompt = random.Random(seed), seed, chances, by_prompt
        self.questions = [
            {
                "id": f"s{at}",
                "user_input": f"What is the height of tower {at}?",
                "reference": f"{100 + at} m",
                "reference_contexts": [self._passage(at)],
                "metadata": {"fault": [*chances][at % len(chances)]},
            }
            for at in range(120)
        ]

    def _passage(self, at: int) -> str:
        return f"Tower {at} is on the hill in the north of the town, and its height, says the guide, is {100 + at} m."

    def __call__(self, question: str, contexts: list[str] | None = None) -> tuple[str, list[str]]:
        """Answer a question; see `answer` in docs/diagnose.md."""
        if "access word" in question:
            return " ".join(contexts or ()), contexts or []
        at = int(question.rsplit(maxsplit=1)[-1].rstrip("?"))
        fault, own = [*self._chances][at % len(self._chances)], self._passage(at)
        others = [self._passage((at + step) % 120) for step in (31, 37, 41)]
        found = {"missing": others, "order": [*others, own], "cut": [*others[:2], own[:60], others[2]]}
        contexts = found.get(fault, [*others, own]) if contexts is None else contexts
        whole = [place for place, each in enumerate(contexts) if own in each]
        there = bool(whole)
        healed = {"missing": there, "order": whole[:1] == [0], "cut": there, "others": there and len(contexts) < 3}
        low, high = self._chances[fault]
        p = high if healed.get(fault, False) else low
        roll = self._random.random()
        if self._by_prompt:
            key = repr((self._seed, question, contexts)).encode()
            roll = int.from_bytes(blake2b(key, digest_size=6).digest(), "big") / 2**48
        return f"{'It is' if roll < p / 2 else 'Its height is'} {100 + at if roll < p else 7} m. ({roll})", contexts


def right(answer: str, sample: merilo.Sample) -> bool:
    """Return True if the answer has the height of the reference."""
    return f" {sample.reference}" in answer


def whole(studies: int, slack: float) -> None:
    """Report verdicts of `merilo.diagnose`, with calls, files and runs."""
    true = {"missing": Cause.MISSING, "order": Cause.ORDER, "others": Cause.OTHERS, "cut": Cause.WORDING}
    for name, by_prompt in (("random", False), ("temperature 0", True)):
        hits: dict[str, list[bool]] = {fault: [] for fault in true}
        false: list[bool] = []
        calls: list[float] = []
        for at in range(studies):
            for chances in ({"chance": (0.45, 0.45)}, dict.fromkeys(true, (0.05, 0.9))):
                app = Simulated(SEED + at, chances, by_prompt=by_prompt)
                with tempfile.TemporaryDirectory() as folder:
                    out = Path(folder, "out")
                    found = merilo.diagnose(app, app.questions, right=right, each=20, out=out)
                    made = len((out / "calls" / "answers.jsonl").read_text(encoding="utf-8").splitlines())
                    rows = [(each.draws[0].metadata["fault"], each.cause) for each in found.causes.values()]
                calls.append((made - 601) / 20)
                false += [cause in NAMED and cause is not true.get(fault) for fault, cause in rows]
                for fault, cause in rows:
                    hits.get(fault, []).append(cause is true.get(fault))
        report(f"diagnose: whole command, {name}, false causes", float(np.mean(false)), 0.05 + slack)
        for fault, own in hits.items():
            report(f"diagnose: whole command, {name}, {fault} 0.9, not named", 1 - float(np.mean(own)))
        report(f"diagnose: whole command, {name}, calls for a failing question", float(np.mean(calls)))


def kills(points: int) -> None:
    """Report what a diagnosis that is killed at random calls repeats, and whether its bytes are equal."""
    example = Path(__file__).parents[1] / "examples" / "diagnose_app.py"
    questions = runpy.run_path(str(example))["questions"]()
    source = example.read_text(encoding="utf-8") + DYING
    command = [sys.executable, "-m", "merilo", "diagnose", "app.py:dying", "questions.jsonl", "--right", "app.py:right"]
    command += ["--each", "8", "--out", "out", "--quiet", "--no-cache", "--concurrency", "4"]
    rng = random.Random(SEED)
    different = lost = most = 0

    def made(folder: Path, at: int | None) -> dict[str, bytes]:
        folder.mkdir()
        (folder / "app.py").write_text(source, encoding="utf-8")
        (folder / "questions.jsonl").write_text("".join(json.dumps(each) + "\n" for each in questions))
        if at is not None:
            (folder / "die").write_text(str(at))
            subprocess.run(command, cwd=folder, capture_output=True, check=False)
        subprocess.run(command, cwd=folder, capture_output=True, check=True)
        files = [each for name in ("outcomes.jsonl", "summary.json") for each in (folder / "out").glob(f"**/{name}")]
        lines = sorted((folder / "out" / "calls" / "answers.jsonl").read_bytes().splitlines())
        return {**{str(each.relative_to(folder)): each.read_bytes() for each in files}, "calls": b"".join(lines)}

    with tempfile.TemporaryDirectory() as place:
        first = made(Path(place, "whole"), None)
        number = len(Path(place, "whole", "asked").read_bytes())
        for point in range(points):
            folder = Path(place, str(point))
            different += made(folder, rng.randrange(1, number)) != first
            again = len((folder / "asked").read_bytes()) - number
            most = max(most, again)
            lost += again < 0
            shutil.rmtree(folder)
    report(f"diagnose: killed at {points} points, other bytes", different, 0)
    report(f"diagnose: killed at {points} points, calls repeated, most", most, 4)
    report(f"diagnose: killed at {points} points, calls lost", lost, 0)


DYING = """

def dying(question, contexts=None):
    import os, signal, time

    number = os.open("asked", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(number, b".")
    if os.path.exists("die") and os.fstat(number).st_size == int(open("die").read()):
        os.remove("die")
        os.kill(os.getpid(), signal.SIGKILL)
    os.close(number)
    return answer(question, contexts)
"""


def main() -> None:
    """Report all figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("part", nargs="*", help="causes, effects, labels, whole, kills; all if none is named")
    given = parser.parse_args()
    many, slack = (20, 0.05) if given.quick else (200, 0.0)
    parts = {
        "causes": lambda: causes(10 * many, slack),
        "effects": lambda: effects(5 * many, slack),
        "labels": lambda: labels(3 * many, slack),
        "whole": lambda: whole(max(1, many // 20), slack),
        "kills": lambda: kills(3 if given.quick else 30),
    }
    for name, part in parts.items():
        if not given.part or name in given.part:
            part()


if __name__ == "__main__":
    main()
