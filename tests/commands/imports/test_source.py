"""The release that a user states, and the definitions that match its metrics."""

from importlib.resources import files
from tomllib import loads

import pytest
from each_case import each_case

from merilo.commands.imports.run import matched, stated_source
from merilo.errors import UsageError
from merilo.metrics.registry import known_definition, systems

ALL_DEFINITIONS = {name for names in systems().values() for name in names}
FACTS = loads(files("merilo.commands.imports").joinpath("upstream.toml").read_text("utf-8"))


@each_case(
    ("stated", "system", "caveat"),
    [
        ("ragas-0.4.3", "ragas-0.4.3", ""),
        ("ragas==0.3.9", "ragas-0.3.0", ""),
        ("ragas 0.2.15", "ragas-0.3.0", "no definitions of ragas 0.2.15"),
        ("ragas-0.1.22", "ragas-0.1.22", ""),
        ("ragas-0.1.10", "ragas-0.1.22", ""),
        ("ragas-0.1.9", "ragas-0.1.9", ""),
        ("ragas v0.0.14", "ragas-0.0.13", ""),
        ("ragas-0.0.10", "ragas-0.0.12", "no definitions of ragas 0.0.10"),
        ("DeepEval 4.3.1", "deepeval-4.3.1", ""),
        ("deepeval", "deepeval-4.3.1", "not stated"),
        ("trulens", "trulens", ""),
    ],
)
def test_a_stated_release_names_its_definitions(stated: str, system: str, caveat: str) -> None:
    """A release is computed by the definitions of its line; a caveat names releases without own definitions."""
    found = stated_source(stated)
    assert found.system == system
    assert (caveat in found.caveat) if caveat else not found.caveat


def test_an_unknown_source_is_an_error() -> None:
    """An unknown package, and a package of many lines without a release, are refused."""
    for text in ("giskard-2", "ragas", ""):
        with pytest.raises(UsageError):
            stated_source(text)


def test_every_definition_is_found_by_its_own_name() -> None:
    """The name of each definition of the known packages, as its package writes it, matches that definition."""
    known = [name for name in sorted(ALL_DEFINITIONS) if name.startswith(("ragas-", "deepeval-", "trulens:"))]
    assert len(known) > 100
    for name in known:
        system, _, metric = name.partition(":")
        found = matched(metric, stated_source(system))
        wanted = known_definition(name)
        if wanted is not None and metric != "ragas_score":
            assert found.definition is not None, name
            assert found.definition.partition("(")[0] == name


@each_case(
    ("source", "name", "definition"),
    [
        ("ragas-0.4.3", "factual_correctness(mode=precision)", "ragas-0.4.3:factual_correctness(mode=precision)"),
        ("ragas-0.4.3", "noise_sensitivity(mode=relevant)", "ragas-0.4.3:noise_sensitivity"),
        ("ragas-0.4.3", "ResponseRelevancy", "ragas-0.4.3:answer_relevancy"),
        ("ragas-0.4.3", "NonLLMContextRecall", "ragas-0.4.3:non_llm_context_recall"),
        ("ragas-0.0.12", "context_ relevancy", "ragas-0.0.12:context_relevancy"),
        ("ragas-0.1.22", "conciseness", "ragas-0.1.22:aspect_critique(aspect=conciseness)"),
        ("deepeval-4.3.1", "Contextual Relevancy", "deepeval-4.3.1:contextual_relevancy"),
        ("trulens", "Answer Relevance", "trulens:relevance"),
    ],
)
def test_other_names_match_too(source: str, name: str, definition: str) -> None:
    """Columns with modes, names of classes, former names and display names match their definitions."""
    assert matched(name, stated_source(source)).definition == definition


def test_what_has_no_definition_has_a_reason() -> None:
    """A metric without a definition has the reason, and the release that has one, if any."""
    source = stated_source("ragas-0.1.22")
    assert matched("bleu_score", source).reason == "merilo has no BLEU score"
    assert "ragas-0.1.9:context_relevancy is of another release" in matched("context_relevancy", source).reason
    assert "own criteria" in matched("Correctness [GEval]", stated_source("deepeval-4.3.1")).reason


def test_the_table_names_only_what_exists() -> None:
    """Each system in the table has definitions, and each name leads to one of its package."""
    there = systems()
    for package, facts in FACTS.items():
        for row in [*facts.get("releases", ())]:
            assert row["system"] in there
        for target in facts.get("names", {}).values():
            assert any(known_definition(f"{s}:{target}") for s in there if s.startswith(package)), target
