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
"""The first version with an exact `Gelu`; onnxruntime from 1.17 on."""
GROUP: Final = 32
"""Inputs that share a scale."""
_IR_VERSION: Final = 9
_ENCODER_EPSILON: Final = 1e-12
_READER_EPSILON: Final = 1e-5
_LEAST_LENGTH: Final = 1e-9


def in_8_bits(weight: NDArray[np.float32], group: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return outputs × inputs as whole numbers in [-127, 127], and outputs × groups scales.

    A group is this number of adjacent inputs of an output; all of them if it does not divide them.
    """
    outputs, inputs = weight.shape
    size = inputs if inputs % group else group
    parts = weight.reshape(outputs, inputs // size, size)
    scales = np.maximum(np.abs(parts).max(axis=2), np.float32(1e-12)) / np.float32(127)
    return np.round(parts / scales[:, :, None]).astype(np.int8).reshape(outputs, inputs), scales.astype(np.float32)


def floats_again(whole: NDArray[np.int8], scales: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the weight as floats for the computation."""
    parts = whole.reshape(len(whole), scales.shape[1], -1) * scales[:, :, None]
    return parts.reshape(whole.shape)


def lower_graph(state: Arrays, layers: int, heads: int) -> bytes:
    """Return the graph from `embedded` (words plus places) to `lower`: both tokens × width."""
    graph = _Building(_width(state), heads)
    hidden = graph.norm("embedded", state, "norm", _ENCODER_EPSILON)
    for number in range(layers):
        hidden = graph.layer(hidden, state, f"layers.{number}")
    width = _width(state)
    return graph.done([_floats("embedded", "tokens", width)], hidden, _floats("lower", "tokens", width))


def upper_graph(state: Arrays, first: int, layers: int, heads: int) -> bytes:
    """Return the graph from `lower` to `pooled`: the mean of the last layer's vectors, of length 1; 1 × width."""
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
    return _opened(state, _looked_at(layers), heads, named="long", added=state["sides.weight"][1])


def begin_graph(state: Arrays, heads: int) -> bytes:
    """`short` to `begun`: what query, key and value of layer 0 owe to the short text alone; tokens × 3 widths."""
    return _opened(state, _BEGUN, heads, named="short", added=_added_to_short(state))


def _opened(state: Arrays, names: Sequence[str], heads: int, *, named: str, added: NDArray[np.float32]) -> bytes:
    graph = _Building(_width(state), heads)
    placed = graph.op("Add", named, graph.constant("added", added))
    opened = graph.op("MatMul", placed, graph.op("Mul", graph.side_by_side(state, names), _column(graph, state)))
    width = _width(state)
    out = _floats("opened", "tokens", len(names) * width)
    return graph.done([_floats(named, "tokens", width)], opened, out)


def reader_graph(state: Arrays, layers: int, heads: int) -> bytes:
    """`short`, `long`, `begun`, `opened`, whether each token is `…_shared`, and `features` if any, to `logits`.

    `begun` and `opened` are what `begin_graph` and `open_graph` give; the logits are 1 × logits.
    """
    graph = _Building(_width(state), heads)
    features = state["features.weight"].shape[1] if "features.weight" in state else 0
    marks = graph.constant("marks", state["shared.weight"])
    eye = graph.constant("which", np.eye(2, dtype=np.float32))
    short_shared, long_shared = (graph.op("Gather", eye, f"{side}_shared", axis=0) for side in ("short", "long"))

    short = graph.op("Add", "short", graph.constant("added to short", _added_to_short(state)))
    short = graph.op("Add", short, graph.op("MatMul", short_shared, marks))
    moving, moved_by = short_shared, marks
    if features:
        by_features = graph.weight(state, "features")
        short = graph.op("Add", short, graph.op("MatMul", "features", by_features))
        moving = graph.op("Concat", short_shared, "features", axis=1)
        moved_by = graph.op("Concat", marks, by_features, axis=0)
    own = _behind_norm(graph, state, _BEGUN, short, opened="begun", moving=moving, moved_by=moved_by)

    long = graph.op("Add", "long", graph.constant("added to long", state["sides.weight"][1]))
    long = graph.op("Add", long, graph.op("MatMul", long_shared, marks))
    others = _behind_norm(graph, state, _looked_at(layers), long, opened="opened", moving=long_shared, moved_by=marks)

    hidden = graph.norm(short, state, "norm", _READER_EPSILON)
    for number in range(layers):
        seen = others[2 * number : 2 * number + 2]
        hidden = graph.layer(hidden, state, f"layers.{number}", own=() if number else own, others=seen)
    zero, one, rows = graph.whole("zero", [0]), graph.whole("one", [1]), graph.whole("rows", [0])
    first = graph.op("Slice", hidden, zero, one, zero)
    both = graph.op("Concat", first, graph.op("ReduceMean", hidden, rows, keepdims=1), axis=1)
    mixed = graph.op("Tanh", graph.linear(both, state, "mix"))
    logits = graph.linear(mixed, state, "heads")
    width = _width(state)
    inputs = [
        _floats("short", "short_tokens", width),
        _floats("long", "long_tokens", width),
        _floats("begun", "short_tokens", len(_BEGUN) * width),
        _floats("opened", "long_tokens", 2 * layers * width),
        _marks("short_shared", "short_tokens"),
        _marks("long_shared", "long_tokens"),
    ]
    if features:
        inputs.append(_floats("features", "short_tokens", features))
    return graph.done(inputs, logits, _floats("logits", 1, len(state["heads.bias"])))


def _behind_norm(
    graph: _Building, state: Arrays, names: Sequence[str], placed: str, *, opened: str, moving: str, moved_by: str
) -> list[str]:
    """Linear maps of the normed tokens `placed`, each as wide as the graph, from what is known of each text alone.

    A map is (norm(x) * g + c) W + b with x = known + m M, where only the few numbers m (`moving`) depend on the other
    text. With G = gW and d the deviation of x, that is (known G + m MG - mean(x) 1G + d (cW + b)) / d. The first term
    is `opened`; the others are a product of some numbers a token with as many rows.
    """
    weights = graph.side_by_side(state, names)
    scaled = graph.op("Mul", weights, _column(graph, state))
    columns, rows = graph.whole("columns", [1]), graph.whole("rows", [0])
    mean = graph.op("ReduceMean", placed, columns, keepdims=1)
    apart = graph.op("Sub", placed, mean)
    spread = graph.op("ReduceMean", graph.op("Mul", apart, apart), columns, keepdims=1)
    deviation = graph.op("Sqrt", graph.op("Add", spread, graph.constant("epsilon", np.float32(_READER_EPSILON))))
    moved = graph.op("MatMul", graph.constant("norm.row", state["norm.bias"][None, :]), weights)
    biases = graph.constant(f"biases of {opened}", np.concatenate([state[f"{name}.bias"] for name in names]))
    sums = graph.op("Neg", graph.op("ReduceSum", scaled, rows, keepdims=1))
    table = graph.op("Concat", graph.op("MatMul", moved_by, scaled), sums, graph.op("Add", moved, biases), axis=0)
    rest = graph.op("MatMul", graph.op("Concat", moving, mean, deviation, axis=1), table)
    return graph.parts(graph.op("Div", graph.op("Add", opened, rest), deviation), len(names))


_BEGUN: Final = tuple(f"layers.0.{part}" for part in ("query", "key", "value"))


def _looked_at(layers: int) -> list[str]:
    return [f"layers.{number}.{part}" for number in range(layers) for part in ("key", "value")]


def _added_to_short(state: Arrays) -> NDArray[np.float32]:
    """Return the constant that every token of the short text gets, whatever the long one is."""
    side = state["sides.weight"][0]
    return side + state["features.bias"] if "features.bias" in state else side


def _column(graph: _Building, state: Arrays) -> str:
    return graph.constant("norm.column", state["norm.weight"][:, None])


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
    """A graph under construction; names are values in it."""

    def __init__(self, width: int, heads: int) -> None:
        self._nodes: list[NodeProto] = []
        self._constants: dict[str, TensorProto] = {}
        self._width = width
        self._split = self.whole("split", [-1, heads, width // heads])
        self._joined = self.whole("joined", [-1, width])
        self._scale = self.constant("scale", np.float32((width // heads) ** -0.5))

    def op(self, kind: str, *inputs: str, **options: float | Sequence[int]) -> str:
        """Return the output of one operation."""
        name = f"v{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, list(inputs), [name], **options))
        return name

    def constant(self, name: str, value: object) -> str:
        """Return a constant, stored once."""
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(value).reshape(np.shape(value)), name)
        return name

    def whole(self, name: str, value: list[int]) -> str:
        """Return a constant of whole numbers: a shape or axes."""
        return self.constant(name, np.array(value, dtype=np.int64))

    def norm(self, hidden: str, state: Arrays, name: str, epsilon: float) -> str:
        """Return a layer norm over each row."""
        weight = self.constant(f"{name}.weight", state[f"{name}.weight"])
        bias = self.constant(f"{name}.bias", state[f"{name}.bias"])
        return self.op("LayerNormalization", hidden, weight, bias, axis=-1, epsilon=epsilon)

    def linear(self, hidden: str, state: Arrays, name: str) -> str:
        """Return `hidden` times a weight plus its bias, if it has one."""
        found = self.op("MatMul", hidden, self.weight(state, name))
        if f"{name}.bias" not in state:
            return found
        return self.op("Add", found, self.constant(f"{name}.bias", state[f"{name}.bias"]))

    def side_by_side(self, state: Arrays, names: Sequence[str]) -> str:
        """Return the concatenated weights of some linear maps of the same input."""
        return self.op("Concat", *(self.weight(state, name) for name in names), axis=1)

    def parts(self, rows: str, number: int) -> list[str]:
        """Return rows split into this number of parts of the graph's width."""
        names = [f"{rows} {part}" for part in range(number)]
        widths = self.whole(f"{number} widths", [self._width] * number)
        self._nodes.append(helper.make_node("Split", [rows, widths], names, axis=1))
        return names

    def layer(
        self, hidden: str, state: Arrays, name: str, *, own: Sequence[str] = (), others: Sequence[str] = ()
    ) -> str:
        """A BERT layer; its tokens look at the key and the value of `others` too.

        `own`: its query, key and value, where they are known already.
        """
        query, key, value = own or [self.linear(hidden, state, f"{name}.{part}") for part in ("query", "key", "value")]
        query = self.op("Mul", query, self._scale)
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
        """Return the graph as bytes, with its inputs and the name of its output."""
        self._nodes.append(helper.make_node("Identity", [output], [named.name]))
        graph = helper.make_graph(self._nodes, "merilo", inputs, [named], list(self._constants.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=_IR_VERSION)
        checker.check_model(model, full_check=True)
        return model.SerializeToString()

    def weight(self, state: Arrays, name: str) -> str:
        """Return the weight of a linear map as floats, inputs × outputs."""
        whole, scales = in_8_bits(state[f"{name}.weight"], GROUP)
        outputs, inputs = whole.shape
        parts = whole.T.reshape(scales.shape[1], -1, outputs)
        floats = self.op("Cast", self.constant(f"{name}.whole", parts), to=TensorProto.FLOAT)
        weight = self.op("Mul", floats, self.constant(f"{name}.scales", scales.T[:, None, :]))
        return self.op("Reshape", weight, self.whole(f"{inputs} {outputs}", [inputs, outputs]))

    def _by_head(self, rows: str, tokens: int, within: int) -> str:
        """Return heads × tokens × width of a head, or with the last two transposed."""
        order = [1, 0, 2] if tokens < within else [1, 2, 0]
        return self.op("Transpose", self.op("Reshape", rows, self._split), perm=order)


def _floats(name: str, rows: int | str, columns: int) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, columns])


def _marks(name: str, rows: str) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.INT64, [rows])


def _width(state: Arrays) -> int:
    return int(state["norm.weight"].shape[0])
