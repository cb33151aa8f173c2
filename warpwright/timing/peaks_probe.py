"""Measures the best rates of a device: bytes moved, in memory and in the last-level cache, and flops of matrix products."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from warpwright.tf32 import tf32_flags
from warpwright.timing.facts import last_level_cache_bytes
from warpwright.timing.rates import Peaks

SECONDS = 0.2
"""Time for one rate; the best call counts, because noise only ever slows one down."""


def probe(device: str) -> Peaks:
    """Return the peaks of `device`, measured now."""
    torch.set_grad_enabled(False)
    return _probe_cuda(device) if device.startswith("cuda") else _probe_cpu(device)


def make_ready(device: str) -> None:
    """Do what is done once in a process before a device can be used."""
    torch.empty(1, device=device)


def _probe_cuda(device: str) -> Peaks:
    cache = int(torch.cuda.get_device_properties(device).L2_cache_size)
    memory = bandwidth(device, min(16 * cache, 4 << 30))
    kinds = [("float32", torch.float32, False), ("tf32", torch.float32, True), ("bfloat16", torch.bfloat16, False)]
    kinds += [("float16", torch.float16, False), ("float64", torch.float64, False)]
    flops = {name: product_rate(device, kind, 8192, tf32) for name, kind, tf32 in kinds}
    return Peaks(device, memory, _cache_bandwidth(device, cache, memory), cache, flops, versions={"torch": torch.__version__})


def _probe_cpu(device: str) -> Peaks:
    """Measure with all threads, and with one, times the number of threads.

    When other programs keep some core busy, all threads wait for the slowest, but one thread still has an undisturbed moment; the larger
    rate counts. It may be beyond what the memory gives, which makes the floor lower, never wrong.
    """
    cache, threads = last_level_cache_bytes(), torch.get_num_threads()
    rates_seen: list[tuple[float, float, dict[str, float]]] = []
    for used in sorted({1, threads}):
        torch.set_num_threads(used)
        memory = bandwidth(device, min(4 * cache, 1 << 29))
        flops = {name: product_rate(device, kind, 768) for name, kind in (("float32", torch.float32), ("bfloat16", torch.bfloat16))}
        rates = memory, _cache_bandwidth(device, cache, memory), flops
        share = threads / used
        rates_seen.append((rates[0] * share, rates[1] * share, {name: rate * share for name, rate in flops.items()}))
    best = {name: max(flops[name] for _, _, flops in rates_seen) for name in rates_seen[0][2]}
    return Peaks(device, max(f[0] for f in rates_seen), max(f[1] for f in rates_seen), cache, best, versions={"torch": torch.__version__})


def _cache_bandwidth(device: str, cache: int, memory: float) -> float:
    """Return the best rate within the cache: it depends on how much of it is used, and levels nearer to the core are quicker and count too."""
    return max(memory, *(bandwidth(device, size) for size in (cache // 2, cache // 8, cache // 64)))


def bandwidth(device: str, size: int) -> float:
    """Return the best of reading, writing and copying on two buffers of `size` bytes together, in bytes a second."""
    source = torch.ones(max(1, size // 8), device=device)
    target = torch.empty_like(source)
    moved = source.numel() * source.element_size()
    best = max(moved / _fastest(device, lambda: source.sum()), moved / _fastest(device, lambda: target.fill_(2.0)))
    return max(best, 2 * moved / _fastest(device, lambda: target.copy_(source)))


def product_rate(device: str, kind: torch.dtype, size: int, tf32: bool = False) -> float:
    """Return the flops a second of a product of two square matrices."""
    left, right = (torch.randn(size, size, device=device, dtype=kind) for _ in range(2))
    with tf32_flags(tf32, convolutions=False):
        return 2.0 * size**3 / _fastest(device, lambda: left @ right)


def _fastest(device: str, call: Callable[[], object]) -> float:
    """Return the seconds of the quickest call; on CUDA by events around ten calls, so that launching does not count."""
    timer = _cuda_seconds if device.startswith("cuda") else _cpu_seconds
    call()
    best, end = timer(call), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        best = min(best, timer(call))
    return best


def _cpu_seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _cuda_seconds(call: Callable[[], object]) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    start.record()
    for _ in range(10):
        call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e4
