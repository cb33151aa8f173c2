"""CWC on one GPU: builds, bit-equality with the int64 definition, images/s against the floor, then data sets through `warpwright protect`.

    python -m benchmarks.cwc.cuda --out cwc_cuda.json

`--parts time --kernels half` builds, checks and times the variants of one kernel alone, `--sides 224` images of one size.
Without a GPU, `--parts end --backend cpp --scale 0.02` runs the last part alone. A part that fails is recorded, and the rest continues.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import os
import pickle
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch

from warpwright.domains.unlearnable import protect
from warpwright.domains.unlearnable.cwc import backends, gpu, toeplitz
from warpwright.domains.unlearnable.cwc.bank import FilterBank, FilterSpec
from warpwright.domains.unlearnable.cwc.gpu import GpuTuning
from warpwright.domains.unlearnable.cwc.keys import new_key, read_key
from warpwright.domains.unlearnable.cwc.operator import PADS, SCALES, Operator, reference
from warpwright.domains.unlearnable.data import sinks, sources
from warpwright.domains.unlearnable.data.images import Format, Picture

KEY = bytes(range(32))
CLASSES = tuple(str(i) for i in range(10))
GENTLE, PAPER = Operator("reflect", "sum"), Operator("zero", "max")
SIZES = ((32, 3, 0.3, 262144), (224, 3, 0.3, 8192), (224, 9, 0.06, 2048))
"""Side, k, p_b, images: 0.3 to 1.2 GB in, well beyond the L2 cache."""

FMA = GpuTuning("fma")
TRIED = {
    (32, 3): (FMA, GpuTuning("mma", fixed=False), *(GpuTuning("mma", 0, *t) for t in ((0, 0, 0), (8, 4, 6), (8, 4, 8), (8, 8, 2), (8, 2, 12)))),
    (224, 3): (FMA, GpuTuning("mma", fixed=False), *(GpuTuning("mma", 0, *t) for t in ((0, 0, 0), (8, 7, 4), (16, 7, 3), (8, 14, 2), (4, 7, 4)))),
    (224, 9): (FMA, GpuTuning("mma", fixed=False), *(GpuTuning("mma", 0, *t) for t in ((0, 0, 0), (8, 7, 3), (16, 7, 2), (8, 14, 1), (4, 7, 3)))),
}
"""By side and k; mma's constants are rows, warps, blocks."""


def half(warps: int, blocks: int, slots: int, ways: str = "") -> GpuTuning:
    """Return a variant of the kernel half; ways: of keep, staged."""
    return GpuTuning("half", warps=warps, blocks=blocks, slots=slots, keep="keep" in ways, staged="staged" in ways)


HALF_TRIED = {
    (32, "sum"): (half(8, 4, 5), half(8, 3, 7), half(8, 2, 11), half(4, 8, 3, "staged"), half(8, 3, 5, "staged"), half(8, 2, 9, "staged")),
    (32, "max"): (half(4, 4, 10, "keep"), half(4, 4, 9, "keep staged"), half(4, 5, 8, "keep"), half(4, 3, 14, "keep"), half(4, 7, 6), half(8, 4, 5),
                  half(4, 6, 5, "staged")),
    (224, "sum"): (half(25, 1, 4), half(28, 1, 4), half(17, 1, 4), half(25, 1, 3)),
    (224, "max"): (half(25, 1, 4), half(28, 1, 4), half(17, 1, 4), half(25, 1, 3)),
}  # fmt: skip
"""By side and scale, for k = 3: warps a block, blocks a multiprocessor, planes a ring."""


def cluster(blocks_an_image: int, warps: int, blocks: int, slots: int) -> GpuTuning:
    """Return a variant of the kernel cluster."""
    return GpuTuning("cluster", warps=warps, blocks=blocks, slots=slots, cluster=blocks_an_image)


CLUSTER_TRIED = (cluster(4, 8, 1, 2), cluster(4, 8, 1, 3), cluster(4, 8, 1, 4), cluster(4, 8, 1, 5), cluster(4, 16, 1, 3), cluster(4, 20, 1, 3),
                 cluster(7, 4, 2, 3), cluster(7, 8, 1, 5))  # fmt: skip
