"""The operator as a task of the loop: its search space is the C++ template's tunables, its candidates are files that need torch alone.

    Work            the job to optimise: shape, filter side, border, scale
    task_text       the task file: the operator in plain torch, exact because weights are multiples of 1/4096
    space           fuse -> rows, vectors, lanes
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from warpwright.base import Action, Candidate, Source
from warpwright.domains.unlearnable.cwc.backends import Tuning
from warpwright.domains.unlearnable.cwc.operator import Operator
from warpwright.errors import NotApplicable
from warpwright.native import standalone
from warpwright.space import Space, Traits

_ACCUMULATORS = 32
"""rows x vectors: more vector accumulators than AVX-512 has registers would spill."""

_POINTERS = 8
"""Pointer parameters of cwc_convolve; its two numbers follow them."""


@dataclass(frozen=True)
class Work:
    """One job: `[images, channels, side, side]` uint8 and the operator."""

    images: int = 256
    channels: int = 3
    side: int = 32
    k: int = 3
    classes: int = 10
    operator: Operator = field(default_factory=Operator)


@dataclass(frozen=True)
class Plan:
    """The IR: the original (no tuning), or the fused kernel with its tunables."""

    work: Work
    tuning: Tuning | None = None


class Fuse:
    """pad; gather filters; grouped convolution; rescale -> one pass over each image, every plane staying in cache."""

    name = "fuse"
    traits = Traits("Q")

    def sites(self, ir: Plan) -> Iterator[Action]:
        """Yield the one action, unless it is done."""
        if ir.tuning is None:
            yield Action(self.name)

    def apply(self, ir: Plan, action: Action) -> Plan:
        """Return the plan with the kernel at its default tunables."""
        if ir.tuning is not None:
            raise NotApplicable("expected a plan that is not fused yet, saw one that is", "fuse once")
        return replace(ir, tuning=Tuning())


@dataclass
class Tunable:
    """One constant of the kernel -> another value of it; the mathematics is unchanged."""

    name: str
    values: tuple[int, ...]
    traits: ClassVar[Traits] = Traits("S")

    def sites(self, ir: Plan) -> Iterator[Action]:
        """Yield each other value that leaves the accumulators in registers."""
        for value in self.values:
            action = Action(self.name, params=(("n", value),))
            if ir.tuning is not None and getattr(ir.tuning, self.name) != value and _fits(self._set(ir.tuning, value)):
                yield action

    def apply(self, ir: Plan, action: Action) -> Plan:
        """Return the plan with that value."""
        value = dict(action.params).get("n")
        if ir.tuning is None or value not in self.values or not _fits(self._set(ir.tuning, int(value))):
            raise NotApplicable(f"expected {self.name} of {self.values} on a fused plan, saw {value!r}", "fuse first")
        return replace(ir, tuning=self._set(ir.tuning, int(value)))

    def _set(self, tuning: Tuning, value: int) -> Tuning:
        return Tuning(**{**vars(tuning), self.name: value})


def _fits(tuning: Tuning) -> bool:
    return tuning.rows * tuning.vectors <= _ACCUMULATORS


TECHNIQUES = (Fuse(), Tunable("rows", (1, 2, 4, 8)), Tunable("vectors", (1, 2, 4, 8)), Tunable("lanes", (4, 8, 16)))


def space(work: Work, target: str = "cpu") -> Space[Plan]:
    """Return the search space of a job."""
    return Space(Plan(work), TECHNIQUES, lambda plan, actions: lower(plan, actions, target))


def task_text(work: Work) -> str:
    """Return the task file, in KernelBench form: `forward(images, labels, weights)`, weights `[classes, k, k]` in units of 1/4096."""
    pad = {"reflect": 'mode="reflect"', "circular": 'mode="circular"', "zero": 'mode="constant"'}[work.operator.pad]
    divide = {
        "sum": "total = chosen.sum((1, 2)).view(n, 1, 1, 1)\n        return ((2 * z + total) // (2 * total)).to(torch.uint8)",
        "max": "top = z.amax((1, 2, 3), keepdim=True).clamp(min=1)\n        return ((510 * z + top) // (2 * top)).to(torch.uint8)",
    }[work.operator.scale]
    fields = {"@N": work.images, "@C": work.channels, "@SIDE": work.side, "@K": work.k, "@CLASSES": work.classes, "@PAD": pad, "@DIVIDE": divide}
    text = _TASK
    for name, value in sorted(fields.items(), key=lambda field: -len(field[0])):
        text = text.replace(name, str(value))
    return text


def lower(plan: Plan, actions: Sequence[Action], target: str) -> Candidate:
    """Return the candidate file: the original, and a `ModelNew` that calls the kernel where its guard holds."""
    recipe = "".join(f"#     {action}\n" for action in actions) or "#     none\n"
    body = "class ModelNew(Model):\n    pass\n" if plan.tuning is None else _kernel_text(plan.work, plan.tuning)
    head = f"# class-wise convolution: the original, then ModelNew, which computes the same bytes\n# recipe:\n{recipe}"
    text = f"{head}{task_text(plan.work)}\n\n{body}"
    return Candidate(Source("python", (("optimized.py", text),)), target, tuple(actions), proposer="unlearnable")


def _kernel_text(work: Work, tuning: Tuning) -> str:
    defines = f"#define K {work.k}\n#define ROWS {tuning.rows}\n#define VECS {tuning.vectors}\n#define LANES {tuning.lanes}\n"
    kernel = defines + (Path(__file__).parent / "kernels" / "cwc.cpp").read_text()
    text = _MODEL.replace("@PAD", work.operator.pad).replace("@MAX", str(int(work.operator.scale == "max"))).replace("@K", str(work.k))
    return "\n" + standalone.loader(kernel, {"cwc_convolve": _POINTERS}) + text


_TASK = '''import torch


class Model(torch.nn.Module):
    """Class-wise convolution: images [N, C, H, W] uint8, labels [N], weights [classes, k, k] in units of 1/4096 -> uint8."""

    def forward(self, images, labels, weights):
        n, c, h, w = images.shape
        k = weights.shape[-1]
        chosen = weights[labels]
        before, after = k // 2, (k - 1) // 2
        x = torch.nn.functional.pad(images.float(), (before, after, before, after), @PAD)
        kernels = chosen.float().repeat_interleave(c, 0).unsqueeze(1)
        z = torch.nn.functional.conv2d(x.reshape(1, n * c, h + k - 1, w + k - 1), kernels, groups=n * c).view(n, c, h, w).long()
        @DIVIDE


def get_inputs():
    weights = torch.randint(0, 1229, (@CLASSES, @K, @K)) // (@K * @K // 9 or 1)
    weights[:, @K // 2, @K // 2] = 4096
    return [torch.randint(0, 256, (@N, @C, @SIDE, @SIDE), dtype=torch.uint8), torch.randint(0, @CLASSES, (@N,)), weights]


def get_init_inputs():
    return []
'''

_MODEL = '''def border(size):
    """Source index of each padded position, -1 for zero."""
    position = torch.arange(size + @K - 1) - @K // 2
    if "@PAD" == "zero":
        return torch.where((position >= 0) & (position < size), position, -1).int()
    if "@PAD" == "circular":
        return (position % size).int()
    folded = position % max(2 * (size - 1), 1)
    return torch.minimum(folded, 2 * (size - 1) - folded).int()


class ModelNew(Model):
    def fits(self, images, labels, weights):
        """Are these the types and ranges in which float32 sums are exact?"""
        if KERNELS is None or images.dtype != torch.uint8 or images.device.type != "cpu" or not images.is_contiguous() or images.dim() != 4:
            return False
        if labels.dtype != torch.int64 or weights.dtype != torch.int64 or weights.shape[1:] != (@K, @K) or len(labels) != len(images):
            return False
        if not images.numel() or min(images.shape[2:]) <= @K:
            return False
        sums = weights.sum((1, 2))
        bounded = int(weights.min()) >= 0 and int(sums.min()) > 0 and int(sums.max()) <= 16 * 4096
        return bounded and int(labels.min()) >= 0 and int(labels.max()) < len(weights)

    def forward(self, images, labels, weights):
        if not self.fits(images, labels, weights):
            return super().forward(images, labels, weights)
        out = torch.empty_like(images)
        tensors = (
            images, out, labels.contiguous(), weights.float().contiguous(), weights.sum((1, 2)).int(),
            border(images.shape[2]), border(images.shape[3]), torch.tensor([*images.shape, *images.stride()]),
        )
        KERNELS.cwc_convolve(*(t.data_ptr() for t in tensors), @MAX, torch.get_num_threads())
        return out
'''
