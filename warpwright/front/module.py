"""From a module or a function in memory to a task file, through the search, and back to a module."""

from __future__ import annotations

import contextlib
import filecmp
import functools
import hashlib
import importlib.util
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import torch
from rich.console import Console

from warpwright.api import Watching, default_target, optimize_task
from warpwright.base import BASELINE, Budget, Options, Precision, Record
from warpwright.errors import TaskError, UsageError
from warpwright.files import ARCHIVE, make_folder
from warpwright.front import asked
from warpwright.front.result import Result
from warpwright.reports import report
from warpwright.reports.progress import Progress
from warpwright.reports.results import MOST_FOLDERS, OUT
from warpwright.reports.results import Result as Written
from warpwright.run import Settings
from warpwright.tasks import shapes as declared
from warpwright.tasks import training
from warpwright.tasks.function_module import Function
from warpwright.tasks.modules import saved_module
from warpwright.tasks.modules.part_modes import give_modes, modes_of

Mode = Literal["eval", "train", "as_is"]

log = logging.getLogger("warpwright")


def optimize(
    module: torch.nn.Module | Callable[..., Any], args: Sequence[Any] | torch.Tensor = (), kwargs: Mapping[str, Any] | None = None, *,
    budget: str = "60s", search: str = "ladder", target: str | None = None, precision: Precision = "strict", mode: Mode | None = None,
    baselines: Sequence[str] = (), seed: int = 0, out: str | Path | None = None, archive: str | Path = ARCHIVE, again: bool = False,
    calibrate: bool = False, backward: bool = False,
    shapes: Sequence[Mapping[str, Sequence[Any]]] = (), examples: Sequence[Any] = (), progress: bool = True,
    callback: Callable[[Record], None] | None = None, began: float | None = None,
) -> Result:  # fmt: skip
    """Return what `warpwright.optimize` promises. The budget counts from `began` (`time.monotonic()`), or from now."""
    began = time.monotonic() if began is None else began
    asked.check(budget, search, precision, callback)
    model = as_module(module)
    inputs, keywords = asked.arguments(args, kwargs)
    others = [asked.arguments(example, None) for example in examples]
    asked.shapes_of(model, shapes)
    options: Options = tuple((name, True) for name, wanted in (("calibrate", calibrate), ("backward", backward)) if wanted)
    options = (*options, (declared.OPTION, declared.option(shapes))) if shapes else options
    mode = mode or ("train" if backward else "eval")
    settings = Settings(target or default_target(), search, budget, asked.names(baselines), precision, seed=seed, options=options)
    with _in_mode(model, mode):
        folder, saved = _save(model, saved_module.Example(inputs, keywords, tuple(others)), out)
        try:
            written = _run(settings, saved, folder, Path(archive), began, again, progress, callback)
        except TaskError as error:  # what cannot be judged is kept, as what cannot be made faster is
            written = Written(report.line(saved.stem, (), reason=str(error)), None, folder, False)
    if written.interrupted:
        raise KeyboardInterrupt
    best = written.best
    log.info("%s: %s", saved.stem, written.line["verdict"] or written.line["status"])
    if best is None or best.candidate.proposer == f"{BASELINE}eager":
        return Result(model if mode == "as_is" else model.train(mode == "train"), written, mode)
    return Result(load(folder / "optimized.py", training.shipped(best.candidate.source.entry), model, mode), written, mode)


def as_module(program: Any) -> torch.nn.Module:
    """Return a module: a function as one that calls it. Raise UsageError for a class and for what cannot be called."""
    if isinstance(program, torch.nn.Module):
        return program
    if isinstance(program, type):
        raise UsageError(f"expected a module, saw the class {program.__name__}", f"make one: optimize({program.__name__}(...), args)")
    if not callable(program):
        raise UsageError(f"expected a module or a function, saw a {type(program).__name__}", "as in optimize(model, (x,))")
    if isinstance(getattr(program, "__self__", None), torch.nn.Module):
        raise UsageError(f"expected a module or a function, saw a method of a {type(program.__self__).__name__}", "give the module itself")
    return Function(program)


@contextlib.contextmanager
def _in_mode(model: torch.nn.Module, mode: Mode) -> Iterator[None]:
    """Set the training flags of all parts, and put each back afterwards."""
    if mode not in ("eval", "train", "as_is"):
        raise UsageError(f"expected the mode eval, train or as_is, saw {mode!r}")
    before = modes_of(model)
    try:
        if mode != "as_is":
            model.train(mode == "train")
        yield
    finally:
        give_modes(model, before)


