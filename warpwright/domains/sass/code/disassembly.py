"""The listing of a kernel, by NVIDIA's disassembler: text, code words, and the registers that each instruction writes and reads.

`nvdisasm -c -hex -plr` prints the live range of every register, so widths and implicit operands need no tables of ours. An nvdisasm reads one flavour
of cubin (CUDA 12 or 13), so each that is installed is tried. Where none is installed, a listing that was kept beside the cubin will do.
"""

from __future__ import annotations

import functools
import gzip
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from warpwright.base import digest
from warpwright.domains.sass.code.cubin import WORD, Cubin
from warpwright.errors import CaptureError, UsageError
from warpwright.native import cache_folder, kept_file, nvidia

R, UR, P, UP = 0, 256, 512, 768
"""Where the numbers of the four register files begin: register UR4 is 260."""

_FILES = {"GPR": R, "UGPR": UR, "PRED": P, "UPRED": UP}
_PREFIXES = {R: "R", UR: "UR", P: "P", UP: "UP"}

_OPTIONS = ("-c", "-hex", "-plr")

_SECONDS = 300.0
"""A listing of 12,000 instructions took 7 s on a busy machine."""

_OTHER_FLAVOUR = (
    "put the nvdisasm of the CUDA version that built it on the PATH, or build it with another: Triton takes the ptxas that TRITON_PTXAS_PATH names"
)
"""Triton 3.8 brings ptxas 12.9 and nvdisasm 13.1, which cannot list what the former builds."""

_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")
_HALF_WORD = re.compile(r"/\* 0x([0-9a-f]{16}) \*/")
_LABEL = re.compile(r"^(\.L[\w.]*|[\w$.]+):\s*$")
_LOCAL = re.compile(r"\.L_\w+")
_INDIRECT = re.compile(r"\b(BRX|JMX|BRXU|JMXU)\b")
_JUMP = re.compile(r"`\((\.L\w+)\)")
_ANNOTATION = re.compile(r"\s{2,}[&?].*$|\s*\(\*.*?\*\)")
"""nvdisasm 12.8 prints the control fields of sm_120 after the instruction, 13.2 and later remarks such as (*"SpillRefill"*)."""


@dataclass(frozen=True)
class Line:
    """One instruction as listed."""

    text: str
    word: int
    defs: frozenset[int]
    uses: frozenset[int]


@dataclass(frozen=True)
class Listing:
    """A kernel's instructions, without the padding at its end, and where its labels stand."""

    lines: tuple[Line, ...]
    labels: dict[str, int]


def register_name(register: int) -> str:
    """Return what a register is called: 260 is UR4."""
    file = register & ~255
    return f"{_PREFIXES[file]}{register - file}"


def listing(cubin: Cubin, kernel: str) -> Listing:
    """Return the listing of a kernel; raise CaptureError where no disassembler reads this cubin, UsageError where there is none."""
    return parse(disassembly(cubin), kernel, cubin.words(kernel))


def disassembly(cubin: Cubin) -> str:
    """Return nvdisasm's text of a cubin, from the cache of listings where it is there."""
    kept = _kept(cubin.data)
    if kept.exists():
        return gzip.decompress(kept.read_bytes()).decode()
    text = _disassemble(cubin)
    keep(cubin.data, text)
    return text


def keep(data: bytes, text: str) -> None:
    """Put a cubin's disassembly into the cache, so that it is read on a machine without nvdisasm."""
    with tempfile.NamedTemporaryFile(dir=cache_folder(), delete=False) as file:
        file.write(gzip.compress(text.encode(), mtime=0))
    os.replace(file.name, _kept(data))


def _kept(data: bytes) -> Path:
    return kept_file(f"{digest('nvdisasm', data.hex())}.plr.gz")


def _disassemble(cubin: Cubin) -> str:
    tools, complaints = disassemblers(), []
    if not tools:
        raise UsageError("expected NVIDIA's disassembler nvdisasm, saw none", "pip install 'warpwright[sass]', or put nvdisasm on the PATH")
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin.data)
        file.flush()
        for tool in tools:
            try:
                done = subprocess.run([tool, *_OPTIONS, file.name], capture_output=True, text=True, errors="replace", timeout=_SECONDS)
            except (OSError, subprocess.TimeoutExpired) as error:  # a damaged cubin, say
                complaints.append(f"{tool}: {error}"[:300])
                continue
            if done.returncode == 0 and "not supported yet" not in done.stderr:
                return done.stdout
            complaints.append(f"{tool}: {(done.stderr or done.stdout).strip()[:200]}")
    raise CaptureError(f"no nvdisasm reads this cubin (ELF flavour {cubin.flavour}): {'; '.join(complaints)}", _OTHER_FLAVOUR)


@functools.cache
def disassemblers() -> tuple[str, ...]:
    """Return the paths of every nvdisasm here: on the PATH, in CUDA's folders, in registry packages."""
    return nvidia.tools("nvdisasm")


