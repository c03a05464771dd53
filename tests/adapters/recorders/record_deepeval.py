"""Record a test run with DeepEval's own classes. Argument: a folder. Needs deepeval."""

import json
import sys
from pathlib import Path

from deepeval.test_run.api import LLMApiTestCase, MetricData


def main() -> None:
    """Write `deepeval.json` as DeepEval writes its latest test run: models under their aliases."""
    metric = MetricData(name="Faithfulness", threshold=0.5, success=True, score=1.0, reason="All claims agree.")
    failed = MetricData(name="Bias", threshold=0.5, success=False, score=None, error="no reply")
    case = LLMApiTestCase(
        name="tower",
        input="When was the tower completed?",
        actualOutput="In 1889.",
        expectedOutput="1889",
        retrievalContext=["The tower was completed in 1889."],
        context=["Completed: 1889."],
        metricsData=[metric, failed],
        success=False,
        order=0,
    )
    cases = [case.model_dump(by_alias=True, exclude_none=True, mode="json")]
    run = {"testRunData": {"testCases": cases, "conversationalTestCases": [], "metricsScores": []}}
    Path(sys.argv[1], "deepeval.json").write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")


main()
