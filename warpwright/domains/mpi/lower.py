"""From a plan to the candidate file: the original, and a `ModelNew` that runs code made for the layout. It needs torch alone."""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.base import Action, Candidate, Source
from warpwright.domains.mpi.ir import Concat, Dense, Strided
from warpwright.domains.mpi.techniques import Plan, Tuning, Work
from warpwright.native import standalone

_TABLE = 8
"""A Concat of more parts is a loop over tables."""


def task_text(work: Work) -> str:
    """Return the task file: `forward(x)` packs the bytes x of the object, or unpacks the stream x into zeros."""
    body = "x[self.places]" if work.operation == "pack" else "torch.zeros(ROOM, dtype=torch.uint8, device=x.device).index_copy_(0, self.places, x)"
    size = work.room if work.operation == "pack" else work.object.bytes
    return _TASK.format(operation=work.operation, room=work.room, places=_places(work.object.node), offset=work.object.offset, body=body, given=size)


def lower(plan: Plan, actions: Sequence[Action], target: str) -> Candidate:
    """Return the candidate file."""
    recipe = "".join(f"#     {action}\n" for action in actions) or "#     none\n"
    if plan.tuning is None:
        body = "class ModelNew(Model):\n    pass\n"
    else:
        body = _cuda_model(plan.work, plan.tuning) if target == "cuda" else _cpu_model(plan.work, plan.tuning)
    head = f"# MPI_{plan.work.operation.title()} of {plan.work.object}: the original, then ModelNew, which moves the same bytes\n# recipe:\n{recipe}"
    text = f"{head}{task_text(plan.work)}\n\n{body}"
    return Candidate(Source("python", (("optimized.py", text),)), target, tuple(actions), proposer="mpi")


def _places(node: Dense | Strided | Concat | None) -> str:
    if isinstance(node, Strided):
        return f"strided({node.count}, {node.step}, {_places(node.child)})"
    if isinstance(node, Concat):
        return f"torch.cat([{', '.join(f'{offset} + {_places(part)}' for offset, part in node.parts)}])"
    return f"torch.arange({node.bytes if node is not None else 0})"


# --- CPU ---------------------------------------------------------------------------------------------------------------------------------


def cpu_text(work: Work, tuning: Tuning) -> str:
    """Return C++ with the function `move(object, stream, threads)`."""
    loops = _Loops(work.operation == "pack", tuning)
    assert work.object.node is not None
    body = loops.node(work.object.node, f"object + {work.object.offset}", "stream", 1, outermost=True)
    return "\n".join(["#include <cstring>", "", *loops.tables, 'extern "C" void move(char* object, char* stream, int threads) {', *body, "}", ""])