def _save(model: torch.nn.Module, example: saved_module.Example, out: str | Path | None) -> tuple[Path, Path]:
    """Write the task; return its folder and its file. Without `out`, a folder that holds another model of this name is left alone."""
    name = _name(model)
    file = f"{name}.pt"
    if out is not None:
        folder = make_folder(out)
        saved_module.write(model, example.inputs, folder / file, example.keywords, example.others)
        return folder, folder / file
    partial = make_folder(OUT) / f".{name}.{time.time_ns()}.pt"
    try:
        saved_module.write(model, example.inputs, partial, example.keywords, example.others)
        folder = _folder(name, file, partial)
        partial.replace(folder / file)
    finally:
        partial.unlink(missing_ok=True)
    return folder, folder / file


def _name(model: torch.nn.Module) -> str:
    name = getattr(model.function, "__name__", "function") if isinstance(model, Function) else type(model).__name__
    return name if name.isidentifier() else "function"


def _folder(name: str, file: str, written: Path) -> Path:
    """Return the first folder of this name that is new or holds this very model."""
    for number in range(1, MOST_FOLDERS):
        folder = OUT / (name if number == 1 else f"{name}-{number}")
        known = folder / file
        if not known.exists() or filecmp.cmp(known, written, shallow=False):
            return make_folder(folder)
    raise UsageError(f"expected a free folder such as {folder}, saw {MOST_FOLDERS} taken ones", "name one with out=, or remove some")


def _run(
    settings: Settings, saved: Path, folder: Path, archive: Path, began: float, again: bool, progress: bool,
    callback: Callable[[Record], None] | None,
) -> Written:  # fmt: skip
    console = Console(stderr=True, soft_wrap=True, quiet=not progress)
    task = settings.describe(saved)
    with Progress(console, Budget.parse(settings.budget).seconds, task=task.name) as shown:

        def record(one: Record) -> None:
            shown.record(one)
            why = "" if one.status == "ok" else f" ({one.headline[:150]})"
            log.debug("%s: %s%s %s", task.name, one.status, why, "; ".join(map(str, one.candidate.actions)) or one.candidate.proposer)
            if callback is not None:
                callback(one)

        def tell(phase: str) -> None:
            shown.tell(phase)
            log.debug("%s: %s", task.name, phase)

        return optimize_task(task, settings, archive, folder, Watching(record, tell), began, again)


# --- the program as a module -----------------------------------------------------------------------------------------------------------


def load(path: Path, entry: str, module: torch.nn.Module, mode: Mode) -> torch.nn.Module:
    """Return the program's module with the state and the device of `module`. It can be copied and pickled wherever the file stays."""
    faster = _class(str(path.absolute()), entry)()
    faster.load_state_dict(module.state_dict())
    tensors = [*module.parameters(), *module.buffers()]
    faster.train(module.training if mode == "as_is" else mode == "train")
    if mode == "as_is":
        give_modes(faster, modes_of(module))
    return faster.to(tensors[0].device) if tensors else faster


def _class(path: str, entry: str) -> type[torch.nn.Module]:
    """Return the class of a program's file, whose objects are pickled by the file's path."""
    text = Path(path).read_bytes()
    name = f"warpwright_optimized_{hashlib.sha256(path.encode() + text).hexdigest()[:16]}"
    loaded = sys.modules.get(name) or _imported(path, name)
    for kind in vars(loaded).values():  # that of the program, and those of its parts
        if isinstance(kind, type) and issubclass(kind, torch.nn.Module) and kind.__module__ == name:
            kind.__reduce_ex__ = functools.partialmethod(_reduced, path)  # type: ignore[assignment]
    loaded_class: type[torch.nn.Module] = getattr(loaded, entry)
    return loaded_class


def _reduced(module: torch.nn.Module, path: str, protocol: object) -> tuple[Any, ...]:
    return _new, (path, type(module).__qualname__), module.__getstate__()  # type: ignore[no-untyped-call]


def _imported(path: str, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"expected a Python file, saw {path}", "name a folder with out= that can hold one")
    loaded = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(loaded)
    except BaseException:
        del sys.modules[name]
        raise
    return loaded


def _new(path: str, entry: str) -> torch.nn.Module:
    """Return an object of a program's class, whose state comes next: what pickle calls."""
    kind = _class(path, entry)
    return kind.__new__(kind)
