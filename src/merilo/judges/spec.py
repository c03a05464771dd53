"""Judges from a user's specification: `embedded`, `local:MODEL`, `openai:MODEL` and other providers, `scripted:FILE`,
a callable or a judge.

An embedder and a cross-encoder are judges that answer one kind of question, and are specified the same way.
"""

from __future__ import annotations

from difflib import get_close_matches
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, cast

from merilo.data.guesses import guesses
from merilo.errors import MeriloError, UsageError
from merilo.judges.routed import INSTRUMENTS, NamedSpec, Routing, Server, named_spec, routed_of, routing_in
from merilo.judging.kinds.measured import Embeddings, Similarities
from merilo.judging.registry import KINDS
from merilo.plugins import OWN_PACKAGE, Group, names_file, object_in_file, plugin, plugins

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from merilo.judges.base import Judge, JudgeLike
    from merilo.judging.questions import Question
    from merilo.providers.base import Provider
    from merilo.providers.openai import OpenAIProvider
    from merilo.providers.questions import AnswerWith

KNOWN_FORMS = tuple(
    "embedded local:MODEL openai:MODEL anthropic:MODEL azure:DEPLOYMENT bedrock:MODEL google:MODEL ollama:MODEL "
    "decisions:MODEL systemone:MODEL scripted:FILE".split()
)
_EMBEDDER_FORMS = ("embedded", "openai:MODEL", "azure:DEPLOYMENT", "scripted:FILE")
_LOCAL_FORMS = ("embedded", "local:MODEL", "scripted:FILE")


def judge_from(
    spec: JudgeLike, *, base_url: str | None = None, api_key_env: str | None = None, judged: str | None = None
) -> Judge:
    """Return the judge that a text names; return a judge unchanged, and wrap a callable in a judge.

    `base_url`, `api_key_env` and `judged` ("together", "context" or "each") apply to judges of a provider, such as
    `openai:`. With other judges they are an error. `api_key_env` is the name of the environment variable with the key.
    Raises UsageError.
    """
    if not isinstance(spec, str):
        return _from_object(spec)
    if names_file(spec.strip()):
        return _in_file(spec.strip())
    scheme, _, rest = spec.strip().partition(":")
    if scheme in _wires() and rest:
        return _llm(scheme, rest, _given(base_url, api_key_env), judged)
    _refuse_options(Server(base_url, api_key_env, judged)._asdict(), f"the judge {spec!r}")
    factory = plugin(Group.JUDGES, scheme)
    if factory is not None and (rest or scheme == "embedded"):
        found = _made(cast("Callable[[str], object]", factory), spec, rest)
        if not (hasattr(found, "answer") and hasattr(found, "answers")):
            raise UsageError(f"The plug-in for {spec!r} returned {type(found).__name__}, which is not a judge.")
        return cast("Judge", found)
    if spec.strip().endswith(".py"):
        raise UsageError(f"Name the judge in the file: {spec.strip()}:NAME.")
    raise UsageError(f"No judge {spec!r}. {_meant(spec.strip())}")


_NEAR: Final = 0.75


def _meant(spec: str) -> str:
    """Return advice for a text that names no judge: the form that is meant, otherwise all forms."""
    names = {each.partition(":")[0]: each for each in _forms()}
    scheme, _, model = spec.partition(":" if ":" in spec else "/")
    maker = next((makers[0] for start, makers in guesses("models").items() if spec.lower().startswith(start)), None)
    if maker is not None:
        return f"Did you mean {maker}:{model if model and maker != 'ollama' else spec}?"
    if near := get_close_matches(scheme.lower(), names, n=1, cutoff=_NEAR):
        return f"Did you mean {f'{near[0]}:{model}' if model else names[near[0]]}?"
    if model:
        return f"For a server with OpenAI's protocol: --judge openai:{model if ':' in spec else spec} --base-url URL."
    return f"Judges: {', '.join(names.values())}, or FILE.py:NAME."


def _made(factory: Callable[..., object], spec: str, *arguments: str, **options: object) -> object:
    """Return what the factory of a plug-in makes. Raises UsageError for whatever it raises."""
    try:
        return factory(*arguments, **options)
    except MeriloError:
        raise
    except Exception as error:  # a stranger's plug-in may raise anything
        raise UsageError(f"The plug-in for {spec!r} raised {type(error).__name__}: {error}.") from error


def _forms() -> list[str]:
    """Return the forms of a judge as text, with those that plug-ins add."""
    known = {form.partition(":")[0] for form in KNOWN_FORMS}
    models = [f"{each}:MODEL" for each in sorted(_wires() - known)]
    others = [f"{each.name}:..." for each in plugins(Group.JUDGES) if each.package != OWN_PACKAGE]
    return [*KNOWN_FORMS, *models, *others]


def _wires() -> frozenset[str]:
    """Return the providers, which are the judges and embedders with an address."""
    return frozenset(each.name for each in plugins(Group.PROVIDERS))


