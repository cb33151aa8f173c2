"""Reads a task file: what the program is, how to build it, how to make its inputs.

Three forms are read, and each is turned into the text of the first (a KernelBench file), so that there is one loader:

    kernelbench   class Model, get_inputs(), get_init_inputs()
    function      @warpwright.task(inputs=...) above a function
    module        a file written by `write_module_task` (what `warpwright.optimize(module, inputs)` does)

`describe` only parses, it never runs the file: the parent process may call it. `load` runs the file.
"""

from __future__ import annotations

import ast
import copy
import io
import linecache
import os
import pickle
import random
import re
import sys
import traceback
import types
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from warpwright.base import Precision, Task, digest
from warpwright.errors import TaskError

if TYPE_CHECKING:
    import torch

F = TypeVar("F", bound=Callable[..., Any])
Mode = Literal["as_is", "train", "eval"]

_FORMS = "a task file has a class Model with get_inputs() and get_init_inputs(), or a function under @warpwright.task(inputs=...)"


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
        model = call(self.task.path, f"{self.task.entry or 'Model'}(...)", lambda: self.namespace.Model(*copy.deepcopy(self.init_inputs)))
        if self.task.mode != "as_is":
            model.train(self.task.mode == "train")
        return model

    def make_meta_model(self) -> torch.nn.Module:
        """Return a model on the meta device: shapes without values. A constructor that reads values is run on the CPU and moved."""
        import torch

        try:
            with torch.device("meta"):
                return self.make_model()
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
            return _make_inputs(self.namespace.get_inputs, self.task.path, seed, device)


def _make_inputs(get_inputs: Callable[[], Any], path: str, seed: int, device: str) -> list[Any]:
    import torch

    def attempt(where: str) -> Any:
        _seed_all(seed)
        with torch.device(where):
            return get_inputs()

    try:
        made = attempt(device)
    except torch.OutOfMemoryError as error:
        raise _task_error(path, f"get_inputs() on {device}", error) from error
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        made = call(path, "get_inputs()", lambda: attempt("cpu"))
    except (Exception, SystemExit) as error:
        raise _task_error(path, "get_inputs()", error) from error
    if not isinstance(made, list | tuple):
        raise TaskError(f"{path}: expected get_inputs() to return a list, saw {type(made).__name__}", "return [x] for a single input")
    return [move(value, device) for value in made]


def _seed_all(seed: int) -> None:
    """Seed every generator that a task file might use."""
    import torch

    torch.manual_seed(seed)
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)


def move(value: Any, device: str) -> Any:
    """Return `value` with every tensor in its lists, tuples and dictionaries on `device`; whatever is no tensor stays as it is."""
    import torch
    from torch.utils._pytree import tree_map_only

    return tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), value)


def task(function: F | None = None, *, inputs: Any = (), special_values: bool = False) -> Any:
    """Mark a function as a task: `@warpwright.task(inputs=make_inputs)`.

    `inputs` is a function that returns the arguments, or a tuple of them; the expression is evaluated anew for every set of inputs, so
    write `inputs=(torch.randn(8, 8),)` or a function to have fresh values. `special_values=True` declares that Inf and NaN inputs are
    defined. The function itself is returned unchanged.
    """
    if function is not None:
        return function
    if not callable(inputs) and not isinstance(inputs, tuple | list):
        raise TaskError(f"expected inputs= a function or a tuple, saw {type(inputs).__name__}", "write @warpwright.task(inputs=(x, y))")
    return lambda decorated: decorated


# --- describe: the file is parsed, never run --------------------------------------------------------------------------------------


def describe(
    path: str | os.PathLike[str],
    entry: str | None = None,
    scale: float = 1.0,
    mode: Mode = "as_is",
    precision: Precision = "strict",
    special_values: bool | None = None,
) -> Task:
    """Return the task that the file at `path` defines. `entry` picks a class or function by name where the file has several."""
    file = Path(path).resolve()
    if not scale > 0:
        raise TaskError(f"expected a scale above 0, saw {scale}", "write --scale 0.1 for about a tenth of the sizes")
    common: dict[str, Any] = {"path": str(file), "mode": mode, "precision": precision, "scale": float(scale)}
    if _is_saved_module(file):
        return Task(name=file.stem, loader="module", entry="", source_digest=_digest_bytes(file), special_values=bool(special_values), **common)
    text = _read(file)
    tree = _parse(text, str(file))
    loader, found = _detect(tree, str(file), entry)
    if special_values is None:
        special_values = loader == "function" and _declares_special_values(_function(tree, found))
    name = _task_name(file) + (f".{found}" if loader == "function" else "")
    return Task(name=name, loader=loader, entry=found, source_digest=digest(text), special_values=special_values, **common)


