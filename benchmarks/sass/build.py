"""Compile the kernels of this folder to cubins, with nvcc."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
KERNELS = tuple(sorted(path.stem for path in (HERE / "kernels").glob("*.cu")))


def nvcc() -> str | None:
    """Return the path of nvcc, None where there is none."""
    found = shutil.which("nvcc")
    return found or next((str(path) for path in sorted(Path("/usr/local").glob("cuda*/bin/nvcc"))), None)


def build(kernel: str, folder: Path, arch: str = "90a", flags: Iterable[str] = ("-O3",)) -> Path:
    """Return the cubin of one kernel; raise RuntimeError with the compiler's words when it fails."""
    cubin = folder / f"{kernel}.cubin"
    source = HERE / "kernels" / f"{kernel}.cu"
    command = [nvcc() or "nvcc", f"-arch=sm_{arch}", "-std=c++17", *flags, "-cubin", "-o", str(cubin), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-1000:]}")
    return cubin


def build_all(kernels: Iterable[str], folder: Path, arch: str = "90a", jobs: int = 8) -> dict[str, Path | Exception]:
    """Return the cubin of each kernel, or why there is none."""

    def one(kernel: str) -> Path | Exception:
        try:
            return build(kernel, folder, arch)
        except (RuntimeError, OSError) as error:
            return error

    names = list(kernels)
    with ThreadPoolExecutor(jobs) as pool:
        return dict(zip(names, pool.map(one, names), strict=True))
