"""CWC on one CPU core, memory to memory: images/s of the C++ kernel, torch and scipy in one run.

    python -m benchmarks.cwc.cpu > cwc_cpu.md
"""

from __future__ import annotations

import datetime
import os
import platform
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

from warpwright.domains.unlearnable.cwc import backends
from warpwright.domains.unlearnable.cwc.bank import UNIT, FilterBank, FilterSpec
from warpwright.domains.unlearnable.cwc.operator import Operator, reference
from warpwright.timing import facts

SIZES = ((32, 3, 0.3, 2000), (224, 3, 0.3, 60), (224, 9, 0.06, 30))
ROUNDS = 7


def torch_loop(images: np.ndarray, labels: np.ndarray, bank: FilterBank) -> None:
    """One depthwise conv2d an image, then the division: the published way."""
    filters = torch.from_numpy(bank.weights / np.float32(UNIT)).float()
    for image, label in zip(torch.from_numpy(images), labels, strict=True):
        weight = filters[label].expand(3, 1, -1, -1)
        out = torch.nn.functional.conv2d(image[None].float(), weight, padding=bank.spec.k // 2, groups=3)
        (out / out.max() * 255).to(torch.uint8)


def torch_grouped(images: np.ndarray, labels: np.ndarray, bank: FilterBank) -> None:
    """One convolution with a group for every image and channel."""
    n, c, h, w = images.shape
    weight = torch.from_numpy(bank.weights / np.float32(UNIT)).float()[labels].repeat_interleave(c, 0)[:, None]
    x = torch.from_numpy(images).float().view(1, n * c, h, w)
    out = torch.nn.functional.conv2d(x, weight, padding=bank.spec.k // 2, groups=n * c).view(n, c, h, w)
    (out / out.amax((1, 2, 3), keepdim=True) * 255).to(torch.uint8)


def scipy_loop(images: np.ndarray, labels: np.ndarray, bank: FilterBank) -> None:
    """One ndimage.correlate a channel."""
    from scipy.ndimage import correlate

    filters = bank.weights / np.float32(UNIT)
    for image, label in zip(images, labels, strict=True):
        out = np.stack([correlate(plane.astype(np.float32), filters[label], mode="constant") for plane in image])
        (out / out.max() * 255).astype(np.uint8)


def rates(ways: dict[str, Callable[[], object]], images: int) -> dict[str, tuple[float, float, float]]:
    """Return median, lowest and highest images/s of each way, the ways timed in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(ROUNDS + 1):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            if number:
                seconds[name].append(time.perf_counter() - start)
    return {name: (images / float(np.median(s)), images / max(s), images / min(s)) for name, s in seconds.items()}


def main() -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    machine = facts.machine_name("cpu")
    print(f"# CWC on one CPU core\n\n- {datetime.date.today()}, {machine}, torch {torch.__version__}, Python {platform.python_version()}")
    print(f"- images/s, uint8 to uint8 in memory, median of {ROUNDS} rounds [lowest, highest]; load {os.getloadavg()[0]:.1f}\n")
    print("| side | k | way | images/s |\n| --- | --- | --- | --- |")
    for side, k, pb, n in SIZES:
        bank = FilterBank.from_key(bytes(range(32)), [str(i) for i in range(10)], FilterSpec(k, pb))
        images, labels = rng.integers(0, 256, (n, 3, side, side), dtype=np.uint8), rng.integers(0, 10, n)
        for operator in (Operator(), Operator("zero", "max")):
            assert (backends.cpp(images[:6], labels[:6], bank, operator) == reference(images[:6], labels[:6], bank.weights, operator)).all()
        ways: dict[str, Callable[[], object]] = {
            "C++, reflect, divided by the sum": lambda: backends.cpp(images, labels, bank, Operator()),  # noqa: B023
            "C++, zero, divided by the maximum": lambda: backends.cpp(images, labels, bank, Operator("zero", "max")),  # noqa: B023
            "torch, one conv2d an image": lambda: torch_loop(images, labels, bank),  # noqa: B023
            "torch, one grouped conv2d": lambda: torch_grouped(images, labels, bank),  # noqa: B023
            "scipy, one correlate a channel": lambda: scipy_loop(images, labels, bank),  # noqa: B023
        }
        for name, (median, low, high) in rates(ways, n).items():
            print(f"| {side} | {k} | {name} | {median:,.0f} [{low:,.0f}, {high:,.0f}] |")


if __name__ == "__main__":
    main()
