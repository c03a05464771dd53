"""Judges of decision models, which answer typed questions with probabilities and write no text.

A sample has two views, its contexts and its response. All questions about a view are a bundle, which the engine
collects and this judge asks in one request, or in as many as the server's limits need. An answer must not depend on the
other questions of its request.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final

from merilo.data.answer import judged
from merilo.judges.base import Conversation, JudgeDefaults, OutgoingRequest, Packing
from merilo.judges.decision_forms import (
    FORMS,
    VERSION,
    Decision,
    SampleViews,
    context_name,
    named,
    unit_names,
    wording_for,
)
from merilo.judging.kinds.responses import Statements
from merilo.judging.questions import Pack, Question
from merilo.judging.verdicts import Failure, FailureKind
from merilo.judging.views import Bundle, View, without_markers
from merilo.providers.base import Message, Reply
from merilo.providers.decision_request import DecisionQuestion, DecisionRequest, Option, answered_in, answers_in
from merilo.providers.questions import answer_in

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from merilo.data.sample import Sample
    from merilo.judging.ask import Answer
    from merilo.providers.decisions import DecisionEndpoint, DecisionSizes

    Options = tuple[float, ...]
    Sends = tuple[OutgoingRequest, ...]
    Replies = tuple[Reply | Failure, ...]

_VERSION: Final = 1
"""Part of the fingerprint: raised when the rules that turn probabilities into verdicts change."""
_SAMPLES: Final = 64
"""Samples whose views are remembered while their questions are asked."""
_EVIDENCE: Final = "e"
"""End of the name of a question for evidence."""
_BYTES_PER_TOKEN: Final = 3
_AROUND_QUESTION: Final = 50
_AROUND_OPTION: Final = 12
"""Tokens of the names around the texts of a question, and of each option, at most."""
_OF_REQUEST: Final = frozenset({FailureKind.TOO_LARGE, FailureKind.PERMANENT, FailureKind.REFUSED})
"""Failures of a request that may be due to one of its questions, or to their number."""
_OF_ANSWER: Final = frozenset({FailureKind.REFUSED, FailureKind.UNREADABLE})
"""Failures after which a question is asked again."""
_ALIASES: Final = ("-latest", "-preview")


@dataclass(frozen=True)
class DecisionJudge(JudgeDefaults):
    """A judge that asks a decision model.

    `reasks`: how often a question without a valid answer is asked again, the second time alone. Probabilities are used
    as they are, and a yes begins at .5.
    """

    deterministic = True
    """These models have no temperature, so several draws would pay for one answer."""

    provider: DecisionEndpoint
    packing: Packing = Packing.SAMPLE
    reasks: int = 2
    _views: OrderedDict[int, tuple[Sample, SampleViews]] = field(
        default_factory=OrderedDict[int, "tuple[Sample, SampleViews]"], init=False, compare=False, repr=False
    )

    @property
    def name(self) -> str:
        """`decisions:MODEL` or `systemone:MODEL`."""
        return f"{self.provider.fingerprint()['provider']}:{self.provider.model}"

    @property
    def answers(self) -> frozenset[type[Question[Any]]]:
        """Judgements with fixed options. Statements are the sentences that make one, by rules."""
        return frozenset({*FORMS, Statements})

    @property
    def agreement_note(self) -> str | None:
        """That its probabilities were not fitted to human labels."""
        return "probabilities not fitted to human labels"

    @property
    def cacheable(self) -> bool:
        """False for a name that means another model tomorrow, such as `jev-latest`."""
        return not (self.provider.model.endswith(_ALIASES) or self.provider.model.startswith("~"))

    def fingerprint(self) -> Mapping[str, object]:
        """Return provider, packing, and the versions of the rules."""
        from merilo.judges.embedded import EmbeddedJudge

        return {
            "judge": "decisions",
            "version": _VERSION,
            "wording": f"d{VERSION}",
            "provider": self.provider.fingerprint(),
            "packing": str(self.packing),
            "reasks": self.reasks,
            "statements": EmbeddedJudge().fingerprint(),
        }

    def rubric(self, question: Question[Any] | Pack) -> str:
        """Return the wording of a question; of a bundle, each of its wordings once."""
        if isinstance(question, Bundle):
            return _wordings(question.questions)
        return "" if isinstance(question, Statements) else wording_for(_only(question)).source

    def view(self, question: Question[Any], sample: Sample | None) -> View | None:
        """Return the view with the texts of a question; None for a question that rules answer.

        `sample`: whose views are used if they show all texts of the question.
        """
        form = FORMS.get(type(question))
        if form is None:
            return None
        alone = self.packing is Packing.QUESTION or (self.packing is Packing.UNIT and question.judges_context)
        if sample is not None and not alone:
            return form.view(question, self._views_of(sample))
        view = form.own_view(question)
        return replace(view, alone=question.content) if self.packing is Packing.QUESTION else view

    def answer(self, question: Question[Any] | Pack) -> Conversation:
        """Return one answer per question. A question that gets no valid answer fails alone."""
        if isinstance(question, Statements):
            from merilo.judges.blended import BlendedModel
            from merilo.judges.embedded_provider import answered

            # the sentences of a text that make a statement, with the checks of the embedded judge
            return (answer_in(answered(BlendedModel.load(), question), question),)
        if not isinstance(question, Bundle):
            view = self.view(_only(question), None)
            if view is None:
                message = f"{self.name} cannot answer questions of kind {question.kind!r}; use another judge for them."
                return (Failure(FailureKind.PERMANENT, message),)
            question = Bundle((_only(question),), view)
        asked = self._asked(question)
        found = yield from self._probabilities(asked)
        return tuple(_verdict(each, found) for each in asked)

    def _views_of(self, sample: Sample) -> SampleViews:
        """Return the views of a sample, remembered while its questions are asked."""
        known = self._views.get(id(sample))
        if known is None or known[0] is not sample:
            known = self._views[id(sample)] = (sample, SampleViews.of(judged(sample)))
            if len(self._views) > _SAMPLES:
                self._views.popitem(last=False)
        return known[1]

    def _asked(self, bundle: Bundle) -> list[_Asked]:
        """Return the questions of a bundle, each with the view that it is asked about.

        That is its own view, with fewer texts, if the view of the bundle is too long for the server.
        """
        large = _tokens(bundle.view.state) > self.provider.sizes.state_tokens
        views: dict[bytes, View] = {}
        asked: list[_Asked] = []
        for number, question in enumerate(bundle.questions, start=1):
            own = self.view(question, None) if large else bundle.view
            view = bundle.view if own is None else views.setdefault(own.digest, own)
            asked.append(_Asked(question, view, f"q{number}"))
        return asked

    def _probabilities(self, asked: Sequence[_Asked]) -> Generator[Sends, Replies, dict[str, Options | Failure]]:
        """Ask all questions, then again those without a valid answer; return the probabilities by name."""
        found: dict[str, Options | Failure] = {}
        sizes = self.provider.sizes
        pending = [*_requests([(each.view, one) for each in asked for one in each.questions], sizes)]
        for turn in range(1 + self.reasks):
            while pending:
                replies = yield tuple(OutgoingRequest(self.provider, request) for request in pending)
                halves: list[DecisionRequest] = []
                for request, reply in zip(pending, replies, strict=True):
                    if isinstance(reply, Failure) and reply.kind in _OF_REQUEST and len(request.questions) > 1:
                        middle = len(request.questions) // 2
                        halves += map(request.asking, (request.questions[:middle], request.questions[middle:]))
                    else:
                        found |= _read(request, reply)
                pending = halves
            missing = [one for each in asked for one in self._missing(each, found, turn)] if turn < self.reasks else []
            alone = turn > 0  # first together, since a whole reply may have been invalid
            pending = [*_requests(missing, sizes._replace(questions=1) if alone else sizes)]
        return found

    def _missing(
        self, asked: _Asked, found: Mapping[str, Options | Failure], turn: int
    ) -> Iterator[tuple[View, DecisionQuestion]]:
        """Yield the questions to ask again, each with a view: those that were refused or answered invalidly.

        A question in a request that was too large is asked once about its own view, if that has fewer texts.
        """
        for question in asked.questions:
            failure = found[question.name]
            if isinstance(failure, Failure) and failure.kind in _OF_ANSWER:
                yield asked.view, question
            elif isinstance(failure, Failure) and failure.kind is FailureKind.TOO_LARGE and turn == 0:
                own = self.view(asked.question, None)
                if own is not None and own.digest != asked.view.digest:
                    alone = _Asked(asked.question, own, asked.name)
                    yield own, next(each for each in alone.questions if each.name == question.name)


def reread(
    questions: Sequence[Question[Any]], replies: Sequence[Reply | Failure], rubric: str
) -> tuple[Answer, ...] | None:
    """Return the answers to the questions of one conversation from its recorded replies.

    `rubric`: the recorded wordings. None if the wordings have changed, or if the replies are about other questions:
    failed ones of a bundle may have been asked again later.
    """
    if not all(type(each) in FORMS for each in questions) or rubric != _wordings(questions):
        return None
    asked = [_Asked(each, FORMS[type(each)].own_view(each), f"q{n}") for n, each in enumerate(questions, start=1)]
    every = {one.name: one for each in asked for one in each.questions}
    found: dict[str, Options | Failure] = {}
    for reply in replies:
        if isinstance(reply, Reply):
            names = answered_in(reply.text).keys()
            if not names <= every.keys():
                return None
            found |= answers_in(reply.text, [every[name] for name in names])
    return tuple(_verdict(each, found) for each in asked) if found.keys() == every.keys() else None


def _wordings(questions: Iterable[Question[Any]]) -> str:
    return "\n".join(dict.fromkeys(wording_for(each).source for each in questions))


def _verdict(asked: _Asked, found: Mapping[str, Options | Failure]) -> Answer:
    options = found[asked.name]
    if isinstance(options, Failure):
        return options
    form = FORMS[type(asked.question)]
    return form.verdict(asked.question, Decision(options, asked.evidence(found)))


@dataclass(frozen=True)
class _Asked:
    """A question of a bundle with the view that it is asked about."""

    question: Question[Any]
    view: View
    name: str
    """Names it in its requests; the question for its evidence has an `e` after it."""

    @cached_property
    def questions(self) -> tuple[DecisionQuestion, ...]:
        """The typed question; and the one for its evidence, unless there is nothing or only one thing to name."""
        form, wording = FORMS[type(self.question)], wording_for(self.question)
        context = context_name(self.question, self.view)
        fields = tuple((name, without_markers(str(getattr(self.question, own)))) for name, own in form.fields)
        main = wording.question(self.name, context, fields)
        if len(self._units) < 2:
            return (main,)
        return main, wording.for_evidence(self.name + _EVIDENCE, context, fields, self._units)

    @cached_property
    def _units(self) -> tuple[str, ...]:
        return unit_names(self.question)

    def evidence(self, found: Mapping[str, Options | Failure]) -> tuple[int, ...]:
        """Return the positions of the sentences or contexts that a yes names; none if the model named none."""
        if len(self._units) == 1:
            return (0,)
        options = found.get(self.name + _EVIDENCE)
        return () if options is None or isinstance(options, Failure) else named(self._units, options)


def _requests(asked: Iterable[tuple[View, DecisionQuestion]], sizes: DecisionSizes) -> Iterator[DecisionRequest]:
    """Yield requests with all questions about equal views, as many as fit into one."""
    by_view: dict[bytes, list[tuple[View, DecisionQuestion]]] = {}
    for each in asked:
        by_view.setdefault(each[0].digest, []).append(each)
    for own in by_view.values():
        view, part = own[0][0], list[DecisionQuestion]()
        state = size = _tokens(view.state)
        for _, question in own:
            texts = itertools.chain.from_iterable(question.fields)
            tokens = _tokens_of_wording(question.text, question.options) + sum(map(_tokens, texts))
            if part and (len(part) == sizes.questions or size + tokens > sizes.request_tokens):
                yield _request(view, part)
                part, size = [], state
            part.append(question)
            size += tokens
        yield _request(view, part)


def _request(view: View, questions: Sequence[DecisionQuestion]) -> DecisionRequest:
    return DecisionRequest((Message("user", view.state),), max_tokens=0, questions=tuple(questions))


def _read(request: DecisionRequest, reply: Reply | Failure) -> dict[str, Options | Failure]:
    """Return the probabilities of each question of a request, by its name, or its failure."""
    if isinstance(reply, Failure):
        return {each.name: reply for each in request.questions}
    return answers_in(reply.text, request.questions)


def _only(question: Question[Any] | Pack) -> Question[Any]:
    """Return the question itself. Raises TypeError for a pack, which the engine makes for other judges only."""
    if isinstance(question, Pack):
        raise TypeError("a decision model is asked bundles, not packs")
    return question


def _tokens(text: str) -> int:
    """Return the tokens of a text, estimated high."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    return -(-size // _BYTES_PER_TOKEN)


@lru_cache(maxsize=1_024)
def _tokens_of_wording(text: str, options: tuple[Option, ...]) -> int:
    texts = [text, *(text for option in options for text in (option.value, option.description))]
    return sum(map(_tokens, texts)) + _AROUND_QUESTION + _AROUND_OPTION * len(options)
