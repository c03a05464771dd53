"""The MiniLM encoder (a BERT with 6 layers of 384) and the reader of pairs on top of it, in plain torch.

Every text is read alone by the frozen encoder, so it is encoded once whatever it is held against. The reader of pairs
takes the token vectors of two texts as they stand after the encoder's lower layers and reads the shorter one on with
the longer in view, with copies of the upper layers that are trained. Weights are read from a safetensors file whose
SHA-256 is checked first; nothing is fetched.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

if TYPE_CHECKING:
    from pathlib import Path

MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""all-MiniLM-L6-v2, revision 1110a243; two unrelated packages contain the same bytes."""

HEADS = {"grade": 2, "sentence": 1, "sufficient": 1, "supported": 3, "addresses": 1}
"""Task → logits: grade at least 1 and 2; yes for the others, except supported: supported, contradicted, not stated."""


@dataclass(frozen=True)
class Size:
    """The shape of an encoder."""

    vocabulary: int = 30_522
    positions: int = 512
    hidden: int = 384
    layers: int = 6
    attention_heads: int = 12
    inner: int = 1_536


class Layer(nn.Module):
    """Attention and feed-forward, each with a residual and a norm after it."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.heads = size.attention_heads
        self.query = nn.Linear(size.hidden, size.hidden)
        self.key = nn.Linear(size.hidden, size.hidden)
        self.value = nn.Linear(size.hidden, size.hidden)
        self.out = nn.Linear(size.hidden, size.hidden)
        self.out_norm = nn.LayerNorm(size.hidden, eps=1e-12)
        self.up = nn.Linear(size.hidden, size.inner)
        self.down = nn.Linear(size.inner, size.hidden)
        self.down_norm = nn.LayerNorm(size.hidden, eps=1e-12)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Apply the layer. `hidden`: batch × tokens × 384; `mask`: batch × 1 × 1 × tokens, true for each token."""
        batch, tokens, width = hidden.shape
        split = (batch, tokens, self.heads, width // self.heads)
        query, key, value = (f(hidden).view(split).transpose(1, 2) for f in (self.query, self.key, self.value))
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        mixed = mixed.transpose(1, 2).reshape(batch, tokens, width)
        hidden = self.out_norm(hidden + self.out(mixed))
        return self.down_norm(hidden + self.down(nn.functional.gelu(self.up(hidden))))


class Encoder(nn.Module):
    """An encoder from token ids to token vectors."""

    def __init__(self, size: Size | None = None) -> None:
        super().__init__()
        size = size or Size()
        self.words = nn.Embedding(size.vocabulary, size.hidden)
        self.places = nn.Embedding(size.positions, size.hidden)
        self.segments = nn.Embedding(2, size.hidden)
        self.norm = nn.LayerNorm(size.hidden, eps=1e-12)
        self.layers = nn.ModuleList(Layer(size) for _ in range(size.layers))

    def forward(self, ids: Tensor, mask: Tensor, *, layers: int | None = None) -> Tensor:
        """Return the token vectors after this number of layers, by default all: batch × tokens × 384.

        `ids` and `mask` (true for each token): batch × tokens.
        """
        places = torch.arange(ids.shape[1], device=ids.device)
        hidden = self.norm(self.words(ids) + self.places(places)[None] + self.segments.weight[0])
        for layer in self.layers[:layers]:
            hidden = layer(hidden, mask[:, None, None, :])
        return hidden

    @classmethod
    def read(cls, path: Path, *, digest: str = MINILM_SHA256) -> Encoder:
        """Return the encoder with the weights in a file. Raises ValueError if the file's SHA-256 differs."""
        found = sha256(path.read_bytes()).hexdigest()
        if found != digest:
            raise ValueError(f"{path} has the SHA-256 {found}, expected {digest}; take the file from another source.")
        encoder = cls()
        encoder.load_state_dict({_own_name(name): value for name, value in load_file(path).items() if _kept(name)})
        return encoder


class ReaderLayer(Layer):
    """A layer of the encoder whose tokens also attend to another text, whose own vectors do not change."""

    def read(self, hidden: Tensor, other: Tensor, mask: Tensor) -> Tensor:
        """Apply the layer. `hidden`: batch × short × 384; `other`: batch × long × 384; `mask`: batch × 1 × 1 × both."""
        batch, short, width = hidden.shape
        seen = torch.cat([hidden, other], 1)
        shape = (batch, -1, self.heads, width // self.heads)
        query = self.query(hidden).view(shape).transpose(1, 2)
        key, value = (f(seen).view(shape).transpose(1, 2) for f in (self.key, self.value))
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        mixed = mixed.transpose(1, 2).reshape(batch, short, width)
        hidden = self.out_norm(hidden + self.out(mixed))
        return self.down_norm(hidden + self.down(nn.functional.gelu(self.up(hidden))))


FEATURES = 2
"""Features of each token of the short text: cosine with the nearest token of the long one, and its rarity."""


class Reader(nn.Module):
    """A reader of a short and a long text, from the token vectors of the encoder's lower layers for each alone.

    Only the short text's vectors are updated, so a pair costs little more than its short text, whatever the long one
    is. Returns the logits of all heads, in the order of HEADS.
    """

    def __init__(self, layers: int, size: Size | None = None, *, dropout: float = 0.1) -> None:
        super().__init__()
        size = size or Size()
        width = size.hidden
        self.sides = nn.Embedding(2, width)
        self.shared = nn.Embedding(2, width)
        self.features = nn.Linear(FEATURES, width)
        for weight in (self.sides.weight, self.shared.weight, self.features.weight):
            nn.init.normal_(weight, std=0.02)
        nn.init.zeros_(self.features.bias)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(ReaderLayer(size) for _ in range(layers))
        self.mix = nn.Linear(2 * width, width)
        self.dropout = nn.Dropout(dropout)
        self.heads = nn.Linear(width, sum(HEADS.values()))

    def forward(self, short: Side, long: Side) -> Tensor:
        """Return batch × 8 logits."""
        near = _nearest(short, long)
        features = self.features(torch.stack([near, short.rarity], -1))
        hidden = self.norm(short.vectors + self.sides.weight[0] + self.shared(short.shared) + features)
        other = self.norm(long.vectors + self.sides.weight[1] + self.shared(long.shared))
        mask = torch.cat([short.mask, long.mask], 1)[:, None, None, :]
        for layer in self.layers:
            hidden = layer.read(hidden, other, mask)
        mixed = torch.tanh(self.mix(torch.cat([hidden[:, 0], _mean(hidden, short.mask)], -1)))
        return self.heads(self.dropout(mixed))

    @classmethod
    def over(cls, encoder: Encoder, *, lower: int) -> Reader:
        """Return a reader that begins with copies of the encoder's layers above the lower ones."""
        upper = encoder.layers[lower:]
        reader = cls(len(upper))
        reader.layers.load_state_dict(upper.state_dict())
        return reader


class Side(NamedTuple):
    """One text of each pair of a batch; all batch × tokens, the vectors × 384."""

    vectors: Tensor
    shared: Tensor
    """1 if the other text has the same token too."""
    rarity: Tensor
    mask: Tensor
    """True for each token."""


def _nearest(short: Side, long: Side) -> Tensor:
    """Return the cosine of each token of the short text with the nearest one of the long; batch × short."""
    normed = (nn.functional.normalize(side.vectors, dim=-1) for side in (short, long))
    near = torch.matmul(next(normed), next(normed).transpose(1, 2))
    return near.masked_fill(~long.mask[:, None, :], -1.0).amax(-1)


def _mean(hidden: Tensor, held: Tensor) -> Tensor:
    weights = held[:, :, None].to(hidden.dtype)
    return (hidden * weights).sum(1) / weights.sum(1)


def head_span(task: str) -> slice:
    """Return the positions of a task's logits."""
    start = 0
    for name, width in HEADS.items():
        if name == task:
            return slice(start, start + width)
        start += width
    raise KeyError(task)


_NAMES = {
    "embeddings.word_embeddings": "words",
    "embeddings.position_embeddings": "places",
    "embeddings.token_type_embeddings": "segments",
    "embeddings.LayerNorm": "norm",
    "encoder.layer": "layers",
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.output.dense": "out",
    "attention.output.LayerNorm": "out_norm",
    "intermediate.dense": "up",
    "output.dense": "down",
    "output.LayerNorm": "down_norm",
}


def _own_name(name: str) -> str:
    name = name.removeprefix("bert.")
    for theirs, ours in _NAMES.items():
        name = name.replace(theirs, ours)
    return name


def _kept(name: str) -> bool:
    return "pooler" not in name and "position_ids" not in name
