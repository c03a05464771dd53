"""All commands under one name; a command's module imports what it works with only when it works."""

from __future__ import annotations

from typing import Annotated

import typer

from merilo.commands.agree import cli as judge_agree
from merilo.commands.cache import cli as cache
from merilo.commands.calibrate import cli as calibrate
from merilo.commands.check import cli as judge_check
from merilo.commands.compare import cli as compare
from merilo.commands.demo import cli as demo
from merilo.commands.evaluate import cli as run
from merilo.commands.gate import cli as gate
from merilo.commands.imports import cli as import_
from merilo.commands.judge import cli as judge
from merilo.commands.label import cli as label
from merilo.commands.lineage import cli as lineage
from merilo.commands.metrics import cli as metrics
from merilo.commands.plan import cli as plan
from merilo.commands.probe import cli as judge_probe
from merilo.commands.replay import cli as replay
from merilo.commands.show import cli as show
from merilo.commands.verify import cli as verify

_EPILOG = "Start with: merilo demo"

app = typer.Typer(
    name="merilo",
    help="Evaluate retrieval-augmented generation (RAG): did retrieval find the right text, and is the answer "
    "supported by it?",
    epilog=_EPILOG,
    add_completion=False,
    invoke_without_command=True,
    rich_markup_mode=None,  # plain help: rich would cost a third of the start
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_judges = typer.Typer(help="Try a judge.", invoke_without_command=True, rich_markup_mode=None)
_cache = typer.Typer(help="Look at the verdicts that runs share.", invoke_without_command=True, rich_markup_mode=None)


def _print_version(wanted: bool) -> None:
    if wanted:
        from merilo.version import version

        typer.echo(f"merilo {version()}")
        raise typer.Exit


def _help_alone(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.callback()
def _root(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Without a command the help is shown."""
    _help_alone(context)


@_judges.callback()
def _judge(context: typer.Context) -> None:
    """Without a command the help is shown."""
    _help_alone(context)


@_cache.callback()
def _verdicts(context: typer.Context) -> None:
    """Without a command the help is shown."""
    _help_alone(context)


app.command("run", short_help="Evaluate a data set.", help=run.HELP, epilog=run.EXAMPLES)(run.run)
app.command("plan", short_help="Estimate the requests and cost of a run.", help=plan.HELP, epilog=plan.EXAMPLES)(
    plan.plan
)
app.command("show", short_help="Show a run or one of its samples.", help=show.HELP, epilog=show.EXAMPLES)(show.show)
app.command("compare", short_help="Compare runs of the same questions.", help=compare.HELP, epilog=compare.EXAMPLES)(
    compare.compare
)
app.command("gate", short_help="Check a run: pass, fail or cannot tell.", help=gate.HELP, epilog=gate.EXAMPLES)(
    gate.gate
)
app.command("label", short_help="Sample items for people to label.", help=label.HELP, epilog=label.EXAMPLES)(
    label.label
)
app.command("calibrate", short_help="Correct means with human labels.", help=calibrate.HELP, epilog=calibrate.EXAMPLES)(
    calibrate.calibrate
)
app.command("import", short_help="Import scores of another tool.", help=import_.HELP, epilog=import_.EXAMPLES)(
    import_.import_
)
app.command("replay", short_help="Recompute scores without a call.", help=replay.HELP, epilog=replay.EXAMPLES)(
    replay.replay
)
app.command("verify", short_help="Check that a run is as merilo wrote it.", help=verify.HELP, epilog=verify.EXAMPLES)(
    verify.verify
)
app.command("metrics", short_help="List the metrics or explain one.", help=metrics.HELP, epilog=metrics.EXAMPLES)(
    metrics.metrics
)
app.command(
    "lineage",
    short_help="Compare the definitions of one name.",
    help=lineage.HELP,
    epilog=lineage.EXAMPLES,
)(lineage.lineage)
_judges.command(
    "agree",
    short_help="Compare judges with each other.",
    help=judge_agree.HELP,
    epilog=judge_agree.EXAMPLES,
)(judge_agree.agree)
_judges.command(
    "check",
    short_help="Compare a judge with human labels.",
    help=judge_check.HELP,
    epilog=judge_check.EXAMPLES,
)(judge_check.check)
_judges.command(
    "probe",
    short_help="Test the robustness of a judge.",
    help=judge_probe.HELP,
    epilog=judge_probe.EXAMPLES,
)(judge_probe.probe)
_judges.command("test", short_help="Ask a judge one question of each kind.", help=judge.HELP, epilog=judge.EXAMPLES)(
    judge.try_judge
)
app.add_typer(_judges, name="judge")
_cache.command(
    "info", short_help="Show the location and content of the cache.", help=cache.INFO_HELP, epilog=cache.INFO_EXAMPLES
)(cache.info)
_cache.command(
    "prune", short_help="Remove verdicts from the cache.", help=cache.PRUNE_HELP, epilog=cache.PRUNE_EXAMPLES
)(cache.prune)
app.add_typer(_cache, name="cache")
app.command("demo", short_help="Show an evaluation of real data.", help=demo.HELP)(demo.demo)
