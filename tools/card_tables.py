"""The tables of the embedded judge's card, each made from the results of one step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from card_text import NONE, amount, figure, foreign, percent, plain, signed, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from card_results import Results

    JSON = Mapping[str, Any]  # Any: JSON

CALLED: Final = {
    "chunk_relevance": "relevance of a context",
    "sentence_relevance": "evidence sentences",
    "sufficiency": "sufficiency",
    "groundedness": "support of responses",
    "nli": "support of single statements",
    "answer_relevance": "addresses the question",
}
_CUTS: Final = {
    ("people", "chunk_relevance"): "relevance of a context: answers (2) or on topic (1)",
    ("people", "chunk_relevance>=1"): "relevance of a context: 1 or 2 against 0",
    ("all", "chunk_relevance"): "relevance of a context: 1 or 2 against 0",
    ("all", "chunk_relevance=2"): "relevance of a context: 2 against 0 and 1",
}
ALONE: Final = "sentence_relevance_alone"
EVIDENCE: Final = "sentence_relevance"
_FIGURES: Final = ("kappa", "balanced_accuracy", "auroc")
LIMIT: Final = 0.05
"""The target for the largest calibration error."""


def called(kind: str, reading: str) -> str:
    """Return a reading in words."""
    return _CUTS.get((kind, reading)) or CALLED.get(reading, reading)


def readings(results: Results, kind: str, step: str = "") -> Iterator[tuple[str, JSON, JSON]]:
    """Yield name, figures over all sources, and figures by source; for evidence sentences, one per probability
    threshold.

    By default the figures are those on records that no part of the model was fitted on.
    """
    step = step or results.fair
    for reading in results[step]["tasks"][kind]:
        if reading != ALONE:
            found = results["evidence" if (step, reading) == ("check", EVIDENCE) else step]
            yield reading, found["tasks"][kind][reading], found[kind][reading]


def macro(results: Results, kind: str, step: str = "") -> str:
    """Return the means over sources, one row per reading."""
    rows = []
    for reading, own, _ in readings(results, kind, step):
        cells = [figure(own["macro"][name]) for name in _FIGURES]
        rows.append([called(kind, reading), *cells, str(len(own["sources"])), f"{own['pooled']['records']:,}"])
    return table(["task", "κ", "balanced accuracy", "AUROC", "sources", "records"], rows)


def by_source(results: Results, kind: str) -> str:
    """Return every source of every reading."""
    rows = []
    for reading, _, sources in readings(results, kind):
        for source, own in sources.items():
            name = source if own["in_macro"] else f"{source} *"
            cells = [figure(own[each]) for each in _FIGURES]
            rates = f"{plain(own['sensitivity'])} / {plain(own['specificity'])}"
            rows.append([called(kind, reading), name, f"{own['n']:,}", f"{own['yes']:,}", *cells, rates])
    head = ["task", "source", "n", "yes", "κ", "balanced accuracy", "AUROC", "right of yes / of no"]
    return table(head, rows, left=2)


def by_language(results: Results) -> str:
    """Return every language of a translated set, including synthetic records."""
    rows = []
    for reading, own in results["languages"]["tasks"]["all"].items():
        if reading == ALONE:
            continue
        for language, each in own["languages"].items():
            cells = [figure(each[name]) for name in _FIGURES]
            rows.append([called("all", reading), language, f"{each['n']:,}", *cells])
    return table(["task", "language", "n", "κ", "balanced accuracy", "AUROC"], rows, left=2)


def against(results: Results, kind: str) -> str:
    """Return the judge compared with the best simple score, one row per reading; `kind`: people, all, groups or
    mined.
    """
    found = results["mined"]["all"] if kind == "mined" else results["baselines"][kind]
    names = [*results["baselines"]["baselines"]]
    judge = results["baselines"]["judge"]["name"]
    rows = []
    for reading, own in found.items():
        if own["mean"][judge]["value"] is None or "difference" not in own:
            continue
        title = f"{called('all', reading)}; mined negatives" if kind == "mined" else called(kind, reading)
        title += ", each alone" if reading == ALONE else ""
        cells = [plain(own["mean"].get(name), 3) for name in names]
        told = own["difference"]
        rows.append([title, figure(own["mean"][judge], 3), *cells, f"{signed(told)} to {told['best']}", standing(told)])
    if not rows:
        return "No source of these has enough of both labels."
    return table(["task", "embedded", *names, "difference to the best", ""], rows)


def standing(difference: JSON) -> str:
    """Return the interpretation of a paired difference."""
    if difference["value"] is None or difference["interval"] is None:
        return "cannot tell"
    low, high = difference["interval"]
    return "better" if low > 0 else "below" if high < 0 else "level"


def calibration(results: Results) -> str:
    """Return the calibration error of each task, pooled over sources, with that of a perfect judge."""
    rows = []
    for kind in ("people", "all"):
        for reading, own, _ in readings(results, kind):
            each = own["calibration"]
            if each is not None:
                told = [figure(each, 3), plain({"value": each["perfect"]}, 3), plain({"value": each["perfect_95"]}, 3)]
                holds = NONE if each.get("remark") else "yes" if each["value"] <= LIMIT else "no"
                rows.append([called(kind, reading), _KINDS[kind], f"{each['n']:,}", *told, holds])
    head = ["task", "labels", "n", "error", "a perfect judge: mean", "95 % of them below", f"at most {LIMIT}"]
    return table(head, rows, left=2)


_KINDS: Final = {"people": "people", "all": "all"}


def fitted(results: Results) -> str:
    """Return the figures in the model's file, on records that its curves were not fitted on."""
    rows = []
    for task, own in results["fitted"]["agreement"].items():
        for kind in ("people", "all"):
            each = own.get(kind)
            if each:
                kappa = figure({"value": each["kappa"], "interval": each["interval"]})
                others = [f"{each[name]:.2f}" for name in ("balanced_accuracy", "auroc", "calibration_error")]
                rows.append([f"`{task}`", _KINDS[kind], kappa, *others, f"{each['n']:,}"])
    return table(["curve", "labels", "κ", "balanced accuracy", "AUROC", "calibration error", "n"], rows, left=2)


