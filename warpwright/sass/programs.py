"""The last step of `optimize --polish 30s`: the CUDA kernels of a generated program are rescheduled, and the program carries what is faster.

    the program's CUDA text  -> NVRTC's cubin       as the program itself compiles it
    one run of its self-test -> arrays' sizes       of each kernel's launch, written down by the program
    each kernel              -> polish              its share of the seconds
    what is kept             -> words in the text   for the very machine code and GPU that they were proven on; all else runs as compiled

The program is then judged as any other: verified, and timed beside the baselines. WARPWRIGHT_SASS=off runs it as the compiler made it.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from warpwright.base import Action, Candidate, Source
from warpwright.domains.sass import script
from warpwright.domains.sass.code.cubin import WORD, Cubin
from warpwright.domains.sass.code.kernel import read_kernel
from warpwright.errors import WarpwrightError
from warpwright.native.standalone_cuda import _CudaKernels
from warpwright.sass.polish import Polished, polish

Shapes = Mapping[str, tuple[int, int, int]]
"""Kernel -> pointers that a launch takes, blocks, threads of a block."""

Sizes = Mapping[str, Sequence[int]]
"""Kernel -> bytes of the array behind each pointer."""

KINDS = {"float": "f32", "bf16": "bf16", "int": "i32"}
"""What a harness can draw; integers are zero, as counters are at first."""

BYTES = {"f32": 4, "bf16": 2, "i32": 4}
RECORD_SECONDS = 60.0

_RECORDING = '''
def _told(launch, kernels, path):
    """Launch, and write down the bytes of the arrays behind a kernel's pointers when it is first launched."""
    sizes = {}

    def size(pointer):
        blocks = [block for segment in torch.cuda.memory_snapshot() for block in segment["blocks"]]
        inside = [block for block in blocks if block["address"] <= pointer < block["address"] + block["size"]]
        return inside[0]["address"] + inside[0]["requested_size"] - pointer if inside else 0

    def told(name, tensor, *pointers):
        if name not in sizes:
            sizes[name] = [size(pointer) for pointer in pointers]
            with open(path, "w") as file:
                arch = "{}{}".format(*torch.cuda.get_device_capability())
                __import__("json").dump({"gpu": torch.cuda.get_device_name(), "arch": arch, "sizes": sizes}, file)
        return launch(name, tensor, *pointers)

    return told