def _in_file(spec: str) -> Judge:
    """Return the judge that a Python file holds: a judge, a provider, an async function, or a class without arguments.

    Raises UsageError if the object is none of these, or if the class cannot be called without arguments.
    """
    found = object_in_file(spec)
    if isinstance(found, type):
        try:
            found = cast("object", found())
        except Exception as error:  # the constructor is the user's code and may raise anything
            raise UsageError(
                f"{spec} cannot be called without arguments ({type(error).__name__}: {error}). "
                "Create the object in the file, and name the object."
            ) from error
    return _from_object(cast("Judge | AnswerWith", found))


def judges_from(named: Sequence[NamedSpec]) -> dict[str, Judge]:
    """Return judges by role; an unnamed judge uses its own name.

    A name of kinds of question (`support=SPEC`) makes a route: all routes and the unnamed judge (`rest=SPEC`) become
    one judge. It, or the first judge if there is no route, also has the role `judge`.

    Raises UsageError for no judge or a repeated name.
    """
    if not named:
        raise UsageError(f"At least one judge is needed: {', '.join(KNOWN_FORMS)}.")
    judges: dict[str, Judge] = {}
    routing = routing_in(named)
    if (routed := _routed(routing)) is not None:
        judges[routed.name] = routed
    for each in routing.others:
        judge = _made_at_server(each)
        name = each.name or judge.name
        if name in judges:
            raise UsageError(f"Two judges are named {name!r}; rename one of them, as in 'second={name}'.")
        judges[name] = judge
    first = next(iter(judges.values()))
    if judges.setdefault("judge", first) is not first:
        raise UsageError("Only the first judge may be named 'judge'; put it first or rename it.")
    return judges


def at_server(named: Sequence[NamedSpec], server: Server) -> list[NamedSpec]:
    """Return the judges with this server at those of a provider that have none yet.

    A model that compares texts is at the server if it is of the judges' kind of provider, or if they have none.

    Raises UsageError if no judge is of a provider, and for an address or a key for several kinds of provider.
    """
    if server == Server():
        return [*named]
    kinds = wire_kinds(each.spec for each in named if each.name not in INSTRUMENTS)
    address = server._replace(judged=None)
    if not kinds:
        kinds = wire_kinds(each.spec for each in named)
        _refuse_options((server if not kinds else Server(judged=server.judged))._asdict(), "these judges")
    if len(kinds) > 1 and address != Server():
        given = [name for name, value in address._asdict().items() if value is not None]
        raise UsageError(
            f"{' and '.join(given)}: only for one kind of provider, but the judges use {', '.join(sorted(kinds))}. "
            "Set the environment variables of each kind instead."
        )
    return [
        each._replace(server=address if each.name in INSTRUMENTS else server)
        if each.server == Server() and (own := wire_kinds([each.spec])) and own <= kinds
        else each
        for each in named
    ]


def _made_at_server(named: NamedSpec) -> Judge:
    return judge_from(named.spec, **named.server._asdict())


def _routed(routing: Routing) -> Judge | None:
    """Return the judge that the routes make; None if there are none. Equal texts name one judge."""
    judges: dict[object, Judge] = {}

    def once(named: NamedSpec) -> Judge:
        same = (named.spec if isinstance(named.spec, str) else id(named.spec), named.server)
        if same not in judges:
            judges[same] = _made_at_server(named)
        return judges[same]

    if not routing.routes:
        return None if routing.rest is None else once(routing.rest)
    rest = None if routing.rest is None else once(routing.rest)
    return routed_of({KINDS[kind]: once(spec) for kind, spec in routing.routes.items()}, rest)


def wire_kinds(specs: Iterable[JudgeLike]) -> frozenset[str]:
    """Return the kinds of provider among judges and embedders that have an address: `openai`, `azure`, ..."""
    wires = _wires()
    named = (named_spec(spec).spec for spec in specs)
    kinds = (each.partition(":")[0].strip() for each in named if isinstance(each, str) and ":" in each)
    return frozenset(kind for kind in kinds if kind in wires)


def _refuse_options(options: dict[str, Any], whom: str) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        kinds = ", ".join(f"{name}:" for name in sorted(_wires()))
        raise UsageError(f"{', '.join(given)}: only for judges at an address ({kinds}), not for {whom}.")


def _from_object(spec: Judge | AnswerWith) -> Judge:
    if hasattr(spec, "answer") and hasattr(spec, "answers"):
        # Checked before `callable`: a judge may define `__call__` too.
        return cast("Judge", spec)  # a judge is recognised by its methods, like any protocol
    if hasattr(spec, "connect") and hasattr(spec, "fingerprint"):
        from merilo.judges.llm import LLMJudge

        return LLMJudge(cast("Provider", spec))
    if hasattr(spec, "invoke") or hasattr(spec, "ainvoke"):
        # Checked before `callable`: older chat models define `__call__` too.
        from merilo.judges.callables import judge_of_model

        return judge_of_model(spec)
    if callable(spec):
        from merilo.judges.callables import CallableJudge

        return CallableJudge(spec)
    raise UsageError(
        f"A judge must be a text ({', '.join(KNOWN_FORMS)}), a judge, a provider, a chat model or a callable, "
        f"got {type(spec).__name__}."
    )


