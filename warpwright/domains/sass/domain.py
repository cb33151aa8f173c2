"""The sass domain's entry points: a cubin and a harness that launches it (docs/sass.md).

Options: `harness`, the path of the harness file; `kernel`, which of the cubin's kernels, where it has several; `arch`, which of a fat binary's
cubins, where it has several (90 for sm_90); `start`, a schedule to begin at;
`registers`, up to how many registers the kernel's values are spread over first (renaming.py), "most" for as many as leave as many blocks resident;
`shipped`, the cubin under the usual flags where this one is under others: the evidence says what flags and schedule gain together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from warpwright.base import Action, Candidate, Scalar, Source, Task, digest
from warpwright.domains.sass import script
from warpwright.domains.sass.code.cubin import Cubin
from warpwright.domains.sass.code.fatbin import cubin_of, is_fat
from warpwright.domains.sass.code.kernel import Kernel, Schedule, read_kernel
from warpwright.domains.sass.editing import listing
from warpwright.domains.sass.editing.renaming import RESERVED, with_registers
from warpwright.domains.sass.editing.techniques import drawer, techniques
from warpwright.domains.sass.harness import load
from warpwright.domains.sass.model import native_model
from warpwright.domains.sass.model.checker import Checker, complaints
from warpwright.domains.sass.model.distances import shipped
from warpwright.domains.sass.occupancy import MOST, most_registers
from warpwright.errors import TaskError, UsageError
from warpwright.space import Space

name = "sass"

TARGET = "cubin"

SUFFIXES = (".cubin", ".fatbin")

OPTIONS = frozenset(("harness", "kernel", "arch", "start", "registers", "shipped"))

MOST_REGISTERS = "most"

RESOLUTION = 1.0015
"""Kernels timed on the device, in pairs, are told apart from 0.15 % on: A/A medians of ten kernels on an H200 lay within it, but for two."""


def describe(path: Path, options: Mapping[str, Scalar]) -> Task | None:
    """Return the task of a cubin; raise TaskError for one without the kernel that is asked for.

    The option `start` names the text of a schedule (schedule.json of an earlier run) that the search begins at.
    """
    return _task(path, options) if path.suffix in SUFFIXES and options.keys() <= OPTIONS else None


def shipped_task(task: Task) -> Task:
    """Return the task of the cubin under the usual flags, which a task's option `shipped` names."""
    same: dict[str, Scalar] = {"harness": str(task.option("harness_path")), "kernel": str(task.option("kernel")), "arch": kernel_of(task).cubin.arch}
    return _task(Path(str(task.option("shipped_path"))), same)


def _task(path: Path, options: Mapping[str, Scalar]) -> Task:
    data = read_file(path, "a cubin or a fat binary")
    cubin = cubin_of(data, _arch(options))
    kernel = chosen(cubin, _wanted(cubin, options), path, "--option kernel=NAME")
    told: list[tuple[str, Scalar]] = [("kernel", kernel)]
    for what, kind in _FILES:
        if what in options:
            file = Path(str(options[what])).resolve()
            told += [(f"{what}_path", str(file)), (what, digest(read_file(file, kind).hex()))]
    if "shipped" in options:
        _same_kernel(cubin, kernel, Path(str(options["shipped"])))
    if is_fat(data):
        told.append(("arch", cubin.arch))
    if options.get("registers"):
        told.append(("registers", _registers(options, cubin, kernel)))
    return Task(kernel, str(path), name, source_digest=digest(data.hex()), options=tuple(told))


_FILES = (("harness", "a harness (docs/sass.md)"), ("start", "a schedule.json"), ("shipped", "a cubin or a fat binary"))
"""Options that name a file, and what it is."""


def _wanted(cubin: Cubin, options: Mapping[str, Scalar]) -> str:
    """Return the kernel that is asked for: by name, or of several the one that the harness launches; "" for none."""
    if "kernel" in options or "harness" not in options or len(cubin.kernels) == 1:
        return str(options.get("kernel", ""))
    return load(str(options["harness"])).kernel


def _arch(options: Mapping[str, Scalar]) -> int:
    """Return the architecture that is asked for, 0 for none; raise TaskError for what is no number of one."""
    asked = str(options.get("arch", "")).removeprefix("sm_")
    if asked and not asked.isdigit():
        raise TaskError(f"expected arch=90 for sm_90, say, saw {options['arch']}", "it says which cubin of a fat binary is meant")
    return int(asked or 0)


def _same_kernel(cubin: Cubin, kernel: str, path: Path) -> None:
    """Raise TaskError where a cubin cannot stand in for another one of the kernel: a search would only end with that."""
    other = cubin_of(read_file(path, "a cubin or a fat binary"), cubin.arch)
    if kernel not in other.kernels or other.parameters(kernel) != cubin.parameters(kernel):
        raise TaskError(
            f"expected a cubin with the same kernel {kernel}, saw {path} with {', '.join(other.kernels) or 'none'}", "shipped=FILE names it"
        )