CUDA_KERNELS.launch = _told(CUDA_KERNELS.launch, CUDA_KERNELS, @PATH)
'''

_PATCH = '''
def _polished(machine_code, gpu, before, after, words):
    """Return machine_code whose words are those of a faster schedule, for the code and the GPU that it was proven on; all else is as compiled."""

    def patched(arch):
        code = machine_code(arch)
        if _os.environ.get("WARPWRIGHT_SASS") == "off" or _hashlib.sha256(code).hexdigest() != before or torch.cuda.get_device_name() != gpu:
            return code
        edited = bytearray(code)
        for offset, word in words.items():
            edited[offset : offset + len(word) // 2] = bytes.fromhex(word)
        return bytes(edited) if _hashlib.sha256(edited).hexdigest() == after else code

    return patched


CUDA_KERNELS.machine_code = _polished(
    CUDA_KERNELS.machine_code, gpu=@GPU, before="@BEFORE",
    after="@AFTER",
    words=@WORDS,
)
'''


@dataclass(frozen=True)
class Program:
    """A generated program that builds CUDA kernels."""

    text: str
    source: str
    shapes: Shapes
    end: int
    """The line after which its kernels are there."""

    def with_lines(self, lines: str) -> str:
        """Return the program's text with more lines behind its kernels."""
        every = self.text.splitlines(keepends=True)
        return "".join([*every[: self.end], "\n", lines, "\n", *every[self.end :]])


@dataclass(frozen=True)
class Launches:
    """What a run of the program told."""

    gpu: str
    arch: str
    """"90" for sm_90."""
    sizes: Sizes


@dataclass(frozen=True)
class Result:
    """What came of a program."""

    outcomes: tuple[Polished, ...]
    text: str = ""
    """The program with its faster schedules; "" where there is none."""


Record = Callable[[Program], Launches]
PolishKernel = Callable[[Path, Path, str, float], Polished]


def read(text: str) -> Program | None:
    """Return a program's CUDA kernels; None for one that builds none as generated programs do."""
    values: dict[str, ast.expr] = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            values[node.targets[0].id] = node.value
    source, made = values.get("CUDA_SOURCE"), values.get("CUDA_KERNELS")
    if not isinstance(source, ast.Constant) or not isinstance(made, ast.Call) or getattr(made.func, "id", "") != "_CudaKernels":
        return None
    return Program(text, str(source.value), ast.literal_eval(made.args[1]), made.end_lineno or 0)


def polished(text: str, seconds: float, record: Record | None = None, polish_kernel: PolishKernel = polish) -> Result:
    """Reschedule the kernels of a program within `seconds`; every reason for leaving one as it is stands in the outcomes."""
    program = read(text)
    if program is None:
        return Result((Polished("the program", False, "left as it is: it builds no CUDA kernels of ours"),))
    try:
        launches = (record or recorded)(program)
        code = _CudaKernels(program.source, program.shapes).machine_code(launches.arch)
    except (WarpwrightError, RuntimeError, OSError) as error:
        return Result((Polished("the program", False, f"left as it is: {error}"),))
    with tempfile.TemporaryDirectory(prefix="warpwright-polish-") as folder:
        outcomes = [_one(program, name, launches, code, Path(folder), seconds / len(program.shapes), polish_kernel) for name in program.shapes]
    kept = [outcome for outcome in outcomes if outcome.kept]
    return Result(tuple(outcomes), _with_words(program, code, launches.gpu, kept) if kept else "")


def _one(program: Program, name: str, launches: Launches, code: bytes, folder: Path, seconds: float, polish_kernel: PolishKernel) -> Polished:
    if name not in launches.sizes:
        return Polished(name, False, "left as it is: the program's self-test did not launch it")
    written = harness(program, name, launches.sizes[name])
    if not written.startswith("from"):
        return Polished(name, False, f"left as it is: {written}")
    cubin, path = folder / "kernels.cubin", folder / f"{name}.py"
    cubin.write_bytes(code)
    path.write_text(written)
    return polish_kernel(cubin, path, name, seconds)


def harness(program: Program, name: str, sizes: Sequence[int]) -> str:
    """Return the text of a kernel's harness, or why there is none."""
    signature = re.search(rf"__global__ void (?:__launch_bounds__\([^)]*\) )?{name}\(([^)]*)\)", program.source)
    taken = [parameter.strip() for parameter in signature[1].split(",")] if signature else []
    pointers, blocks, threads = program.shapes[name]
    if len(taken) != pointers or len(sizes) != pointers:
        return f"expected {pointers} arrays, saw {len(taken)} parameters and {len(sizes)} sizes"
    arguments = []
    for parameter, size in zip(taken, sizes, strict=True):
        kind = KINDS.get(parameter.removeprefix("const ").split("*")[0].strip())
        if kind is None or size < BYTES.get(kind, 1):
            return f"a harness cannot draw the array {parameter!r} of {size} bytes"
        count = size // BYTES[kind]
        drawn = f'given("{kind}", {count}' if parameter.startswith("const ") else f'updated("{kind}", {count}'
        arguments.append(f"{drawn}, scale=1)" if kind == "i32" else f"{drawn})")
    launch = f'Launch("{name}", ({blocks}, 1, 1), ({threads}, 1, 1), ({", ".join(arguments)},))'
    return f"from warpwright.domains.sass.harness import Launch, given, updated\n\n\ndef launch():\n    return {launch}\n"


def recorded(program: Program) -> Launches:
    """Run a program's self-test in a process of its own, and return what its kernels were launched with; raise WarpwrightError where it fails."""
    with tempfile.TemporaryDirectory(prefix="warpwright-polish-") as folder:
        told, path = Path(folder, "told.json"), Path(folder, "optimized.py")
        path.write_text(program.with_lines(_RECORDING.replace("@PATH", repr(str(told)))))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
        try:
            done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=RECORD_SECONDS, env=environment)
        except subprocess.TimeoutExpired as error:
            raise WarpwrightError(f"expected the program's self-test within {RECORD_SECONDS:g} s, saw it run on") from error
        if not told.exists():
            last = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
            raise WarpwrightError(f"expected the program's self-test to launch its kernels, saw {last[:300]}")
        said = json.loads(told.read_text())
        return Launches(said["gpu"], said["arch"], said["sizes"])


def _with_words(program: Program, code: bytes, gpu: str, kept: Sequence[Polished]) -> str:
    """Return the program's text with the words in which its kernels' cubin differs, numbers of registers and lists of shuffles among them."""
    edited = code
    for outcome in kept:
        kernel = read_kernel(Cubin(code), outcome.kernel)
        schedule = script.read(outcome.schedule, kernel)
        edited = schedule.put_into(Cubin(edited)).data
    offsets = [offset for offset in range(0, len(code), WORD) if code[offset : offset + WORD] != edited[offset : offset + WORD]]
    words = "".join(f'        {offset}: "{edited[offset : offset + WORD].hex()}",\n' for offset in offsets)
    digests = (hashlib.sha256(image).hexdigest() for image in (code, edited))
    lines = _PATCH.replace("@GPU", json.dumps(gpu)).replace("@BEFORE", next(digests)).replace("@AFTER", next(digests))
    return program.with_lines(lines.replace("@WORDS", f"{{\n{words}    }}"))


def candidate_of(best: Candidate, result: Result) -> Candidate:
    """Return the program with its faster schedules as a candidate: its recipe is the program's, then a step for each kernel."""
    (name, _), *others = best.source.files
    source = Source(best.source.language, ((name, result.text), *others), best.source.entry)
    steps = tuple(Action("polish", outcome.kernel) for outcome in result.outcomes if outcome.kept)
    return replace(best, source=source, actions=(*best.actions, *steps), parent=best.key, proposer="polish")