def entries(path: str | os.PathLike[str]) -> list[str]:
    """Return the entries of the tasks that a file defines, without running it; none for a file that is no task file or no Python."""
    file = Path(path)
    if _is_saved_module(file):
        return [""]
    if file.suffix != ".py":
        return []
    try:
        tree = _parse(_read(file), str(file))
    except TaskError:
        return []
    marked = [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and _mark(node) is not None]
    classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    return ["Model"] if "Model" in classes and "get_inputs" in functions else marked


def _task_name(file: Path) -> str:
    """Return the file's stem; a KernelBench file gets its level in front, because stems repeat between levels."""
    return f"{file.parent.name}_{file.stem}" if re.fullmatch(r"level\d+", file.parent.name) else file.stem


def _read(file: Path) -> str:
    if not file.is_file():
        what = "is a folder" if file.is_dir() else "does not exist"
        raise TaskError(f"expected a task file, but {file} {what}", "give the path of one .py file (a folder goes to `warpwright bench`)")
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{file} cannot be read as text: {error}", _FORMS) from error


def _parse(text: str, path: str) -> ast.Module:
    try:
        return ast.parse(text, path)
    except SyntaxError as error:
        line = (error.text or "").strip()
        raise TaskError(f"{path}, line {error.lineno}: syntax error: {error.msg}: {line!r}", "make it run under python first") from error


def _is_saved_module(file: Path) -> bool:
    return file.suffix in {".pt", ".pth"} and file.is_file() and zipfile.is_zipfile(file)


def _digest_bytes(file: Path) -> str:
    return digest(file.read_bytes().hex())


def _detect(tree: ast.Module, path: str, entry: str | None) -> tuple[Literal["kernelbench", "function"], str]:
    """Return the form of the file and the name of its class or function."""
    classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    marked = [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and _mark(node) is not None]
    wanted = entry or ("Model" if "Model" in classes else marked[0] if marked else "")
    if entry is None and not wanted:
        raise TaskError(f"{path} defines no task: it has no class Model and no function under @warpwright.task", _FORMS)
    if entry is None and wanted != "Model" and len(marked) > 1:
        raise TaskError(f"{path} marks several functions as tasks: {', '.join(marked)}", f"name one: --entry {marked[0]}")
    if wanted in marked:
        return "function", wanted
    if wanted not in classes:
        raise TaskError(f"{path} has no class or @warpwright.task function {wanted!r}", f"it has: {', '.join(classes + marked) or 'neither'}")
    missing = [name for name in ("get_inputs", "get_init_inputs") if name not in functions and not _assigns(tree, name)]
    if missing:
        raise TaskError(f"{path} has class {wanted} but no {' and no '.join(missing)}", "define both, each returning a list")
    return "kernelbench", wanted


def _assigns(tree: ast.Module, name: str) -> bool:
    """Whether the module level binds `name` in any way."""
    return any(isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store) for node in ast.walk(tree))


def _mark(node: ast.FunctionDef) -> ast.expr | None:
    """Return the @warpwright.task decorator of a function, if it has one."""
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if ast.unparse(called) in {"warpwright.task", "task", "taskfile.task", "warpwright.tasks.taskfile.task"}:
            return decorator
    return None


def _function(tree: ast.Module, name: str) -> ast.FunctionDef:
    return next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)


def _keyword(node: ast.FunctionDef, name: str) -> ast.expr | None:
    mark = _mark(node)
    keywords = mark.keywords if isinstance(mark, ast.Call) else []
    return next((keyword.value for keyword in keywords if keyword.arg == name), None)


def _declares_special_values(node: ast.FunctionDef) -> bool:
    value = _keyword(node, "special_values")
    return isinstance(value, ast.Constant) and value.value is True


# --- the text of a task in KernelBench form ----------------------------------------------------------------------------------------


