"""A candidate in Triton: a Python file with `@triton.jit` kernels and, for each entry of the CUDA source, a function of its name and parameters.

    @triton.jit
    def add(x, y, out, n, BLOCK: tl.constexpr): ...

    def saxpy(n, a, x, y, out):                        # the entry; where the CUDA source takes an address it is given the tensor
        add[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)

On a GPU Triton compiles it; on a CPU Triton's own interpreter runs it: right or wrong there is right or wrong on a GPU as well, times say nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from warpwright.domains.cuda.taskfile import FUNCTIONS
from warpwright.errors import NotApplicable

MARK = "@triton.jit"

OWN = frozenset({*FUNCTIONS, "Model", "ModelNew", "get_init_inputs", "dense", "ENTRIES"})
"""Names that the program around a Triton text has."""


def is_triton(text: str) -> bool:
    """Is a text a Triton program, rather than CUDA C++?"""
    return bool(re.search(r"^\s*@triton\.(jit|autotune|heuristics)\b", text, re.M))


def program(text: str, entries: Mapping[str, str], target: str) -> str:
    """Return Python text with a Triton program's kernels and the class ModelNew that calls its entries.

    Raise NotApplicable for a text that is no Python, or that does not define the entries. `entries`: entry -> a code for each parameter.
    """
    _expect(text, entries)
    lines = [line for line in text.splitlines() if not line.startswith("from __future__ import")]
    names = ", ".join(f"{entry}={entry}" for entry in entries)
    return "\n".join([_INTERPRETED if target == "cpu" else _COMPILED, *lines, "", "", _AFTER.replace("@NAMES", names)])


def _expect(text: str, entries: Mapping[str, str]) -> None:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        where = f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) else str(error)
        raise NotApplicable(f"error: expected a Python file with Triton kernels, saw: {where}") from error
    defined = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assigned = {name.id for node in tree.body if isinstance(node, ast.Assign) for name in node.targets if isinstance(name, ast.Name)}
    taken = sorted(OWN & {*defined, *assigned})
    if taken:
        raise NotApplicable(f"error: {', '.join(taken)} {'is' if len(taken) == 1 else 'are'} the task's own: define kernels and entries alone")
    for entry, codes in entries.items():
        function = defined.get(entry)
        if not isinstance(function, ast.FunctionDef):
            raise NotApplicable(f"error: expected a function {entry} of {len(codes)} parameters that launches the kernels, saw none")
        arguments = function.args
        count = len(arguments.posonlyargs) + len(arguments.args)
        least = count - len(arguments.defaults)
        if not (least <= len(codes) <= count or (arguments.vararg is not None and least <= len(codes))):
            raise NotApplicable(f"error: expected {entry} with {len(codes)} parameters, as in the CUDA source, saw {count}")


_INTERPRETED = """try:
    import triton
except ImportError as error:
    raise RuntimeError("expected the package triton for a Triton program, saw none: pip install 'warpwright[triton]'") from error
triton.knobs.runtime.interpret = True  # there is no GPU here: Triton's interpreter runs the kernels
"""

_COMPILED = """try:
    import triton
except ImportError as error:
    raise RuntimeError("expected the package triton for a Triton program, saw none: pip install 'warpwright[triton]'") from error
"""

_AFTER = '''
import contextlib as _contextlib
import types as _types

ENTRIES = _types.SimpleNamespace(@NAMES)


def dense(inputs):
    """Return the inputs with every tensor contiguous: kernels know no strides."""
    return torch.utils._pytree.tree_map_only(torch.Tensor, torch.Tensor.contiguous, list(inputs))


def _beside(inputs):
    """Return a context in which the inputs' GPU is the current one."""
    tensor = next((leaf for leaf in torch.utils._pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor)), None)
    return torch.cuda.device(tensor.device) if tensor is not None and tensor.is_cuda else _contextlib.nullcontext()


class ModelNew(torch.nn.Module):
    """The task by the Triton kernels above."""

    def forward(self, *inputs):
        inputs = dense(inputs)
        with _beside(inputs):
            return launch(ENTRIES, *inputs)
'''
