"""One look of a watch: take in what arrived, judge a random part of it, add the scores to the evidence.

::

    arrivals ──> chosen rows ──> entry of the journal ──> run below looks/ ──> scores ──> evidence ──> alarm
                                                    anchors ──> runs ──> answers ──┘
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import asdict, replace
from datetime import datetime
from math import comb, isfinite
from os.path import relpath
from typing import TYPE_CHECKING, Any, Final, Self

from merilo.commands.evaluate.preparation import judges_of
from merilo.commands.evaluate.run import run_evaluation
from merilo.commands.plan.run import run_estimate
from merilo.commands.watch.evidence import DAY_S, SCORED, YEAR_S, Evidence, JudgedUnit, Scores, State, sums_of, units_in
from merilo.commands.watch.tail import Position, Tail
from merilo.data.lines import ForeignRecords
from merilo.engine.budget import providers_of, spent_record
from merilo.errors import DataError, UsageError
from merilo.judges.routed import is_deterministic
from merilo.results.comparable import not_comparable, score_affecting_differences
from merilo.runs.directory import balance_in, judge_difference
from merilo.runs.run import Run, metric_in
from merilo.runs.run_metrics import recorded_scale, weak_metrics
from merilo.stats.drift import changed_p, novelty

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from merilo.commands.evaluate.options import Options
    from merilo.commands.watch.journal import Entry, Journal
    from merilo.commands.watch.settings import Watch

TRAFFIC: Final = "traffic"
LEARNED: Final = 2_000
LEARNED_DAYS: Final = 7
WEEK_S: Final = 7 * DAY_S
FEWEST, FEWEST_CLUSTERS = 200, 30
FEWEST_NEW: Final = 20
"""Fewer new units wait for the next look, at most a day."""
_MAX_FAILED: Final = 0.1
_CLOSER: Final = 5
"""Factor of the rate while there is evidence of a change."""
_COMPARED_DAYS, _COMPARED_QUESTIONS = 28, 50
"""Days before a change whose questions are compared with those since, and the most questions of a day."""
_CHANGED_P: Final = 0.05
_SHOWN: Final = 5
_CLOCK_S: Final = 60
_MAX_UNREAD: Final = 0.02
_CHARS: Final = 80
PASSES: Final = {"start": (6, 0.0), "weekly": (1, 0.5 / 53), "alarm": (3, 0.05)}
"""Pass over the anchors → draws and weight. The weights of a year, with ten alarms, sum to at most 1."""
_CHOOSING: Final = 3
"""The draws of the start by which anchors are chosen, and which are not used again."""
_DRAWS: Final = 10
"""Each entry of the journal has its own numbers of draws, so that no cache answers."""
_INSTRUMENTS: Final = frozenset({"embedder", "similarity", "splitter"})
_NEW_WATCH: Final = ", or start a new watch (--state)"


def run_of(journal: Journal, entry: Entry, suffix: str = "") -> Path:
    """Return the directory of a look's run."""
    return journal.directory / "looks" / f"{entry.number:06d}{suffix}"


