"""Judges from what a user wrote: `embedded`, `openai:MODEL`, `scripted:FILE`, a callable or a judge.

An embedder and a cross-encoder are judges that answer one kind of question, and are named alike.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from merilo.errors import UsageError
from merilo.judging.questions import Embeddings, Question, Similarities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.judges.base import Judge
    from merilo.providers.callables import AnswerWith
    from merilo.providers.openai import OpenAIProvider

JudgeLike: TypeAlias = "str | Judge | AnswerWith"
"""What a user may give as a judge."""

KNOWN_FORMS = ("embedded", "openai:MODEL", "scripted:FILE")
_LOCAL_FORMS = ("embedded", "scripted:FILE")
_NAMED = re.compile(r"([A-Za-z_][\w-]*)=(.+)", re.DOTALL)


def judge_from(
    spec: JudgeLike, *, base_url: str | None = None, api_key_env: str | None = None, judged: str | None = None
) -> Judge:
    """The judge that a text names; a judge is itself, a callable that takes a question becomes one.

    `base_url`, `api_key_env` (the name of the environment variable that holds the key) and `judged`
    ("each" or "together") are for `openai:`; elsewhere they are an error. Raises UsageError.
    """
    if not isinstance(spec, str):
        return _from_object(spec)
    scheme, _, rest = spec.strip().partition(":")
    if scheme == "openai" and rest:
        return _openai(rest, base_url=base_url, api_key_env=api_key_env, judged=judged)
    _refuse_options({"base_url": base_url, "api_key_env": api_key_env, "judged": judged}, f"the judge {spec!r}")
    if spec.strip() == "embedded":
        from merilo.judges.embedded import EmbeddedJudge

        return EmbeddedJudge()
    if scheme == "scripted" and rest:
        from merilo.judges.scripted import ScriptedJudge

        return ScriptedJudge.from_file(rest)
    raise UsageError(f"A judge is one of {', '.join(KNOWN_FORMS)}; got {spec!r}.")


def judges_from(
    specs: Sequence[JudgeLike],
    *,
    base_url: str | None = None,
    api_key_env: str | None = None,
    judged: str | None = None,
    address_used: bool = False,
) -> dict[str, Judge]:
    """Judges by role, from `SPEC`, `NAME=SPEC`, judges and callables; an unnamed one is its own name.

    The first also has the role `judge`. `base_url`, `api_key_env` and `judged` hold for those of the form
    `openai:MODEL`. Raises UsageError when there is none, a name stands twice, or an option fits none of them;
    with `address_used` the address and the key are for somebody else too.
    """
    if not specs:
        raise UsageError(f"At least one judge is needed: {', '.join(KNOWN_FORMS)}.")
    options = {"base_url": base_url, "api_key_env": api_key_env, "judged": judged}
    judges: dict[str, Judge] = {}
    for given in specs:
        name, spec = _split(given)
        judge = judge_from(spec, **(options if is_wire(spec) else {}))
        name = name or judge.name
        if name in judges:
            raise UsageError(f"Two judges are called {name!r}; name them apart, as in 'second={name}'.")
        judges[name] = judge
    if not any(is_wire(_split(given)[1]) for given in specs):
        _refuse_options({"judged": judged} if address_used else options, "these judges")
    first = next(iter(judges.values()))
    if judges.setdefault("judge", first) is not first:
        raise UsageError("Only the first judge may be called 'judge'; put it first or give it another name.")
    return judges


def _split(given: JudgeLike) -> tuple[str | None, JudgeLike]:
    if not isinstance(given, str):
        return None, given
    named = _NAMED.fullmatch(given.strip())
    return (named[1], named[2]) if named else (None, given.strip())


def is_wire(spec: JudgeLike) -> bool:
    """True for a judge or embedder that is reached at an address: `openai:MODEL`."""
    return isinstance(spec, str) and spec.strip().startswith("openai:")


def _refuse_options(options: dict[str, str | None], whom: str) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise UsageError(f"{', '.join(given)} can be given for 'openai:MODEL' only, not for {whom}.")


def _from_object(spec: Judge | AnswerWith) -> Judge:
    if hasattr(spec, "answer") and hasattr(spec, "answers"):
        return cast("Judge", spec)  # a judge is told by its methods, as any protocol
    if callable(spec):
        from merilo.judges.callables import CallableJudge

        return CallableJudge(spec)
    raise UsageError(
        f"A judge is a text ({', '.join(KNOWN_FORMS)}), a judge or a callable, but got {type(spec).__name__}."
    )


def embedder_from(spec: JudgeLike, *, base_url: str | None = None, api_key_env: str | None = None) -> Judge:
    """Who answers `Embeddings`: `embedded`, `openai:MODEL`, `scripted:FILE`, a judge or a callable.

    `base_url` and `api_key_env` are for `openai:`; elsewhere they are an error. Raises UsageError.
    """
    if isinstance(spec, str) and is_wire(spec):
        from merilo.judges.embeddings import OpenAIEmbeddingsJudge
        from merilo.providers.openai_embeddings import OpenAIEmbeddingsProvider

        endpoint = _endpoint(spec.strip().partition(":")[2], base_url=base_url, api_key_env=api_key_env)
        return OpenAIEmbeddingsJudge(OpenAIEmbeddingsProvider(endpoint))
    _refuse_options({"base_url": base_url, "api_key_env": api_key_env}, f"the embedder {_shown(spec)}")
    return _measuring(spec, Embeddings, "An embedder", KNOWN_FORMS)


def cross_encoder_from(spec: JudgeLike) -> Judge:
    """Who answers `Similarities`: `embedded`, `scripted:FILE`, a judge or a callable. Raises UsageError."""
    return _measuring(spec, Similarities, "A cross-encoder", _LOCAL_FORMS)


def _measuring(spec: JudgeLike, kind: type[Question[Any]], what: str, forms: tuple[str, ...]) -> Judge:
    if isinstance(spec, str) and spec.strip().partition(":")[0] not in {form.partition(":")[0] for form in forms}:
        raise UsageError(f"{what} is one of {', '.join(forms)}; got {spec!r}.")
    if not isinstance(spec, str) and callable(spec) and not hasattr(spec, "answers"):
        from merilo.judges.callables import CallableJudge

        return CallableJudge(spec, answers=frozenset({kind}))
    judge = judge_from(spec)
    if kind not in judge.answers:
        raise UsageError(f"{what} answers questions of kind {kind.kind!r}; {judge.name} does not: name another.")
    return judge


def _shown(spec: JudgeLike) -> str:
    return repr(spec) if isinstance(spec, str) else type(spec).__name__


def _openai(model: str, *, base_url: str | None, api_key_env: str | None, judged: str | None) -> Judge:
    from merilo.judges.llm import Judged, LLMJudge

    provider = _endpoint(model, base_url=base_url, api_key_env=api_key_env)
    if judged is None:
        return LLMJudge(provider)
    if judged not in set(Judged):
        raise UsageError(f"judged is one of {', '.join(Judged)}; got {judged!r}.")
    return LLMJudge(provider, judged=Judged(judged))


def _endpoint(model: str, *, base_url: str | None, api_key_env: str | None) -> OpenAIProvider:
    from merilo.providers.openai import OpenAIProvider

    provider = OpenAIProvider(model)
    if base_url is not None:
        provider = replace(provider, base_url=base_url)
    if api_key_env is not None:
        provider = replace(provider, api_key_env=api_key_env)
    return provider
