"""From a task and a CUDA text to Python programs in the form that workers take: the original, and candidates.

The original's forward is the user's own kernel: its time is the one to beat and its error the budget. In float64, where the verifier asks what is
right, it is the reference. Once in each process the kernel as given is compared with the reference: one that computes something else is no task.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warpwright.base import Action, Candidate, Source, Task, digest
from warpwright.domains.cuda import taskfile, triton_text, unit
from warpwright.domains.cuda.kernels_text import kernels_text
from warpwright.errors import TaskError


def original(task: Task) -> str:
    """Return the task in KernelBench form. Raise TaskError for files that have changed."""
    cuda, python = texts(task)
    return _program(task, cuda, python, ()) + _MODEL.replace("@NAME", Path(task.path).name)


def texts(task: Task) -> tuple[str, str]:
    """Return the CUDA source, its own headers in it, and the task file of a task."""
    beside = Path(str(task.option("task_path")))
    cuda, python, whole = taskfile.read_cuda(Path(task.path)), taskfile.read(beside), taskfile.whole(Path(task.path))
    headers = str(task.option("headers")) or task.source_digest
    for path, text, known in (
        (task.path, cuda, task.source_digest), (str(beside), python, str(task.option("task"))), (f"a header of {task.path}", whole, headers),
    ):  # fmt: skip
        if digest(text) != known:
            raise TaskError(f"{path} has changed since this task was described", "start again, or restore the file")
    return unit.trimmed(whole, unit.expect_entries(whole, Path(task.path).name)), python


def candidate(task: Task, python: str, cuda: str, flags: tuple[str, ...], target: str, actions: Sequence[Action]) -> Candidate:
    """Return the program that calls a CUDA text in place of the task's own."""
    return Candidate(Source("python", (("optimized.py", _program(task, cuda, python, flags) + _MODEL_NEW),)), target, tuple(actions), proposer="cuda")


def triton_candidate(task: Task, python: str, text: str, target: str, actions: Sequence[Action]) -> Candidate:
    """Return the program that calls a Triton text in place of the task's CUDA source; raise NotApplicable for a text that is none."""
    wanted = unit.expect_entries(taskfile.whole(Path(task.path)), Path(task.path).name)
    head = "" if "import torch\n" in python else "import torch\n"
    whole = "\n".join([python.rstrip(), "", "", head + triton_text.program(text, wanted, target)])
    return Candidate(Source("python", (("optimized.py", whole),)), target, tuple(actions), proposer="cuda")


def _program(task: Task, cuda: str, python: str, flags: tuple[str, ...]) -> str:
    wanted = unit.expect_entries(taskfile.whole(Path(task.path)), Path(task.path).name)
    head = "" if "import torch\n" in python else "import torch\n"
    imports = "import ctypes as _ctypes\nimport functools as _functools\n"
    return "\n".join([python.rstrip(), "", "", head + imports, kernels_text(unit.linked(cuda, wanted), wanted, flags, Path(task.path).name), ""])


