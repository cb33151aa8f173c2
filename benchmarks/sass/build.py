"""Compile the kernels of this folder to cubins, with nvcc; also under other flags, whose share of a gain is told apart from the schedule's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).parent
KERNELS = tuple(sorted(path.stem for path in (HERE / "kernels").glob("*.cu")))

_LAUNCH_BOUNDS = re.compile(r"^\.maxntid .*$", re.MULTILINE)
_LEAST_BLOCKS = re.compile(r"^\.minnctapersm .*\n", re.MULTILINE)


@dataclass(frozen=True)
class Flags:
    """How a kernel is compiled."""

    level: int = 3
    """ptxas -O."""
    caching: str = ""
    """ptxas -dlcm: how global loads are cached."""
    blocks: int = 0
    """Blocks that a multiprocessor must hold, which bounds the registers; 0 for what the source says."""
    unroll: int = 0
    """Of the main loop; 0 for what the compiler chooses."""
    stores: str = ""
    """ptxas -dscm: how global stores are cached."""
    ptxas: str = ""
    """Another version of ptxas, by its name in PTXAS; "" for nvcc's own."""

    def __str__(self) -> str:
        said = [f"-O{self.level}"] if self.level != 3 else []
        said += [f"-dlcm={self.caching}"] if self.caching else []
        said += [f"-dscm={self.stores}"] if self.stores else []
        said += [f"minnctapersm {self.blocks}"] if self.blocks else []
        said += [f"ptxas {self.ptxas}"] if self.ptxas else []
        return ", ".join(said + ([f"unroll {self.unroll}"] if self.unroll else [])) or "-O3"


PLAIN = Flags()

PTXAS: dict[str, str] = {}
"""Version -> the path of that ptxas, for whoever has others than nvcc's."""

VARIANTS = (
    *(Flags(level=level) for level in (1, 2)),
    *(Flags(caching=caching) for caching in ("cg", "cs")),
    *(Flags(blocks=blocks) for blocks in (1, 2, 3, 4, 5, 6, 8)),
    *(Flags(unroll=unroll) for unroll in (1, 2, 4, 8, 16)),
)


def joined(chosen: Iterable[Flags]) -> Flags:
    """Return several variants in one; of two that say something of one thing, the first has its way."""
    found = PLAIN
    for flags in chosen:
        new = {name: value for name, value in vars(flags).items() if getattr(found, name) == getattr(PLAIN, name)}
        found = replace(found, **new)
    return found


def nvcc() -> str | None:
    """Return the path of nvcc, None where there is none."""
    found = shutil.which("nvcc")
    return found or next((str(path) for path in sorted(Path("/usr/local").glob("cuda*/bin/nvcc"))), None)


def build(kernel: str, folder: Path, arch: str = "90a", flags: Flags = PLAIN, seconds: float = 120.0) -> Path:
    """Return the cubin of one kernel; raise RuntimeError with the compiler's words when it fails, or when one of its steps takes longer."""
    name = re.sub(r"\W+", "_", f"{kernel} {flags}") if flags != PLAIN else kernel
    cubin, source = folder / f"{name}.cubin", assembly(kernel, folder, arch, flags.unroll, seconds)
    if flags.blocks:
        text = _LEAST_BLOCKS.sub("", source.read_text())
        source = folder / f"{name}.ptx"
        source.write_text(_LAUNCH_BOUNDS.sub(lambda found: f"{found[0]}\n.minnctapersm {flags.blocks}", text))
    asked = [f"-O{flags.level}", *([f"-dlcm={flags.caching}"] if flags.caching else []), *([f"-dscm={flags.stores}"] if flags.stores else [])]
    if flags.ptxas:
        command = [PTXAS[flags.ptxas], f"-arch=sm_{arch}", *asked, "-o", str(cubin), str(source)]
    else:
        passed = [word for option in asked for word in ("-Xptxas", option)]
        command = [nvcc() or "nvcc", f"-arch=sm_{arch}", *passed, "-cubin", "-o", str(cubin), str(source)]
    _run(command, seconds)
    return cubin


def assembly(kernel: str, folder: Path, arch: str, unroll: int, seconds: float) -> Path:
    """Return the PTX of one kernel, made once."""
    made = folder / f"{kernel}_{unroll}.ptx"
    if not made.exists():
        scratch = made.with_suffix(f".{threading.get_ident()}")
        defined = [f"-DUNROLL={unroll}"] if unroll else []
        command = [nvcc() or "nvcc", f"-arch=compute_{arch}", "-std=c++17", *defined, "-ptx", "-o", str(scratch)]
        _run([*command, str(HERE / "kernels" / f"{kernel}.cu")], seconds)
        os.replace(scratch, made)
    return made


def _run(command: list[str], seconds: float) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"{' '.join(command)}: not done within {seconds:g} s") from error
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr[-1000:]}")


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
