"""Detection of servers that read only a part of a long prompt and report no error.

Ollama, for example, removes the beginning of a prompt that exceeds its context length, by default 4,096 tokens. The
only trace is the number of prompt tokens in the reply: it is too low for the length of the prompt. The check is a
heuristic; design/providers.md has its error rates.
"""

from __future__ import annotations

import re
from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from merilo.errors import Permanent, ProviderDown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from merilo.errors import ProviderError
    from merilo.providers.base import Reply, Request

PLAUSIBLE_CHARACTERS_PER_TOKEN: Final = 8
"""Maximum mean characters per token of a plausible token count; six tokenizers stayed below 6.1 in 15 languages."""
_MIN_FRACTION: Final = 0.6
"""Fraction of the expected tokens below which a prompt counts as truncated."""
_MIN_TOKENS: Final = 256
"""Smallest count that is checked: no server truncates to fewer tokens, but some report a constant such as 0 or 1."""
_LEARNING: Final = 8
"""Number of prompts of similar characters from which the tokens per character are learnt."""
_MAX_LEARNT: Final = 64
_SAME_COUNTS: Final = 3
"""Number of replies with the same count that show a limit, if their prompts differ in length."""
_GROWTH: Final = 1.3
"""Ratio of the lengths of two prompts that cannot have the same number of tokens."""
_MAX_TRUNCATED: Final = 3
"""Number of truncated prompts at which the run stops."""
_RUN: Final = re.compile(r"(.)\1{3,15}", re.DOTALL)
"""Repetitions of one character that count as one, such as blanks in a table. The longest such tokens in o200k and
cl100k have 128 characters, which are eight of these."""
INCREASE_CONTEXT: Final = (
    "Increase the server's context length (vLLM: --max-model-len, llama.cpp: -c, LM Studio: in the settings of the "
    "model), or use --judge ollama:MODEL if the server is Ollama."
)


def without_runs(text: str) -> str:
    """Shorten runs of one character. A model reads a run in a few tokens, but it may write it token by token."""
    return _RUN.sub(r"\1", text)


class _Prompt(NamedTuple):
    characters: int
    tokens: int


class PromptCheck:
    """Compares the token counts of one connection's replies with the lengths of the prompts."""

    def __init__(self, shown_url: str, *, advice: str = INCREASE_CONTEXT) -> None:
        """`advice` tells the user what to do about truncated prompts."""
        self._shown_url = shown_url
        self._advice = advice
        self._learnt: dict[int, list[_Prompt]] = defaultdict(list)
        """The first prompts by density, see `_density`."""
        self._ratios: dict[int, float] = {}
        """Tokens per character by density, as far as learnt."""
        self._same: dict[int, tuple[int, int]] = {}
        """Token count → number of replies and length of the shortest prompt."""
        self._largest = 0
        """Largest token count of a prompt that was read whole."""
        self._truncated = 0

    def error(self, request: Request, reply: Reply) -> ProviderError | None:
        """Return the error of a reply whose prompt was truncated by the server; None for all other replies.

        It is ProviderDown from the third truncated prompt on, which stops the run.
        """
        tokens = reply.usage.input_tokens
        if tokens is None or tokens < _MIN_TOKENS or hasattr(request, "questions"):  # their tokens count, too
            return None
        expected = self._expected_if_truncated([message.text for message in request.messages], tokens)
        if expected is None:
            self._largest = max(self._largest, tokens)
            return None
        self._truncated += 1
        message = (
            f"{self._shown_url} read only {tokens:,} of about {expected:,} tokens of a prompt and reported no error. "
            f"{self._advice}"
        )
        if self._truncated >= _MAX_TRUNCATED:
            return ProviderDown(f"{message} The run stops after {_MAX_TRUNCATED} such replies.")
        return Permanent(message, received_bytes=sum(len(text.encode("utf-8", "replace")) for text in reply.texts))

    def _expected_if_truncated(self, texts: Sequence[str], tokens: int) -> int | None:
        """Return the expected tokens of the prompt if its count is too low; None if it is plausible."""
        characters = sum(map(len, texts))
        seen, shortest = self._same.get(tokens, (0, characters))
        self._same[tokens] = (seen + 1, min(shortest, characters))
        density = _density(texts, characters)
        per_character = self._ratios.get(density, 2.0 / PLAUSIBLE_CHARACTERS_PER_TOKEN)
        least = _MIN_FRACTION * per_character if density in self._ratios else 1.0 / PLAUSIBLE_CHARACTERS_PER_TOKEN
        group = self._learnt[density]
        if len(group) < _MAX_LEARNT:
            group.append(_Prompt(characters, tokens))
            if len(group) >= _LEARNING:  # the shortest quarter is the least likely to be truncated
                shortest_ones = sorted(group)[: max(2, len(group) // 4)]
                self._ratios[density] = median(each.tokens / each.characters for each in shortest_ones)
        expected = round(characters * per_character)
        if expected <= self._largest:  # the server has read longer prompts
            return None
        if seen + 1 >= _SAME_COUNTS and characters > _GROWTH * shortest:
            return expected
        if tokens >= least * characters:
            return None
        # Long runs of one character are few tokens.
        characters = sum(len(without_runs(text)) for text in texts)
        expected = round(characters * per_character)
        return expected if tokens < least * characters and expected > self._largest else None


def _density(texts: Sequence[str], characters: int) -> int:
    """Return four times the mean bytes per character, rounded: in one script, tokens per character are alike."""
    if all(map(str.isascii, texts)):
        return 4 if characters else 0
    size = sum([len(text.encode("utf-8", "replace")) for text in texts])
    return round(4 * size / characters)
