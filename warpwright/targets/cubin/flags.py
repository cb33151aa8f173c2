"""A kernel's source under other settings of the compiler: the outer moves of the game, whose share is told apart from the schedule's.

    settings(text)                      levels, most registers, caching, unrolling (by a macro UNROLL of the source's), other versions of ptxas
    compiled(text, arch, flags)         by nvcc where there is one, else by NVRTC; by a ptxas of one's own where the flags name one
    fastest(evaluator, text, ...)       each is raced against the shipped cubin, bit by bit; the first of the fastest that the judgement accepts

What is shipped is what nvcc -O3 makes. NVRTC's front end writes other PTX for some sources (for the benchmarks' stencil ptxas needs 40 registers,
not 32, so that fewer blocks are resident: 152 us instead of 104 on an H200): it is a setting like others where there is an nvcc.

The judgement is the one of schedules (judging.py). A search of the winner's schedule begins at the winner; `--option shipped=FILE` has its evidence
say what both gain together.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from warpwright.domains.sass.code.cubin import Cubin
from warpwright.errors import UsageError, WarpwrightError
from warpwright.native import BuildError, nvidia
from warpwright.targets.cubin.evaluator import CubinEvaluator
from warpwright.targets.cubin.judging import TRIED, Judgement
from warpwright.templates.driver import by_nvrtc

WORTH = 1.003
"""Settings that gain less at a glance are not worth a judgement."""

COMPILER_SECONDS = 60.0

NVRTC = "nvrtc"


@dataclass(frozen=True)
class Flags:
    """How a kernel is compiled."""

    level: int = 3
    """ptxas -O."""
    registers: int = 0
    """--maxrregcount, for kernels with launch bounds too; 0 for as many as the compiler wants."""
    caching: str = ""
    """ptxas -dlcm: how loads of global memory are cached."""
    unroll: int = 0
    """What the source's macro UNROLL is; 0 where it is not defined."""
    ptxas: str = ""
    """The path of another ptxas; "" for the compiler's own."""
    front: str = ""
    """"nvrtc" for its front end where there is an nvcc, which is the usual one."""

    def __str__(self) -> str:
        said = [f"-O{self.level}"] if self.level != 3 else []
        said += [f"--maxrregcount={self.registers}"] if self.registers else []
        said += [f"-dlcm={self.caching}"] if self.caching else []
        said += [f"-DUNROLL={self.unroll}"] if self.unroll else []
        return " ".join([*said, *filter(None, (self.ptxas, self.front))]) or "-O3"

    @property
    def assembling(self) -> list[str]:
        """What ptxas is told."""
        return [f"-O{self.level}", *([f"-dlcm={self.caching}"] if self.caching else [])]


SHIPPED = Flags()


def settings(text: str, ptxas: Sequence[str] = ()) -> Iterator[Flags]:
    """Yield the settings that are tried: each by itself, and unrolling with levels, with registers and with each ptxas.

    Each kind for all unrollings in turn: their texts are compiled side by side then, and what there is no time for is of the last kinds.
    """
    unrolls = (0, 1, 2, 4, 8, 16) if "UNROLL" in text else (0,)
    for registers in (0, 32, 64, 96, 128, 168):
        yield from (Flags(unroll=unroll, registers=registers) for unroll in unrolls if unroll or registers)
    for level in (1, 2):
        yield from (Flags(unroll=unroll, level=level) for unroll in unrolls)
    for path in ptxas:
        yield from (Flags(unroll=unroll, ptxas=path) for unroll in unrolls)
    for front in (NVRTC,) if nvcc() else ():
        yield from (Flags(unroll=unroll, front=front) for unroll in unrolls)
    yield from (Flags(caching=caching) for caching in ("cg", "cs"))


def nvcc() -> str:
    """Return the path of nvcc, "" where there is none."""
    return next(iter(nvidia.tools("nvcc")), "")


def compiler(flags: Flags = SHIPPED) -> str:
    """Return what compiles: the path of nvcc, or "nvrtc"."""
    return NVRTC if flags.front == NVRTC else nvcc() or NVRTC


def compiled(text: str, arch: str, flags: Flags = SHIPPED, include: Sequence[str] = ()) -> bytes:
    """Return the cubin of CUDA `text` for `arch`, such as "90a"; raise BuildError where the compiler refuses it."""
    defined = (f"-DUNROLL={flags.unroll}",) if flags.unroll else ()
    if compiler(flags) != NVRTC:
        return _assembled(_by_nvcc(text, arch, (*defined, *(f"-I{Path(folder).resolve()}" for folder in include))), arch, flags)
    options = [f"--gpu-architecture={'compute' if flags.ptxas else 'sm'}_{arch}", "--std=c++17", "-default-device", *defined]
    options += [f"--include-path={folder}" for folder in include]
    if flags.ptxas:
        return _assembled(_by_nvrtc(text, options, "PTX"), arch, flags)
    options += [f"--ptxas-options={word}" for word in flags.assembling]
    options += [f"--maxrregcount={flags.registers}"] if flags.registers else []
    return _by_nvrtc(text, options, "CUBIN")


def _by_nvrtc(text: str, options: Sequence[str], wanted: str) -> bytes:
    return by_nvrtc(text, options, wanted, "the kernel", "it must be without the host's part")


_MAKING: defaultdict[tuple[str, str, tuple[str, ...]], threading.Lock] = defaultdict(threading.Lock)


