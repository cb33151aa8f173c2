"""Reads a task file: what the program is, how to build it, how to make its inputs.

Three forms are read, and each is turned into the text of the first (a KernelBench file), so that there is one loader:

    kernelbench   class Model, get_inputs(), get_init_inputs()
    function      @warpwright.task(inputs=...) above a function
    module        a file written by `saved_module.write` (what `warpwright.optimize(module, inputs)` does)

A domain whose tasks are no such files names the function that writes their text: the option `reference`, "module:function".
`describe` only parses, it never runs the file: the parent process may call it. `load` runs the file.
"""

from __future__ import annotations

import ast
import copy
import functools
import hashlib
import json
import math
import os
import re
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from runpy import run_path
from typing import Literal

from warpwright.base import Options, Precision, Task, digest
from warpwright.errors import TaskError
from warpwright.tasks import shapes as declared_shapes
from warpwright.tasks import sources, training
from warpwright.tasks.mark import task
from warpwright.tasks.modules import saved_module
from warpwright.tasks.reference import Form, Mode, Reference, call, parse, run_text, seed_all
from warpwright.tasks.scaling import scale_text

__all__ = ["OPTIONS", "Form", "Mode", "Reference", "call", "changed", "describe", "entries", "load", "run_text", "source_text", "task"]

OPTIONS = frozenset({"entry", "scale", "mode", "precision", "special_values", "calibrate", "backward", "shapes"})
"""What `describe` takes besides the file."""

_FORMS = "a task file has a class Model with get_inputs() and get_init_inputs(), or a function under @warpwright.task(inputs=...)"


# --- describe: the file is parsed, never run --------------------------------------------------------------------------------------


def describe(
    path: str | os.PathLike[str],
    entry: str | None = None,
    scale: float = 1.0,
    mode: Mode = "as_is",
    precision: Precision = "strict",
    special_values: bool | None = None,
    calibrate: bool = False,
    backward: bool = False,
    shapes: str = "",
) -> Task:
    """Return the task that the file at `path` defines. `entry` picks a class or function by name where the file has several.

    Raise TaskError for a file that defines none, or that cannot be read.
    """
    file = Path(path).resolve()
    if not scale > 0:
        raise TaskError(f"expected a scale above 0, saw {scale}", "write --scale 0.1 for about a tenth of the sizes")
    declared = declared_shapes.option(json.loads(shapes)) if shapes else ""
    form = Form(mode=mode, scale=float(scale), calibrate=bool(calibrate), backward=bool(backward), shapes=declared)
    if _is_saved_module(file):
        form = replace(form, loader="module", entry="")
        return Task(file.stem, str(file), "graph", precision, bool(special_values), _digest_bytes(file), form.options)
    text = _read(file)
    tree = parse(text, str(file))
    loader, name = _detect(tree, str(file), entry)
    if special_values is None:
        special_values = loader == "function" and _declares_special_values(_function(tree, name))
    task_name = _task_name(file) + (f".{name}" if loader == "function" else "")
    options = (*replace(form, loader=loader, entry=name).options, *_imports(text))
    return Task(task_name, str(file), "graph", precision, special_values, digest(text), options)


def _imports(text: str) -> Options:
    """Return the option that stands for the user's own files that a task imports; a task that stands alone has none."""
    digest = sources.digest_of(sources.imported(text))
    return (("imports", digest),) if digest else ()


def reads(task: Task) -> tuple[str, ...]:
    """Return the files that a process needs which runs a program of the task: a saved module's own, and those of the packages that it imports."""
    file = Path(task.path)
    if _is_saved_module(file):
        return (str(file), *sources.places(saved_module.modules_of(file)))
    return sources.places(sources.imported(file.read_text(errors="replace"))) if file.is_file() else ()


def packages(task: Task) -> tuple[str, ...]:
    """Return the modules outside of torch and the standard library that the task's program imports, a package before what is in it."""
    return _packages(Path(task.path), task.source_digest)