def source_text(task: Task) -> str:
    """Return the task as one self-contained text in KernelBench form, at the sizes of `task.scale`."""
    text = _plain_text(task)
    if task.scale == 1.0:
        return text
    from warpwright.tasks.scaling import scale_text

    return scale_text(text, task.scale, task.path).text


def _plain_text(task: Task) -> str:
    if task.loader == "module":
        return _MODULE_TEXT.format(path=task.path)
    text = _read(Path(task.path))
    if task.source_digest and digest(text) != task.source_digest:
        raise TaskError(f"{task.path} has changed since this task was described", "start again, or restore the file")
    if task.loader == "function":
        return _function_text(text, task.path, task.entry)
    return text if task.entry == "Model" else f"{text.rstrip()}\n\n\nModel = {task.entry}\n"


_MODULE_TEXT = '''"""A module saved by warpwright, and inputs drawn from the values of its example inputs."""
import copy
import io
import sys

import torch

_FILE = torch.load({path!r}, weights_only=False)
sys.path.extend(folder for folder in _FILE["sys_path"] if folder not in sys.path)
_SAVED = torch.load(io.BytesIO(_FILE["saved"]), weights_only=False, map_location="cpu")


_CLASS = type(_SAVED["module"])
if isinstance(_SAVED["module"], torch.fx.GraphModule):  # whose own call looks for the class of the call in the class it was made for
    _MODE = _FILE["training"]

    def _train(self, mode=True):
        if mode is not _MODE:
            raise RuntimeError(
                f"this model was exported in {{'training' if _MODE else 'eval'}} mode, because its class is defined in a script: "
                "for the other mode move the class into a module of its own and optimize it again"
            )
        return torch.nn.Module.train(self, mode)

    _CLASS = type("Exported", (torch.nn.Module,), {{"forward": _CLASS.forward, "train": _train}})


class Model(_CLASS):
    def __init__(self):
        torch.nn.Module.__init__(self)
        kept = copy.deepcopy(_SAVED["module"]).__dict__
        self.__dict__.update((name, value) for name, value in kept.items() if name not in ("_graph", "_code", "_tracer_cls", "_lineno_map"))
        if _CLASS is not type(_SAVED["module"]):
            self.train(_MODE)


def _fresh(value):
    if not isinstance(value, torch.Tensor) or value.numel() == 0:
        return value
    if not value.is_floating_point():
        return value.clone()
    drawn = torch.randint(value.numel(), value.shape)
    values = value.to(drawn.device)
    return torch.empty_like(values).copy_(values.flatten()[drawn])


def get_inputs():
    return list(torch.utils._pytree.tree_map(_fresh, _SAVED["inputs"]))


def get_init_inputs():
    return []
'''

_FUNCTION_TEXT = """

class Model(torch.nn.Module):
    def forward(self, {parameters}):
        return {name}({arguments})


def get_inputs():
    inputs = {inputs}
    return list(inputs() if callable(inputs) else inputs)


def get_init_inputs():
    return []
"""


def _function_text(text: str, path: str, name: str) -> str:
    """Return a file with a marked function as a KernelBench file; the lines of the original keep their numbers."""
    tree = _parse(text, path)
    node = _function(tree, name)
    inputs = _keyword(node, "inputs")
    if inputs is None:
        raise TaskError(f"{path}: @warpwright.task above {name} has no inputs=", "write @warpwright.task(inputs=function or tuple)")
    lines = text.splitlines()
    for mark in [_mark(other) for other in tree.body if isinstance(other, ast.FunctionDef)]:
        if mark is not None:
            _blank(lines, mark.lineno, mark.end_lineno or mark.lineno)
    for statement in tree.body:
        if isinstance(statement, ast.Import | ast.ImportFrom) and "warpwright" in ast.unparse(statement):
            _blank(lines, statement.lineno, statement.end_lineno or statement.lineno)
    parameters, arguments = _signature(node.args)
    tail = _FUNCTION_TEXT.format(name=name, parameters=parameters, arguments=arguments, inputs=ast.unparse(inputs))
    head = "\n".join(lines).rstrip() + "\n"
    return head + ("" if re.search(r"^import torch$", head, re.M) else "\nimport torch\n") + tail


def _blank(lines: list[str], first: int, last: int) -> None:
    for number in range(first - 1, last):
        lines[number] = ""