def probes(results: Results) -> str:
    """Return every probe with its effect."""
    rows = []
    for name, each in results["probe"]["probes"].items():
        interval = each["interval"] and [percent(end) for end in each["interval"]]
        told = percent(each["value"]) + (f" [{interval[0]}, {interval[1]}]" if interval else "")
        rows.append(
            [f"`{name}`", each["summary"], f"{each['counted']:,}", told, percent(each["upper"]), percent(each["limit"])]
        )
    return table(["probe", "what is changed", "pairs", "effect", "95 % limit from above", "passes up to"], rows, left=2)


def speed(results: Results) -> str:
    """Return every figure of speed with its limit."""
    figures = [each for step in ("speed", "encoder") if step in results.steps for each in results[step]["figures"]]
    rows = [[each["name"], amount(each["measured"]), _limit(each)] for each in figures]
    return table(["figure, one core", "measured", "aimed at"], rows)


def _limit(each: JSON) -> str:
    if each["limit"] is None:
        return NONE
    return f"at {'most' if each['sign'] == '<=' else 'least'} {each['limit']:g}"


def examples(results: Results) -> str:
    """Return the most confident wrong verdicts, task by task."""
    parts: list[str] = []
    for each in results["surest"]["examples"]:
        heading = f"### {CALLED[each['task']].capitalize()}"
        if heading not in parts:
            parts.append(heading)
        labelled = "the label, made by rule," if each["by_rule"] else "people"
        lines = [f"**The judge says {each['judge']} (sure to {each['sureness']:.2f}), {labelled} {each['people']}.**"]
        lines += [f"{name}: {foreign(each[name])}" for name in ("query", "response", "context") if each[name]]
        lines.append(f"Source: {foreign(each['source'])}, record {foreign(each['id'])}, {foreign(each['licence'])}.")
        parts.append("\n".join(f"> {line}<br>" for line in lines).removesuffix("<br>"))
    return "\n\n".join(parts)


def steps(results: Results) -> str:
    """Return the command of each step with its duration."""
    rows = [[f"`{name}`", f"`{each['command']}`", f"{each['seconds']:,} s"] for name, each in results.steps.items()]
    return table(["step", "command", "took"], rows, left=2)
