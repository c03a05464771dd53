r"""Train the reader of pairs on the pairs of `pairs.py`; stops and goes on at any time.

    python training/encoder/train.py --pairs pairs.jsonl.gz --texts DIR --base model.safetensors \
        --tokenizer tokenizer.json --out DIR

DIR gets `state.pt` (the last checkpoint: the same command goes on from it), `log.jsonl` (the learning curve) and, at
the end, `reader.safetensors`. The encoder's lower layers are not trained: their vectors are those of `texts.py`.

With `--teacher reader.safetensors --inner 640 --passes 1` it narrows the layers of that reader (see `prune.py`) and
trains them on by its answers beside the labels.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from encoder.bert import HEADS, Encoder, Reader, Side, head_span
from encoder.prune import pruned
from encoder.texts import LOWER, Texts, own_tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tokenizers import Tokenizer
    from torch import Tensor

SHARES: Final = {
    "squad1-nqg": 0.45,
    "squad1-nqg-cut": 0.6,
    "squad1-nqg-mined": 0.5,
    "made-wrong": 0.6,
    "made-right": 0.6,
    "made-cut": 0.6,
    "snli": 0.6,
    "breaking-nli": 0.4,
    "evouna-nq": 0.3,
    "evouna-tq": 0.3,
}
"""Fraction of a large or easy source's pairs in each pass; all pairs of the others."""
BATCH_TOKENS: Final = 4_096
CHECKPOINT_STEPS: Final = 200
PRUNED_BY: Final = 40
"""Batches that determine which units matter."""
_UNSUPPORTED: Final = 3.0


@dataclass(frozen=True, slots=True)
class Example:
    """A pair of texts by their indices among the encoded ones."""

    task: str
    first: int
    second: int
    label: float
    tokens: int
    span: tuple[int, int] | None = None
    """The tokens of the second text that are read, where it is a sentence in its window."""


def read_examples(path: Path, texts: Texts, tokenizer: Tokenizer) -> tuple[list[Example], list[str]]:
    """The pairs, and the source of each; without those whose sentence lies behind what was encoded."""
    lengths = np.diff(texts.starts)
    examples: list[Example] = []
    sources: list[str] = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            first, second = texts.place[record["a"]], texts.place[record["b"]]
            span, held = None, int(lengths[second])
            if record["sentence"]:
                start, own = (len(tokenizer.encode(record[name]).ids) for name in ("before", "sentence"))
                span, held = (start - 1, start + own - 3), own - 2  # each has a mark before and behind
                if span[1] >= lengths[second]:
                    continue
            tokens = int(lengths[first]) + held
            examples.append(Example(record["task"], first, second, record["label"], tokens, span))
            sources.append(record["source"])
    return examples, sources


def batches(examples: Sequence[Example], sources: Sequence[str], seed: int, number: int) -> list[list[int]]:
    """Return the batches of one pass, by index: equal lengths together, bounded by tokens, in random order."""
    random = Random(f"{seed} {number}")
    chosen = [at for at, source in enumerate(sources) if random.random() < SHARES.get(source, 1.0)]
    random.shuffle(chosen)
    found: list[list[int]] = []
    for start in range(0, len(chosen), 4_096):
        held: list[int] = []
        for at in sorted(chosen[start : start + 4_096], key=lambda at: (examples[at].tokens, at)):
            if held and (len(held) + 1) * examples[at].tokens > BATCH_TOKENS:
                found.append(held)
                held = []
            held.append(at)
        found.append(held)
    random.shuffle(found)
    return found


def gathered(examples: Sequence[Example], texts: Texts) -> tuple[Side, Side]:
    """Return the short and the long texts of a batch, as `Reader.forward` takes them."""
    short = [slice(texts.starts[each.first], texts.starts[each.first + 1]) for each in examples]
    long = [_read(each, texts) for each in examples]
    return _side(short, long, texts), _side(long, short, texts)


def _read(example: Example, texts: Texts) -> slice:
    """Return the positions of the tokens of the second text that are read."""
    start, end = texts.starts[example.second : example.second + 2]
    return slice(start, end) if example.span is None else slice(start + example.span[0], start + example.span[1])


def _side(own: Sequence[slice], others: Sequence[slice], texts: Texts) -> Side:
    width = max(each.stop - each.start for each in own)
    vectors = np.zeros((len(own), width, 384), dtype=np.float16)
    shared = np.zeros((len(own), width), dtype=np.int64)
    rarity = np.zeros((len(own), width), dtype=np.float32)
    mask = np.zeros((len(own), width), dtype=bool)
    for row, (at, other) in enumerate(zip(own, others, strict=True)):
        tokens, cut = texts.ids[at], at.stop - at.start
        vectors[row, :cut] = texts.vectors[at]
        shared[row, :cut] = np.isin(tokens, texts.ids[other])
        rarity[row, :cut] = texts.rarity[tokens]
        mask[row, :cut] = True
    return Side(torch.from_numpy(vectors).float(), *map(torch.from_numpy, (shared, rarity, mask)))


def losses(logits: Tensor, examples: Sequence[Example]) -> Tensor:
    """Return one loss for each pair."""
    found = []
    for row, each in zip(logits, examples, strict=True):
        own = row[head_span(each.task)]
        if each.task == "supported":
            logs = torch.log_softmax(own, -1)
            found.append(-torch.logsumexp(logs[1:], 0) if each.label == _UNSUPPORTED else -logs[int(each.label)])
        else:
            wanted = [each.label >= 1, each.label >= 2] if each.task == "grade" else [each.label >= 1]
            target = torch.tensor(wanted, dtype=own.dtype)
            found.append(torch.nn.functional.binary_cross_entropy_with_logits(own, target))
    return torch.stack(found)