def _signature(arguments: ast.arguments) -> tuple[str, str]:
    """Return a function's parameters without annotations, and the call that passes them on."""
    plain = copy.deepcopy(arguments)
    for argument in [*plain.posonlyargs, *plain.args, *plain.kwonlyargs, *filter(None, (plain.vararg, plain.kwarg))]:
        argument.annotation = None
    passed = [argument.arg for argument in [*plain.posonlyargs, *plain.args]]
    passed += [f"*{plain.vararg.arg}"] if plain.vararg else []
    passed += [f"{argument.arg}={argument.arg}" for argument in plain.kwonlyargs]
    passed += [f"**{plain.kwarg.arg}"] if plain.kwarg else []
    return ast.unparse(plain), ", ".join(passed)


# --- load: the file is run ---------------------------------------------------------------------------------------------------------


def load(task: Task) -> Reference:
    """Run a task's file in a fresh namespace and return its program and inputs."""
    text = source_text(task)
    namespace = run_text(text, task.path, digest(task.key, text))
    missing = [name for name in ("Model", "get_inputs", "get_init_inputs") if not callable(getattr(namespace, name, None))]
    if missing:
        raise TaskError(f"{task.path} has no {' and no '.join(missing)}", _FORMS)
    _seed_all(0)
    init_inputs = call(task.path, "get_init_inputs()", namespace.get_init_inputs)
    if not isinstance(init_inputs, list | tuple):
        raise TaskError(f"{task.path}: expected get_init_inputs() to return a list, saw {type(init_inputs).__name__}", "return [] for none")
    return Reference(task, text, namespace, list(init_inputs))


def run_text(text: str, path: str, name: str) -> types.ModuleType:
    """Run `text` as a module called `warpwright_task_<name>`, with `path` as its file name, and return the module."""
    namespace = types.ModuleType(f"warpwright_task_{name}")
    namespace.__file__ = path
    _parse(text, path)
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
        raise _task_error(path, what, error) from error


def _task_error(path: str, what: str, error: BaseException) -> TaskError:
    last = traceback.format_exception_only(error)[-1].strip()
    places = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    where = f" at line {places[-1].lineno}: {places[-1].line}" if places else ""
    absent = error.name if isinstance(error, ModuleNotFoundError) else None
    hint = f"install the package that provides {absent!r}" if absent else "make it run under python first"
    return TaskError(f"{path}: {what} raised {last}{where}", hint)


# --- modules from Python -----------------------------------------------------------------------------------------------------------


def write_module_task(module: torch.nn.Module, inputs: Sequence[Any], path: str | os.PathLike[str]) -> None:
    """Write `module` and its example inputs as a task file (suffix .pt) that `describe` reads."""
    import torch

    file = Path(path)
    if file.suffix != ".pt":
        raise TaskError(f"expected a file name that ends in .pt, saw {file.name!r}", "write_module_task(module, inputs, 'task.pt')")
    saved = io.BytesIO()
    try:
        torch.save({"module": _importable(module, list(inputs)), "inputs": list(inputs)}, saved)
    except (AttributeError, TypeError, pickle.PicklingError) as error:
        raise TaskError(f"{type(module).__name__} cannot be saved: {error}", "define its class in a module of its own") from error
    torch.save({"sys_path": [folder for folder in sys.path if folder], "saved": saved.getvalue(), "training": module.training}, file)


def _importable(module: torch.nn.Module, inputs: list[Any]) -> torch.nn.Module:
    """Return `module`, or its exported graph where a class of it lives in a script or notebook that other processes cannot import."""
    import torch

    local = {type(part).__module__ for part in module.modules()} & {"__main__", "__mp_main__"}
    if not local:
        return module
    try:
        graph_module = torch.export.export(module, tuple(inputs)).module(check_guards=False)
        # A plain copy, because the exported module and its graph hold lambdas and a tracer that cannot be saved.
        graph = torch.fx.Graph()
        graph.output(graph.graph_copy(graph_module.graph, {}))
        graph.set_codegen(graph_module.graph._codegen)
        return torch.fx.GraphModule(graph_module, graph)
    except Exception as error:  # torch.export documents no common base for what it raises
        raise TaskError(
            f"the class of {type(module).__name__} is defined in the running script, and torch.export cannot read it: {error}",
            "move the class into a module of its own, which other processes can import",
        ) from error
