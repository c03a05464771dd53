"""A name of another package that merilo does not have says what to use instead, however it is imported."""

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from each_case import each_case
from merilo.compat.missing import advice_table, plain

import merilo.compat.axion
import merilo.compat.deepeval
import merilo.compat.ragas
import merilo.compat.spring_ai_ragas  # noqa: F401

MODULES = sorted(name for name in sys.modules if re.match(r"merilo\.compat\.(ragas|deepeval|axion|spring)", name))


@each_case(
    ("name", "told"),
    [
        ("ragas.testset", "merilo does not have ragas' testset: load your own questions"),
        ("ragas.v0_1.testset.generator", "merilo does not have ragas' testset: load your own"),
        ("ragas.metrics._bleu", r"merilo does not have ragas' _bleu; docs/from-ragas\.md lists"),
        ("ragas.v0_3.metrics.collections", "collections: use merilo.compat.ragas.metrics.collections"),
        ("deepeval.metrics.faithfulness.template", "DeepEval's template: the wording of the prompts is merilo's own"),
        ("trulens.core", "merilo does not have a replacement of trulens: it has the published metrics"),
        ("nothing", "merilo does not have a replacement of nothing; docs/reference/metrics.md lists"),
    ],
)
def test_a_missing_module_says_what_to_use(name: str, told: str) -> None:
    """The ImportError names the module and what to use, or the page that lists what there is."""
    with pytest.raises(ImportError, match=told):
        import_module(f"merilo.compat.{name}")


@each_case(
    ("module", "name", "told"),
    [
        ("ragas", "HumanMessage", "merilo does not have ragas' HumanMessage: give each turn as a SingleTurnSample."),
        (
            "ragas.metrics",
            "Faithfullness",
            "merilo.compat.ragas.metrics has no Faithfullness. Did you mean Faithfulness?",
        ),
        ("ragas.metrics", "evaluate", "has no evaluate: import it from merilo.compat.ragas."),
        ("ragas.v0_0.metrics", "NoiseSensitivity", "import it from merilo.compat.ragas.metrics."),
        ("deepeval.metrics", "HallucinationMetric", "use FaithfulnessMetric with the context as retrieval_context"),
        ("axion.metrics", "Zzz", r"merilo does not have axion's Zzz; docs/axion\.md lists what it has"),
        ("spring_ai_ragas", "FaithfulnessConfig", "name the metric, such as metrics='spring-ai-ragas:faithfulness'"),
    ],
)
def test_a_missing_name_says_what_to_use(module: str, name: str, told: str) -> None:
    """An import from the module and an attribute of it give the same sentence."""
    with pytest.raises(ImportError, match=told) as imported:
        exec(f"from merilo.compat.{module} import {name}")  # noqa: S102  the import line of a script
    with pytest.raises(AttributeError) as read:
        getattr(import_module(f"merilo.compat.{module}"), name)
    assert str(read.value) == str(imported.value)


@each_case("module", MODULES)
def test_no_module_gives_a_bare_error(module: str) -> None:
    """Every module answers for any name and any sub-module, and says nothing for Python's own names."""
    found: Any = sys.modules[module]
    with pytest.raises(ImportError, match="merilo"):
        import_module(f"{module}.zzz")
    with pytest.raises(ImportError, match=r"docs/.*\.md lists what it has"):
        exec(f"from {module} import Zzz")  # noqa: S102
    assert not hasattr(found, "Zzz")
    assert not hasattr(found, "__wrapped__")


@each_case("package", ["ragas", "deepeval", "axion", "spring_ai_ragas"])
def test_no_name_is_both_there_and_missing(package: str) -> None:
    """No advice is for a name that the newest modules of the package have, and each page that it names exists."""
    row = advice_table()[package]
    modules = [
        name for name in MODULES if name.startswith(f"merilo.compat.{package}") and not re.search(r"v0_\d", name)
    ]
    names = {name for module in modules for name in getattr(sys.modules[module], "__all__", ())}
    assert not {plain(name) for name in names} & row["advice"].keys()
    root = Path(__file__).parents[2]
    pages = re.findall(r"docs/\S+\.md", " ".join([row["page"], *row["advice"].values()]))
    assert all((root / page).is_file() for page in pages)


@each_case(
    ("module", "names"),
    [
        ("ragas.metrics._factual_correctness", "FactualCorrectness"),
        ("ragas.metrics._string", "DistanceMeasure, NonLLMStringSimilarity"),
        ("ragas.metrics.collections.faithfulness", "Faithfulness"),
        ("ragas.v0_1.metrics.critique", "SUPPORTED_ASPECTS, harmfulness"),
        ("ragas.v0_0.metrics.context_relevance", "ContextRelevancy, context_relevancy"),
        ("ragas.evaluation", "evaluate, EvaluationResult"),
        ("deepeval.metrics.faithfulness.faithfulness", "FaithfulnessMetric"),
        ("deepeval.models.base_model", "DeepEvalBaseLLM"),
        ("deepeval.evaluate.configs", "AsyncConfig, DisplayConfig"),
        ("axion.metrics", "EvaluationMode"),
        ("axion.metrics.internals.engine", "EvaluationMode"),
    ],
)
def test_files_of_the_other_package_are_importable(module: str, names: str) -> None:
    """A script may import a name from the file that defines it there."""
    exec(f"import merilo.compat.{module}\nfrom merilo.compat.{module} import {names}")  # noqa: S102