class Watcher:
    """The looks of one call."""

    def __init__(self, watch: Watch, journal: Journal, now: float) -> None:
        """Begin a call. If the clock went back, so do the times of the state; it stands still up to a minute."""
        behind_s = journal.facts["now"] - now
        self.behind_s = behind_s if behind_s > _CLOCK_S else 0.0
        if self.behind_s:
            journal.set_back(now)
        self.watch, self.journal, self.now = watch, journal, max(now, journal.facts["now"])
        self.problem = ""
        """Why the call ended early: a limit of money, or failed outcomes."""
        self._unread = ""
        self.failed = False
        self.looks = 0
        """Number of looks that were finished."""
        judges = {role: each for role, each in judges_of(watch.evaluation).items() if role not in _INSTRUMENTS}
        self._steady = not providers_of(judges.values()) and all(map(is_deterministic, judges.values()))
        """True if no judge can change while its fingerprint stays."""
        fingerprint = {"name": judges["judge"].name, "fingerprint": judges["judge"].fingerprint()}
        self._judge: dict[str, Any] = json.loads(json.dumps(fingerprint))  # Any: JSON
        asked = ", ".join(map(str, watch.evaluation.metrics or ()))
        self._given = {
            "source": relpath(watch.source, journal.directory),
            "--by": watch.by,
            "--cluster": watch.evaluation.cluster,
            **({"--metrics": asked} if asked else {}),
        }

    def arrive(self) -> None:
        """Take in what arrived since the last call. Raises UsageError for other settings than before."""
        journal, watch = self.journal, self.watch
        if watch.learn is not None:
            self._check_size(watch.learn)
        kept: dict[str, Any] = journal.facts.get("given", {})  # Any: JSON
        for name, got in self._given.items():
            if got != kept.get(name, got):
                before = f"This watch has {name} {kept[name] or '(none)'}, got {got or '(none)'}"
                raise UsageError(f"{before}. Repeat the first one{_NEW_WATCH}.")
        self._check_judge(journal.facts.get("judge", self._judge), "The reference")
        tail = Tail(watch.source, [Position(**each) for each in journal.facts["positions"]], self.now, watch.settle_s)
        with journal.writing() as facts:
            arrivals = ((each, watch.unit_of(each.record)) for each in tail.arrivals())
            journal.take_in(arrivals, self._rate, self.now, watch.settle_s)
            journal.count(damaged=tail.damaged, left_out=tail.left_out)
            self._count_unread(tail.damaged, tail.damaged + tail.read)
            facts |= {"positions": [asdict(each) for each in tail.positions], "now": self.now}

    def _count_unread(self, damaged: int, rows: int) -> None:
        """Count the rows of today. More than 2 % that cannot be read are a problem: a change of them is not seen."""
        facts, day = self.journal.facts, self.now // DAY_S
        before, unread, of = facts.get("unread", (day, 0, 0))
        facts["unread"] = [day, damaged + unread * (before == day), rows + of * (before == day)]
        _, unread, of = facts["unread"]
        if damaged and unread > _MAX_UNREAD * of:
            self._unread = f"{unread:,} of {of:,} rows of today cannot be read, and are not judged."

    @property
    def _rate(self) -> float:
        """The fraction to judge: a closer look while there is evidence of a change, before it is an alarm."""
        evidence = self.journal.evidence()
        suspects = evidence is not None and evidence.value >= 1 and "alarm" not in self.journal.facts
        return min(1.0, self.watch.rate * (_CLOSER if suspects else 1))

    def _check_judge(self, recorded: Mapping[str, Any], who: str) -> None:  # Any: JSON
        if difference := judge_difference(recorded, self._judge):
            raise not_comparable(f"{who} and this look", [f"the judge {difference}"], advice=_NEW_WATCH)

    async def look(self) -> Self:
        """Finish the look that was interrupted, or do the one that is due, and the passes over the anchors."""
        journal, today = self.journal, self.now // DAY_S
        if journal.facts.get("day") != today:  # a look that was stopped continues with the money of a new day
            with journal.writing() as facts:
                facts |= {"day": today, "spent_before": self._spent()}
        if self.watch.baseline is not None and "names" not in journal.facts:
            self._use_baseline(Run.open(self.watch.baseline))
        while not self.problem:
            entry = next((each for each in journal.entries() if each.result is None), None) or await self._next()
            if entry is None:
                break
            await (self._traffic(entry) if entry.kind == TRAFFIC else self._pass(entry))
        if self._unread and not self.problem:
            self.failed, self.problem = True, self._unread
        return self

    async def _next(self) -> Entry | None:
        """Begin the pass or look that is due."""
        journal, evidence = self.journal, self.journal.evidence()
        if evidence is not None and (kind := self._due_pass(evidence)):
            with journal.writing():
                entry = journal.begin(kind, self.now, 1.0, PASSES[kind][1])
                journal.add_rows(entry, self._anchors(evidence))
            return entry
        units = journal.ready(self.now, self.watch.settle_s)
        looked = max((each.at for each in journal.entries(TRAFFIC)), default=self.now)
        if not units or (len(units) < FEWEST_NEW and self.now - looked < DAY_S):
            return None
        rate = self._rate * await self._affordable()
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
        left = limit + self.journal.facts["spent_before"] - self._spent()
        planned = (await run_estimate(self._records("waiting rows", 0), self._options(None))).typical.usd
        return min(1.0, max(0.0, left / planned)) if planned else 1.0

    def _spent(self) -> float:
        """Return the cost of the runs of `_today`, in USD."""
        spent = [spent_record(balance_in(each), "charged")["cost_usd"] for each in self._today()]
        return sum(each for each in spent if isinstance(each, float))

    def _today(self) -> tuple[Path, ...]:
        """Return the runs of today and of a look that was stopped, whose costs count against the limit of a day."""
        today = self.now // DAY_S
        entries = [each for each in self.journal.entries() if each.at // DAY_S == today or each.result is None]
        return tuple(path for each in entries for path in self.journal.directory.glob(f"looks/{each.number:06d}*"))

    def _records(self, name: str, look: int) -> ForeignRecords:
        return ForeignRecords(name, name, "row", lambda: self.journal.rows(look))

    async def _run(self, entry: Entry, draw: int = 0) -> Run | None:
        """Return the run of an entry; None, and `problem` is set, if it is not finished."""
        path = run_of(self.journal, entry, f"-{draw}" if draw else "")
        path.parent.mkdir(exist_ok=True)
        run = await run_evaluation(self._records(f"look-{path.name}", entry.number), self._options(path, draw))
        if not run.complete:
            self.problem = f"{run.usage.get('stopped')} The same command continues."
        return run if run.complete else None

    def _options(self, out: Path | None, draw: int = 0) -> Options:
        given, limits = self.watch.evaluation, self.watch.evaluation.limits
        if limits.max_cost_usd is not None:
            limits = replace(limits, max_cost_usd=limits.max_cost_usd + self.journal.facts["spent_before"])
        return replace(
            given,
            out=out,
            cluster=None,
            metrics=self.journal.facts.get("names", given.metrics),
            first_draw=draw,
            limits=limits,
            # Anchors are asked again: old answers, also those that another watch has asked, would hide a change.
            storage=replace(given.storage, cache=given.storage.cache and not draw),
            reading=replace(given.reading, skip_invalid=True),
            shared_with=tuple(each for each in self._today() if each != out),
        )

    async def _traffic(self, entry: Entry) -> None:
        """Judge the rows of a look and add their scores, unless too many outcomes failed."""
        journal, facts = self.journal, self.journal.facts
        try:
            if (run := await self._run(entry)) is None:
                return
        except DataError as error:  # no row can be read; the next look reads on
            self.failed, self.problem = True, str(error)
            with journal.writing():
                journal.end(entry, {"judged": 0})
            return
        names = facts.get("names") or self._usable(run)
        if (first := facts.get("first")) is not None and (
            found := score_affecting_differences(Run.open(first).manifest, run.manifest, metrics=names)
        ):
            raise not_comparable(f"{first} and {run.path}", found, advice=_NEW_WATCH)
        failed = sum(each.failed for each in run.metrics.values())
        if failed > _MAX_FAILED * len(run) * len(names):
            self.failed = True
            self.problem = f"{failed:,} outcomes failed: merilo show {run.path}."
        units = [*units_in(run, names, entry.at, self.watch).values()]
        lost: list[float] = []
        if self.failed and "evidence" not in facts:  # failures would distort the reference of scores
            lost, units = [1 - each.scores[SCORED] for each in units], []
        cost = run.usage.get("cost_usd") or 0.0
        with journal.writing():
            self._settle(names, str(run.path))
            invalid = sum(1 for _ in journal.rows(entry.number)) - len(run)
            self._count_unread(round(invalid / entry.rate), 0)
            evidence, state = self._add(entry, units, run), dict[str, Any]()  # Any: JSON
            if evidence is not None:
                lines = {name: each.line_of() for name, each in evidence.metrics.items()}
                state = {"lines": lines, "evidence": evidence.ratio}
            journal.count(judged=len(units), failed=failed, cost_usd=cost)
            result = {"judged": len(units), "failed": failed, "cost_usd": cost, "sums": sums_of(units, names)}
            result |= {"lost": lost} if lost else {}
            journal.end(entry, {**result, **state})
        self.looks += 1

    def _settle(self, names: list[str], first: str) -> None:
        """Fix the settings, the metrics, the judge and the run that each look is compared with."""
        given = {"--metrics": ", ".join(names), **self._given}
        for name, value in {"given": given, "names": names, "first": first, "judge": self._judge}.items():
            self.journal.facts.setdefault(name, value)

    def _add(self, entry: Entry, units: Sequence[JudgedUnit], run: Run) -> Evidence | None:
        """Add the units of a look, and of its run, to the reference or to the evidence, which is returned."""
        facts, evidence = self.journal.facts, self.journal.evidence()
        if evidence is None:
            days = (entry.at - min((each.at for each in self.looks_after()), default=entry.at)) / DAY_S
            enough = self.learned + len(units) >= (self.watch.learn or LEARNED)
            return (
                self._fix([*self.judged(), *units]) if enough and (self.watch.learn or days >= LEARNED_DAYS) else None
            )
        if "alarm" not in facts:
            evidence.add(entry.at, entry.weight, units)
            if evidence.alarms and not evidence.asks_anchors:
                self._alarm(evidence, units, (entry.at, run))
            facts["evidence"] = asdict(evidence)
        return evidence

    def _alarm(self, evidence: Evidence, units: Sequence[JudgedUnit] = (), *runs: tuple[float, Run]) -> None:
        """Store the alarm. `units` and `runs`: of the look that is not finished."""
        facts = self.journal.facts
        found = evidence.conclusion([*self.judged(facts["learned"]), *units])
        if found["state"] in (State.SYSTEM, State.CANNOT_TELL) and (others := self._other_questions(found, runs)):
            between = dict.fromkeys([*(found["between"] or ["system"]), "questions"])
            found |= {"state": State.CANNOT_TELL.value, "between": [*between], "questions": others}
        facts["alarm"] = {"id": f"{int(self.now)}-{len(self.journal.entries())}", "at": self.now, **found}

    def _other_questions(
        self,
        alarm: Mapping[str, Any],  # Any: JSON
        more: Sequence[tuple[float, Run]],
    ) -> list[str]:
        """Return the questions since a change that differ most from those before; none if they are alike.

        Two facts of days are compared: their mean vectors, and how far their questions are from all others. If there
        are too few days for a test, the questions are compared.
        """
        import numpy as np

        from merilo.judges.blended import BlendedModel
        from merilo.judges.embedded_provider import vectors_of

        since = datetime.fromisoformat(f"{alarm['since']}T00:00Z").timestamp()
        looks = [each for each in self.looks_after(0) if each.judged and each.at >= since - _COMPARED_DAYS * DAY_S]
        runs = [*((each.at, Run.open(run_of(self.journal, each))) for each in looks), *more]
        if all(at >= since for at, _ in runs):  # the reference is a run
            runs = [(0.0, Run.open(self.journal.facts["first"])), *runs]
        days = defaultdict[float, list[str]](list)
        for at, run in sorted(runs, key=lambda each: each[0]):
            days[at // DAY_S] += [each.sample.user_input for each in run.samples if each.sample.user_input]
        random = np.random.default_rng(0)
        groups = [random.permutation(own)[:_COMPARED_QUESTIONS].tolist() for own in days.values() if own]
        new = sum(day * DAY_S >= since for day, own in days.items() if own)
        if comb(len(groups), new) * _CHANGED_P < 1:
            new, groups = sum(map(len, groups[len(groups) - new :])), [[text] for own in groups for text in own]
        if not 0 < new < len(groups):
            return []
        texts = [text for own in groups for text in own]
        vectors = np.array(vectors_of(BlendedModel.load(), texts))
        starts = np.cumsum([0, *map(len, groups[:-1])])
        means = np.add.reduceat(vectors, starts) / [[len(own)] for own in groups]
        # The day of the change is uncertain, and one or two days say little.
        tested = [(means, days) for days in {new, min(max(new, 3), len(groups) - 1)}]
        tested.append((novelty(vectors, groups, new), new))
        if all(changed_p(values, days) >= _CHANGED_P for values, days in tested):
            return []
        far, first = vectors @ (means[-new:].mean(axis=0) - means[:-new].mean(axis=0)), starts[-new]
        return [*dict.fromkeys(texts[first + at][:_CHARS] for at in np.argsort(-far[first:], kind="stable"))][:_SHOWN]

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
        chosen = [each for each in self.looks_after(after) if each.at >= since and each.judged]
        runs = ((each.at, Run.open(run_of(self.journal, each))) for each in chosen)
        names = self.journal.facts["names"]
        return [unit for at, run in runs for unit in units_in(run, names, at, self.watch).values()]

    def _check_size(self, units: int) -> None:
        fewest = FEWEST if self.watch.evaluation.cluster is None else FEWEST_CLUSTERS
        if units < fewest:
            raise UsageError(f"A reference needs at least {fewest} units, got {units}.")

    def _fix(self, units: Sequence[JudgedUnit]) -> Evidence:
        """Make these units the reference of what is judged from now on. Raises UsageError for too few."""
        self._check_size(len(units))
        if self.watch.by and {each.slice for each in units} == {"unknown"}:
            raise UsageError(f"No row has the field {self.watch.by!r} (--by). Start another watch (--state).")
        watch, entries = self.watch, self.journal.entries()
        asked = not self._steady and watch.anchors > 0
        more = {"asks_anchors": asked, "can_blame": asked or self._steady, "started": self.now - YEAR_S / 365}
        lost = defaultdict[float, list[float]](list)
        for each in self.looks_after():
            lost[each.at // DAY_S] += (each.result or {}).get("lost", ())
        evidence = Evidence.of(units, watch.tolerance, watch.false_alarms, lost, looked=self.now, **more)
        learned = entries[-1].number if entries else 0
        self.journal.facts |= {"evidence": asdict(evidence), "learned": learned, "units": len(units)}
        return evidence

    def _use_baseline(self, run: Run) -> None:
        self._check_judge(run.manifest.judges.get("judge", self._judge), str(run.path))  # none if no metric asks one
        with self.journal.writing():
            names = self._usable(run)
            self._settle(names, str(run.path.absolute()))
            self._fix([*units_in(run, names, self.now, self.watch).values()])

    def rebase(self, since: float) -> None:
        """Make the units judged since a time the reference of a new watch; the old one stays in the journal."""
        if self.now - max(self.journal.facts.get("rebases", []), default=0.0) < WEEK_S:
            reason = "a reference that is chosen until it is quiet promises nothing"
            raise UsageError(f"The last --rebase was less than 7 days ago, and {reason}. Wait{_NEW_WATCH}.")
        if not (looks := self.looks_after(0)):
            raise UsageError("No look is finished, so there is nothing to rebase on. Look first.")
        with self.journal.writing() as facts:
            self._fix(self.judged(0, since))
            facts.pop("alarm", None)
            facts |= {"begun": looks[-1].number, "first": str(run_of(self.journal, looks[-1]))}
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
        """Return the pass over the anchors that is due; empty if none is. Weeks begin with the first pass."""
        if not evidence.asks_anchors or "alarm" in self.journal.facts:
            return ""
        if not evidence.anchors:
            return "start"
        begun = [each.at for each in self.journal.entries() if each.kind == "start"][-1]
        weeks = [(each.at - begun) // WEEK_S for each in self.journal.entries() if each.kind in ("start", "weekly")]
        return "alarm" if evidence.alarms else "weekly" if (self.now - begun) // WEEK_S > weeks[-1] else ""

    def _anchors(self, evidence: Evidence) -> list[dict[str, Any]]:  # Any: JSON
        """Return the anchors; before they are chosen, samples of the reference."""
        learned = [each for each in self.looks_after(0) if each.number <= self.journal.facts["learned"] and each.judged]
        paths = [run_of(self.journal, each) for each in reversed(learned)] or [self.journal.facts["first"]]
        samples = [each.sample for path in paths for each in Run.open(path).samples]
        samples.sort(key=lambda each: self.journal.position(f"anchor {each.id}"))
        chosen = [each for each in samples if each.id in evidence.anchors] or samples[: self.watch.anchors]
        return [each.to_record() for each in chosen]

    async def _pass(self, entry: Entry) -> None:
        """Ask the anchors, each draw in its own run, so that its questions share no request with another draw."""
        journal, (draws, weight) = self.journal, PASSES[entry.kind]
        answers, cost = defaultdict[str, list[Scores]](list), 0.0
        for draw in range(draws):
            if (run := await self._run(entry, entry.number * _DRAWS + draw)) is None:
                return
            cost += run.usage.get("cost_usd") or 0.0
            for id_, each in units_in(run, journal.facts["names"], entry.at).items():
                answers[id_].append(each.scores)
        if (evidence := journal.evidence()) is None:
            raise ValueError("the reference comes before its anchors")
        if entry.kind == "start":
            steady = {id_ for id_, own in answers.items() if all(each == own[0] for each in own[:_CHOOSING])}
            chosen = steady if 2 * len(steady) >= len(answers) else answers
            evidence.answer({id_: own[_CHOOSING:] for id_, own in answers.items() if id_ in chosen}, weight)
        else:
            evidence.answer(answers, weight)
        with journal.writing() as facts:
            if evidence.judge >= 1 / evidence.judge_alpha or entry.kind == "alarm":
                self._alarm(evidence)
            facts["evidence"] = asdict(evidence)
            journal.count(cost_usd=cost)
            journal.end(entry, {"judged": len(answers) * draws, "cost_usd": cost})
