"""The graphs that merilo runs, in ONNX: layers with 8-bit weights that become floats when a graph is loaded.

A weight is stored as whole numbers with a scale for each 32 inputs of each output, and the graph begins with `Cast`
and `Mul` on constants, which every onnxruntime computes once, at load. (`DequantizeLinear` is left as it is by default,
and some releases fuse it into 8-bit arithmetic.) Tokens stand in rows; there is no batch and no padding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray
    from onnx import NodeProto, ValueInfoProto

    Arrays: TypeAlias = Mapping[str, NDArray[np.float32]]

OPSET: Final = 20
"""The first with an exact `Gelu`; onnxruntime from 1.17 on."""
GROUP: Final = 32
"""Inputs that share a scale."""
_IR_VERSION: Final = 9
_ENCODER_EPSILON: Final = 1e-12
_READER_EPSILON: Final = 1e-5
_LEAST_LENGTH: Final = 1e-9


def in_8_bits(weight: NDArray[np.float32], group: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Outputs × inputs as whole numbers in [-127, 127], and outputs × groups scales.

    A group is so many inputs of an output side by side; all of them where it does not divide them.
    """
    outputs, inputs = weight.shape
    size = inputs if inputs % group else group
    parts = weight.reshape(outputs, inputs // size, size)
    scales = np.maximum(np.abs(parts).max(axis=2), np.float32(1e-12)) / np.float32(127)
    return np.round(parts / scales[:, :, None]).astype(np.int8).reshape(outputs, inputs), scales.astype(np.float32)


def floats_again(whole: NDArray[np.int8], scales: NDArray[np.float32]) -> NDArray[np.float32]:
    """The weight as it is computed with."""
    parts = whole.reshape(len(whole), scales.shape[1], -1) * scales[:, :, None]
    return parts.reshape(whole.shape)


def lower_graph(state: Arrays, layers: int, heads: int) -> bytes:
    """`embedded` (words and places added up) to `lower`: both tokens × width."""
    graph = _Building(_width(state), heads)
    hidden = graph.norm("embedded", state, "norm", _ENCODER_EPSILON)
    for number in range(layers):
        hidden = graph.layer(hidden, state, f"layers.{number}")
    width = _width(state)
    return graph.done([_floats("embedded", "tokens", width)], hidden, _floats("lower", "tokens", width))


def upper_graph(state: Arrays, first: int, layers: int, heads: int) -> bytes:
    """`lower` to `pooled`: the mean of the last layer's vectors, of length 1; 1 × width."""
    graph = _Building(_width(state), heads)
    hidden = "lower"
    for number in range(first, layers):
        hidden = graph.layer(hidden, state, f"layers.{number}")
    mean = graph.op("ReduceMean", hidden, graph.whole("rows", [0]), keepdims=1)
    length = graph.op("ReduceL2", mean, graph.whole("columns", [1]), keepdims=1)
    width = _width(state)
    return graph.done([_floats("lower", "tokens", width)], graph.op("Div", mean, length), _floats("pooled", 1, width))


def open_graph(state: Arrays, layers: int, heads: int) -> bytes:
    """`long` to `opened`: what keys and values of all layers owe to the long text alone; tokens × 2 widths a layer."""
    graph = _Building(_width(state), heads)
    placed = graph.op("Add", "long", graph.constant("side", state["sides.weight"][1]))
    opened = graph.op("MatMul", placed, graph.op("Mul", graph.seen_by(state, layers), _column(graph, state)))
    width = _width(state)
    return graph.done([_floats("long", "tokens", width)], opened, _floats("opened", "tokens", 2 * layers * width))


def reader_graph(state: Arrays, layers: int, heads: int) -> bytes:
    """`short`, `long`, `opened`, whether each token is `…_shared`, and `features` if any, to `logits`: 1 × logits."""
    graph = _Building(_width(state), heads)
    marks = [graph.constant(f"marks {side}", state["sides.weight"][side] + state["shared.weight"]) for side in (0, 1)]
    short = graph.op("Add", "short", graph.op("Gather", marks[0], "short_shared", axis=0))
    features = state["features.weight"].shape[1] if "features.weight" in state else 0
    if features:
        short = graph.op("Add", short, graph.linear("features", state, "features"))
    hidden = graph.norm(short, state, "norm", _READER_EPSILON)
    others = _looked_at(graph, state, layers, marks[1])
    for number in range(layers):
        hidden = graph.layer(hidden, state, f"layers.{number}", others=others[2 * number : 2 * number + 2])
    zero, one, rows = graph.whole("zero", [0]), graph.whole("one", [1]), graph.whole("rows", [0])
    first = graph.op("Slice", hidden, zero, one, zero)
    both = graph.op("Concat", first, graph.op("ReduceMean", hidden, rows, keepdims=1), axis=1)
    mixed = graph.op("Tanh", graph.linear(both, state, "mix"))
    logits = graph.linear(mixed, state, "heads")
    width = _width(state)
    inputs = [
        _floats("short", "short_tokens", width),
        _floats("long", "long_tokens", width),
        _floats("opened", "long_tokens", 2 * layers * width),
        _marks("short_shared", "short_tokens"),
        _marks("long_shared", "long_tokens"),
    ]
    if features:
        inputs.append(_floats("features", "short_tokens", features))
    return graph.done(inputs, logits, _floats("logits", 1, len(state["heads.bias"])))


def _looked_at(graph: _Building, state: Arrays, layers: int, marks: str) -> list[str]:
    """Keys and values of the long text, layer by layer.

    They are (norm(x) * g + c) W + b with x = long + side + mark, where only the mark depends on the short text. With
    G = gW and d the deviation of x, that is ((long + side) G + mark G - mean(x) 1G + d (cW + b)) / d. The first term
    is `opened`; the others are a product of four numbers a token with four rows.
    """
    seen = graph.seen_by(state, layers)
    scaled = graph.op("Mul", seen, _column(graph, state))
    columns, rows = graph.whole("columns", [1]), graph.whole("rows", [0])
    placed = graph.op("Add", "long", graph.op("Gather", marks, "long_shared", axis=0))
    mean = graph.op("ReduceMean", placed, columns, keepdims=1)
    apart = graph.op("Sub", placed, mean)
    spread = graph.op("ReduceMean", graph.op("Mul", apart, apart), columns, keepdims=1)
    deviation = graph.op("Sqrt", graph.op("Add", spread, graph.constant("epsilon", np.float32(_READER_EPSILON))))
    moved = graph.op("MatMul", graph.constant("norm.row", state["norm.bias"][None, :]), seen)
    biases = graph.constant("biases", np.concatenate([state[name] for name in _seen_names(layers, "bias")]))
    shared = graph.op("MatMul", graph.constant("shared", state["shared.weight"]), scaled)
    sums = graph.op("Neg", graph.op("ReduceSum", scaled, rows, keepdims=1))
    table = graph.op("Concat", shared, sums, graph.op("Add", moved, biases), axis=0)
    which = graph.op("Gather", graph.constant("which", np.eye(2, dtype=np.float32)), "long_shared", axis=0)
    rest = graph.op("MatMul", graph.op("Concat", which, mean, deviation, axis=1), table)
    return graph.parts(graph.op("Div", graph.op("Add", "opened", rest), deviation), 2 * layers)


def _column(graph: _Building, state: Arrays) -> str:
    return graph.constant("norm.column", state["norm.weight"][:, None])


def _seen_names(layers: int, kind: str) -> list[str]:
    return [f"layers.{number}.{part}.{kind}" for number in range(layers) for part in ("key", "value")]


def nearest_graph(width: int, heads: int) -> bytes:
    """`short` and `long` to `nearest`: the cosine of each token of the one with the nearest token of the other."""
    graph = _Building(width, heads)
    columns, least = graph.whole("columns", [1]), graph.constant("least", np.float32(_LEAST_LENGTH))
    sides = ("short", "long")
    lengths = [graph.op("Max", graph.op("ReduceL2", side, columns, keepdims=1), least) for side in sides]
    short, long = (graph.op("Div", side, length) for side, length in zip(sides, lengths, strict=True))
    cosines = graph.op("MatMul", short, graph.op("Transpose", long, perm=[1, 0]))
    nearest = graph.op("ReduceMax", cosines, columns, keepdims=0)
    inputs = [_floats(side, f"{side}_tokens", width) for side in sides]
    named = helper.make_tensor_value_info("nearest", TensorProto.FLOAT, ["short_tokens"])
    return graph.done(inputs, nearest, named)


class _Building:
    """A graph while it grows; names are values in it."""

    def __init__(self, width: int, heads: int) -> None:
        self._nodes: list[NodeProto] = []
        self._constants: dict[str, TensorProto] = {}
        self._width = width
        self._split = self.whole("split", [-1, heads, width // heads])
        self._joined = self.whole("joined", [-1, width])
        self._scale = self.constant("scale", np.float32((width // heads) ** -0.5))

    def op(self, kind: str, *inputs: str, **options: float | Sequence[int]) -> str:
        """The output of one operation."""
        name = f"v{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [name], **options))
        return name

    def constant(self, name: str, value: object) -> str:
        """A constant, stored once."""
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(value).reshape(np.shape(value)), name)
        return name

    def whole(self, name: str, value: list[int]) -> str:
        """A constant of whole numbers: a shape or axes."""
        return self.constant(name, np.array(value, dtype=np.int64))

    def norm(self, hidden: str, state: Arrays, name: str, epsilon: float) -> str:
        """A layer norm over each row."""
        weight = self.constant(f"{name}.weight", state[f"{name}.weight"])
        bias = self.constant(f"{name}.bias", state[f"{name}.bias"])
        return self.op("LayerNormalization", hidden, weight, bias, axis=-1, epsilon=epsilon)

    def linear(self, hidden: str, state: Arrays, name: str) -> str:
        """`hidden` times a weight plus its bias, if it has one."""
        found = self.op("MatMul", hidden, self._weight(state, name))
        if f"{name}.bias" not in state:
            return found
        return self.op("Add", found, self.constant(f"{name}.bias", state[f"{name}.bias"]))

    def seen_by(self, state: Arrays, layers: int) -> str:
        """The weights of the keys and values of all layers side by side."""
        weights = [self._weight(state, name.removesuffix(".weight")) for name in _seen_names(layers, "weight")]
        return self.op("Concat", *weights, axis=1)

    def parts(self, rows: str, number: int) -> list[str]:
        """Rows cut into so many of the graph's width."""
        names = [f"{rows} {part}" for part in range(number)]
        widths = self.whole("widths", [self._width] * number)
        self._nodes.append(helper.make_node("Split", [rows, widths], names, axis=1))
        return names

    def layer(self, hidden: str, state: Arrays, name: str, *, others: Sequence[str] = ()) -> str:
        """A BERT layer; its tokens look at the key and the value of `others` too."""
        query = self.op("Mul", self.linear(hidden, state, f"{name}.query"), self._scale)
        key, value = (self.linear(hidden, state, f"{name}.{part}") for part in ("key", "value"))
        if others:
            key, value = (self.op("Concat", *both, axis=0) for both in zip((key, value), others, strict=True))
        scores = self.op("MatMul", self._by_head(query, 0, 1), self._by_head(key, 1, 0))
        mixed = self.op("MatMul", self.op("Softmax", scores, axis=-1), self._by_head(value, 0, 1))
        mixed = self.op("Reshape", self.op("Transpose", mixed, perm=[1, 0, 2]), self._joined)
        hidden = self.op("Add", self.linear(mixed, state, f"{name}.out"), hidden)
        hidden = self.norm(hidden, state, f"{name}.out_norm", _ENCODER_EPSILON)
        inner = self.op("Gelu", self.linear(hidden, state, f"{name}.up"))
        hidden = self.op("Add", self.linear(inner, state, f"{name}.down"), hidden)
        return self.norm(hidden, state, f"{name}.down_norm", _ENCODER_EPSILON)

    def done(self, inputs: Sequence[ValueInfoProto], output: str, named: ValueInfoProto) -> bytes:
        """The graph as bytes, with its inputs and the name of its output."""
        self._nodes.append(helper.make_node("Identity", [output], [named.name]))
        graph = helper.make_graph(self._nodes, "merilo", inputs, [named], list(self._constants.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=_IR_VERSION)
        checker.check_model(model, full_check=True)
        return model.SerializeToString()

    def _weight(self, state: Arrays, name: str) -> str:
        whole, scales = in_8_bits(state[f"{name}.weight"], GROUP)
        outputs, inputs = whole.shape
        parts = whole.T.reshape(scales.shape[1], -1, outputs)
        floats = self.op("Cast", self.constant(f"{name}.whole", parts), to=TensorProto.FLOAT)
        weight = self.op("Mul", floats, self.constant(f"{name}.scales", scales.T[:, None, :]))
        return self.op("Reshape", weight, self.whole(f"{inputs} {outputs}", [inputs, outputs]))

    def _by_head(self, rows: str, tokens: int, within: int) -> str:
        """Heads × tokens × width of a head, or its last two turned round."""
        order = [1, 0, 2] if tokens < within else [1, 2, 0]
        return self.op("Transpose", self.op("Reshape", rows, self._split), perm=order)


def _floats(name: str, rows: int | str, columns: int) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, columns])


def _marks(name: str, rows: str) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.INT64, [rows])


def _width(state: Arrays) -> int:
    return int(state["norm.weight"].shape[0])
