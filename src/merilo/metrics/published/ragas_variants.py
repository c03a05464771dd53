"""Rows for the releases of ragas: one definition, as each release computes it."""

from __future__ import annotations

from dataclasses import replace

from merilo.metrics.variants import D, camel_case, variant


def ragas_variant(
    base: D, name: str, note: str = "", class_name: str = "", /, *, relatives: tuple[str, ...] = (), **changes: object
) -> D:
    """Return a definition as one release of ragas has it; its name begins with `ragas-RELEASE:`.

    `note`: the rest of its docstring, after the release. `relatives`: more metrics of the same release for its card.
    """
    system, _, metric = name.partition(":")
    release = system.removeprefix("ragas-")
    card = replace(
        base.card,
        relatives=(*base.card.relatives, *(f"{system}:{each}" for each in relatives)),
        sources=tuple(f"ragas {release}, {file}" for file in base.card.sources),
        family=system,
    )
    return variant(
        base,
        name,
        f"{base.__name__} as in ragas {release}{note}.",
        class_name or camel_case(metric) + release.rpartition(".")[2],
        card=card,
        **changes,
    )
