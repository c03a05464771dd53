"""Test your own metrics: the contract that every metric must meet, and a judge with known answers."""

from merilo.judges.scripted import ScriptedJudge
from merilo.metrics.contract import ContractViolation, check_metric

__all__ = ["ContractViolation", "ScriptedJudge", "check_metric"]