def _by_nvcc(text: str, arch: str, options: tuple[str, ...]) -> bytes:
    """Return the PTX that nvcc makes, once for all settings of ptxas: whoever asks for the same meanwhile waits for it."""
    with _MAKING[text, arch, options]:
        return _ptx(text, arch, options)


@functools.lru_cache(64)
def _ptx(text: str, arch: str, options: tuple[str, ...]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        source, ptx = Path(folder, "kernel.cu"), Path(folder, "kernel.ptx")
        source.write_text(text)
        _run([nvcc(), f"-arch=compute_{arch}", "-std=c++17", "-O3", *options, "-ptx", "-o", str(ptx), str(source)], "the source must be whole")
        return ptx.read_bytes()


def _run(command: list[str], remedy: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=COMPILER_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{command[0]}: {error}", "give the path of a ptxas, or look at the installation of CUDA") from error
    if done.returncode:
        raise BuildError(f"{command[0]}: {done.stderr[-1000:]}", remedy)


def _assembled(ptx: bytes, arch: str, flags: Flags) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_bytes(bounded(ptx.rstrip(b"\0"), flags.registers))
        most = [f"-maxrregcount={flags.registers}"] if flags.registers else []
        command = [flags.ptxas or _own_ptxas(), f"-arch=sm_{arch}", *flags.assembling, *most, "-o", str(cubin), str(source)]
        _run(command, "a ptxas must be as new as the PTX that the compiler writes")
        return cubin.read_bytes()


def bounded(ptx: bytes, registers: int) -> bytes:
    """Return PTX whose kernels with launch bounds have at most so many registers; 0 for as many as they say.

    ptxas ignores --maxrregcount for them, as nvcc does. Their least number of resident blocks, which bounds registers as well, gives way.
    """
    if not registers:
        return ptx
    return _MOST_THREADS.sub(rb"\1\n.maxnreg %d" % registers, _LEAST_BLOCKS.sub(b"", ptx))


_MOST_THREADS = re.compile(rb"^(\.(?:maxntid|reqntid) .*)$", re.MULTILINE)
_LEAST_BLOCKS = re.compile(rb"^\.minnctapersm .*\n", re.MULTILINE)


def _own_ptxas() -> str:
    """Return the ptxas that lies beside nvcc: another one may be too old for its PTX."""
    beside = Path(nvcc()).with_name("ptxas")
    return str(beside) if beside.exists() else next(iter(nvidia.tools("ptxas")), "ptxas")


@dataclass
class Found:
    """What came of the settings."""

    tried: dict[str, float] = field(default_factory=dict)
    """Flags -> speed-up at a glance; 0 for other words, or what did not launch."""
    refused: dict[str, str] = field(default_factory=dict)
    """Flags -> why the judgement refused them, or that they did not compile."""
    flags: Flags = SHIPPED
    """The fastest that was accepted; as shipped where none was."""
    cubin: bytes = b""
    judgement: Judgement | None = None
    """Of the accepted ones, beside the shipped cubin: warm, cold, and that beside itself."""


def fastest(evaluator: CubinEvaluator, text: str, arch: str, seconds: float, ptxas: Sequence[str] = (), include: Sequence[str] = ()) -> Found:
    """Race the settings of a source against its shipped cubin, which is the evaluator's, for so many seconds; judge the fastest.

    Raises TaskError where the shipped cubin itself cannot be run.
    """
    evaluator.child.start()  # else each setting would fail for it
    end, found, name = time.monotonic() + seconds, Found(), evaluator.kernel.name
    cubins: dict[Flags, bytes] = {}
    known = {_code(evaluator.shipped.cubin.data, name)}
    every = list(settings(text, ptxas))
    pool = ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // 2))
    try:
        asked = [pool.submit(compiled, text, arch, flags, include) for flags in every]
        for flags, done in zip(every, asked, strict=True):
            if time.monotonic() > end:
                break
            try:
                cubin = done.result(max(0.0, end - time.monotonic()))
            except (BuildError, WarpwrightError, TimeoutError) as error:
                found.refused[str(flags)] = str(error)[:300] or "not compiled in time"
                continue
            if _code(cubin, name) in known:
                continue
            known.add(_code(cubin, name))
            found.tried[str(flags)] = _glanced(evaluator, cubin, 0.99 * max([1.0, *found.tried.values()]))
            cubins[flags] = cubin
    finally:
        pool.shutdown(cancel_futures=True)  # judged is on a host that does nothing else
    _judge(evaluator, cubins, found)
    return found


def _glanced(evaluator: CubinEvaluator, cubin: bytes, worth: float) -> float:
    try:
        return evaluator.glance(cubin, worth)[0]
    except WarpwrightError:  # more registers or shared memory than there are, or another launch, say
        return 0.0


def _judge(evaluator: CubinEvaluator, cubins: dict[Flags, bytes], found: Found) -> None:
    for flags in sorted(cubins, key=lambda flags: -found.tried[str(flags)])[:TRIED]:
        if found.tried[str(flags)] <= WORTH:
            return
        try:
            judgement = evaluator.judge_cubin(cubins[flags])
        except WarpwrightError as error:
            found.refused[str(flags)] = str(error)[:300]
            continue
        if judgement.accepted:
            found.flags, found.cubin, found.judgement = flags, cubins[flags], judgement
            return
        found.refused[str(flags)] = judgement.refusal


def _code(data: bytes, name: str) -> bytes:
    cubin = Cubin(data)
    if name not in cubin.kernels:
        raise UsageError(f"expected the kernel {name} in each cubin, saw {', '.join(cubin.kernels)}", 'declare it extern "C"')
    return cubin.code_of(name)