"""For side 224, k = 3, scale "max"; at two blocks a multiprocessor, one multiplies while the other waits for its cluster."""


def tried(side: int, k: int, operator: Operator, kernels: list[str]) -> list[GpuTuning]:
    """Return the variants to build, check and time."""
    variants = (*TRIED[side, k], *(HALF_TRIED[side, operator.scale] if k == 3 else ()),
                *(CLUSTER_TRIED if (side, k, operator.scale) == (224, 3, "max") else ()))  # fmt: skip
    return [tuning for tuning in variants if tuning.kernel in kernels]


BYTES_PER_SECOND, FLOATS_PER_SECOND = 4.8e12, 67e12
"""The floor's two rates (section 3.5 of the note): memory, and float32 multiply-adds counted as two."""


# --- exactness ------------------------------------------------------------------------------------------------------------------------


def bank_of(k: int, pb: float, tap: Any = "centre") -> FilterBank:
    """Return ten classes' filters."""
    return FilterBank.from_key(KEY, CLASSES, FilterSpec(k, pb, tap))


def kinds(shape: tuple[int, ...], rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return random and extreme images of a shape."""
    random = rng.integers(0, 256, shape, dtype=np.uint8)
    corner = np.zeros(shape, np.uint8)
    corner[..., 0, 0], corner[..., -1, -1] = 255, 1
    return {"random": random, "black": np.zeros(shape, np.uint8), "white": np.full(shape, 255, np.uint8), "corner": corner,
            "coarse": (random // 128 * 255).astype(np.uint8)}  # fmt: skip


def differing(x: np.ndarray, labels: np.ndarray, bank: FilterBank, operator: Operator, tuning: GpuTuning, expected: np.ndarray) -> int:
    """Return how many pixels of the kernel's output, poisoned before, differ."""
    out = torch.full(x.shape, 170, dtype=torch.uint8, device="cuda")
    gpu.cuda(torch.from_numpy(x).cuda(), torch.from_numpy(labels).cuda(), bank, operator, out, tuning=tuning)
    return int((out.cpu().numpy() != expected).sum())


GENERAL = (
    *((k, 0.3 if k < 6 else 0.06, "centre") for k in (1, 2, 3, 4, 5, 7, 8, 9, 11)),
    (3, 0.3, "random"),
    (9, 0.06, "random"),
    (9, 0.18, "centre"),
)
"""k, p_b, tap; the last bank's sums are beyond what mma takes."""
SHAPES = ((5, 3, 32, 32), (3, 1, 7, 13), (2, 4, 33, 48), (1, 3, 1, 1), (2, 3, 5, 17), (2, 2, 8, 8), (2, 3, 37, 40), (3, 5, 64, 16))


def check_general() -> dict[str, Any]:
    """Compare kernels that are built for no size: all borders, scales and filter sides, odd sizes, extreme images."""
    rng, compared, by_mma, wrong = np.random.default_rng(0), 0, 0, []
    for k, pb, tap in GENERAL:
        bank = bank_of(k, pb, tap)
        for shape in (*SHAPES, *(((2, 3, 224, 224),) if k in (3, 9) and tap == "centre" else ())):
            labels = rng.integers(0, 10, shape[0])
            for kind, x in kinds(shape, rng).items():
                for operator in (Operator(pad, scale) for pad in PADS for scale in SCALES):
                    if kind != "random" and (shape[-1] == 224 or k not in (3, 9)):
                        continue
                    expected = reference(x, labels, bank.weights, operator)
                    for tuning in (GpuTuning(fixed=False), FMA):
                        bad = differing(x, labels, bank, operator, tuning, expected)
                        compared += 1
                        by_mma += tuning.kernel == "auto" and toeplitz.fits(bank.weights, shape)
                        if bad:
                            wrong.append(f"{shape} k={k} pb={pb} {tap} {kind} {operator} {tuning.kernel}: {bad} of {x.size} pixels")
    return {"compared": compared, "by_mma": by_mma, "wrong": wrong[:20], "wrong_combinations": len(wrong)}


def defines_of(side: int, k: int, operator: Operator, tuning: GpuTuning) -> tuple[str, ...]:
    """Return the build line's constants of a variant of half, cluster or mma."""
    if tuning.kernel == "half":
        return gpu.half_defines(k, side, operator, tuning)
    return gpu.cluster_defines(k, side, operator, tuning) if tuning.kernel == "cluster" else gpu.mma_defines(k, side, side, operator, tuning)


def check_variant(side: int, k: int, pb: float, operator: Operator, tuning: GpuTuning) -> list[str]:
    """Return what of one timed variant differs from the definition, on random and extreme images of its size."""
    rng, wrong = np.random.default_rng(side + k), []
    bank = bank_of(k, pb)
    for kind, x in kinds((9 if side < 64 else 2, 3, side, side), rng).items():
        labels = rng.integers(0, 10, len(x))
        bad = differing(x, labels, bank, operator, tuning, expected_of(side, k, pb, operator, kind, x, labels))
        if bad:
            wrong.append(f"{kind}: {bad} of {x.size} pixels")
    return wrong


_EXPECTED: dict[tuple[Any, ...], np.ndarray] = {}


def expected_of(side: int, k: int, pb: float, operator: Operator, kind: str, x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the definition's output; the seeds of check_variant make it the same for all variants of a size."""
    found = (side, k, operator, kind)
    if found not in _EXPECTED:
        _EXPECTED[found] = reference(x, labels, bank_of(k, pb).weights, operator)
    return _EXPECTED[found]


# --- builds ---------------------------------------------------------------------------------------------------------------------------


def build_all(parts: list[str], kernels: list[str], sizes: list[tuple[int, int, float, int]]) -> dict[str, Any]:
    """Compile every variant, as many at a time as there are cores; return seconds and what did not build."""
    capability, started = torch.cuda.get_device_capability(), time.perf_counter()
    wanted = set[tuple[str, tuple[str, ...]]]()
    if "exact" in parts:
        wanted |= {("classwise", (f"K={k}",)) for k, _, _ in GENERAL}
        wanted |= {("classwise_mma", gpu.mma_defines(k, 1, 1, GENTLE, GpuTuning())) for k, _, _ in GENERAL if k <= 9}
    for side, k in (size[:2] for size in sizes):
        wanted.add(("classwise", (f"K={k}",)))  # what every timed output is compared with
        for operator in (GENTLE, PAPER):
            for tuning in tried(side, k, operator, kernels):
                if tuning.kernel != "fma":
                    wanted.add((f"classwise_{tuning.kernel}", defines_of(side, k, operator, tuning)))
    failed = []

    def one(job: tuple[str, tuple[str, ...]]) -> None:
        try:
            gpu.build(*job, capability)
        except Exception as error:  # one variant that does not build must not stop the others
            failed.append(f"{job}: {error}")

    with ThreadPoolExecutor(os.cpu_count() or 4) as pool:
        list(pool.map(one, sorted(wanted)))
    return {"built": len(wanted) - len(failed), "failed": failed, "seconds": time.perf_counter() - started}


# --- memory to memory -----------------------------------------------------------------------------------------------------------------


BUSY_CYCLES = 600_000
"""0.3 ms at 1.98 GHz: the device is kept busy while Python launches, so that the events hold the kernel alone (with_launch holds both)."""


def seconds(run: Callable[[], object], repeats: int = 15, busy: bool = True) -> list[float]:
    """Return per-call seconds by CUDA events; data is larger than L2, so each call starts cold. Not `busy`: with the time of its launch."""
    out = []
    for i in range(repeats + 3):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        if busy:
            torch.cuda._sleep(BUSY_CYCLES)
        start.record()
        run()
        end.record()
        end.synchronize()
        if i >= 3:
            out.append(start.elapsed_time(end) / 1e3)
    return out


def copy_rate() -> float:
    """Return bytes/s of a device-to-device copy, read and written."""
    a = torch.randint(0, 256, (1 << 30,), dtype=torch.uint8, device="cuda")
    b = torch.empty_like(a)
    return 2 * a.numel() / statistics.median(seconds(lambda: b.copy_(a)))


def floors(side: int, k: int) -> dict[str, float]:
    """Return nanoseconds an image: the note's floor (memory or float32 arithmetic) and its memory part alone."""
    moved, arithmetic = 2 * 3 * side * side / BYTES_PER_SECOND, 2 * 3 * side * side * k * k / FLOATS_PER_SECOND
    return {"floor_ns": 1e9 * max(moved, arithmetic), "memory_floor_ns": 1e9 * moved}


def time_variants(copied: float, kernels: list[str], sizes: list[tuple[int, int, float, int]]) -> list[dict[str, Any]]:
    """Check, then time every variant of every size; a variant that is wrong is not timed."""
    rows = []
    for side, k, pb, n in sizes:
        x = torch.randint(0, 256, (n, 3, side, side), dtype=torch.uint8, device="cuda")
        labels = torch.randint(0, 10, (n,), device="cuda")
        out, moved = torch.empty_like(x), gpu.bank_to_cuda(bank_of(k, pb), "cuda")
        for operator in (GENTLE, PAPER):
            whole = torch.empty_like(x)
            gpu.launch_cuda(x, labels, moved, operator, whole, k, FMA)
            for tuning in tried(side, k, operator, kernels):
                row: dict[str, Any] = {"side": side, "k": k, "images": n, "operator": str(operator), "tuning": str(tuning), **floors(side, k)}
                try:
                    row["wrong"] = check_variant(side, k, pb, operator, tuning)
                    if not row["wrong"]:
                        out.fill_(170)
                        row |= timed(functools.partial(gpu.launch_cuda, x, labels, moved, operator, out, k, tuning), n, side, row, copied)
                        few = 5
                        expected = reference(x[-few:].cpu().numpy(), labels[-few:].cpu().numpy(), bank_of(k, pb).weights, operator)
                        row["timed_output_right"] = bool((out[-few:].cpu().numpy() == expected).all()) and torch.equal(out, whole)
                except Exception as error:
                    row["error"] = f"{type(error).__name__}: {error}"
                rows.append(row)
                told = ("images_per_second", "with_launch", "share_of_floor", "share_of_memory_floor", "share_of_copy")
                said = {name: round(row.get(name, 0), 3) for name in told}
                exact = "exact" if row.get("timed_output_right") else f"WRONG {row.get('wrong')} {row.get('error', '')}"
                print(side, k, operator.scale, said, row["tuning"], exact, flush=True)
        del x, out, whole
    return rows


def timed(run: Callable[[], None], n: int, side: int, row: dict[str, Any], copied: float) -> dict[str, Any]:
    """Return images/s and the shares of the floors."""
    times = seconds(run)
    ns = 1e9 * statistics.median(times) / n
    launched = n / statistics.median(seconds(run, busy=False))
    return {"images_per_second": 1e9 / ns, "with_launch": launched, "low": n / max(times), "high": n / min(times),
            "share_of_floor": row["floor_ns"] / ns, "share_of_memory_floor": row["memory_floor_ns"] / ns,
            "share_of_copy": 2e9 * 3 * side * side / copied / ns}  # fmt: skip


def best(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the fastest right variant of each size and operator."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        where = (row["side"], row["k"], row["operator"])
        if row.get("timed_output_right") and row["images_per_second"] > found.get(where, {}).get("images_per_second", 0):
            found[where] = row
    return list(found.values())


# --- end to end -----------------------------------------------------------------------------------------------------------------------


def pictures(count: int, side: int, seed: int) -> Iterator[np.ndarray]:
    """Yield `[side, side, 3]` uint8 images: smooth colour fields with some noise, so that codecs work as on photographs."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        coarse = rng.integers(0, 256, (8, 8, 3)).astype(np.float32)
        rows = np.linspace(0, 6.999, side)
        at, part = rows.astype(int), (rows % 1).astype(np.float32)[:, None, None]
        tall = coarse[at] * (1 - part) + coarse[at + 1] * part
        part = part.reshape(1, side, 1)
        yield np.clip(tall[:, at] * (1 - part) + tall[:, at + 1] * part + rng.normal(0, 6, (side, side, 3)), 0, 255).astype(np.uint8)


def write_cifar(folder: Path, count: int) -> None:
    """Write the five training batches of CIFAR-10's format, of `count` images together, and its list of names."""
    folder.mkdir()
    some = np.stack(list(pictures(500, 32, 0))).transpose(0, 3, 1, 2).reshape(500, -1)
    for i in range(1, 6):
        data = np.ascontiguousarray(np.resize(some, (count // 5, 3072)))
        (folder / f"data_batch_{i}").write_bytes(pickle.dumps({b"data": data, b"labels": [j % 10 for j in range(count // 5)]}))
    (folder / "test_batch").write_bytes(pickle.dumps({b"data": some[:10], b"labels": list(range(10))}))
    (folder / "batches.meta").write_bytes(pickle.dumps({b"label_names": [name.encode() for name in CLASSES]}))


def write_folders(folder: Path, count: int, side: int, suffix: str) -> None:
    """Write one folder a class with `count` image files together; 64 different ones."""
    import io

    from PIL import Image

    encoded = []
    for pixels in pictures(64, side, side):
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, "JPEG" if suffix == "jpg" else "PNG", **({"quality": 90} if suffix == "jpg" else {"compress_level": 6}))
        encoded.append(buffer.getvalue())
    for name in CLASSES:
        (folder / name).mkdir(parents=True)
    for i in range(count):
        (folder / CLASSES[i % 10] / f"{i:06d}.{suffix}").write_bytes(encoded[i % 64])


SETS: tuple[tuple[str, Callable[[Path, int], None], int, int, float, str], ...] = (
    ("CIFAR-10 batches, 32x32, k=3", write_cifar, 50_000, 3, 0.3, "png"),
    ("PNG files, 32x32, k=3", lambda folder, count: write_folders(folder, count, 32, "png"), 20_000, 3, 0.3, "png"),
    ("JPEG files, 224x224, k=9, to PNG", lambda folder, count: write_folders(folder, count, 224, "jpg"), 3_000, 9, 0.06, "png"),
    ("JPEG files, 224x224, k=9, to JPEG", lambda folder, count: write_folders(folder, count, 224, "jpg"), 3_000, 9, 0.06, "jpeg:95"),
)
"""Name, writer, images, k, p_b, output format."""


def end_to_end(work: Path, backend: str, workers: int, scale: float) -> list[dict[str, Any]]:
    """Return images/s of `warpwright protect` on each set, cpp beside the chosen back end, and where the time goes."""
    rows = []
    key = work / "key"
    new_key(key)
    for k, pb in ((3, 0.3), (9, 0.06)):  # the C++ builds, once
        backends.cpp(np.zeros((1, 3, 32, 32), np.uint8), np.zeros(1, np.int64), bank_of(k, pb), GENTLE)
    for number, (name, write, count, k, pb, form) in enumerate(SETS):
        count = max(int(count * scale) // 50 * 50, 50)
        row: dict[str, Any] = {"set": name, "images": count, "workers": workers}
        try:
            folder = work / f"in{number}"
            write(folder, count)
            for way in dict.fromkeys((backend, "cpp")):
                row[f"command_{way}"] = command(folder, work / f"{way}{number}", key, way, workers, k, pb, form, count)
            row["split"] = split(folder, work / f"split{number}", key, backend, workers, k, pb, form)
        except Exception as error:
            row["error"] = f"{type(error).__name__}: {error}"
        print(json.dumps(row), flush=True)
        rows.append(row)
    return rows


def command(source: Path, out: Path, key: Path, backend: str, workers: int, k: int, pb: float, form: str, count: int) -> dict[str, Any]:
    """Run the command in a process of its own; return its wall seconds, start and imports included, and images/s."""
    line = [sys.executable, "-m", "warpwright.cli", "protect", str(source), str(out), "--key", str(key), "--preset", "gentle", "--backend", backend]
    line += ["--workers", str(workers), "--k", str(k), "--pb", str(pb), "--json", *(["--format", form] if form != "png" else [])]
    started = time.perf_counter()
    done = subprocess.run(line, capture_output=True, text=True, timeout=240)
    wall = time.perf_counter() - started
    if done.returncode:
        raise RuntimeError(f"{' '.join(line[2:])}: exit {done.returncode}: {done.stderr[-600:]}")
    said = json.loads(done.stdout.strip().splitlines()[-1])
    facts = {"written": said["written"], "failed": len(said["failed"]), "seconds_after_start": said["seconds"]}
    return {"wall_seconds": wall, "images_per_second": count / wall, "images_per_second_after_start": count / said["seconds"], **facts}


def split(source: Path, out: Path, key: Path, backend: str, workers: int, k: int, pb: float, form: str) -> dict[str, Any]:
    """Run protect_data_set here with its three steps timed in the main thread, and one thread's codec rates apart."""
    steps = ("wait_for_read_and_decode", "gather_batch", "filters_to_device", "host_to_device", "kernel", "device_to_host", "encode_and_write")
    spent = dict.fromkeys(steps, 0.0)
    before = protect.decoded, protect._convolve, protect._write, backends.protect
    decoded, convolve, write, apply = before

    def add(name: str, started: float) -> float:
        now = time.perf_counter()
        spent[name] += now - started
        return now

    def waiting(*given: Any) -> Iterator[Any]:
        each = decoded(*given)
        while True:
            started = time.perf_counter()
            one = next(each, None)
            add("wait_for_read_and_decode", started)
            if one is None:
                return
            yield one

    def applied(images: Any, labels: Any, bank: FilterBank, operator: Operator, name: str = "auto") -> Any:
        at = time.perf_counter()
        if name != "cuda":
            result = apply(images, labels, bank, operator, name)
            add("kernel", at)
            return result
        moved = gpu.bank_to_cuda(bank, "cuda")
        torch.cuda.synchronize()
        at = add("filters_to_device", at)
        x, y = (torch.from_numpy(np.ascontiguousarray(array)).cuda() for array in (images, labels))
        torch.cuda.synchronize()
        at = add("host_to_device", at)
        z = torch.empty_like(x)
        gpu.launch_cuda(x, y, moved, operator, z, bank.spec.k)
        torch.cuda.synchronize()
        at = add("kernel", at)
        result = z.cpu().numpy()
        add("device_to_host", at)
        return result

    def convolving(*given: Any) -> Any:
        at, inner = time.perf_counter(), sum(spent.values())
        result = convolve(*given)
        spent["gather_batch"] += time.perf_counter() - at - (sum(spent.values()) - inner)
        return result

    def writing(*given: Any) -> None:
        at = time.perf_counter()
        write(*given)
        add("encode_and_write", at)

    quality = Format("jpeg", int(form.split(":")[1])) if ":" in form else Format()
    options = protect.Options("gentle", k, pb, backend=backend, workers=workers, form=quality)
    opened = sources.open_source(source)
    timed: Any = (waiting, convolving, writing, applied)
    protect.decoded, protect._convolve, protect._write, backends.protect = timed
    try:
        started = time.perf_counter()
        summary = protect.protect_data_set(opened, out, read_key(key), options)
        total = time.perf_counter() - started
    finally:
        protect.decoded, protect._convolve, protect._write, backends.protect = before
    return {"seconds": total, "images_per_second": summary.written / total, "failed": len(summary.failed),
            "share": {name: value / total for name, value in spent.items()} | {"rest": 1 - sum(spent.values()) / total},
            "one_thread": codec_rates(opened, out, options)}  # fmt: skip


def codec_rates(opened: sources.Source, out: Path, options: protect.Options) -> dict[str, float]:
    """Return images/s of one thread: read and decode, and encode."""
    items = [item for item, _ in zip(opened.items(), range(500), strict=False)]
    started = time.perf_counter()
    loaded: list[Picture] = [item.load() for item in items]
    read = time.perf_counter() - started
    sink: sinks.Sink = protect._sink(opened, out, options)
    started = time.perf_counter()
    for picture in loaded:
        sink.prepare(picture)
    return {"read_and_decode": len(items) / read, "encode": len(items) / (time.perf_counter() - started)}


def host_copies() -> dict[str, float]:
    """Return bytes/s between host and device, from pageable and pinned memory."""
    size, found = 256 << 20, {}
    device = torch.empty(size, dtype=torch.uint8, device="cuda")
    for name, host in (("pageable", torch.zeros(size, dtype=torch.uint8)), ("pinned", torch.zeros(size, dtype=torch.uint8).pin_memory())):
        found[f"to_device_{name}"] = size / statistics.median(seconds(functools.partial(device.copy_, host), 5, busy=False))
        found[f"to_host_{name}"] = size / statistics.median(seconds(functools.partial(host.copy_, device), 5, busy=False))
    return found


# --- the run --------------------------------------------------------------------------------------------------------------------------


def facts() -> dict[str, Any]:
    """Return what the figures depend on."""
    said: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": " ".join([Path(sys.executable).name, *sys.argv]),
        "python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__, "cores": os.cpu_count(),
    }  # fmt: skip
    if torch.cuda.is_available():
        said["device"] = torch.cuda.get_device_name()
        query = ["nvidia-smi", "--query-gpu=driver_version,clocks.sm,clocks.max.sm", "--format=csv,noheader"]
        for name, line in (("driver_and_clocks", query), ("nvcc", [native_nvcc(), "--version"])):
            try:
                said[name] = subprocess.run(line, capture_output=True, text=True, timeout=30).stdout.strip().splitlines()[-1]
            except (OSError, IndexError, subprocess.TimeoutExpired) as error:
                said[name] = f"unknown: {error}"
    return said


def native_nvcc() -> str:
    """Return nvcc's path as the build finds it."""
    import shutil

    return shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--parts", default="exact,time,end", help="of exact, time, end (%(default)s)")
    parser.add_argument("--kernels", default="cluster,half,mma,fma", help="of the part time (%(default)s)")
    parser.add_argument("--sides", default="32,224", help="of the part time (%(default)s)")
    parser.add_argument("--backend", default="cuda", help="of the end-to-end part (%(default)s)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 2, help="threads that decode and encode (all cores)")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the end-to-end images (%(default)s)")
    parser.add_argument("--work", type=Path, help="where the data sets are written (a temporary folder)")
    options = parser.parse_args()
    parts, kernels = options.parts.split(","), options.kernels.split(",")
    sizes = [size for size in SIZES if str(size[0]) in options.sides.split(",")]
    result: dict[str, Any] = {**facts(), "part_seconds": {}}

    def part(name: str, run: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        try:
            result[name] = run()
        except Exception as error:
            result[name] = {"error": f"{type(error).__name__}: {error}", "where": traceback.format_exc()[-1500:]}
            print(name, result[name], flush=True)
        result["part_seconds"][name] = round(time.perf_counter() - started, 1)
        if options.out:  # after each part: a run that is cut keeps what it had
            options.out.write_text(json.dumps(result, indent=1) + "\n")
        return result[name]

    if {"exact", "time"} & set(parts):
        print("builds", part("builds", lambda: build_all(parts, kernels, sizes)), flush=True)
    if "time" in parts:
        copied = part("copy_bytes_per_second", copy_rate)
        rows = part("rows", lambda: time_variants(copied, kernels, sizes))
        part("best", lambda: best(rows))
    if "end" in parts:
        if options.backend == "cuda":
            part("host_copies_bytes_per_second", host_copies)
        with tempfile.TemporaryDirectory(dir=options.work) as folder:
            part("end_to_end", lambda: end_to_end(Path(folder), options.backend, options.workers, options.scale))
    if "exact" in parts:
        print("exact", part("exact", check_general), flush=True)
    print(json.dumps({name: value for name, value in result.items() if name not in ("rows", "end_to_end")}, indent=1))


if __name__ == "__main__":
    main()