def _registers(options: Mapping[str, Scalar], cubin: Cubin, kernel: str) -> int:
    """Return the registers that are asked for; raise TaskError for what is no number of them."""
    asked = str(options["registers"])
    if asked == MOST_REGISTERS:
        if "harness" not in options:
            raise TaskError(f"expected a harness, by which resident blocks are counted, for registers={MOST_REGISTERS}", "or give a number")
        return most_registers(cubin, replace(load(str(options["harness"])), kernel=kernel))
    if not asked.isdigit() or not RESERVED < int(asked) <= MOST:
        raise TaskError(f"expected registers={MOST_REGISTERS} or a number up to {MOST}, saw {asked}", "see docs/sass.md")
    return int(asked)


def space(task: Task, target: str) -> Space[Schedule]:
    """Return the legal edits of the kernel's schedule."""
    if target != TARGET:
        raise UsageError(f"expected the target {TARGET} for machine code, saw {target!r}", f"pass --target {TARGET}")
    checker = checker_of(kernel_of(task))
    kinds = techniques(checker)

    def lower_proven(schedule: Schedule, actions: tuple[Action, ...]) -> Candidate:
        candidate = lower(schedule, actions)
        checker.note(candidate.key, schedule)
        return candidate

    return Space(beginning(task, checker), kinds, lower_proven, draw=drawer(checker, kinds), resolution=RESOLUTION)


def build() -> None:
    """Build what edits call in C++, some ten seconds once on a machine, before a search's time begins; raise UsageError without a compiler."""
    native_model.library()
    listing.library()


def beginning(task: Task, checker: Checker) -> Schedule:
    """Return the schedule that a search begins at: the compiler's, or what the task's start says; raise TaskError when the rules refuse that."""
    path = str(task.option("start_path"))
    if not path:
        return checker.kernel.original
    schedule = script.read(read_file(Path(path), "a schedule.json").decode(errors="replace"), checker.kernel)
    if schedule.kernel.words != checker.kernel.words:
        raise TaskError(
            f"expected a schedule of the compiler's registers, saw {path} with {schedule.kernel.registers}",
            f"give --option registers={schedule.kernel.registers} too",
        )
    problems = complaints(schedule, checker)
    adopted = None if problems else checker.adopted(schedule)
    if adopted is None:
        reason = problems[0] if problems else "at the edge of a block"
        raise TaskError(f"the model of hazards refuses the schedule {path}: {reason}", "begin without it")
    return adopted


def lower(schedule: Schedule, actions: tuple[Action, ...]) -> Candidate:
    """Return a schedule as a candidate: the text of what differs from the original."""
    return Candidate(Source("sass", (("schedule.json", script.write(schedule)),), entry=schedule.kernel.name), TARGET, actions, proposer="sass")


def kernel_of(task: Task) -> Kernel:
    """Return the task's kernel, read; raise TaskError when its file has changed since."""
    data = read_file(Path(task.path), "a cubin or a fat binary")
    if digest(data.hex()) != task.source_digest:
        raise TaskError(f"{task.path} has changed since this task was described", "start again, or restore the file")
    return _kernel(data, int(task.option("arch") or 0), str(task.option("kernel")), int(task.option("registers") or 0))


@lru_cache(2)
def _kernel(data: bytes, arch: int, name: str, registers: int) -> Kernel:
    """Read a kernel once for whoever proposes and whoever measures: what either has checked need not be checked again."""
    return with_registers(read_kernel(cubin_of(data, arch), name), registers)


@lru_cache(2)
def checker_of(kernel: Kernel) -> Checker:
    """Return the rules of a kernel, with the distances of its architecture and of its own compiler's schedule."""
    return Checker(kernel, shipped(kernel.cubin.arch).with_kernel(kernel.compiled or kernel))


def chosen(cubin: Cubin, wanted: str, path: Path, option: str) -> str:
    """Return the name of the kernel that is meant; raise TaskError, with the option that names one, where that is not clear."""
    if wanted and wanted in cubin.kernels:
        return wanted
    if wanted or len(cubin.kernels) != 1:
        asked = f"the kernel {wanted!r}" if wanted else "one kernel"
        raise TaskError(f"expected {asked} in {path}, saw {', '.join(cubin.kernels) or 'none'}", f"name one with {option}")
    return cubin.kernels[0]


def read_file(path: Path, kind: str) -> bytes:
    """Return a file's bytes; raise TaskError, with what kind of file is meant, where it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise TaskError(f"{path} cannot be read: {error.strerror or error}", f"give the path of {kind}") from error
