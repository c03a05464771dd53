"""A reader with narrower layers: the inner units that matter least are left out, and training goes on from there.

A unit counts as much as what it gives to its layer varies: the deviation of its value over the tokens of some batches
times the length of its column. What a left-out unit gives on average goes into the bias.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from encoder.bert import Reader, Size

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import Tensor

    from encoder.bert import ReaderLayer, Side


def pruned(reader: Reader, batches: Iterable[tuple[Side, Side]], inner: int) -> Reader:
    """Return a copy of a reader with this number of inner units in each layer, chosen by their effect on some
    batches.
    """
    values = _inner_values(reader, batches)
    state = {name: value.clone() for name, value in reader.state_dict().items()}
    for number, (layer, seen) in enumerate(zip(reader.layers, values, strict=True)):
        state |= {f"layers.{number}.{name}": value for name, value in _narrowed(layer, seen, inner).items()}
    found = Reader(len(reader.layers), Size(inner=inner))
    found.load_state_dict(state)
    return found


def _narrowed(layer: ReaderLayer, seen: Tensor, inner: int) -> dict[str, Tensor]:
    """Return the changes of a layer; `seen`: the values of its inner units, tokens × units."""
    columns, mean = layer.down.weight.detach(), seen.mean(0)
    kept = (seen.std(0) * columns.norm(dim=0)).topk(inner).indices.sort().values
    left_out = torch.ones(len(mean), dtype=torch.bool).index_fill(0, kept, value=False)
    return {
        "up.weight": layer.up.weight.detach()[kept],
        "up.bias": layer.up.bias.detach()[kept],
        "down.weight": columns[:, kept],
        "down.bias": layer.down.bias.detach() + columns[:, left_out] @ mean[left_out],
    }


def _inner_values(reader: Reader, batches: Iterable[tuple[Side, Side]]) -> list[Tensor]:
    """Return for each layer the values of its inner units, tokens × units, in the short texts of some batches."""
    found: list[list[Tensor]] = [[] for _ in reader.layers]
    hooks = [
        layer.up.register_forward_hook(lambda _, __, output, held=held: held.append(output))
        for layer, held in zip(reader.layers, found, strict=True)
    ]
    masks: list[Tensor] = []
    reader.eval()
    with torch.no_grad():
        for short, long in batches:
            reader(short, long)
            masks.append(short.mask)
    for hook in hooks:
        hook.remove()
    return [
        torch.cat([torch.nn.functional.gelu(values[mask]) for values, mask in zip(held, masks, strict=True)])
        for held in found
    ]