@functools.lru_cache(maxsize=64)
def _packages(file: Path, _digest: str) -> tuple[str, ...]:
    if _is_saved_module(file):
        names = set(saved_module.modules_of(file, math.inf))
    else:
        names = sources.imported(file.read_text(errors="replace")) if file.suffix == ".py" and file.is_file() else set()
    known = {"", "torch", "warpwright"} | sys.stdlib_module_names
    return tuple(sorted(name for name in names if name.partition(".")[0] not in known))


def changed(task: Task) -> bool:
    """Is the task's file another one than was described? Raise TaskError where it cannot be read."""
    file = Path(task.path)
    if _is_saved_module(file):
        return _digest_bytes(file) != task.source_digest
    if _is_no_text(file):  # machine code
        return digest(file.read_bytes().hex()) != task.source_digest
    text = _read(file)
    return digest(text) != task.source_digest or dict(_imports(text)).get("imports", "") != task.option("imports")


def entries(path: str | os.PathLike[str]) -> list[str]:
    """Return the entries of the tasks that a file defines, without running it; none for a file that is no task file or no Python."""
    file = Path(path)
    if _is_saved_module(file):
        return [""]
    if file.suffix != ".py":
        return []
    try:
        tree = parse(_read(file), str(file))
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


def _is_no_text(file: Path) -> bool:
    try:
        file.read_bytes().decode()
    except UnicodeDecodeError:
        return True
    except OSError:  # `_read` says what is wrong with it
        return False
    return False


def _is_saved_module(file: Path) -> bool:
    return file.suffix in {".pt", ".pth"} and file.is_file() and zipfile.is_zipfile(file)


def _digest_bytes(file: Path) -> str:
    with file.open("rb") as stream:  # which may hold gigabytes of parameters
        return hashlib.file_digest(stream, "sha256").hexdigest()[:16]


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


def _named(place: str) -> Callable[[Task], str]:
    """Return the function that "module:function" or "file.py:function" names."""
    owner, _, function = place.rpartition(":")
    if owner.endswith(".py"):
        loaded_function: Callable[[Task], str] = run_path(owner)[function]
        return loaded_function
    named: Callable[[Task], str] = getattr(import_module(owner), function)
    return named


def source_text(task: Task) -> str:
    """Return the task as one self-contained text in KernelBench form, at the sizes of its scale; TaskError for a file that has changed."""
    form = Form.of(task)
    text = _plain_text(task, form)
    scaled = text if form.scale == 1.0 else scale_text(text, form.scale, task.path).text
    scaled = f"{scaled.rstrip()}\n{declared_shapes.text_of(form.sizes)}" if form.sizes else scaled
    return f"{scaled.rstrip()}\n{training.TEXT}" if form.backward else scaled


def _plain_text(task: Task, form: Form) -> str:
    if task.option("reference"):
        return str(_named(str(task.option("reference")))(task))
    if form.loader == "module":
        return saved_module.TEXT.format(path=task.path)
    text = _read(Path(task.path))
    if task.source_digest and digest(text) != task.source_digest:
        raise TaskError(f"{task.path} has changed since this task was described", "start again, or restore the file")
    if form.loader == "function":
        return _function_text(text, task.path, form.entry)
    return text if form.entry == "Model" else f"{text.rstrip()}\n\n\nModel = {form.entry}\n"


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
    tree = parse(text, path)
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
    """Run a task's file in a fresh namespace and return its program and inputs; raise TaskError for whatever goes wrong in it."""
    text = source_text(task)
    namespace = run_text(text, task.path, digest(task.key, text))
    missing = [name for name in ("Model", "get_inputs", "get_init_inputs") if not callable(getattr(namespace, name, None))]
    if missing:
        raise TaskError(f"{task.path} has no {' and no '.join(missing)}", _FORMS)
    seed_all(0)
    init_inputs = call(task.path, "get_init_inputs()", namespace.get_init_inputs)
    if not isinstance(init_inputs, list | tuple):
        raise TaskError(f"{task.path}: expected get_init_inputs() to return a list, saw {type(init_inputs).__name__}", "return [] for none")
    return Reference(task, text, namespace, list(init_inputs))
