"""Measures all figures on the card of the embedded judge: python benchmarks/card.py [--only STEP ...] [--weights
FILE]

Each step is one command. Its output is stored as benchmarks/results/embedded/STEP.json with the command, its seconds
and the measured model. `tools/card.py` makes the page from these files. The steps share a cache that is private to
this call, so the judge is asked once.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

import packaged

import merilo
from merilo.judges.embedded import EmbeddedJudge
from merilo.version import version

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent
PACKAGE: Final = Path(merilo.__file__).parent
RESULTS: Final = HERE / "results" / "embedded"
DEV: Final = sorted((HERE / "labels" / "dev").glob("*.jsonl.gz"))
NOT_SHOWN: Final = frozenset(
    {"accuracy", "ac1", "alpha", "annotators", "confusion", "grades", "systems_tau_b", "usage"}
)
"""Figures of a check that the card does not use."""
PROBED: Final = ("400", "2500")
"""Pairs of every probe, and of those whose effect is so small that more pairs are needed."""
FINE: Final = ("instructions", "question")
TRANSLATED: Final = "xquad"
"""The source whose records are the same in twelve languages."""


def commands(weights: Path | None, folder: Path, *, fitted_here: bool) -> dict[str, list[list[str]]]:
    """Return the commands of each step, in order; the output of the last one is stored, and for probes of each one.

    `fitted_here`: the model's curves were fitted on the records that it is measured on.
    """
    merilo = [sys.executable, "-m", "merilo"]
    labels = [str(path.relative_to(ROOT)) for path in DEV]
    check = [*merilo, "judge", "check", "--labels", *labels, "--include-constructed", "--json", "--quiet"]
    encoder = [] if weights is None else ["--weights", str(weights), "--features", str(folder / "features.npz")]
    mined = str(folder / "mined.jsonl.gz")
    mined_encoder = [] if weights is None else ["--weights", str(weights)]
    rows = ["--rows", str(folder / "rows.npz")]
    probe = [*merilo, "judge", "probe", "--labels", *labels, "--json", "--quiet", "--sample"]
    fine = [word for name in FINE for word in ("--probe", name)]
    judge = ["--held-out", *rows] if fitted_here else ["--judge", "embedded"]
    return {
        "check": [check],
        "evidence": [_own("evidence.py")],
        **({"held_out": [_own("held_out.py", *rows)]} if fitted_here else {}),
        "languages": [
            _own("held_out.py", "--source", TRANSLATED, *rows)
            if fitted_here
            else [*check, "--source", TRANSLATED, "--no-each-sentence"]
        ],
        "baselines": [_own("baselines.py", *judge, *encoder, "--json")],
        "mined": [
            _own("mined.py", mined),
            _own("baselines.py", "--labels", mined, *judge, *mined_encoder, "--json"),
        ],
        "probe": [[*probe, PROBED[0]], [*probe, PROBED[1], *fine]],
        "surest": [_own("surest.py")],
        "speed": [_own("embedded.py")],
        **({} if weights is None else {"encoder": [_own("encoder.py", str(weights))]}),
    }


def _own(name: str, *arguments: str) -> list[str]:
    return [sys.executable, str(Path("benchmarks") / name), *arguments]


def main() -> None:
    """Run the steps and write their output."""
    arguments = _arguments()
    weights = arguments.weights or packaged.weights()
    arguments.out.mkdir(parents=True, exist_ok=True)
    fingerprint = dict(EmbeddedJudge().fingerprint())
    with tempfile.TemporaryDirectory() as name:
        steps = commands(weights, Path(name), fitted_here=packaged.blended() is not None)
        unknown = [step for step in arguments.only if step not in {*steps, "fitted"}]
        if unknown:
            raise SystemExit(f"There is no step {unknown[0]!r}; there are {', '.join((*steps, 'fitted'))}.")
        os.environ |= {"MERILO_CACHE": str(Path(name) / "cache"), "ORT_DISABLE_TELEMETRY": "1", "NO_COLOR": "1"}
        for step, parts in steps.items():
            if not arguments.only or step in arguments.only:
                _keep(arguments.out / f"{step}.json", fingerprint, *_run(step, parts, Path(name)))
    if not arguments.only or "fitted" in arguments.only:
        found = {"agreement": {task: own for task, own in packaged.agreement().items() if task != "cascade"}}
        _keep(arguments.out / "fitted.json", fingerprint, "read from the model's file", 0.0, found)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], metavar="STEP")
    parser.add_argument("--weights", type=Path, metavar="FILE", help="an encoder; that in the package by default")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="DIR")
    return parser.parse_args()


def _run(step: str, parts: list[list[str]], folder: Path) -> tuple[str, float, Any]:  # Any: parsed JSON
    """Return the commands as text, their duration, and the output of the last one. Raises SystemExit if one fails."""
    began = time.monotonic()
    printed, probes = "", dict[str, Any]()
    for command in parts:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
        printed = done.stdout
        passed = done.returncode == 0 or (step == "probe" and done.returncode in {1, 3})  # a probe that fails is news
        if not passed:
            raise SystemExit(f"The step {step} failed with status {done.returncode}: {_told(command, folder)}")
        if step == "probe":
            probes |= json.loads(printed)["probes"]
    seconds = time.monotonic() - began
    print(f"{step}: {seconds:,.0f} s", file=sys.stderr, flush=True)
    record = _SHORTER.get(step, json.loads)(printed)
    if probes:
        record["probes"] = probes
    return " && ".join(_told(command, folder) for command in parts), seconds, record


def _figures(printed: str) -> dict[str, Any]:  # Any: parsed JSON
    """Return the output of a benchmark, one figure per line."""
    return {"figures": [*map(json.loads, printed.splitlines())]}


def _languages(printed: str) -> dict[str, Any]:  # Any: parsed JSON
    """Return only the figures by language of a check."""
    found = json.loads(printed)
    tasks = {reading: {"languages": own["languages"]} for reading, own in found["tasks"]["all"].items()}
    return {"judge": found["judge"], "tasks": {"all": tasks}}


_SHORTER: Final = {"speed": _figures, "encoder": _figures, "languages": _languages}
"""Functions that shorten the output of a step before it is stored; other steps are stored unchanged."""


def _told(command: list[str], folder: Path) -> str:
    """Return a command as a user would type it."""
    told = " ".join(command).replace(f"{sys.executable} -m merilo", "merilo").replace(sys.executable, "python")
    files = " ".join(str(path.relative_to(ROOT)) for path in DEV)
    told = told.replace(files, "benchmarks/labels/dev/*.jsonl.gz").replace(str(PACKAGE), "src/merilo")
    return told.replace(f"{folder}{os.sep}", "").replace(f"{ROOT}{os.sep}", "")


def _keep(path: Path, fingerprint: dict[str, object], command: str, seconds: float, record: Any) -> None:  # Any: JSON
    kept = {
        "command": command,
        "seconds": round(seconds),
        "merilo": version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "model": fingerprint,
        "record": _shown(record),
    }
    path.write_text(json.dumps(kept, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _shown(value: Any) -> Any:  # Any: JSON in, JSON out
    if isinstance(value, dict):
        return {name: _shown(each) for name, each in value.items() if name not in NOT_SHOWN}
    return [*map(_shown, value)] if isinstance(value, list) else value


if __name__ == "__main__":
    main()