def embedder_from(spec: JudgeLike, *, base_url: str | None = None, api_key_env: str | None = None) -> Judge:
    """Return the judge for `Embeddings`: `embedded`, `openai:MODEL`, `azure:DEPLOYMENT`, `scripted:FILE`, or an
    object.

    An object is a judge or a callable. `base_url` and `api_key_env` apply to `openai:` and `azure:`; with others they
    are an error. Raises UsageError.
    """
    scheme, _, model = spec.strip().partition(":") if isinstance(spec, str) else ("", "", "")
    if scheme in {"openai", "azure"} and model:
        from merilo.judges.llm import OpenAIEmbeddingsJudge
        from merilo.providers.openai import OpenAIEmbeddingsProvider

        endpoint = cast("OpenAIProvider", _provider(scheme, model, _given(base_url, api_key_env)))
        return OpenAIEmbeddingsJudge(OpenAIEmbeddingsProvider(endpoint))
    _refuse_options({"base_url": base_url, "api_key_env": api_key_env}, f"the embedder {_shown(spec)}")
    return _measuring(spec, Embeddings, "An embedder", _EMBEDDER_FORMS)


def cross_encoder_from(spec: JudgeLike) -> Judge:
    """Return the judge for `Similarities`: `embedded`, `local:MODEL`, `scripted:FILE`, a judge, or a callable.

    A callable compares texts, as `comparing` says; so does an object with `predict`, such as a CrossEncoder of
    sentence-transformers. Raises UsageError.
    """
    predict: object = getattr(spec, "predict", None)
    function = predict if callable(predict) else spec
    if callable(function) and not hasattr(spec, "answers"):
        from merilo.judges.callables import CallableJudge, comparing

        return CallableJudge(comparing(function), answers=frozenset({Similarities}))
    return _measuring(spec, Similarities, "A cross-encoder", _LOCAL_FORMS)


def _measuring(spec: JudgeLike, kind: type[Question[Any]], what: str, forms: tuple[str, ...]) -> Judge:
    known = {form.partition(":")[0] for form in forms}
    if isinstance(spec, str) and spec.strip().partition(":")[0] not in known and not names_file(spec.strip()):
        raise UsageError(f"{what} is one of {', '.join(forms)}, FILE.py:NAME; got {spec!r}.")
    if hasattr(spec, "embed_documents") and kind is Embeddings:
        from merilo.judges.callables import embedder_of_model

        return embedder_of_model(spec)
    if not isinstance(spec, str) and callable(spec) and not hasattr(spec, "answers"):
        from merilo.judges.callables import CallableJudge

        return CallableJudge(spec, answers=frozenset({kind}))
    judge = judge_from(spec)
    if kind not in judge.answers:
        raise UsageError(f"{judge.name} cannot answer questions of kind {kind.kind!r}. {what} must; choose another.")
    return judge


def _shown(spec: JudgeLike) -> str:
    return repr(spec) if isinstance(spec, str) else type(spec).__name__


def _llm(scheme: str, model: str, given: dict[str, str], judged: str | None) -> Judge:
    from merilo.judges.base import Packing
    from merilo.judges.decisions import DecisionJudge
    from merilo.judges.llm import LLMJudge
    from merilo.providers.decisions import DecisionEndpoint

    provider = _provider(scheme, model, given)
    if judged is not None and judged not in set(Packing):
        raise UsageError(f"judged is one of {', '.join(Packing)}; got {judged!r}.")
    if isinstance(provider, DecisionEndpoint):
        return DecisionJudge(provider) if judged is None else DecisionJudge(provider, Packing(judged))
    return LLMJudge(provider) if judged is None else LLMJudge(provider, judged=Packing(judged))


def _provider(scheme: str, model: str, given: dict[str, str]) -> Provider:
    """Return the provider of a model. Raises UsageError if a plug-in does not take an address or a key."""
    factory = cast("Callable[..., Provider]", plugin(Group.PROVIDERS, scheme))
    try:
        signature(factory).bind(model, **given)
    except TypeError as error:
        raise UsageError(f"The provider {scheme} cannot be used so: {error}.") from None
    found = _made(factory, f"{scheme}:{model}", model, **given)
    if not (hasattr(found, "connect") and hasattr(found, "fingerprint")):
        raise UsageError(
            f"The plug-in for '{scheme}:{model}' returned {type(found).__name__}, which is not a provider."
        )
    return cast("Provider", found)


def _given(base_url: str | None, api_key_env: str | None) -> dict[str, str]:
    """Return the address options that a user gave; the environment variables of the provider supply the rest."""
    options = {"base_url": base_url, "api_key_env": api_key_env}
    return {name: value for name, value in options.items() if value is not None}
