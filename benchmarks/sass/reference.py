"""The kernels of this folder against float64, at the small size of each harness."""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path

import numpy as np

from warpwright.targets.cubin.evaluator import CubinEvaluator
from warpwright.targets.cubin.process import Child, Job

TOLERANCE = {"f32": 1e-4, "f16": 3e-3, "bf16": 1e-2}
"""Relative error (root mean square) of the original against float64 at most, by the kind of its output."""


def error_against_float64(evaluator: CubinEvaluator, harness: Path) -> float:
    """Return the original's relative error; raise RuntimeError where it is not what it should compute."""
    names = runpy.run_path(str(harness))
    job = Job(**{**vars(evaluator.job), "function": "small", "sets": 1})
    with tempfile.TemporaryDirectory() as folder:
        child = Child(job, Path(folder))
        said = child.ask({"do": "arrays", "folder": folder, "seed": 5}, 30.0)
        child.end()
        arrays = [as_float64(Path(folder, f"{place}.raw").read_bytes(), kind) for place, kind in enumerate(said["kinds"])]
    inputs = [array for array, role in zip(arrays, said["roles"], strict=True) if role == "given"]
    [output] = [(array, kind) for array, role, kind in zip(arrays, said["roles"], said["kinds"], strict=True) if role == "output"]
    wanted = np.asarray(names["expected"](*inputs)).reshape(-1)
    error = float(np.sqrt(np.mean((output[0] - wanted) ** 2) / np.mean(wanted**2)))
    if not error < TOLERANCE[output[1]]:
        raise RuntimeError(f"expected the kernel within {TOLERANCE[output[1]]} of float64, saw {error}")
    return error


def as_float64(data: bytes, kind: str) -> np.ndarray:
    """Return raw numbers as float64."""
    if kind == "bf16":
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if kind == "e4m3":
        return _E4M3[np.frombuffer(data, np.uint8)]
    return np.frombuffer(data, {"f32": np.float32, "f16": np.float16, "i32": np.int32}[kind]).astype(np.float64)


def _e4m3(bits: int) -> float:
    """Return the number of eight bits: sign, four of exponent (bias 7), three of mantissa; no infinities."""
    exponent, mantissa = bits >> 3 & 15, bits & 7
    size = mantissa / 8 * 2.0**-6 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7)
    return float("nan") if bits & 127 == 127 else -size if bits >> 7 else size


_E4M3 = np.array([_e4m3(bits) for bits in range(256)])
