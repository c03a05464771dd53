"""The options of an evaluation checked, and the judges that they name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from merilo.engine.installed.worded import INSTALLED, OWN
from merilo.engine.repeated import MOST_DRAWS
from merilo.errors import UsageError
from merilo.judges.route_specs import named_specs
from merilo.judges.spec import cross_encoder_from, embedder_from, judges_from, wire_kinds
from merilo.judges.splitter import SplitterJudge
from merilo.rendering.event_log import check_log_path
from merilo.runs.shards import Shard

if TYPE_CHECKING:
    from merilo.commands.evaluate.options import Options
    from merilo.judges.base import Judge


def checked(options: Options) -> Options:
    """Return the options with a single metric as a list and the suite of `until_decided` read from its file.

    Raises UsageError for options that cannot be used, and DataError for a suite that cannot be read.
    """
    if isinstance(options.metrics, str):
        options = replace(options, metrics=[options.metrics])
    if options.metrics is not None and not options.metrics:
        raise UsageError("No metric given. Leave metrics out to compute all that the data and the judge support.")
    if not 1 <= options.draws <= MOST_DRAWS:
        raise UsageError(f"draws must be from 1 to {MOST_DRAWS}, got {options.draws} (--draws).")
    if options.prompts not in (OWN, INSTALLED):
        raise UsageError(f"prompts must be {OWN} or {INSTALLED}, got {options.prompts!r} (--prompts).")
    _ = options.request_limits, options.budget
    if options.log_json is not None:
        check_log_path(options.log_json)
    if options.until_decided is not None or options.baseline is not None:
        from merilo.commands.evaluate.stopping import with_stop

        options = with_stop(options)
    return options


def check_shard(options: Options) -> None:
    """Raise UsageError for a shard that is not one, or for options whose result depends on samples of other shards."""
    if options.shard is None:
        return
    Shard.parse(options.shard)
    if options.until_decided is not None:
        raise UsageError("A run that stops early takes samples in random order from all data. Leave out --shard.")


def judges_of(options: Options) -> dict[str, Judge]:
    """Return the judge of each role. The roles embedder, similarity and splitter are always present."""
    address = {"base_url": options.base_url, "api_key_env": options.api_key_env}
    own = {"base_url": options.embedder_base_url, "api_key_env": options.embedder_api_key_env}
    wire = wire_kinds([options.embedder])
    shares = (
        bool(wire)
        and options.embedder_base_url is None
        and wire_kinds(each.spec for each in named_specs(options.judge)) <= wire
    )
    if shares:
        own = {name: value if value is not None else address[name] for name, value in own.items()}
    judges = judges_from(options.judge, **address, judged=options.judged, address_used=shares)
    instruments: dict[str, Judge] = {
        "embedder": embedder_from(options.embedder, **own),
        "similarity": cross_encoder_from(options.cross_encoder),
        "splitter": SplitterJudge(),
    }
    return instruments | judges
