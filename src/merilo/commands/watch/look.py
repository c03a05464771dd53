"""One look of a watch: take in what arrived, judge a random part of it, add the scores to the evidence.

::

    arrivals ──> chosen rows ──> entry of the journal ──> run below looks/ ──> scores ──> evidence ──> alarm
                                                    anchors ──> runs ──> answers ──┘
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import asdict, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.evaluate.run import run_evaluation
from merilo.commands.evaluate.settings import judges_of
from merilo.commands.plan.run import run_estimate
from merilo.commands.watch.evidence import DAY_S, YEAR_S, Evidence, sums_of, units_in
from merilo.commands.watch.tail import Position, Tail
from merilo.data.lines import ForeignRecords
from merilo.data.load import load
from merilo.data.sample import Sample
from merilo.engine.budget import providers_of, spent_record
from merilo.errors import DataError, UsageError
from merilo.judges.routed import is_deterministic
from merilo.results.basis import not_comparable, score_affecting_differences
from merilo.runs.directory_usage import balance_in
from merilo.runs.manifest_diff import judge_difference
from merilo.runs.run import Run, metric_in
from merilo.runs.scales import recorded_scale
from merilo.runs.weak import weak_metrics

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from merilo.commands.evaluate.options import Options
    from merilo.commands.watch.evidence import JudgedUnit
    from merilo.commands.watch.journal import Entry, Journal
    from merilo.commands.watch.settings import Watch

LOOKS: Final = "looks"
TRAFFIC: Final = "traffic"
LEARNED: Final = 2_000
LEARNED_DAYS: Final = 7
FEWEST, FEWEST_CLUSTERS = 200, 30
FEWEST_NEW: Final = 20
"""Fewer new units wait for the next look, at most a day."""
_MAX_FAILED: Final = 0.1
PASSES: Final = {"choose": (3, 0.0), "old": (3, 0.0), "weekly": (1, 0.5 / 53), "alarm": (3, 0.05)}
"""Pass over the anchors → draws and weight. The weights of a year, with ten alarms, sum to at most 1."""


class Watcher:
    """The looks of one call. `lines`: of standard input; those that must be given again are left in it."""

    def __init__(self, watch: Watch, journal: Journal, now: float, lines: list[bytes]) -> None:
        """Begin a call. A clock that went back stands still."""
        self.watch, self.journal, self.lines = watch, journal, lines
        self.now = max(now, journal.facts["now"])
        self.problem = ""
        """Why the call ended early: a limit of money, or failed outcomes."""
        self.failed = False
        self.looks = 0
        """Number of looks that were finished."""
        judges = {role: each for role, each in judges_of(watch.evaluation).items() if role not in _INSTRUMENTS}
        self._steady = not providers_of(judges.values()) and all(map(is_deterministic, judges.values()))
        """True if no judge can change while its fingerprint stays."""
        fingerprint = {"name": judges["judge"].name, "fingerprint": judges["judge"].fingerprint()}
        self._asked = [str(each) for each in watch.evaluation.metrics or ()]
        self._judge: dict[str, Any] = json.loads(json.dumps(fingerprint))  # Any: JSON

    def arrive(self) -> None:
        """Take in what arrived since the last call."""
        journal, watch = self.journal, self.watch
        known = [Position(**each) for each in journal.facts["positions"]]
        tail = Tail(watch.source, known, self.now, watch.settle_s, self.lines)
        with journal.writing() as facts:
            arrivals = ((each, watch.unit_of(each.record)) for each in tail.arrivals())
            journal.take_in(arrivals, watch.rate, self.now, watch.settle_s)
            journal.count(damaged=tail.damaged, left_out=tail.left_out)
            facts |= {"positions": [asdict(each) for each in tail.positions], "now": self.now}
        del self.lines[: tail.kept]

    async def look(self) -> bool:
        """Finish the look that was interrupted, or do the one that is due, and the passes over the anchors."""
        facts, watch = self.journal.facts, self.watch
        fewest = FEWEST if watch.evaluation.cluster is None else FEWEST_CLUSTERS
        if watch.learn is not None and watch.learn < fewest:
            raise UsageError(f"A reference needs at least {fewest} units, got {watch.learn} (--learn).")
        if difference := judge_difference(facts.get("judge", self._judge), self._judge):
            raise not_comparable("The reference and this look", [f"the judge {difference}"], advice=_NEW_WATCH)
        if self._asked and self._asked != facts.get("asked", self._asked):
            known = ", ".join(facts["asked"])
            raise UsageError(f"This watch measures {known}. Leave out --metrics, or start another (--state).")
        if watch.baseline is not None and "names" not in facts:
            self._use_baseline(watch.baseline)
        while not self.problem and (entry := self._open() or await self._next()) is not None:
            await (self._traffic(entry) if entry.kind == TRAFFIC else self._pass(entry))
        return True

    def evidence(self) -> Evidence | None:
        """Return the evidence since the reference; None while it is learned."""
        found = self.journal.facts.get("evidence")
        return None if found is None else Evidence.from_state(found)

    def _open(self) -> Entry | None:
        return next((each for each in self.journal.entries() if each.result is None), None)

    async def _next(self) -> Entry | None:
        """Begin the pass or look that is due."""
        journal, evidence = self.journal, self.evidence()
        if evidence is not None and (kind := self._due_pass(evidence)):
            with journal.writing():
                entry = journal.begin(kind, self.now, 1.0, PASSES[kind][1])
                journal.add_rows(entry, self._anchors())
            return entry
        units = journal.ready(self.now, self.watch.settle_s)
        looked = max((each.at for each in journal.entries(TRAFFIC)), default=self.now)
        if not units or (len(units) < FEWEST_NEW and self.now - looked < DAY_S):
            return None
        rate = self.watch.rate * await self._affordable()
        if not rate:
            self.problem = "The money of today is spent. The next look is tomorrow, or raise --max-cost."
            return None
        if evidence is None and self.watch.learn is not None:  # later ones are not part of the reference
            units = units[: max(1, self.watch.learn - self.learned)]
        with journal.writing():
            entry = journal.begin(TRAFFIC, self.now, rate, 0.0 if evidence is None else evidence.weight_at(self.now))
            journal.give(entry, units)
        return entry

    async def _affordable(self) -> float:
        """Return the fraction of the waiting rows whose planned cost is within the limit of the day."""
        if (limit := self.watch.evaluation.limits.max_cost_usd) is None:
            return 1.0
        spent = [spent_record(balance_in(each), "charged")["cost_usd"] for each in self._today()]
        left = limit - sum(each for each in spent if isinstance(each, float))
        planned = (await run_estimate(self._records("waiting rows", 0), self._options(None))).typical.usd
        return min(1.0, max(0.0, left / planned)) if planned else 1.0

    def _today(self) -> tuple[Path, ...]:
        """Return the runs of today, whose costs count against the limit of a day."""
        numbers = {f"{each.number:06d}" for each in self.journal.entries() if each.at // DAY_S == self.now // DAY_S}
        return tuple(each for each in (self.journal.directory / LOOKS).glob("*") if each.name[:6] in numbers)

    def _records(self, name: str, look: int) -> ForeignRecords:
        return ForeignRecords(name, name, "row", lambda: self.journal.rows(look))

    async def _run(self, entry: Entry, draw: int = 0, suffix: str = "") -> Run:
        """Return the run of an entry; `problem` is set if it is not finished."""
        path = self.journal.directory / LOOKS / f"{entry.number:06d}{suffix}"
        path.parent.mkdir(exist_ok=True)
        run = await run_evaluation(self._records(f"look-{path.name}", entry.number), self._options(path, draw))
        if not run.complete:
            self.problem = f"{run.usage.get('stopped')} The same command continues."
        return run

    def _options(self, out: Path | None, draw: int = 0) -> Options:
        given, facts = self.watch.evaluation, self.journal.facts
        return replace(
            given,
            out=out,
            cluster=None,
            metrics=facts.get("names", given.metrics),
            first_draw=draw,
            reading=replace(given.reading, skip_invalid=True),
            storage=replace(given.storage, retry_failed="tried" in facts),
            shared_with=tuple(each for each in self._today() if each != out),
        )

    async def _traffic(self, entry: Entry) -> None:
        """Judge the rows of a look and add their scores; one with too many failed outcomes is tried twice."""
        journal = self.journal
        try:
            run = await self._run(entry)
        except DataError as error:  # no row can be read; the next look reads on
            self.failed, self.problem = True, str(error)
            with journal.writing():
                journal.end(entry, {"judged": 0})
            return
        if self.problem:
            return
        names = journal.facts.get("names") or self._usable(run)
        if (first := journal.facts.get("first")) is not None and (
            found := score_affecting_differences(Run.open(first).manifest, run.manifest, metrics=names)
        ):
            raise not_comparable(f"{first} and {run.path}", found, advice=_NEW_WATCH)
        failed = sum(each.failed for each in run.metrics.values())
        if failed > _MAX_FAILED * len(run) * len(names):
            self.failed = True
            self.problem = f"{failed:,} outcomes failed, so this look has no verdict: merilo show {run.path}."
        with journal.writing() as facts:
            if self.failed and "tried" not in facts:
                facts["tried"] = entry.number
                return
            self.looks += 1
            facts.pop("tried", None)
            self._settle(names, facts.get("first", str(run.path)))
            units = [] if self.failed else units_in(run, names, self.watch, entry.at)
            cost = run.usage.get("cost_usd") or 0.0
            result = {"judged": len(units), "failed": failed, "cost_usd": cost, "sums": sums_of(units, names)}
            journal.count(judged=len(units), failed=failed, cost_usd=cost)
            journal.end(entry, result)  # a reference may include this look
            self._add(entry, units)
            if (evidence := self.evidence()) is not None:
                lines = {name: each.lines[""].value for name, each in evidence.metrics.items()}
                journal.end(entry, {**result, "lines": lines, "evidence": evidence.ratio_of(evidence.value)})

    def _settle(self, names: list[str], first: str) -> None:
        """Fix the metrics, the judge and the run that each look is compared with."""
        self.journal.facts.update(names=names, first=first, judge=self._judge)
        self.journal.facts.setdefault("asked", self._asked or names)

    def _add(self, entry: Entry, units: Sequence[JudgedUnit]) -> None:
        facts, evidence = self.journal.facts, self.evidence()
        if evidence is None:
            days = (entry.at - min(each.at for each in self.looks_after())) / DAY_S
            if self.learned >= (self.watch.learn or LEARNED) and (self.watch.learn or days >= LEARNED_DAYS):
                self._fix(self.judged())
        elif "alarm" not in facts:
            evidence.add(entry.at, entry.weight, units, facts["names"])
            if evidence.alarms and evidence.asks_anchors:
                facts["asks"] = True
            elif evidence.alarms:
                self._alarm(evidence)
            facts["evidence"] = asdict(evidence)

    def _alarm(self, evidence: Evidence) -> None:
        facts = self.journal.facts
        found = evidence.conclusion(self.judged(facts["learned"]), facts["names"])
        facts["alarm"] = {"id": f"{int(self.now)}-{len(self.journal.entries())}", "at": self.now, **found}

    # -- the reference -----------------------------------------------------------------------------------

    def looks_after(self, after: int | None = None) -> list[Entry]:
        """Return the finished looks after this number; by default, those of the present watch."""
        first: int = self.journal.facts["begun"] if after is None else after
        return [each for each in self.journal.entries(TRAFFIC) if each.number > first and each.result]

    @property
    def learned(self) -> int:
        """Number of judged units since the watch began."""
        return sum(each.judged for each in self.looks_after())

    def judged(self, after: int | None = None, since: float = 0.0) -> list[JudgedUnit]:
        """Return the judged units of the looks after this number, read from their runs."""
        names, looks = self.journal.facts["names"], self.journal.directory / LOOKS
        chosen = [each for each in self.looks_after(after) if each.at >= since and each.judged]
        runs = ((each.at, Run.open(looks / f"{each.number:06d}")) for each in chosen)
        return [unit for at, run in runs for unit in units_in(run, names, self.watch, at)]

    def _fix(self, units: Sequence[JudgedUnit]) -> None:
        """Make these units the reference of what is judged from now on. Raises UsageError for too few."""
        watch, facts, entries = self.watch, self.journal.facts, self.journal.entries()
        fewest = FEWEST if watch.evaluation.cluster is None else FEWEST_CLUSTERS
        if len(units) < fewest:
            raise UsageError(f"A reference needs at least {fewest} units, got {len(units)}.")
        asked = not self._steady and watch.anchors != 0
        more = {"asks_anchors": asked, "can_blame": asked or self._steady, "started": self.now - YEAR_S / 365}
        evidence = Evidence.of(units, facts["names"], watch.tolerance, watch.false_alarms, **more)
        facts |= {"evidence": asdict(evidence), "learned": entries[-1].number if entries else 0, "units": len(units)}

    def _use_baseline(self, path: Path) -> None:
        run = Run.open(path)
        recorded = run.manifest.judges.get("judge", self._judge)  # none if no metric asks one
        if difference := judge_difference(recorded, self._judge):
            raise not_comparable(f"{path} and this watch", [f"the judge {difference}"])
        with self.journal.writing() as facts:
            self._settle(self._usable(run), str(path.absolute()))
            self._fix(units_in(run, facts["names"], self.watch, self.now))

    def rebase(self, since: float) -> None:
        """Make the units judged since a time the reference of a new watch; the old one stays in the journal."""
        with self.journal.writing() as facts:
            self._fix(self.judged(0, since))
            last = self.looks_after(0)[-1].number
            for name in ("asks", "alarm", "anchors"):
                facts.pop(name, None)
            facts |= {"begun": last, "first": str(self.journal.directory / LOOKS / f"{last:06d}")}
            facts.setdefault("rebases", []).append(self.now)

    def _usable(self, run: Run) -> list[str]:
        """Return the metrics of a watch. Raises UsageError for one that it cannot use."""
        asked = self.watch.evaluation.metrics
        names = [*run.manifest.metrics] if asked is None else [metric_in(run, str(each)) for each in asked]
        if infinite := [each for each in names if not all(map(isfinite, recorded_scale(run.manifest, each).span))]:
            raise UsageError(f"{infinite[0]} has no finite range, which a watch needs. Leave it out (--metrics).")
        if weak := sorted(weak_metrics(run.manifest).intersection(names)):
            raise UsageError(f"{self._judge['name']} is too weak for {weak[0]}. Leave it out (--metrics).")
        return names

    # -- anchors -----------------------------------------------------------------------------------------

    def _due_pass(self, evidence: Evidence) -> str:
        """Return the pass over the anchors that is due; empty if none is."""
        facts = self.journal.facts
        if not evidence.asks_anchors or "alarm" in facts:
            return ""
        if (state := facts.get("anchors")) is None or not evidence.anchors:
            return "choose" if state is None else "old"
        if "asks" in facts:
            return "alarm"
        return "weekly" if self.now - state["at"] >= 7 * DAY_S * state["weeks"] else ""

    def _anchors(self) -> list[dict[str, Any]]:  # Any: JSON
        """Return the anchors; before they are chosen, samples of the reference, or of the user's file."""
        facts, given = self.journal.facts, self.watch.anchors
        if isinstance(given, int):
            looks = self.journal.directory / LOOKS
            learned = [each for each in self.looks_after(0) if each.number <= facts["learned"] and each.judged]
            paths = [str(looks / f"{each.number:06d}") for each in reversed(learned)] or [facts["first"]]
            samples = [each.sample for path in paths for each in Run.open(path).samples]
        else:
            samples = [each for each in load(given) if isinstance(each, Sample)]
        chosen: list[str] | None = facts.get("anchors", {}).get("ids")
        samples.sort(key=lambda each: self.journal.position(f"anchor {each.id}"))
        if chosen is None:
            return [each.to_record() for each in samples[: given if isinstance(given, int) else None]]
        return [each.to_record() for each in samples if each.id in chosen]

    async def _pass(self, entry: Entry) -> None:
        """Ask the anchors, each draw in its own run, so that its questions share no request with another draw."""
        journal, (draws, weight) = self.journal, PASSES[entry.kind]
        names: list[str] = journal.facts["names"]
        state: dict[str, Any] = journal.facts.get("anchors") or {"draw": 1, "at": entry.at, "weeks": 0}  # Any: JSON
        state = {**state}
        answers = defaultdict[str, list[list[float | None]]](list)
        cost = 0.0
        for draw in range(state["draw"], state["draw"] + draws):
            run = await self._run(entry, draw, f"-{draw}")
            if self.problem:
                return
            cost += run.usage.get("cost_usd") or 0.0
            for each in units_in(run, names, None, entry.at):
                answers[each.unit].append(each.scores)
        if (evidence := self.evidence()) is None:
            raise ValueError("the reference comes before its anchors")
        state["draw"] += draws
        if entry.kind in ("old", "weekly"):  # a missed week is not made up for
            state["weeks"] = 1 + int((entry.at - state["at"]) // (7 * DAY_S))
        if entry.kind == "choose":
            steady = [id_ for id_, own in answers.items() if all(each == own[0] for each in own)]
            state["ids"] = steady if 2 * len(steady) >= len(answers) else [*answers]
        else:
            evidence.answer(answers, weight, names)
        with journal.writing() as facts:
            if weight and (evidence.judge_alarms or entry.kind == "alarm"):
                self._alarm(evidence)
            facts |= {"anchors": state, "evidence": asdict(evidence)}
            facts.pop("asks", None)
            journal.count(cost_usd=cost)
            journal.end(entry, {"judged": len(answers) * draws, "cost_usd": cost})


_INSTRUMENTS: Final = frozenset({"embedder", "similarity", "splitter"})
_NEW_WATCH: Final = ", or start a new watch (--state)"
