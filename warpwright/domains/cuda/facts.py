"""What nvcc and the disassembler say of a program's kernels: registers, shared memory, spills, occupancy, and what instructions they are made of.

The program's CUDA text is compiled for the GPU's architecture; nothing is run. Without nvcc there are no such facts, and that is said.
"""

from __future__ import annotations

import ast
import json
import math
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from warpwright import native
from warpwright.base import Candidate, Scalar, Task, digest
from warpwright.domains.cuda import triton_text, unit
from warpwright.domains.cuda.constants import block_shape
from warpwright.domains.cuda.occupancy import USUAL, architecture, occupancy
from warpwright.errors import NotApplicable
from warpwright.files import write_whole
from warpwright.native import nvidia
from warpwright.space import Facts

COMPILE_SECONDS = 60.0

ALL = "registers, shared memory, spills, occupancy, instructions"

KINDS: tuple[tuple[str, str], ...] = (
    (r"LDG\.\S*128", "128-bit global loads"),
    (r"LDG|LD\b", "global loads"),
    (r"STG\.\S*128", "128-bit global stores"),
    (r"STG|ST\b", "global stores"),
    (r"LDGSTS|UBLKCP|UTMA", "copies to shared memory"),
    (r"RED|ATOMG|ATOM\b", "global atomics"),
    (r"ATOMS", "shared atomics"),
    (r"LDSM?\b|LDS\.", "shared loads"),
    (r"STSM?\b|STS\.", "shared stores"),
    (r"LDL|STL", "local memory (spills)"),
    (r"SHFL|REDUX|VOTE|MATCH", "warp exchanges"),
    (r"BAR|SYNCS", "barriers"),
    (r"[HIBQ]MMA|[HIQ]GMMA|UTC\w*MMA|DMMA", "tensor cores"),
    (r"MUFU", "special functions"),
    (r"F(FMA|ADD|MUL)", "float32 arithmetic"),
    (r"D(FMA|ADD|MUL)", "float64 arithmetic"),
    (r"BRA|BRX|BSSY|BSYNC|CALL|RET|JMP", "branches"),
)
"""Beginning of an instruction's name -> its kind, the first that fits."""

PERMITTED = ("-use_fast_math", "--use_fast_math")
"""Flags of a program that the compiler is given here, outside the worker's fences: a text from elsewhere may name any."""

_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")


def facts(task: Task, program: Candidate, machine: str) -> Facts:
    """Return what can be said of a program's kernels without running it."""
    return of_text(program.source.text, machine)


def of_text(text: str, machine: str) -> Facts:
    """Return the facts of a generated Python program that holds CUDA text."""
    held = held_in(text)
    if held is None:
        what = "a Triton program is compiled when it runs" if triton_text.MARK in text else "the program holds no CUDA text that could be compiled"
        return Facts({}, missing=(what,))
    source, flags = held
    compilers = nvidia.tools("nvcc")
    if not compilers:
        return Facts({}, missing=(f"{ALL}: nvcc is not here",))
    arch = architecture(machine)
    about = f"compiled for sm_{arch or USUAL}" + ("" if arch else ", the program itself ran on no GPU that is known")
    kept = native.kept_file(f"{digest('facts 2', source, arch, *flags, *compilers[:1], *nvidia.tools('nvdisasm')[:1])}.json")
    known = _kept(kept)
    if known is None:
        known = _compiled(source, flags, arch or USUAL, compilers[0])
        _keep(kept, known)
    return Facts(known.parts, about, known.missing)


