"""A fused CUDA kernel as a callable that stands in the graph: run, it interprets the calls it replaced; lowered, it is CUDA C++ and its launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from torch import fx

from warpwright import templates
from warpwright.domains.graph.cpp.kernel import Fused
from warpwright.domains.graph.cpp.program import Program
from warpwright.domains.graph.cuda.generate import generate
from warpwright.domains.graph.cuda.plan import DEFAULT, Tuning


class CudaKernel(Fused):
    """A generated CUDA kernel, or the few launches that are one."""

    def __init__(self, name: str, program: Program, nodes: Sequence[fx.Node], tuning: Tuning = DEFAULT) -> None:
        super().__init__(name, program, nodes)
        made = generate(program, name, tuning)
        self.text, self.launches, self.workspace, self.vector = made.text, made.launches, made.workspace, made.vector

    def python_text(self) -> str:
        """Return the Python function that allocates the results and launches the kernel."""
        lines = self.opening("not CUDA_KERNELS.usable(a0)")
        lines += [f"    {name} = {name}.contiguous()" for name in self.names]
        lines += [f"    o{i} = a0.new_empty({tuple(sizes)}, dtype={kind})" for i, (sizes, kind) in enumerate(self.outputs)]
        made = [f"o{i}" for i in range(len(self.outputs))]
        if self.workspace:
            lines.append(f"    w = a0.new_empty({self.workspace}, dtype=torch.float64)")
        given = [*(f"a{i}" for i in self.operands), *made, *(["w"] if self.workspace else [])]
        if self.vector > 1:
            lines += [f"    {name} = CUDA_KERNELS.aligned({name}, {4 * self.vector})" for name in self.names]
        lines.append(f"    pointers = ({', '.join(f'{text}.data_ptr()' for text in given)},)")
        lines += [f'    CUDA_KERNELS.launch("{launch.name}", {launch.grid}, {launch.block}, a0, pointers)' for launch in self.launches]
        return "\n".join([*lines, f"    return {made[0] if len(made) == 1 else '(' + ', '.join(made) + ')'}"])


    @property
    def pointers(self) -> int:
        """How many pointers each launch takes."""
        return len(self.operands) + len(self.outputs) + bool(self.workspace)


def source_of(kernels: Sequence[CudaKernel]) -> tuple[str, Mapping[str, int]]:
    """Return the CUDA text of all kernels, and how many pointers each launch takes."""
    counts = {launch.name: kernel.pointers for kernel in kernels for launch in kernel.launches}
    return "\n".join([head(), *(kernel.text for kernel in kernels)]), counts


def head() -> str:
    """Return the text that every generated source begins with."""
    return Path(templates.__file__).with_name("fused_math.h").read_text()
