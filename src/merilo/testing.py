"""Test your own metrics and your own system: contracts, a judge with known answers, gates and samples as test cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from merilo.judges.scripted import ScriptedJudge
from merilo.metrics.contract import ContractViolation, check_metric

if TYPE_CHECKING:
    from os import PathLike

    from _pytest.mark import ParameterSet

    from merilo.commands.gate.result import Gates
    from merilo.data.load import Records
    from merilo.shown import Run

__all__ = ["ContractViolation", "ScriptedJudge", "assert_gate", "check_metric", "samples"]


def assert_gate(
    run: Run | str | PathLike[str],
    *,
    samples: int = 3,
    **arguments: Any,  # Any: the keyword arguments of merilo.gate, which checks them
) -> Gates:
    """Check a run as `merilo.gate` does, with its keyword arguments, and return the decisions if they pass.

    Args:
        run: a finished run or its directory.
        samples: the number of deciding samples to show for each gate that did not pass.
        arguments: `minimums`, `baseline`, `max_drop`, `suite` and the other arguments of `merilo.gate`.

    Raises:
        AssertionError: a gate failed or cannot tell. The message has the decisions, and the samples that decide each
            of them with the evidence for their scores.
        UsageError, DataError, RunError: as `merilo.gate`.
    """
    __tracebackhide__ = True  # pytest then shows the line of the test
    from merilo.commands.gate.text import deciding_text
    from merilo.shown import gate

    found = gate(run, **arguments)
    if found.passed:
        return found
    texts = [(each.metric, deciding_text(found, each, count=samples).rstrip()) for each in found.obstacles]
    evidence = [f"Samples that decide {metric}:\n{text}" for metric, text in texts if text]
    raise AssertionError("\n\n".join([str(found), *evidence]))


def samples(data: str | PathLike[str] | Records, *, mapping: dict[str, str] | None = None) -> list[ParameterSet]:
    """Return the samples of a data set as values for `pytest.mark.parametrize`, with their ids as test ids.

    Args:
        data: a path or an iterable of records, as in `evaluate`.
        mapping: column → field of the sample, as in `evaluate`.

    Raises:
        DataError: the data cannot be read, or a record is invalid.
    """
    from merilo.pytest_plugin import parameters

    return parameters(data, mapping)