# --- parsing -----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _File:
    """The columns of one register file in the table of live ranges."""

    base: int
    start: int
    end: int
    registers: dict[int, int]
    """Column -> register."""


def parse(text: str, kernel: str, words: tuple[int, ...]) -> Listing:
    """Return the listing of `kernel` out of nvdisasm's text; raise CaptureError where it disagrees with the code words or lacks a label."""
    lines = _section(text, kernel)
    lines_read = _instructions(lines, _columns(lines))
    labels: dict[str, int] = {}
    index = 0
    for line in lines:
        if _INSTRUCTION.match(line):
            index += 1
        elif label := _LABEL.match(line.partition("//")[0].rstrip()):  # a rule of the table, "// +...", may stand beside one
            labels[label[1]] = index
    if not lines_read or tuple(line.word for line in lines_read) != words[: len(lines_read)]:
        raise CaptureError(f"{kernel}: nvdisasm listed {len(lines_read)} instructions that are not the {len(words)} words of its code", "report this")
    missing = {label for line in lines_read for label in _JUMP.findall(line.text)} - labels.keys()
    if missing:
        raise CaptureError(
            f"{kernel}: expected every label that a branch names, saw no {', '.join(sorted(missing)[:3])} in nvdisasm's listing", "report this"
        )
    return Listing(tuple(lines_read), _of_use(labels, lines_read))


def _of_use(labels: dict[str, int], lines: list[Line]) -> dict[str, int]:
    """Return the labels that an instruction names, and those that are no local ones; all of them where an instruction jumps to an address of its own.

    From 13.2 on nvdisasm puts a label at each place that .nv.info lists, shuffles and spilled registers: nothing jumps there.
    """
    if any(_INDIRECT.search(line.text) for line in lines):
        return labels
    named = {label for line in lines for label in _LOCAL.findall(line.text)}
    return {label: place for label, place in labels.items() if label in named or not _LOCAL.match(label)}


def _section(text: str, kernel: str) -> list[str]:
    """Return the lines of a kernel's code section."""
    inside: list[str] = []
    here = False
    for line in text.splitlines():
        if line.startswith("//-----"):
            here = f".text.{kernel} " in line
        elif here:
            inside.append(line)
    return inside


def _columns(lines: list[str]) -> list[_File]:
    """Read the header of the table of live ranges: which column is which register."""
    names: list[str] = []
    for line in lines:
        left, mark, right = line.partition("// |")
        if not mark:
            continue
        if not names and any(name in right for name in _FILES):
            names = [name.split()[0] for name in right.split("|") if name.strip()]
        elif "#" in right:
            return list(_files(names, right, len(left) + len(mark)))
    return []


def _files(names: list[str], header: str, start: int) -> list[_File]:
    files = []
    for name, cell in zip(names, header.split("|"), strict=False):
        registers = {start + column: int(match[0]) for match in re.finditer(r"\d+", cell) for column in range(match.start(), match.end())}
        files.append(_File(_FILES[name], start, start + len(cell), registers))
        start += len(cell) + 1
    return files


def _instructions(lines: list[str], files: list[_File]) -> list[Line]:
    """Read the instructions: two lines each, marks of both count (^ written, v read, x both)."""
    instructions: list[Line] = []
    for line in lines:
        left = line.partition("// |")[0]
        first, half = _INSTRUCTION.match(left), _HALF_WORD.search(left)
        if first and half:
            if int(first[1], 16) != WORD * len(instructions):
                raise CaptureError(f"expected the instruction at {WORD * len(instructions):#x}, saw {left.strip()!r}", "report this")
            instructions.append(Line(_ANNOTATION.sub("", first[2]), int(half[1], 16), *_marks(line, files)))
        elif half and instructions:
            defs, uses = _marks(line, files)
            last = instructions[-1]
            instructions[-1] = Line(last.text, last.word | int(half[1], 16) << 64, last.defs | defs, last.uses | uses)
    return instructions


def _marks(line: str, files: list[_File]) -> tuple[frozenset[int], frozenset[int]]:
    defs, uses = set(), set()
    for file in files:
        for mark in re.finditer(r"[\^vx]", line[file.start : file.end]):
            register = file.registers.get(file.start + mark.start())
            if register is None:
                raise CaptureError(f"a mark of nvdisasm's live ranges stands under no register: {line.strip()!r}", "report this")
            if mark[0] in "^x":
                defs.add(file.base + register)
            if mark[0] in "vx":
                uses.add(file.base + register)
    return frozenset(defs), frozenset(uses)


def nvdisasm_text(cubin: Cubin) -> str:
    """Return nvdisasm's text without the cache, for those who check it."""
    return _disassemble(cubin)


def is_available() -> bool:
    """Is there any nvdisasm here?"""
    return bool(disassemblers())
