"""A loaded task: the original program and its nominal inputs, and how text of a task is run."""

from __future__ import annotations

import ast
import copy
import linecache
import random
import sys
import traceback
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from warpwright.base import Options, Task
from warpwright.errors import TaskError
from warpwright.tasks.sources import syntax_tree

if TYPE_CHECKING:
    import torch

Mode = Literal["as_is", "train", "eval"]


RUN_FIRST = "make it run under python first"
"""What to do where a task's own code raises."""

_LATER = ("calibrate", "backward", "shapes", "sizes")


@dataclass(frozen=True)
class Form:
    """How a task's file is read as a torch program: the options of a task that say so."""

    loader: str = "kernelbench"
    """"kernelbench", "function", or "module": a file written by `saved_module.write`."""
    entry: str = "Model"
    """Class (kernelbench), function (function) or empty (module)."""
    mode: str = "as_is"
    """`as_is`: the training flag that the constructor leaves, as KernelBench runs it; else "train" or "eval"."""
    scale: float = 1.0
    """Sizes of a KernelBench file are multiplied by about this (1.0: as written)."""
    calibrate: bool = False
    """Programs are judged with drawn, well-scaled parameters in place of those that the constructor leaves (`calibrate.py`)."""
    backward: bool = False
    """The program is a training step: forward and backward together (`training.py`)."""
    shapes: str = ""
    """Declared sizes of the inputs (`shapes.py`); the program itself has the example's."""
    sizes: str = ""
    """The inputs are in one of the declared sizes."""

    @classmethod
    def of(cls, task: Task) -> Form:
        """Return the form of a task's file."""
        known = dict(task.options)
        return cls(**{name: known[name] for name in cls.__dataclass_fields__ if name in known})  # type: ignore[arg-type]

    @property
    def options(self) -> Options:
        """The same as a task's options; what came later is among them only where it is used, so that archived keys stay."""
        return tuple((name, value) for name, value in vars(self).items() if name not in _LATER or value)


@dataclass(frozen=True)
class Reference:
    """A loaded task: the original program and its nominal inputs."""

    task: Task
    source_text: str
    """The program as one self-contained text in KernelBench form, sizes already scaled: `class Model`, `get_inputs`, `get_init_inputs`."""
    namespace: types.ModuleType
    """The module that `source_text` was run in."""
    init_inputs: list[Any]

    def make_model(self) -> torch.nn.Module:
        """Return a fresh model; its values come from torch's generator, which the caller has seeded, on torch's default device."""
        form = Form.of(self.task)
        kind = self.namespace.Step if form.backward else self.namespace.Model
        model = call(self.task.path, f"{form.entry or 'Model'}(...)", lambda: kind(*copy.deepcopy(self.init_inputs)))
        if form.mode != "as_is":
            model.train(form.mode == "train")
        return model

    def make_judged_model(self, seed: int, device: str) -> torch.nn.Module:
        """Return the model that programs are judged by, on `device`: its values are drawn anew where the task says so."""
        model = self.make_model().to(device)
        if not Form.of(self.task).calibrate:
            return model
        from warpwright.tasks.modules.calibrate import calibrated

        inputs = self.make_inputs(seed, device)
        try:
            return calibrated(model, inputs, {})
        except (Exception, SystemExit) as error:
            call(self.task.path, f"the original's forward on {device}", lambda: model(*inputs))  # which may have nothing to do with what is drawn
            raise task_error(self.task.path, "a forward with drawn parameters (--calibrate)", error) from error

    def make_meta_model(self) -> torch.nn.Module:
        """Return a model on the meta device: shapes without values. A constructor that reads values is run on the CPU and moved."""
        import torch

        try:
            with torch.device("meta"):
                return self.make_model().to("meta")  # a buffer may be a tensor of the file
        except TaskError:
            return self.make_model().to("meta")

    def make_inputs(self, seed: int, device: str = "cpu") -> list[Any]:
        """Return the nominal inputs of `seed`, made on `device`; torch's generators are left as they were found.

        The file's factory calls (torch.rand ...) run on `device` itself, so that gigabytes need not cross the bus. A file that
        insists on the CPU is run there and its tensors are moved: the values of one seed may then differ between devices.
        """
        import torch

        generators = [torch.device(device)] if torch.device(device).type == "cuda" else []
        with torch.random.fork_rng(devices=generators):
            inputs = self.namespace.get_step_inputs if Form.of(self.task).backward else self.namespace.get_inputs
            return _make_inputs(inputs, self.task.path, seed, device)


