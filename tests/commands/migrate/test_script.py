"""A script is parsed, never run; its metrics, models and data become a command."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from merilo.commands.evaluate.options import Options
from merilo.commands.migrate.run import MigrationRequest, run_migration
from merilo.commands.migrate.script import read_script
from merilo.errors import DataError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from merilo.commands.migrate.script import ScriptFacts

RAGAS = """
import pandas as pd
from ragas import EvaluationDataset, evaluate
from ragas.metrics import AspectCritic, BleuScore, FactualCorrectness, answer_relevancy as relevancy, faithfulness
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

model = ChatOpenAI(model="gpt-4o-mini")
vectors = OpenAIEmbeddings(model="text-embedding-3-small")
data = EvaluationDataset.from_pandas(pd.read_csv("rag.csv"))
harm = AspectCritic(name="harm", definition="Does it harm?", llm=model)
evaluate(data, metrics=[faithfulness, relevancy, FactualCorrectness(mode="recall"), harm, BleuScore()])
"""


def facts(tmp_path: Path, text: str, release: str | None = None) -> ScriptFacts:
    path = tmp_path / "script.py"
    path.write_text(text, encoding="utf-8")
    return read_script(path, release)


def test_a_ragas_script(tmp_path: Path) -> None:
    """Metrics are found by instance, alias and class, with their arguments; models and the data file too."""
    found = facts(tmp_path, RAGAS)
    assert [each.match.definition for each in found.metrics] == [
        'ragas-0.4.3:aspect_critic(definition="Does it harm?")',
        "ragas-0.4.3:faithfulness",
        "ragas-0.4.3:answer_relevancy",
        "ragas-0.4.3:factual_correctness(mode=recall)",
        None,
    ]
    assert (found.source.releases, found.judge, found.embedder, found.data) == (
        "0.2 to 0.4",
        "openai:gpt-4o-mini",
        "openai:text-embedding-3-small",
        "rag.csv",
    )


def test_a_script_is_not_run(tmp_path: Path) -> None:
    """Code of the script has no effect, and its imports are not made."""
    before = {*sys.modules}
    facts(tmp_path, f"open({str(tmp_path / 'made')!r}, 'w')\nimport ragas\nraise SystemExit\n")
    assert not (tmp_path / "made").exists()
    assert "ragas" not in {*sys.modules} - before


@pytest.mark.parametrize(
    ("text", "release", "system", "evidence"),
    [
        ("# ragas==0.1.9\nimport ragas", None, "ragas-0.1.9", "ragas==0.1.9 in the script"),
        ("# ragas==0.1.9\nimport ragas", "0.3.2", "ragas-0.3.0", "--version"),
        ("from ragas.metrics.collections import Faithfulness", None, "ragas-0.4.3", "the imported names"),
        ("import ragas\nd = {'question': [], 'ground_truths': []}", None, "ragas-0.0.15", "the names of columns"),
        ("import ragas", None, "ragas-0.4.3", ""),
    ],
)
def test_the_release_is_from_the_best_evidence(
    tmp_path: Path, text: str, release: str | None, system: str, evidence: str
) -> None:
    """The user comes first, then a pinned requirement, imported names and names of columns."""
    found = facts(tmp_path, text, release)
    assert (found.source.system, found.evidence) == (system, evidence)


def test_a_module_alias_and_collections(tmp_path: Path) -> None:
    """A metric is found through an alias of its module; the collections have their own definitions."""
    text = "import ragas.metrics.collections as c\nm = [c.Faithfulness(llm=x), c.AnswerAccuracy(llm=x)]"
    found = facts(tmp_path, text)
    assert [each.match.definition for each in found.metrics] == [
        "ragas-0.4.3:collections.faithfulness",
        "ragas-0.4.3:collections.answer_accuracy",
    ]


def test_other_names_of_the_module_are_no_metrics(tmp_path: Path) -> None:
    """An enumeration imported next to the metrics is not listed; an argument that uses it is named as left out."""
    text = (
        "from ragas.metrics import DistanceMeasure, NonLLMStringSimilarity\n"
        "m = NonLLMStringSimilarity(distance_measure=DistanceMeasure.HAMMING)\n"
    )
    (found,) = facts(tmp_path, text).metrics
    assert (found.match.name, found.ignored) == ("NonLLMStringSimilarity", ("distance_measure",))


def test_a_deepeval_script(tmp_path: Path) -> None:
    """Arguments that the definition takes are carried over; the model is one of OpenAI; GEval has no definition."""
    text = (
        "from deepeval.metrics import FaithfulnessMetric, GEval\n"
        "a = FaithfulnessMetric(threshold=0.7, model='gpt-4.1', truths_extraction_limit=5, evaluation_template=T)\n"
        "b = GEval(name='Right', criteria='...')\n"
    )
    found = facts(tmp_path, text)
    assert found.metrics[0].match.definition == (
        "deepeval-4.3.1:faithfulness(threshold=0.7, truths_extraction_limit=5)"
    )
    assert found.metrics[0].ignored == ("evaluation_template",)
    assert found.metrics[1].match.definition is None
    assert found.judge == "openai:gpt-4.1"


def test_a_trulens_script(tmp_path: Path) -> None:
    """Feedback functions are methods of a provider object, found by their names."""
    text = (
        "from trulens.core import Feedback\nfrom trulens.providers.openai import OpenAI\n"
        "p = OpenAI(model_engine='gpt-4o')\n"
        "f = Feedback(p.groundedness_measure_with_cot_reasons)\ng = Feedback(p.context_relevance_with_cot_reasons)\n"
    )
    assert [each.match.definition for each in facts(tmp_path, text).metrics] == [
        "trulens:groundedness",
        "trulens:context_relevance_with_cot_reasons",
    ]


def test_a_notebook(tmp_path: Path) -> None:
    """The code cells of a notebook are read; a pinned release is found in its install command."""
    cells = [
        {"cell_type": "markdown", "source": ["from deepeval.metrics import BiasMetric"]},
        {"cell_type": "code", "source": ["!pip install ragas==0.1.9\n", "from ragas.metrics import faithfulness"]},
        {"cell_type": "code", "source": "metrics = [faithfulness]"},
    ]
    path = tmp_path / "work.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    found = read_script(path)
    assert [each.match.definition for each in found.metrics] == ["ragas-0.1.9:faithfulness"]
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(DataError, match="expected a notebook"):
        read_script(path)


def test_other_scripts_are_refused(tmp_path: Path) -> None:
    """A script without a known package, and one that does not parse, give an error with the file."""
    with pytest.raises(UsageError, match=r"script\.py imports none of ragas, DeepEval, TruLens"):
        facts(tmp_path, "import json")
    with pytest.raises(DataError, match=r"script\.py, line 2: .* was never closed\)"):
        facts(tmp_path, "import ragas\nx = (")
    with pytest.raises(DataError, match=r"script\.py: .* a syntax error \(nested too deeply\)"):
        facts(tmp_path, f"import ragas\nx = {'-' * 100_000}1")


def test_a_cell_that_is_not_python_is_left_out(tmp_path: Path) -> None:
    """Other languages and broken code in some cells of a notebook do not hide the metrics in the others."""
    cells = ["%%bash\nls -la | wc", "from ragas.metrics import faithfulness", "x = (", "await run([faithfulness])"]
    path = tmp_path / "work.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": each} for each in cells]}), encoding="utf-8")
    assert [each.match.definition for each in read_script(path).metrics] == ["ragas-0.4.3:faithfulness"]


@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("ChatOpenAI(model='m', base_url='http://localhost:8000/v1')", ["--base-url", "http://localhost:8000/v1"]),
        ("llm_factory('m', client=AsyncOpenAI(base_url='http://gpu/v1'))", ["--base-url", "http://gpu/v1"]),
        ("ChatOllama(model='m', base_url='http://gpu:11434')", ["--base-url", "http://gpu:11434"]),
        ("ChatOpenAI(model='m', base_url=address)", ["--base-url", "URL"]),
        ("ChatOpenAI(model='m', base_url=None)", []),
        ("OpenAIEmbeddings(model='m', base_url='http://gpu/v1')", ["--embedder-base-url", "http://gpu/v1"]),
    ],
)
async def test_the_address_of_a_server_is_carried_over(tmp_path: Path, model: str, options: list[str]) -> None:
    """A script that asks a server of its own does not become a command that sends the texts to OpenAI."""
    path = tmp_path / "script.py"
    path.write_text(f"from ragas.metrics import answer_relevancy as metric\nrun([metric], {model})", encoding="utf-8")
    found = await run_migration(path, MigrationRequest(), Options())
    words = found.commands["evaluate"].split()
    at = next((place for place, word in enumerate(words) if word.endswith("base-url")), len(words))
    assert words[at:] == options
    assert any("write it for URL" in note for note in found.notes) == ("URL" in options)
