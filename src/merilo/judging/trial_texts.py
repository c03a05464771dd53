"""The texts of the questions that try out a judge."""

from __future__ import annotations

from typing import Final

USER_INPUT: Final = "When was the Eiffel Tower completed?"
RESPONSE: Final = "The Eiffel Tower was completed in 1889."
SENTENCES: Final = (
    "The Eiffel Tower is a lattice tower in Paris.",
    "It was completed in 1889 for a world fair.",
    "Several million people visit it every year.",
)
CONTEXT: Final = " ".join(SENTENCES)
OTHER: Final = "The Colosseum is in Rome."
"""A sentence that does not help to answer the user input."""
