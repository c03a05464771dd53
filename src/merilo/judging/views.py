"""Views: the texts of a sample that a decision model reads, and bundles: the questions about one view.

A view depends on the sample alone, never on the metrics that ask, so an answer about it can be shared between runs.
There are two of a sample, so that a verdict on retrieval cannot see the response: its contexts, and its response. A
question about other texts has its own view.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from merilo.judging.digests import digest_of, digest_text, framed
from merilo.judging.questions import Pack, Texts

if TYPE_CHECKING:
    from collections.abc import Mapping


ALONE: Final = framed(b"", b"")
"""The position part of the key of a question that is neither in a pack nor about a view."""
_MARKERS: Final = (
    r"/?[|\uff5c]",  # ChatML, Llama 3, Phi, GLM, Command R, gpt-oss; DeepSeek with full-width bars
    r"/?(?:sop|eop|eoa|eoh|eod|eot|unk|pad|mask|think|role|image|turn[|]|_user|_bot|_end|tools?|tool_\w+)>",
    r"/?(?:start_of|end_of|beginning_of|extra_id|reserved|unused)_?\w*>",  # Gemma, Nemotron, Baichuan
    r"(?<=<)seed:\w+",  # Seed-OSS
    r"(?<=<)/?(?:s|bos|eos|decision)\b",  # Llama 2, decision models
    r"</?SYS>>",  # Llama 2
    r"/?(?:INST|SYSTEM_PROMPT|gMASK|AVAILABLE_TOOLS|TOOL_\w+|THINK|ARGS|IMG)\]",  # Llama 2, Mistral, GLM
    r"~[!b]|e~\[|<\]minimax\[>\[",  # MiniMax
)
MARKER: Final = re.compile(rf"[<\[\]](?={'|'.join(_MARKERS)})", re.IGNORECASE)
"""Matches the bracket before what divides a prompt of an open model or of a decision model."""


@dataclass(frozen=True, eq=False)
class View:
    """Texts that questions are about, as one JSON object with its parts in a fixed order.

    Contexts are `c1`, `c2`, ... and sentences `s1`, `s2`, ...; these names are in the wordings of questions.
    """

    user_input: str | None = None
    history: Texts = ()
    contexts: tuple[Texts, ...] = ()
    """The sentences of each context."""
    texts: Texts = ()
    """The text of each context."""
    response: Texts = ()
    """The sentences of the response."""
    answer: str | None = None
    """The text of the response."""
    named: Mapping[str, str] = field(default_factory=dict[str, str])
    """Texts of a user's own question, by name."""
    alone: bytes = b""
    """Identifies the only question about the view; empty if several may share a request."""

    @cached_property
    def state(self) -> str:
        """The view as compact JSON, without half surrogate pairs and without markers of prompts."""
        parts: dict[str, object] = dict(self.named)
        if self.user_input is not None:
            parts["user_input"] = self.user_input
        if self.history:
            parts["history"] = self.history
        if self.contexts:
            parts["contexts"] = {f"c{n}": _numbered(own) for n, own in enumerate(self.contexts, start=1)}
        if self.response:
            parts["response"] = _numbered(self.response)
        text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
        text = without_markers(text)  # no bracket of JSON itself is a marker
        return text if text.isascii() else text.encode("utf-8", "replace").decode()

    @cached_property
    def digest(self) -> bytes:
        """The digest of the state: part of the key of every answer about it."""
        return digest_of(digest_text(self.state), self.alone)

    @cached_property
    def key_part(self) -> bytes:
        """The framed part of the key of an answer that stands for the view."""
        return framed(self.digest, b"view")

    @cached_property
    def places(self) -> Mapping[Texts, int]:
        """The position of each context by its sentences; of equal contexts the first one."""
        return {own: place for place, own in reversed([*enumerate(self.contexts)])}


@dataclass(frozen=True, slots=True)
class Bundle(Pack):
    """Questions of any kinds about one view, each answered independently, asked in as few requests as possible."""

    view: View

    @property
    def kind(self) -> str:
        """`bundle`."""
        return "bundle"

    @property
    def content(self) -> bytes:
        """The digest of its view and of its questions in order."""
        return digest_of(b"bundle", self.view.digest, *(question.content for question in self.questions))


def without_markers(text: str) -> str:
    """Return a text without what divides the prompt of an open model, which no document must contain."""
    return MARKER.sub(r"\g<0> ", text)


def _numbered(sentences: Texts) -> dict[str, str]:
    return {f"s{n}": text for n, text in enumerate(sentences, start=1)}