def _make_inputs(get_inputs: Callable[[], Any], path: str, seed: int, device: str) -> list[Any]:
    import torch

    def attempt(where: str) -> Any:
        began_cuda = torch.cuda.is_initialized()
        seed_all(seed, where)
        with torch.device(where):
            inputs = get_inputs()
        return inputs if torch.cuda.is_initialized() == began_cuda else attempt(where)  # a file that goes to the GPU by itself

    try:
        inputs = attempt(device)
    except torch.OutOfMemoryError as error:
        raise task_error(path, f"get_inputs() on {device}", error) from error
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        inputs = call(path, "get_inputs()", lambda: attempt("cpu"))
    except (Exception, SystemExit) as error:
        raise task_error(path, "get_inputs()", error) from error
    if not isinstance(inputs, list | tuple):
        raise TaskError(f"{path}: expected get_inputs() to return a list, saw {type(inputs).__name__}", "return [x] for a single input")
    holder = holder_of(inputs)
    if holder and torch.device(device).type == "cuda":
        complaint = f"expected tensors, numbers and lists, tuples and dictionaries of them as inputs, saw a {holder}, whose tensors stay on the CPU"
        raise TaskError(f"{path}: {complaint}", "give its tensors to a module around this one, which makes it")
    return [move(value, device) for value in inputs]


def seed_all(seed: int, device: str = "") -> None:
    """Seed every generator that a task file might use. `device`: that it works on, if that is known.

    For each kind of device that is not in use `torch.manual_seed` notes the whole stack: 0.5 to 8 ms, up to a fifth of what a judge of a small task
    computes. So on a CPU its generator alone is seeded, and CUDA's once there are any.
    """
    import torch

    if device != "cpu":
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)
        if torch.cuda.is_initialized():
            torch.cuda.manual_seed_all(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)


DEEPEST = 4


def holder_of(value: Any, depth: int = DEEPEST) -> str:
    """Return the class of an object among inputs that has tensors as attributes, its own or its parts' (a cache of keys and values), or ""."""
    import torch
    from torch.utils._pytree import tree_leaves

    for leaf in tree_leaves(value) if depth else ():
        if isinstance(leaf, torch.Tensor | type) or callable(leaf) or not hasattr(leaf, "__dict__"):
            continue
        parts = tree_leaves(vars(leaf))
        if any(isinstance(part, torch.Tensor) for part in parts) or holder_of(parts, depth - 1):
            return type(leaf).__name__
    return ""


def move(value: Any, device: str) -> Any:
    """Return `value` with every tensor in its lists, tuples and dictionaries on `device`, without gradients; what is no tensor stays as it is."""
    import torch
    from torch.utils._pytree import tree_map_only

    return tree_map_only(torch.Tensor, lambda tensor: tensor.detach().to(device), value)


# --- running text of the user's ---------------------------------------------------------------------------------------------------


SHOWN = 100
"""Letters of a line in a message."""


def parse(text: str, path: str) -> ast.Module:
    """Return the syntax tree of a task's text; raise TaskError that names the line."""
    try:
        return syntax_tree(text, path)
    except SyntaxError as error:
        place, line = f", line {error.lineno}" if error.lineno else "", (error.text or "").strip()
        shown = f": {line[:SHOWN]!r}{'...' * (len(line) > SHOWN)}" if line else ""
        raise TaskError(f"{path}{place}: syntax error: {error.msg}{shown}", RUN_FIRST) from error


def run_text(text: str, path: str, name: str) -> types.ModuleType:
    """Run `text` as a module called `warpwright_task_<name>`, with `path` as its file name, and return the module."""
    namespace = types.ModuleType(f"warpwright_task_{name}")
    namespace.__file__ = path
    parse(text, path)
    # inspect.getsource (torch.jit.script, dataclasses) looks modules up here, and reads lines from linecache.
    sys.modules[namespace.__name__] = namespace
    linecache.checkcache(path)
    code = compile(text, path, "exec", dont_inherit=True)
    call(path, "the file", lambda: exec(code, namespace.__dict__))
    return namespace


def call(path: str, what: str, function: Callable[[], Any]) -> Any:
    """Call into the task's own code; whatever it raises becomes a TaskError that names the line."""
    try:
        return function()
    except (Exception, SystemExit) as error:
        raise task_error(path, what, error) from error


def task_error(path: str, what: str, error: BaseException) -> TaskError:
    """Return the error that says what a task's own code raised, and where."""
    if remedy := getattr(error, "remedy", ""):  # text of ours beside the task's own, which says all that there is to say
        return TaskError(f"{path}: {error}", str(remedy))
    last = traceback.format_exception_only(error)[-1].strip()
    places = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    where = f" at line {places[-1].lineno}: {places[-1].line}" if places else ""
    absent = error.name if isinstance(error, ModuleNotFoundError) else None
    hint = f"install the package that provides {absent!r}" if absent else RUN_FIRST
    return TaskError(f"{path}: {what} raised {last}{where}", hint)
