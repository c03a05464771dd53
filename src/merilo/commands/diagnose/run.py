"""A diagnosis: the calls of both levels, and the runs that judge their answers.

::

    DIR/                      the run of level 1: a sample for each question and arm
      calls/answers.jsonl     every call of the application, stored before it is used
      calls/application.json  what was asked: the code, and the records that are left out
      causes-NNNN/look-1 ...  the runs of level 2: a sample for each draw of a failing question
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from merilo.commands.diagnose.application import Call, Caller, application_of, code_of, texts_of
from merilo.commands.diagnose.arms import Question, Retrieved, questions_in, retrieved
from merilo.commands.diagnose.result import ASKED, CAUSES, Draw, asked_in, cases_of, draws_in, unjudged
from merilo.commands.diagnose.right import Right, right_by
from merilo.commands.evaluate.options import Reading
from merilo.commands.evaluate.pipeline import PipelineOutput, PipelineOutputs
from merilo.commands.evaluate.preparation import checked, dataset_of, judges_of
from merilo.commands.evaluate.run import run_evaluation
from merilo.commands.label.run import drawn
from merilo.commands.plan.run import Estimate, run_estimate
from merilo.data.sample import PIPELINE_ERROR, Dataset, Sample
from merilo.engine.progress import ProgressDispatcher
from merilo.errors import LimitReached, RunError, UsageError
from merilo.numbers import count
from merilo.runs.directory import run_directory
from merilo.runs.files import CALLS, STORE, RunLock
from merilo.runs.run import write_json
from merilo.stats.diagnosis import ARMS, LOOKS, Arm, Case, Form, wanted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from merilo.commands.diagnose.settings import DiagnoseOptions
    from merilo.metrics.base import Definition

    Wanted = tuple[Question, Arm, int]
    """A draw of a question in an arm; draw 0 is that of level 1."""

LEVEL_1: Final = (Arm.UNCHANGED, Arm.PLACEBO, Arm.FIRST, Arm.ONLY, Arm.NONE)
TYPICAL: Final = 20
"""Mean calls for a failing question in the simulation (benchmarks/diagnose.py)."""
_ANSWERS: Final = "answers.jsonl"
_NO_CONTEXTS: Final = "The application returned no contexts. Return the answer and its contexts."
_NOTHING: Final = Retrieved(Form.MISSING, (), frozenset())
_ASKED: Final = "What is the access word of the Velmora archive?"
_FACT: Final = "The access word of the Velmora archive is {}."
_WORDS: Final = ("zintar-4817", "quolbe-9264")


async def run_diagnosis(app: object, data: Any, options: DiagnoseOptions) -> Path:  # Any: as `run_evaluation`
    """Diagnose the application and return the directory. The same call resumes a stopped one.

    Raises UsageError if the application ignores its contexts, LimitReached if a limit stops it, and what an evaluation
    raises.
    """
    application = application_of(app, options)
    name, questions, lacking, own = _prepared(data, options)
    codes = [code_of(each) for each in (app, options.retrieve, options.generate) if each is not None]
    asked = {"application": " ".join(codes), "--right": code_of(options.right)}
    path, _ = run_directory(options.out, name)
    (path / CALLS).mkdir(exist_ok=True)
    for each in (path / CALLS, *(path / CALLS).iterdir()):
        if each.is_symlink() or not (each.is_file() or each.name == CALLS):
            raise RunError(f"{each} is not a regular file. Choose another directory (--out).")
    with RunLock(path / CALLS):
        known = asked_in(path)
        for what, code in asked.items():
            if known and known[what] != code:
                raise UsageError(f"{path} has answers of another {what}, or of another version; name another --out.")
        outputs = PipelineOutputs(path / CALLS / _ANSWERS, errors=True)
        experiment = _Experiment(name, questions, own, Caller(application, outputs, options), path)
        try:
            await experiment.check()
        except UsageError:
            if not known:
                (path / CALLS / _ANSWERS).unlink(missing_ok=True)  # a repaired application is asked again
            raise
        write_json(path / CALLS / ASKED, {**asked, "left_out": lacking})
        await experiment.do()
    return path


async def estimate_diagnosis(data: Any, options: DiagnoseOptions) -> tuple[int, Estimate]:  # Any: as above
    """Return the number of questions, and what the judge of both levels would cost, without a call."""
    name, questions, _, own = _prepared(data, options)
    draws = len(LEVEL_1) * len(questions) + TYPICAL * min(options.each or len(options.ids), len(questions))
    rows = [
        _sample(each, {"arm": "estimate", "draw": at}, PipelineOutput({"response": f"{each.sample.reference} ({at})"}))
        for at in range(-(-draws // len(questions)))
        for each in questions
    ][:draws]
    # The second metric asks the same questions.
    own = replace(own, metrics=[*(own.metrics or ())][:1], out=None)
    return len(questions), await run_estimate(Dataset(name, lambda: iter(rows)), own)


def _prepared(data: Any, options: DiagnoseOptions) -> tuple[str, list[Question], str, DiagnoseOptions]:  # Any: as above
    """Return the name of the data, its questions, what is left out, and the options of the evaluation of answers."""
    judges_of(checked(options))
    dataset, right = dataset_of(data, options), options.right
    questions, lacking = questions_in(dataset, options.reading, reference=right is None)
    if unknown := {*options.ids} - {each.sample.id for each in questions}:
        raise UsageError(f"No question has the id {min(unknown)!r} (--ids).")
    metrics: list[str | Definition] = [right_by(right), *(["answer_correctness"] if right is None else [])]
    cluster = options.cluster or dataset.columns.cluster or "question"
    own = replace(options, metrics=metrics, cluster=cluster, mapping=None, limit=None, draws=1, reading=Reading())
    return dataset.name, questions, lacking, own


@dataclass
class _Experiment:
    """The calls and runs of a diagnosis in its directory."""

    name: str
    questions: list[Question]
    options: DiagnoseOptions
    caller: Caller
    path: Path
    reads_end: bool = False
    copied: set[str] = field(default_factory=set[str])
    """Ids of the failing questions that are answered with the same bytes again."""

    async def check(self) -> None:
        """Do the canary and the first question. Raises UsageError if their answers cannot be used."""
        answer = await self.caller.answer(_canary(0))
        if not _repeats(answer, 0):
            why = f"The application failed on the first question, which tests its contexts. {answer.error}"
            if answer.error is None:
                why = (
                    "The application ignores its contexts: it did not repeat a made-up fact that only they contain. It "
                    f"must answer from the contexts that it gets. Asked: {_ASKED} Answered: {answer.fields['response']}"
                )
            raise UsageError(why)
        _, answer = await self._answered(first := self.questions[0], Arm.UNCHANGED)
        if answer.error == _NO_CONTEXTS:
            raise UsageError(answer.error)
        for metric in self.options.metrics or ():
            if isinstance(metric, Right) and answer.error is None:
                metric.check(_sample(first, {"arm": "canary", "draw": 0}, answer))

    async def do(self) -> None:
        """Do level 1, and level 2 if it is wanted."""
        asked = count(len(self.questions), "question")
        self._note(f"The application answers {asked} in {len(LEVEL_1)} arms. To resume after a stop: --out {self.path}")
        level_1 = [[(each, arm, 0) for arm in LEVEL_1] for each in self.questions]
        first = await self._judged(self.path, self.name, level_1)
        if (self.options.each or self.options.ids) and 3 * unjudged(first) <= len(first):
            await self._causes(first)

    async def _answered(
        self, question: Question, arm: Arm, draw: int = 0, *, neutral: bool = False
    ) -> tuple[Call, PipelineOutput]:
        """Return the call and the answer of a draw; draw 0 is that of level 1."""
        call = Call(question.sample.id, question.sample.require("user_input"), arm, draw, None)
        if arm is Arm.UNCHANGED and not neutral:
            answer = await self.caller.answer(call)
            if answer.error is None and texts_of(answer.fields) is None:
                answer = PipelineOutput({}, _NO_CONTEXTS)
            return call, answer
        base = _NOTHING if arm in {Arm.ONLY, Arm.NONE} else await self._retrieved(question)
        if base is None:
            return call, PipelineOutput({}, "The unchanged application failed.")
        contexts = base.contexts_of(arm, question, draw - 1 if neutral else None)
        call = call._replace(contexts=contexts, neutral=neutral)
        return call, await self.caller.answer(call)

    async def _retrieved(self, question: Question) -> Retrieved | None:
        """Return what the application retrieved at level 1; None if it failed."""
        _, answer = await self._answered(question, Arm.UNCHANGED)
        contexts, ids = texts_of(answer.fields), answer.fields.get("retrieved_context_ids") or ()
        return None if contexts is None else retrieved(question, contexts, ids)

    async def _judged(self, path: Path, name: str, groups: Sequence[Sequence[Wanted]]) -> list[Draw]:
        """Ask the draws of each question, in random order, and have all answers judged in a run."""

        async def ask(draws: Sequence[Wanted]) -> None:
            by_name = {f"{arm} {draw}": (question, arm, draw) for question, arm, draw in draws}
            for each in drawn([*by_name], len(by_name), key=f"order {draws[0][0].sample.id}"):
                await self._row(*by_name[each])

        await self.caller.each(filter(None, groups), ask)
        rows = [await self._row(*each) for group in groups for each in group]
        others = [self.path, *self.path.glob(f"{CAUSES}/look-*")]
        shared = tuple(each for each in others if each != path and (each / STORE).exists())
        run = await run_evaluation(
            Dataset(name, lambda: iter(rows)), replace(self.options, out=path, shared_with=shared)
        )
        if not run.complete:
            raise LimitReached(str(run.usage.get("stopped")))
        return draws_in(run)

    async def _row(self, question: Question, arm: Arm, draw: int = 0) -> Sample:
        """Return the sample of a draw. It has no contexts, so neither the judge nor annotators see the arm."""
        copied = draw > 0 and question.sample.id in self.copied
        neutral = copied and len(question.neutral) == LOOKS[1]
        call, answer = await self._answered(question, arm, draw, neutral=neutral)
        base = await self._retrieved(question)
        own = {
            "question": question.sample.id,
            "arm": str(arm),
            "draw": draw,
            "contexts": texts_of(answer.fields) if call.contexts is None else [*call.contexts],
            "form": None if base is None else str(base.form),
            "idle": [] if base is None else sorted(base.idle(question)),
            "copies": copied and not (neutral and self.reads_end),
        }
        return _sample(question, own, answer)

    async def _causes(self, first: Sequence[Draw]) -> None:
        """Draw the arms of the failing questions until each has a verdict."""
        known = {each.sample.id: each for each in self.questions}
        failing = [each.question for each in first if each.arm is Arm.UNCHANGED and each.right is False]
        chosen = self.options.ids or drawn(failing, self.options.each, key="diagnose")
        bases = {id_: base for id_ in chosen if (base := await self._retrieved(known[id_])) is not None}
        for id_ in {*chosen} - {*bases}:
            self._note(f"{id_} failed, so its cause is not sought.")
        empty = {id_: Case(base.form, idle=base.idle(known[id_])) for id_, base in bases.items()}
        folder = self.path / CAUSES.replace("*", blake2b(repr([*empty]).encode(), digest_size=4).hexdigest())
        for other in {*self.path.glob(CAUSES)} - {folder}:
            shutil.rmtree(other)
        folder.mkdir(exist_ok=True)
        self._note(f"The application answers {count(len(empty), 'failing question')} again, in three arms each.")
        await self._find_copies([known[id_] for id_ in empty])
        draws: list[Draw] = []
        for look in range(1, 1 + LOOKS[1]):
            found = cases_of(draws)
            cases = [found[id_][0] if id_ in found else each for id_, each in empty.items()]
            new = [
                [(known[id_], arm, at + 1) for arm, most in arms.items() for at in range(case.drawn(arm), most)]
                for id_, case, arms in zip(empty, cases, wanted(cases), strict=True)
            ]
            if not any(new):
                break
            draws += await self._judged(folder / f"look-{look}", f"{self.name}, look {look}", new)

    async def _find_copies(self, chosen: Sequence[Question]) -> None:
        """Find the questions that are answered with the same bytes as at level 1: a cache, or temperature 0.

        Their draws get an unrelated passage at the end, another one each. Such draws differ if the application reads
        its contexts to the end, which a second canary shows: the question of the first with another fact.
        """
        prompts: list[tuple[str, ...]] = []

        async def compare(question: Question) -> None:
            base = await self._retrieved(question) or _NOTHING
            arms = [arm for arm in ARMS[base.form] if arm in LEVEL_1 and arm not in base.idle(question)]
            pairs = [[(await self._answered(question, arm, draw))[1] for draw in (0, 1)] for arm in arms]
            if all(one.error is None and one.fields == two.fields for one, two in pairs):
                self.copied.add(question.sample.id)
                prompts.extend(base.contexts_of(arm, question) for arm in ARMS[base.form])

        await self.caller.each(chosen, compare)
        if prompts:
            longest = max(prompts, key=lambda texts: (sum(map(len, texts)), texts))
            self.reads_end = _repeats(await self.caller.answer(_canary(1, (*longest, chosen[0].placebo))), 1)

    def _note(self, text: str) -> None:
        ProgressDispatcher(self.options.progress).note(text)


def _canary(number: int, before: Sequence[str] = ()) -> Call:
    """Return the call with a made-up fact after other passages; all canaries ask the same question."""
    return Call("", _ASKED, "canary", number, (*before, _FACT.format(_WORDS[number])))


def _repeats(answer: PipelineOutput, number: int) -> bool:
    return _WORDS[number] in str(answer.fields.get("response", "")).casefold()


def _sample(question: Question, own: dict[str, Any], answer: PipelineOutput) -> Sample:  # Any: JSON
    sample, draw = question.sample, own["draw"]
    error = {} if answer.error is None else {PIPELINE_ERROR: answer.error}
    return Sample(
        f"{sample.id}/{own['arm']}" + (f"/{draw}" if draw else ""),
        user_input=sample.user_input,
        reference=sample.reference,
        response=answer.fields.get("response", ""),
        language=sample.language,
        metadata={**sample.metadata, **own, **error},
    )