def losses_to(teacher: Tensor, logits: Tensor) -> Tensor:
    """One loss for each pair: how far all heads are from a teacher's; both batch × 8 logits."""
    found = torch.zeros(len(logits))
    for task in HEADS:
        own, wanted = logits[:, head_span(task)], teacher[:, head_span(task)]
        if task == "supported":
            found = found - (torch.softmax(wanted, -1) * torch.log_softmax(own, -1)).sum(-1)
        else:
            apart = torch.nn.functional.binary_cross_entropy_with_logits(own, wanted.sigmoid(), reduction="none")
            found = found + apart.mean(-1)
    return found / len(HEADS)


@dataclass
class Training:
    """A model on its way, with all that is needed to go on after a stop."""

    model: Reader
    optimiser: torch.optim.Optimizer
    rates: list[float]
    total: int
    half: bool
    teacher: Reader | None = None
    step: int = 0
    pairs: int = 0

    def run(self, plan: Iterator[list[Example]], texts: Texts, out: Path) -> None:
        """All steps that are left; a checkpoint and a line of the curve now and then."""
        began, recent = time.monotonic(), {}
        self.model.train()
        for examples in plan:
            share = self.step / self.total
            scale = min(1.0, (self.step + 1) / 300) * max(0.02, 1 - share)
            for group, rate in zip(self.optimiser.param_groups, self.rates, strict=True):
                group["lr"] = rate * scale
            sides = gathered(examples, texts)
            with torch.autocast("cpu", torch.bfloat16, enabled=self.half):
                logits = self.model(*sides).float()
            loss = losses(logits, examples)
            aim = loss.mean()
            if self.teacher is not None:
                aim = aim + losses_to(self._wanted(self.teacher, *sides), logits).mean()
            self.optimiser.zero_grad(set_to_none=True)
            aim.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimiser.step()
            self.step += 1
            self.pairs += len(examples)
            for each, value in zip(examples, loss.tolist(), strict=True):
                recent.setdefault(each.task, []).append(value)
            if self.step % CHECKPOINT_STEPS == 0 or self.step == self.total:
                self._keep(out, recent, time.monotonic() - began)
                recent = {}

    def _wanted(self, teacher: Reader, short: Side, long: Side) -> Tensor:
        """The teacher's logits."""
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=self.half):
            return teacher(short, long).float()

    def _keep(self, out: Path, recent: dict[str, list[float]], seconds: float) -> None:
        line = {"step": self.step, "of": self.total, "pairs": self.pairs, "seconds": round(seconds, 1)}
        line |= {task: round(float(np.mean(values)), 4) for task, values in sorted(recent.items())}
        with (out / "log.jsonl").open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")
        state = {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "step": self.step,
            "pairs": self.pairs,
            "random": torch.get_rng_state(),
        }
        torch.save(state, out / "state.part")
        (out / "state.part").replace(out / "state.pt")


def main() -> None:
    """Train, or go on training."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("pairs", "texts", "base", "tokenizer", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--teacher", type=Path, help="a trained reader: go on from it with narrower layers")
    parser.add_argument("--inner", type=int, default=640, help="inner units of a layer, with --teacher")
    parser.add_argument("--half", action="store_true", help="multiply in bfloat16")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    torch.manual_seed(chosen.seed)
    chosen.out.mkdir(parents=True, exist_ok=True)
    texts = Texts(chosen.texts)
    examples, sources = read_examples(chosen.pairs, texts, own_tokenizer(chosen.tokenizer))
    plan = [batch for number in range(chosen.passes) for batch in batches(examples, sources, chosen.seed, number)]
    model, teacher = Reader.over(Encoder.read(chosen.base), lower=LOWER), None
    if chosen.teacher:
        model.load_state_dict(load_file(chosen.teacher))
        teacher = model
        shown = (gathered([examples[at] for at in batch], texts) for batch in plan[:PRUNED_BY])
        model = pruned(teacher, shown, chosen.inner)
    upper = list(model.layers.parameters())
    known = {id(value) for value in upper}
    heads = [value for value in model.parameters() if id(value) not in known]
    rates = [chosen.rate, 5e-4]
    optimiser = torch.optim.AdamW(
        [{"params": upper, "lr": rates[0]}, {"params": heads, "lr": rates[1]}], weight_decay=0.01
    )
    training = Training(model, optimiser, rates, len(plan), half=chosen.half, teacher=teacher)
    if (chosen.out / "state.pt").exists():
        state = torch.load(chosen.out / "state.pt", weights_only=True)
        model.load_state_dict(state["model"])
        optimiser.load_state_dict(state["optimiser"])
        torch.set_rng_state(state["random"])
        training.step, training.pairs = state["step"], state["pairs"]
    left = plan[training.step :]
    print(f"{sum(map(len, plan)):,} pairs in {len(plan):,} steps, {len(left):,} to go", flush=True)
    training.run(([examples[at] for at in batch] for batch in left), texts, chosen.out)
    save_file(
        {name: value.contiguous() for name, value in model.state_dict().items()}, chosen.out / "reader.safetensors"
    )


if __name__ == "__main__":
    main()
