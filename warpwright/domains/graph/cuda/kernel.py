"""A fused CUDA kernel as a callable that stands in the graph: run, it interprets the calls it replaced; lowered, it is CUDA C++ and its launch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from torch import fx

from warpwright import templates
from warpwright.domains.graph.cpp.kernel import Fused
from warpwright.domains.graph.cpp.program import FLOATS, Program
from warpwright.domains.graph.cuda import recurrences, scans, windows
from warpwright.domains.graph.cuda.generate import generate
from warpwright.domains.graph.cuda.orders import digits, histogram, select, sorts, top_k
from warpwright.domains.graph.cuda.placement import CONTIGUOUS, arranged
from warpwright.domains.graph.cuda.plan import DEFAULT, Tuning
from warpwright.domains.graph.ir import is_tensor, value

DETERMINISTIC = "torch.are_deterministic_algorithms_enabled()"


class CudaKernel(Fused):
    """A generated CUDA kernel."""

    floats = FLOATS

    def __init__(self, name: str, program: Program, nodes: Sequence[fx.Node], tuning: Tuning = DEFAULT, plain: Collection[str] = ()) -> None:
        """`plain`: the calls whose results shall be contiguous; others lie as torch has them, where that can be."""
        super().__init__(name, program, nodes)
        self.placement = arranged(program, plain)
        self.generated = generate(program, name, tuning, self.placement)
        self.text = self.generated.text
        self.heads = ("bags.h",) if any(move.bag for moves in program.moves.values() for move in moves) else ()
        strides = self.placement.strides[len(program.operands) :] or (None,) * len(program.outputs)
        self.laid = {i: steps for i, steps in enumerate(strides) if steps is not None}

    heads: tuple[str, ...] = ()
    """Headers of `templates/` that the text needs besides fused_math.h."""
    turned: frozenset[int] = frozenset()
    """Sources that a kernel of ours puts in order before this one."""

    @property
    def in_any_order(self) -> bool:
        """Do results depend on an order that is another in each run? torch's do not where the user asks for that, at some cost."""
        return any(target.how in ("add", "mul", "put") for target in self.program.sums.values())

    @property
    def expected(self) -> dict[int, tuple[int, ...]]:
        """Source -> the strides that the kernel expects of it, where it is not contiguous."""
        return {source: steps for t, source in enumerate(self.operands) if (steps := self.placement.of(t)) is not None}

    @property
    def copied(self) -> list[fx.Node]:
        """The sources that are copied by torch before the kernel runs."""
        sources = [node for i, node in enumerate(self.sources) if i not in self.expected and i not in self.turned]
        return [node for node in sources if is_tensor(node) and not value(node).is_contiguous()]

    def python_text(self) -> str:
        """Return the Python function that allocates the results and launches the kernel. Each line costs time of the host: there are few."""
        lines = self.opening("not CUDA_KERNELS.usable(a0)" + f" or {DETERMINISTIC}" * self.in_any_order)
        lines += [line for i, name in enumerate(self.names) for line in self._laid_out(i, name)]
        places = [f"p{i}" for i in range(len(self.names))]
        lines.append(f"    {', '.join(places)} = {', '.join(f'{name}.data_ptr()' for name in self.names)}")
        needing = {source for t, source in enumerate(self.operands) if t not in self.generated.loose}
        tight = [i for i in range(len(self.names)) if i in needing]
        if self.generated.vector > 1 and tight:
            lines.append(f"    if ({' | '.join(places[i] for i in tight)}) % 16:")
            arguments = [f"*CUDA_KERNELS.aligned({name})" if i in tight else name for i, name in enumerate(self.names)]
            every = f"*CUDA_KERNELS.aligned({', '.join(self.names)})"
            lines.append(f"        return {self.__name__}({every if len(tight) == len(arguments) else ', '.join(arguments)})")
        for i, (sizes, kind) in enumerate(self.outputs):
            if i in self.bases:
                lines.append(f"    o{i} = a{self.sources.index(self.bases[i])}.clone(memory_format=torch.contiguous_format)")
                continue
            empty = "new_zeros" if self.program.outputs[i][0] in self.program.sums else "new_empty"
            form = f"new_empty_strided({tuple(sizes)}, {self.laid[i]}" if i in self.laid else f"{empty}({tuple(sizes)}"
            lines.append(f"    o{i} = a0.{form}, dtype={kind})")
        outputs = [f"o{i}" for i in range(len(self.outputs))]
        arguments = [*(f"p{i}" for i in self.operands), *(f"{name}.data_ptr()" for name in outputs)]
        if self.generated.workspace:
            lines.append(f"    w = a0.new_empty({self.generated.workspace}, dtype=torch.float64)")
            lines.append(f"    flags = a0.new_zeros({self.generated.flags}, dtype=torch.int32)")
            arguments += ["w.data_ptr()", "flags.data_ptr()"]
        lines.append(f'    CUDA_KERNELS.launch("{self.__name__}", a0, {", ".join(arguments)})')
        return "\n".join([*lines, f"    return {outputs[0] if len(outputs) == 1 else '(' + ', '.join(outputs) + ')'}"])

    def _laid_out(self, source: int, name: str) -> list[str]:
        """Return the lines after which a source lies as the kernel expects it."""
        steps = self.expected.get(source)
        if steps is None:
            return [f"    {name} = {name}.contiguous()"]
        return [f"    if {name}.stride() != {steps}:", f"        {name} = CUDA_KERNELS.laid({name}, {steps})"]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Pointers that a launch takes, blocks, and threads of a block."""
        pointers = len(self.operands) + len(self.outputs) + 2 * bool(self.generated.workspace)
        return pointers, self.generated.launch.grid, self.generated.launch.block


class WindowKernel(CudaKernel):
    """The kernel of one pool or depthwise convolution."""

    def __init__(self, name: str, node: fx.Node) -> None:
        window = windows.read(node)
        assert window is not None, "the technique takes no other"
        tensor = [tensor for tensor in (window.x, window.weight, window.bias) if tensor is not None]
        operands: Any = SimpleNamespace(operands=[(node, ()) for node in tensor], outputs=[(node, None)], sums={}, reduced=None)
        super(CudaKernel, self).__init__(name, operands, [node])
        self.placement, self.laid = CONTIGUOUS, {}
        self.generated = windows.generate(window, name)
        self.text = self.generated.text


class ScanKernel(CudaKernel):
    """The kernel of one running sum or product, and of what belongs to it."""

    def __init__(self, name: str, node: fx.Node) -> None:
        scan = scans.read(node)
        assert scan is not None, "the technique takes no other"
        tensors = [tensor for tensor in (scan.x, scan.mask) if tensor is not None]
        operands: Any = SimpleNamespace(operands=[(tensor, ()) for tensor in tensors], outputs=[(node, None)], sums={}, reduced=None)
        super(CudaKernel, self).__init__(name, operands, scan.calls)
        self.placement, self.laid = CONTIGUOUS, {}
        self.generated = scans.generate(scan, name)
        self.text = self.generated.text


class RecurrenceKernel(CudaKernel):
    """The kernel of a loop over time."""

    def __init__(self, name: str, node: fx.Node) -> None:
        loop = recurrences.read(node)
        assert loop is not None, "the technique takes no other"
        operands: Any = SimpleNamespace(operands=[(tensor, ()) for tensor in loop.sources], outputs=[(node, None)], sums={}, reduced=None)
        super(CudaKernel, self).__init__(name, operands, loop.calls)
        self.steps = len(loop.states)
        self.placement, self.laid = CONTIGUOUS, {}
        self.generated = recurrences.generate(loop, name)
        self.text = self.generated.text

    @property
    def summary(self) -> str:
        """How many steps there are: their calls are many."""
        return f"{self.steps} steps of a loop over time"


class CallKernel(CudaKernel):
    """The kernel of one call that orders or counts: top-k, a sort, a histogram."""

    def __init__(self, name: str, node: fx.Node) -> None:
        read, write, self.heads = next((form for form in _CALLS if form[0](node) is not None), (None, None, ()))
        assert read is not None and write is not None, "the techniques take no other"
        selected = sorted(dict.fromkeys(node.users), key=lambda user: int(user.args[1])) if not is_tensor(node) else []  # type: ignore[call-overload, arg-type]
        self.results = tuple(selected) or (node,)
        """The selections of the call's results that are read, or the call itself."""
        operands: Any = SimpleNamespace(operands=[(node.args[0], ())], outputs=[(one, None) for one in self.results], sums={}, reduced=None)
        super(CudaKernel, self).__init__(name, operands, [node, *selected])
        self.placement, self.laid = CONTIGUOUS, {}
        self.generated = write(read(node), name, tuple(int(user.args[1]) for user in selected))  # type: ignore[call-overload, arg-type]
        self.text = self.generated.text


_CALLS: tuple[tuple[Any, Any, tuple[str, ...]], ...] = (
    (top_k.read, top_k.generate, ()), (select.read, select.generate, ("ordering.h",)), (sorts.read, sorts.generate, ("ordering.h",)),
    (digits.read, digits.generate, ("digits.h",)), (histogram.read, histogram.generate, ()),
)  # fmt: skip
"""What reads a call, what writes its kernel, and the headers that the kernel needs."""


def source_of(kernels: Sequence[CudaKernel]) -> tuple[str, Mapping[str, tuple[int, int, int]]]:
    """Return the CUDA text of all kernels, and the shape of each one's launch."""
    heads = dict.fromkeys(name for kernel in kernels for name in ("fused_math.h", *kernel.heads))
    return "\n".join([*map(head, heads), *(kernel.text for kernel in kernels)]), {kernel.__name__: kernel.shape for kernel in kernels}


def head(name: str = "fused_math.h") -> str:
    """Return the text that every generated source begins with, or another header of ours."""
    return Path(templates.__file__).with_name(name).read_text()