class _Loops:
    """The loops over a layout, in packing order; the tables that they read."""

    def __init__(self, pack: bool, tuning: Tuning) -> None:
        self.pack, self.tuning = pack, tuning
        self.tables: list[str] = []

    def node(self, node: Dense | Strided | Concat, there: str, here: str, depth: int, outermost: bool = False) -> list[str]:
        """Return lines that move a node whose start is the expression `there`, and whose packed bytes begin at `here`."""
        pad, index = "    " * depth, f"i{depth}"
        if isinstance(node, Dense):
            to, source = (here, there) if self.pack else (there, here)
            return [f"{pad}std::memcpy({to}, {source}, {node.bytes});"]
        if isinstance(node, Concat) and len(node.parts) <= _TABLE:
            lines, at = [], 0
            for offset, part in node.parts:
                lines += self.node(part, f"{there} + {offset}", f"{here} + {at}", depth)
                at += part.bytes
            return lines
        parallel = [f"{pad}#pragma omp parallel for num_threads(threads)"] if outermost and self.tuning.cores == 0 else []
        if isinstance(node, Concat):
            return [*parallel, *self._table(node, there, here, depth)]
        head = f"{pad}for (long {index} = 0; {index} < {node.count}; ++{index}) {{"
        inner = self.node(node.child, f"{there} + {index} * {node.step}l", f"{here} + {index} * {node.child.bytes}l", depth + 1)
        return [*parallel, head, *self._prefetch(node, there, index, pad), *inner, f"{pad}}}"]

    def _prefetch(self, node: Strided, there: str, index: str, pad: str) -> list[str]:
        if not self.tuning.ahead or not isinstance(node.child, Dense):
            return []
        return [f"{pad}    __builtin_prefetch({there} + ({index} + {self.tuning.ahead}) * {node.step}l, {int(not self.pack)});"]

    def _table(self, node: Concat, there: str, here: str, depth: int) -> list[str]:
        """Runs of dense parts by tables; parts of another form are written out."""
        if not all(isinstance(part, Dense) for _, part in node.parts):
            lines, at = ["    " * depth + "{"], 0
            for offset, part in node.parts:
                lines += self.node(part, f"{there} + {offset}", f"{here} + {at}", depth + 1)
                at += part.bytes
            return [*lines, "    " * depth + "}"]
        number, starts = len(self.tables), [0]
        for _, part in node.parts:
            starts.append(starts[-1] + part.bytes)
        offsets = ", ".join(str(offset) for offset, _ in node.parts)
        self.tables.append(f"static const long offset{number}[] = {{{offsets}}}, start{number}[] = {{{', '.join(map(str, starts))}}};")
        pad, index = "    " * depth, f"i{depth}"
        sizes = {part.bytes for _, part in node.parts}
        size = str(sizes.pop()) if len(sizes) == 1 else f"start{number}[{index} + 1] - start{number}[{index}]"
        to, source = f"{here} + start{number}[{index}]", f"{there} + offset{number}[{index}]"
        moved = f"std::memcpy({to}, {source}, {size})" if self.pack else f"std::memcpy({source}, {to}, {size})"
        return [f"{pad}for (long {index} = 0; {index} < {len(node.parts)}; ++{index}) {moved};"]


def _cpu_model(work: Work, tuning: Tuning) -> str:
    kernels = standalone.loader(cpu_text(work, tuning), {"move": 2})
    call = "KERNELS.move({object}.data_ptr(), {stream}.data_ptr(), torch.get_num_threads())"
    return "\n" + kernels + _model(work, "KERNELS is not None and x.device.type == 'cpu'", call)


# --- GPU ---------------------------------------------------------------------------------------------------------------------------------


def cuda_text(work: Work, tuning: Tuning) -> str:
    """Return CUDA C++ with the kernel `move(object, stream)`: thread t moves `words` words of the stream."""
    places = _Places(work.object.width(tuning.width))
    assert work.object.node is not None
    root = places.function(work.object.node)
    words = work.object.bytes // places.width
    word = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "uint2", 16: "uint4"}[places.width]
    there, here = f"*(Word*)(object + {work.object.offset} + place{root}(w))", "((Word*)stream)[w]"
    moved = f"{here} = {there};" if work.operation == "pack" else f"{there} = {here};"
    return "\n".join([
        f"typedef {word} Word;", *places.lines, 'extern "C" __global__ void move(char* object, char* stream) {',
        f"    const unsigned first = blockIdx.x * {tuning.threads * tuning.words}u + threadIdx.x;", "#pragma unroll",
        f"    for (int k = 0; k < {tuning.words}; ++k) {{", f"        const unsigned w = first + k * {tuning.threads}u;",
        f"        if (w < {words}u) {moved}", "    }", "}", "",
    ])  # fmt: skip