_MODEL = '''
class Model(torch.nn.Module):
    """The kernels as given; the reference in float64, and where there are shapes only."""

    compared = False

    def forward(self, *inputs):
        if torch.get_default_dtype() is torch.float64 or any(tensor.is_meta for tensor in tensors_of(inputs)):
            return asked(reference, *inputs)
        inputs = dense(inputs)
        if type(self) is not Model and Model.compared:  # under the timer
            return launch(kernels_for(inputs), *inputs)
        copies = torch.utils._pytree.tree_map_only(torch.Tensor, torch.clone, inputs)
        kernels = kernels_for(inputs) if Model.compared else built(inputs)
        outputs = launch(kernels, *inputs) if Model.compared else asked(launch, kernels, *inputs)
        if not Model.compared:
            compare(outputs, copies)
            Model.compared = True
        return outputs if type(self) is not Model else worst_of_runs(outputs, copies)


RUNS = 6


def built(inputs):
    """Return the kernels as given; raise TaskError with the compiler's words where they cannot be built."""
    from warpwright.errors import TaskError, WarpwrightError

    try:
        return kernels_for(inputs)
    except (WarpwrightError, RuntimeError) as error:
        raise TaskError(f"@NAME as given cannot be built: {str(error)[:1500]}", "fix the source") from error


def asked(function, *values):
    """Call one of the task file's functions; raise TaskError that says where it failed, or that it gave no tensors."""
    from warpwright.errors import TaskError

    try:
        outputs = function(*values)
    except TaskError:
        raise
    except Exception as error:
        import traceback

        lines = [place.lineno for place in traceback.extract_tb(error.__traceback__) if place.name == function.__name__]
        where = f" in line {lines[-1]}" if lines else ""
        seen = f"raised {type(error).__name__}{where}: {error}"
        raise TaskError(f"{function.__name__} of the task file of @NAME {seen}", "fix the task file") from error
    leaves = torch.utils._pytree.tree_leaves(outputs)
    if not leaves or not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
        kinds = sorted({type(leaf).__name__ for leaf in leaves}) or ["nothing"]
        raise TaskError(f"expected tensors from {function.__name__} of the task file of @NAME, saw {', '.join(kinds)}", "return the outputs")
    return outputs


def tensors_of(nested):
    return [leaf for leaf in torch.utils._pytree.tree_leaves(nested) if isinstance(leaf, torch.Tensor)]


def widened(inputs):
    return torch.utils._pytree.tree_map_only(torch.Tensor, lambda leaf: leaf.double() if leaf.is_floating_point() else leaf, inputs)


def worst_of_runs(first, inputs):
    """Return the outputs of that run which errs most, where runs differ: sums by atomics are formed in another order each time."""
    again = lambda: launch(kernels_for(inputs), *torch.utils._pytree.tree_map_only(torch.Tensor, torch.clone, inputs))
    runs = [first, again()]
    if all(map(torch.equal, tensors_of(first), tensors_of(runs[1]))):
        return first
    runs += [again() for _ in range(RUNS - 2)]
    exact = tensors_of(reference(*widened(inputs)))
    errs = lambda run: max(float((seen.double() - want.double()).abs().nan_to_num().max()) for seen, want in zip(tensors_of(run), exact))
    return max(runs, key=errs)


CLOSE = {torch.float16: 2e-2, torch.bfloat16: 5e-2}  # of the largest output; of other types 1e-3


def compare(outputs, inputs):
    """Raise TaskError where the kernels as given compute something else than the reference. Integers have to be the same."""
    from warpwright.errors import TaskError

    own = torch.utils._pytree.tree_leaves(outputs)
    real = any(leaf.is_floating_point() for leaf in own)
    wanted = torch.utils._pytree.tree_leaves(reference(*(widened(inputs) if real else inputs)))
    hint = "fix the kernel, the reference or the launch; they have to say the same"
    if [leaf.shape for leaf in own] != [leaf.shape for leaf in wanted]:
        seen = f"{[tuple(leaf.shape) for leaf in own]} from launch, {[tuple(leaf.shape) for leaf in wanted]} from reference"
        raise TaskError(f"expected outputs of the same shapes, saw {seen}", hint)
    for number, (seen, exact) in enumerate(zip(own, wanted)):
        if not seen.is_floating_point():
            if not torch.equal(seen, exact.to(seen.dtype)):
                raise TaskError(f"output {number} of @NAME: expected the reference's integers, saw {int((seen != exact).sum())} others", hint)
            continue
        error, scale = (seen.double() - exact).abs(), float(exact.abs().max()) if exact.numel() else 0.0
        worst = float(error.max()) if error.numel() else 0.0
        if not worst <= CLOSE.get(seen.dtype, 1e-3) * scale + 1e-30:
            at = int(error.nan_to_num(float("inf")).argmax())
            text = f"saw {float(seen.flatten()[at])} for {float(exact.flatten()[at])} at element {at}"
            raise TaskError(f"output {number} of @NAME: expected what the reference gives in float64, {text}", hint)


def get_init_inputs():
    return []
'''

_MODEL_NEW = '''
class ModelNew(torch.nn.Module):
    """The task by the kernels above."""

    def forward(self, *inputs):
        inputs = dense(inputs)
        return launch(kernels_for(inputs), *inputs)
'''
