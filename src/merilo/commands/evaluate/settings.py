"""The options of an evaluation checked, and the judges that they name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from merilo.commands.evaluate.options import Model
from merilo.commands.keywords import part_from
from merilo.commands.option import metric_texts
from merilo.data import check
from merilo.engine.repeated import MOST_DRAWS
from merilo.errors import UsageError
from merilo.judges.routed import INSTRUMENTS, REST, NamedSpec, Server, check_kinds, named_spec
from merilo.judges.spec import at_server, cross_encoder_from, embedder_from, judges_from
from merilo.judges.splitter import SplitterJudge
from merilo.runs.shards import Shard

if TYPE_CHECKING:
    from merilo.commands.evaluate.options import Judges, Options
    from merilo.judges.base import Judge, JudgeLike

OWN: Final = "merilo"
INSTALLED: Final = "installed"
"""The values of the option `prompts`."""


def checked(options: Options) -> Options:
    """Return the options with a single metric as a list. Raises UsageError for options that cannot be used."""
    if isinstance(options.metrics, str):
        options = replace(options, metrics=metric_texts([options.metrics]))
    if options.metrics is not None and not options.metrics:
        raise UsageError("No metric given. Leave metrics out to compute all that the data and the judge support.")
    if not 1 <= options.draws <= MOST_DRAWS:
        raise UsageError(f"draws must be from 1 to {MOST_DRAWS}, got {options.draws} (--draws).")
    uses_installed_prompts(options)
    _ = options.limits.of_requests, options.limits.budget
    return options


def check_shard(options: Options) -> None:
    """Raise UsageError for a shard that is not one."""
    if options.reading.shard is not None:
        Shard.parse(options.reading.shard)


def named_judges(given: Judges) -> list[NamedSpec]:
    """Return the judges that a user wrote: one, a `Model` or a dict of one, a list, or a mapping by kind of question.

    Raises UsageError for a key of the mapping that is not a kind, and for a server that no judge has.
    """
    if check.is_record(given):
        model = part_from(Model, given) if "spec" in given else None
        return [_judge_of_kind(*each) for each in given.items()] if model is None else _judges_at(model)
    if isinstance(given, Model):
        return _judges_at(given)
    if check.is_ordered(given):
        return [named for each in given for named in named_judges(cast("Judges", each))]
    return [named_spec(cast("JudgeLike", given))]


def _judges_at(model: Model) -> list[NamedSpec]:
    server = Server(model.base_url, model.api_key_env, model.judged)
    found = at_server(named_judges(model.spec), server)
    return [each._replace(prompts=model.prompts) for each in found] if model.prompts != OWN else found


def _judge_of_kind(name: str, given: object) -> NamedSpec:
    if name != REST:
        check_kinds(name)
    if isinstance(given, str):
        return NamedSpec(name, given.strip())
    found = named_judges(cast("Judges", given))
    if len(found) != 1:
        raise UsageError(f"The judge of {name!r} is one judge; got {len(found)}.")
    return found[0]._replace(name=name)


def judges_of(options: Options) -> dict[str, Judge]:
    """Return the judge of each role. The roles embedder, similarity and splitter are always present."""
    named = named_judges(options.judge)
    instruments = {kind: NamedSpec(None, "embedded") for kind in INSTRUMENTS}
    for each in named:
        if each.name in INSTRUMENTS:
            if instruments[each.name].name is not None:
                raise UsageError(f"Two models for '{each.name}' questions. Name each kind once.")
            instruments[each.name] = each
    judges = [each for each in named if each.name not in INSTRUMENTS]
    embedder, similarity = instruments.values()
    return {
        "embedder": embedder_from(
            embedder.spec, base_url=embedder.server.base_url, api_key_env=embedder.server.api_key_env
        ),
        "similarity": cross_encoder_from(similarity.spec),
        "splitter": SplitterJudge(),
        **judges_from(judges if judges or not named else [NamedSpec(None, "embedded")]),
    }


def uses_installed_prompts(options: Options) -> bool:
    """Return True if published metrics send the prompts of their package. Raises UsageError for other prompts."""
    found = {each.prompts for each in named_judges(options.judge)}
    for each in found - {OWN, INSTALLED}:
        raise UsageError(f"prompts must be {OWN} or {INSTALLED}, got {each!r} (--prompts).")
    return INSTALLED in found
