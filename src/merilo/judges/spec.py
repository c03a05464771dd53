"""Judges from what a user wrote: `embedded`, `openai:MODEL`, `scripted:FILE`, a callable or a judge."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, cast

from merilo.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.judges.base import Judge
    from merilo.providers.callables import AnswerWith

JudgeLike: TypeAlias = "str | Judge | AnswerWith"
"""What a user may give as a judge."""

KNOWN_FORMS = ("embedded", "openai:MODEL", "scripted:FILE")
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
) -> dict[str, Judge]:
    """Judges by role, from `SPEC`, `NAME=SPEC`, judges and callables; an unnamed one is its own name.

    The first also has the role `judge`. `base_url`, `api_key_env` and `judged` hold for those of the form
    `openai:MODEL`. Raises UsageError when there is none, a name stands twice, or an option fits none of them.
    """
    if not specs:
        raise UsageError(f"At least one judge is needed: {', '.join(KNOWN_FORMS)}.")
    options = {"base_url": base_url, "api_key_env": api_key_env, "judged": judged}
    judges: dict[str, Judge] = {}
    for given in specs:
        name, spec = _split(given)
        judge = judge_from(spec, **(options if _is_wire(spec) else {}))
        name = name or judge.name
        if name in judges:
            raise UsageError(f"Two judges are called {name!r}; name them apart, as in 'second={name}'.")
        judges[name] = judge
    if not any(_is_wire(_split(given)[1]) for given in specs):
        _refuse_options(options, "these judges")
    first = next(iter(judges.values()))
    if judges.setdefault("judge", first) is not first:
        raise UsageError("Only the first judge may be called 'judge'; put it first or give it another name.")
    return judges


def _split(given: JudgeLike) -> tuple[str | None, JudgeLike]:
    if not isinstance(given, str):
        return None, given
    named = _NAMED.fullmatch(given.strip())
    return (named[1], named[2]) if named else (None, given.strip())


def _is_wire(spec: JudgeLike) -> bool:
    return isinstance(spec, str) and spec.startswith("openai:")


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


def _openai(model: str, *, base_url: str | None, api_key_env: str | None, judged: str | None) -> Judge:
    from merilo.judges.llm import Judged, LLMJudge
    from merilo.providers.openai import OpenAIProvider

    provider = OpenAIProvider(model)
    if base_url is not None:
        provider = replace(provider, base_url=base_url)
    if api_key_env is not None:
        provider = replace(provider, api_key_env=api_key_env)
    if judged is None:
        return LLMJudge(provider)
    if judged not in set(Judged):
        raise UsageError(f"judged is one of {', '.join(Judged)}; got {judged!r}.")
    return LLMJudge(provider, judged=Judged(judged))