class _Places:
    """Device functions place0, place1, ...: where word w of a node lies, in bytes from the node's start."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.lines: list[str] = []
        self.known: dict[str, int] = {}

    def function(self, node: Dense | Strided | Concat) -> int:
        """Return the number of the function for a node; equal nodes share one."""
        key = str(node)
        if key not in self.known:
            body = self._body(node)
            self.known[key] = len(self.known)
            self.lines += [f"__device__ __forceinline__ long long place{self.known[key]}(unsigned w) {{", *body, "}"]
        return self.known[key]

    def _body(self, node: Dense | Strided | Concat) -> list[str]:
        if isinstance(node, Dense):
            return [f"    return w * {self.width}ll;"]
        if isinstance(node, Strided):
            child, words = self.function(node.child), node.child.bytes // self.width
            return [f"    return w / {words}u * {node.step}ll + place{child}(w % {words}u);"]
        starts, at = [], 0
        for _, part in node.parts:
            starts.append(at // self.width)
            at += part.bytes
        if all(isinstance(part, Dense) for _, part in node.parts) and len(node.parts) > _TABLE:
            return self._search(node, starts)
        calls = [f"{offset}ll + place{self.function(part)}(w - {start}u)" for start, (offset, part) in zip(starts, node.parts, strict=True)]
        later = [f"    if (w >= {start}u) return {call};" for start, call in zip(starts[1:], calls[1:], strict=True)]
        return [*later[::-1], f"    return {calls[0]};"]

    def _search(self, node: Concat, starts: list[int]) -> list[str]:
        number = f"{len(self.known)}_{len(self.lines)}"
        offsets = ", ".join(f"{offset}ll" for offset, _ in node.parts)
        self.lines += [
            f"__device__ const long long offset_{number}[] = {{{offsets}}};",
            f"__device__ const unsigned start_{number}[] = {{{', '.join(f'{start}u' for start in starts)}}};",
        ]
        return [
            f"    unsigned low = 0, high = {len(starts)}u;",
            "    while (high - low > 1) {",
            "        const unsigned middle = (low + high) / 2;",
            f"        if (start_{number}[middle] <= w) low = middle;",
            "        else high = middle;",
            "    }",
            f"    return offset_{number}[low] + (w - start_{number}[low]) * {self.width}ll;",
        ]


def _cuda_model(work: Work, tuning: Tuning) -> str:
    blocks = -(-work.object.bytes // work.object.width(tuning.width) // (tuning.words * tuning.threads))
    from warpwright.native import standalone_cuda  # imports torch, which takes seconds: a file is described without

    kernels = standalone_cuda.loader(cuda_text(work, tuning), {"move": (2, blocks, tuning.threads)})
    launch = "CUDA_KERNELS.launch('move', x, {object}.data_ptr(), {stream}.data_ptr())"
    aligned = "        (x,) = CUDA_KERNELS.aligned(x)\n"
    return "\n" + kernels + _model(work, "CUDA_KERNELS.usable(x)", launch, aligned)


def _model(work: Work, usable: str, call: str, before: str = "") -> str:
    pack = work.operation == "pack"
    empty = f"empty({work.object.bytes}" if pack else "zeros(ROOM"
    room = f"torch.{empty}, dtype=torch.uint8, device=x.device)"
    expected = work.room if pack else work.object.bytes
    call = call.format(object="x" if pack else "out", stream="out" if pack else "x")
    return _MODEL.format(usable=usable, expected=expected, before=before, room=room, call=call)


_TASK = '''import torch

ROOM = {room}


def strided(count, step, places):
    """The places, count times, step bytes apart."""
    return (torch.arange(count)[:, None] * step + places).reshape(-1)


class Model(torch.nn.Module):
    """MPI_{operation} of a derived datatype: the bytes of an object of ROOM bytes, in the order of its typemap."""

    def __init__(self):
        super().__init__()
        self.register_buffer("places", {offset} + {places}, persistent=False)

    def forward(self, x):
        return {body}


def get_inputs():
    return [torch.randint(0, 256, ({given},), dtype=torch.uint8)]


def get_init_inputs():
    return []
'''

_MODEL = '''class ModelNew(Model):
    def forward(self, x):
        if not ({usable}) or x.dtype != torch.uint8 or x.shape != ({expected},) or not x.is_contiguous():
            return super().forward(x)
{before}        out = {room}
        {call}
        return out
'''