def held_in(text: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the CUDA text and the compiler's flags that a generated program has; None where it has none."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    assigned: dict[str, object] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in ("CUDA_SOURCE", "FLAGS"):
            assigned[node.targets[0].id] = ast.literal_eval(node.value)
    source, flags = assigned.get("CUDA_SOURCE"), assigned.get("FLAGS", ())
    if not isinstance(source, str) or not isinstance(flags, tuple):
        return None
    return source, tuple(flag for flag in PERMITTED if flag in flags)


def _compiled(source: str, flags: tuple[str, ...], arch: str, compiler: str) -> Facts:
    with tempfile.TemporaryDirectory() as folder:
        path, cubin = Path(folder, "kernels.cu"), Path(folder, "kernels.cubin")
        path.write_text(source)
        command = [compiler, "-O3", "-std=c++17", f"-arch=sm_{arch}", "-cubin", "-Xptxas", "-v", *flags, str(path), "-o", str(cubin)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            return Facts({}, missing=(f"{ALL}: {error}",))
        if done.returncode:
            return Facts({}, missing=(f"{ALL}: nvcc refuses the text",))  # its words may quote any file
        listing, missing = _listing(cubin)
    parts = {name: {**own} for name, own in _of_the_assembler(done.stderr).items()}
    sizes = block_sizes(source)
    for name, own in parts.items():
        sure = sizes.get(name.partition("<")[0])
        share = occupancy(arch, sure or 0, int(own["registers a thread"]), int(own["shared memory, bytes"]))
        if sure and share is not None:
            own |= {"threads a block": sure, "occupancy, %": round(100 * share)}
        else:
            missing = (*missing, f"occupancy of {name}: its block's size is no constant of the text")
        own |= listing.get(name, {})
    return Facts(parts, missing=missing)


def _of_the_assembler(output: str) -> dict[str, dict[str, Scalar]]:
    """Return what `ptxas -v` says of each kernel."""
    kernels: dict[str, dict[str, Scalar]] = {}
    for piece in re.split(r"(?=ptxas info\s+: Compiling entry function)", output):
        entry, registers = _ENTRY.search(piece), _REGISTERS.search(piece)
        if entry is None or registers is None:
            continue
        spills, shared = _SPILLS.search(piece), _SHARED.search(piece)
        own: dict[str, Scalar] = {"registers a thread": int(registers[1]), "shared memory, bytes": int(shared[1]) if shared else 0}
        own["spilled, bytes"] = int(spills[2]) + int(spills[3]) if spills else 0
        kernels[_plain(entry[1], kernels)] = own
    return kernels


def _plain(mangled: str, taken: Mapping[str, object]) -> str:
    """Return a kernel's name as its author wrote it; instances of a template are told apart by their number."""
    match = re.match(r"_Z(?:L|N\d+_GLOBAL__N__\w+?|NK?|N)?(\d+)", mangled)
    if match is None:
        return mangled
    name = mangled[match.end() : match.end() + int(match[1])]
    if mangled[match.end() + int(match[1]) : match.end() + int(match[1]) + 1] == "I":
        name += f"<{1 + sum(one.startswith(name + '<') for one in taken)}>"
    return name if name not in taken else mangled


def _listing(cubin: Path) -> tuple[dict[str, dict[str, Scalar]], tuple[str, ...]]:
    """Return how many instructions of each kind each kernel has, as the disassembler lists them."""
    tools = nvidia.tools("nvdisasm")
    if not tools:
        return {}, ("instructions: nvdisasm is not here (pip install 'warpwright[sass]')",)
    complaint = ""
    for tool in tools:
        done = subprocess.run([tool, "-c", str(cubin)], capture_output=True, text=True, timeout=COMPILE_SECONDS)
        if done.returncode == 0:
            return _counted(done.stdout), ()
        complaint = (done.stderr.strip().splitlines() or [f"nvdisasm ended with {done.returncode}"])[-1]
    return {}, (f"instructions: {complaint[:200]}",)


def _counted(listing: str) -> dict[str, dict[str, Scalar]]:
    kernels: dict[str, dict[str, Scalar]] = {}
    for section in re.split(r"^\s*\.section\s+\.text\.", listing, flags=re.M)[1:]:
        counts: Counter[str] = Counter()
        for line in section.splitlines():
            match = _INSTRUCTION.match(line)
            if match is None or match[1] == "NOP":
                continue
            counts["instructions"] += 1
            kind = next((kind for pattern, kind in KINDS if re.match(pattern, match[1])), "")
            if kind:
                counts[kind] += 1
        kernels[_plain(re.split(r"[,\s]", section, maxsplit=1)[0], kernels)] = dict(counts)
    return kernels


def block_sizes(source: str) -> dict[str, int]:
    """Return how many threads a block of each kernel has, where each of its launches says so by the same constants."""
    try:
        read = unit.read(source)
    except NotApplicable:
        return {}
    sizes_of: dict[str, set[int | None]] = {}
    for launch in read.launches:
        shape = block_shape(read, launch)
        sizes_of.setdefault(launch.kernel, set()).add(math.prod(shape) if shape is not None else None)
    return {name: size for name, sizes in sizes_of.items() if len(sizes) == 1 and (size := next(iter(sizes))) is not None}


def _kept(path: Path) -> Facts | None:
    try:
        data = json.loads(path.read_text())
        return Facts(data["parts"], missing=tuple(data["missing"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep(path: Path, facts: Facts) -> None:
    if not facts.parts:  # a compiler that failed may do better tomorrow
        return
    write_whole(path, json.dumps(asdict(facts)))
