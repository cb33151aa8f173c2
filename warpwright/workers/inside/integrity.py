"""Watches a worker's own process: were functions replaced, settings left changed, forbidden things attempted?

Everything is compared with what was noted before the candidate was imported. The notes live in closures and the functions they need
are taken at that time too, so that a candidate that replaces them later does not blind the watch. A candidate that goes after the
closures has to use frames or the collector, which the audit hook reports. Native code can evade all of this; the parent's clock, its
census of threads and children, and the judge's comparison do not depend on it.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import importlib
import inspect
import os
import pathlib
import random
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any

from warpwright.workers.inside.settings import watch_settings

MODULES = (
    "torch", "torch._C", "torch._C._nn", "torch.cuda", "torch.nn.functional", "torch.random", "torch.testing", "torch.autograd",
    "torch.backends.cudnn", "torch.backends.cuda", "torch.utils._pytree", "torch.overrides", "torch.linalg", "torch.fft", "torch.special",
)  # fmt: skip
NOT_WATCHED = {"excepthook", "displayhook", "unraisablehook", "breakpointhook", "showwarning", "formatwarning", "_showwarnmsg"}
"""Hooks of the standard library that programs are meant to replace."""

CLASSES = (
    "torch.Tensor", "torch._C.TensorBase", "torch.nn.Module", "torch.UntypedStorage", "torch.Generator", "torch.cuda.Event",
    "torch.cuda.Stream",
)  # fmt: skip
HARNESS = "warpwright.workers."
"""Of the modules that run in a worker. A list of names was out of date once these had moved to rooms of their own: nothing of them was watched."""

AF_UNIX = 1

REPLACED_BY_TORCH = {
    "torch.manual_seed", "torch.random.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all",
    "torch.nn.Module.__init__", "torch.nn.Module.__setstate__",
}  # fmt: skip
"""What importing torch._dynamo wraps, with functions of torch's own files."""

FOLLOWS_SETTINGS = {"torch.Storage"}  # an alias that changes with the default dtype, which is reported as such
MACHINE_CODE = ("clock_gettime", "gettimeofday", "nanosleep", "read", "write", "poll", "cudaDeviceSynchronize", "cudaStreamSynchronize")
"""Functions whose first bytes are compared: native code may overwrite them without touching a Python object."""

LOOKING = {
    "sys._getframe", "sys._getframemodulename", "sys._current_frames", "sys.settrace", "sys.setprofile", "gc.get_objects",
    "gc.get_referrers", "gc.get_referents", "sys.addaudithook",
}  # fmt: skip
FRAME_ATTRIBUTES = {"tb_frame", "gi_frame", "cr_frame", "ag_frame"}
STARTING = {
    "subprocess.Popen", "os.system", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.spawn", "os.kill", "os.killpg",
    "socket.connect", "socket.bind", "socket.getaddrinfo", "socket.__new__",
}  # fmt: skip
CHANGING = {"os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.truncate", "shutil.rmtree"}


OPERATORS = (
    "alias", "as_strided", "clone", "copy_", "detach", "empty.memory_format", "empty_strided", "equal", "fill_.Scalar", "resolve_conj", "resolve_neg",
    "set_.source_Storage", "view", "view.dtype", "_local_scalar_dense", "_to_copy",
)  # fmt: skip
"""Of aten's, what the runner itself works with when a call is over: kernels registered for them would run then."""

DEVICES = ("/CPU", "/CUDA")
"""Whose kernels a program may not put others in the place of, for any of aten's operators: everybody else's calls would take those."""

TOOLS = 6
"""Of sys.monitoring, from Python 3.12 on."""


_prepared: list[Callable[[], list[str]]] = []


def prepare() -> None:
    """Note the functions now, for the watches of all processes forked from this one: it takes 0.15 s."""
    _prepared[:] = [watch_functions()]


class Watch:
    """Notes the state of the process when it is made; `report()` says what has changed since."""

    def __init__(self, folders: tuple[str, ...], use_prepared: bool = False, own: Mapping[str, Any] | None = None) -> None:
        """`own`: objects of the worker's, by name, whose functions no program may replace."""
        self.changed_functions = _prepared[0] if use_prepared and _prepared else watch_functions()
        self.changed_objects = watch_objects(own or {})
        self.changed_operators, self.changed_tools = watch_operators(), watch_tools()
        self.changed_settings = watch_settings()
        self.noted_events, self.lock = watch_events(folders)
        self.stray_threads = watch_threads(folders[0])
        self.changed_generators = watch_generators()

    def report(self) -> dict[str, list[str]]:
        """Return what was found, by check."""
        events = self.noted_events()
        return {
            "patched": self.changed_functions() + self.changed_objects() + self.changed_operators(),
            "inspection": events["inspection"] + self.changed_tools(),
            "forbidden": events["forbidden"],
            "global_flags": self.changed_settings(),
            "background": self.stray_threads(),
        }


# --- functions ----------------------------------------------------------------------------------------------------------------------


def watch_operators() -> Callable[[], list[str]]:
    """Note who is registered for OPERATORS; the result names what was registered since, from Python for any other of aten's operators too.

    torch adds Meta kernels when it compiles.
    """
    import torch

    dump: Callable[[str], str] = torch._C._dispatch_dump

    def registered() -> set[tuple[str, str]]:
        return {(name, line) for name in OPERATORS for line in dump(f"aten::{name}").splitlines() if not line.startswith("Meta")}

    noted, by_python = registered(), torch.library._impls
    noted_by_python = set(by_python)

    def changed() -> list[str]:
        others = {name for name in by_python - noted_by_python if name.startswith("aten/") and name.endswith(DEVICES)}
        return sorted([*(f"torch.ops.aten.{name}: {line[:200]}" for name, line in registered() - noted), *(f"torch.ops.{name}" for name in others)])

    return changed


def watch_tools() -> Callable[[], list[str]]:
    """Note the tools of sys.monitoring, which are called back for every function and of which no audit event tells; the result names new ones."""
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is None:
        return list
    tool, events = monitoring.get_tool, monitoring.get_events
    noted = [tool(number) for number in range(TOOLS)]

    def changed() -> list[str]:
        now = [(number, tool(number)) for number in range(TOOLS)]
        return [f"sys.monitoring: {name!r} listens" for number, name in now if name is not None and (name != noted[number] or events(number))]

    return changed


def watch_functions() -> Callable[[], list[str]]:
    """Note the function objects of torch and of the standard library; the result names those that were replaced since."""
    holders = _holders()
    replacements = _replacements(holders)
    holders += [(str(function.__globals__.get("__name__")), function.__globals__) for _, function in replacements]
    notes = [
        (where, holder, {key: (value, _parts(value) if type(value) is FunctionType else None) for key, value in holder.items() if callable(value)})
        for where, holder in holders
    ]
    cells = [(where, cell, cell.cell_contents) for where, function in replacements for cell in function.__closure__ or () if _is_filled(cell)]
    modules = sys.modules
    kept_modules = {name: module for name, module in modules.items() if name.split(".")[0] == "torch" or name in sys.stdlib_module_names}
    callbacks, kept_callbacks = gc.callbacks, list(gc.callbacks)
    read, kind, function, parts_of = getattr, type, FunctionType, _parts
    torch_folder = os.path.dirname(os.path.abspath(str(sys.modules["torch"].__file__)))
    shadowing, changed_constants = watch_shadows(), watch_constants()
    changed_code = watch_machine_code()
    skipped = NOT_WATCHED

    def changed() -> list[str]:
        changes = changed_code() + shadowing() + changed_constants()
        changes += [f"sys.modules[{name!r}]" for name, module in kept_modules.items() if modules.get(name) is not module]
        changes += ["gc.callbacks"] if callbacks != kept_callbacks else []
        changes += [where for where, cell, content in cells if cell.cell_contents is not content]
        for where, holder, noted in notes:
            for key, (value, parts) in noted.items():
                now = holder.get(key)
                parts_now: Any = parts_of(now) if kind(now) is function else (None, None)  # type: ignore[arg-type]
                if (now is value and (parts is None or (parts_now[0] is parts[0] and parts_now[1] is parts[1]))) or key in skipped:
                    continue
                by_torch = read(parts_now[0], "co_filename", "").startswith(torch_folder)
                name = f"{where}.{key}"
                if not (by_torch and name in REPLACED_BY_TORCH) and name not in FOLLOWS_SETTINGS:
                    changes.append(name)
        return changes

    return changed


def _parts(function: FunctionType) -> tuple[CodeType, tuple[Any, ...] | None]:
    """Return what of a function may be replaced while it stays the object that it is: its code and its defaults."""
    return function.__code__, function.__defaults__


def _holders() -> list[tuple[str, Mapping[str, Any]]]:
    """Return the modules and classes whose functions are noted."""
    holders: list[tuple[str, Mapping[str, Any]]] = []
    for name, module in list(sys.modules.items()):
        standard = name.split(".")[0] in sys.stdlib_module_names and module is not None
        if standard or name in MODULES or name.startswith(HARNESS):
            holders.append((name, vars(module)))
        if standard or name.startswith(HARNESS):
            inside = (value for value in list(vars(module).values()) if isinstance(value, type) and value.__module__ == name)
            holders += [(f"{name}.{kind.__qualname__}", vars(kind)) for kind in inside]
    return holders + _layers() + [(name, vars(_resolve(name))) for name in CLASSES]


def _layers() -> list[tuple[str, Mapping[str, Any]]]:
    """Return torch's own kinds of modules: a program that replaces Linear.forward changes everybody's."""
    import torch

    kinds = {name: value for name, value in vars(torch.nn).items() if isinstance(value, type) and value.__module__.startswith("torch.nn.modules.")}
    return [(f"torch.nn.{name}", vars(kind)) for name, kind in kinds.items() if name != "Module"]


def _replacements(holders: Sequence[tuple[str, Mapping[str, Any]]]) -> list[tuple[str, FunctionType]]:
    """Return what stands in torch's modules and is no function of torch's: a package that the original imports may have put it there.

    What such a function calls is noted with it: torch_geometric's `torch.select` calls torch's by a global name of a module of its own.
    """
    ours = {"torch", "warpwright"}
    found = [(f"{where}.{key}", value) for where, holder in holders if where.partition(".")[0] == "torch" for key, value in holder.items()]
    functions = [(name, value) for name, value in found if type(value) is FunctionType]
    root = {name: str(value.__globals__.get("__name__")).partition(".")[0] for name, value in functions}
    return [(name, value) for name, value in functions if root[name] not in ours and root[name] not in sys.stdlib_module_names]


def _is_filled(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


CONSTANTS = ("torch", "torch.random", "torch.cuda", "math", "cmath")
"""Modules of which also the numbers, types and generators are noted that others compute with: pi, torch.float, torch.default_generator."""


def watch_constants() -> Callable[[], list[str]]:
    """Note the constants of a few modules; the result names those that are other objects now."""
    import torch

    kinds = (float, torch.dtype, torch.layout, torch.memory_format, torch.Generator)
    modules = [(name, vars(sys.modules[name])) for name in CONSTANTS if name in sys.modules]
    notes = [(name, holder, {key: value for key, value in holder.items() if isinstance(value, kinds)}) for name, holder in modules]
    return lambda: [f"{name}.{key}" for name, holder, noted in notes for key, value in noted.items() if holder.get(key) is not value]


def watch_shadows() -> Callable[[], list[str]]:
    """Note what the watched classes define; the result names methods that a class has gained over one that it inherits."""
    notes = [(name, vars(_resolve(name)), set(vars(_resolve(name))), _resolve(name).__mro__[1:]) for name in CLASSES]
    inherited = {name: {key for base in bases for key in vars(base)} for name, _, _, bases in notes}
    return lambda: [f"{name}.{key}" for name, holder, known, _ in notes for key in holder if key not in known and key in inherited[name]]


def watch_objects(own: Mapping[str, Any]) -> Callable[[], list[str]]:
    """Note the functions that objects hold; the result names those that were replaced since, and methods that an object has got over its class's."""
    functions = {name: {key: value for key, value in vars(one).items() if callable(value)} for name, one in own.items()}
    methods_of = {name: {key for key in dir(one) if callable(getattr(type(one), key, None))} for name, one in own.items()}
    notes = [(name, vars(one), functions[name], methods_of[name]) for name, one in own.items()]

    def changed() -> list[str]:
        changes = [f"{name}.{key}" for name, holder, noted, _ in notes for key, value in noted.items() if holder.get(key) is not value]
        return changes + [f"{name}.{key}" for name, holder, _, methods in notes for key in holder if key in methods]

    return changed


def watch_machine_code() -> Callable[[], list[str]]:
    """Note the first bytes of a few native functions; the result names those that were overwritten."""
    read_bytes = ctypes.string_at
    try:
        libraries = [ctypes.CDLL(None)]
    except OSError:
        return list
    noted = {}
    for name in MACHINE_CODE:
        function = getattr(libraries[0], name, None)
        if function is not None:
            address = ctypes.cast(function, ctypes.c_void_p).value or 0
            noted[name] = (address, read_bytes(address, 16))
    return lambda: [f"machine code of {name}" for name, (address, code) in noted.items() if read_bytes(address, 16) != code]


def _resolve(name: str) -> Any:
    """Return the object of a dotted name."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:cut]))
        if module is not None:
            value: Any = module
            for part in parts[cut:]:
                value = getattr(value, part)
            return value
    return importlib.import_module(name)


# --- generators ---------------------------------------------------------------------------------------------------------------------


def watch_generators() -> Callable[..., list[str]]:
    """Note the random generators' states now; the result names those that have advanced since it was asked last, but for torch's if `drawn`."""
    import torch

    readers: dict[str, Callable[[], bytes]] = {
        "torch": lambda get=torch.get_rng_state: get().numpy().tobytes(),
        "random": lambda get=random.getstate: repr(get()).encode(),
    }
    if "numpy" in sys.modules:
        numpy_state = sys.modules["numpy"].random.get_state
        readers["numpy"] = lambda: repr(numpy_state()).encode()
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        readers["torch.cuda"] = lambda get=torch.cuda.get_rng_state: get().numpy().tobytes()
    sha = hashlib.sha256
    noted = {name: sha(reader()).digest() for name, reader in readers.items()}

    def changed(drawn: bool = False) -> list[str]:
        now = {name: sha(reader()).digest() for name, reader in readers.items()}
        changes = [f"random generator {name} advanced" for name in readers if now[name] != noted[name] and not (drawn and name.startswith("torch"))]
        noted.update(now)
        return changes

    return changed


# --- events -------------------------------------------------------------------------------------------------------------------------


def watch_events(folders: tuple[str, ...]) -> tuple[Callable[[], dict[str, list[str]]], Callable[[], None]]:
    """Install an audit hook (it cannot be removed); return how to read what it noted, and how to say that the build is over."""
    texts_seen: dict[str, list[str]] = {"inspection": [], "forbidden": []}
    frame_of, busy, state = sys._getframe, threading.local(), {"locked": False}
    own = folders[0]
    trusted, asking = _trusted_folders(), {str(inspect.__file__), str(pathlib.__file__)}
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    harmless = ("/dev/null", "/dev/nvidia", "/dev/shm/torch_", "/proc/")

    def note(kind: str, text: str) -> None:
        if len(texts_seen[kind]) < 20 and text not in texts_seen[kind]:
            texts_seen[kind].append(text)

    def caller(depth: int = 2) -> str:
        """The file of the code that caused the event; functions of inspect and pathlib only pass on what others ask for."""
        busy.on = True
        try:
            frame: Any = frame_of(depth)
            while frame.f_code.co_filename in asking and frame.f_back is not None:
                frame = frame.f_back
            return str(frame.f_code.co_filename)
        finally:
            busy.on = False

    def opened(arguments: tuple[Any, ...]) -> None:
        path, _, flags = (*arguments, None, None)[:3]
        text = os.fsdecode(path) if isinstance(path, str | bytes) else ""
        memory = text.startswith("/proc/") and text.endswith(("/mem", "maps"))
        if memory and (text.endswith("/mem") or not (getattr(busy, "on", False) or caller(3).startswith(trusted))):
            note("inspection", f"opened {text}")
        elif state["locked"] and text and isinstance(flags, int) and flags & writing and not text.startswith(harmless):
            full = os.path.realpath(os.path.join(own, text))
            if not full.startswith(folders):
                note("forbidden", f"opened {text} for writing")

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            opened(arguments)
        elif event in LOOKING or (event == "object.__getattr__" and arguments[1] in FRAME_ATTRIBUTES):
            if not getattr(busy, "on", False) and not caller().startswith(trusted):
                note("inspection", event if event in LOOKING else f"read {arguments[1]}")
        elif event in STARTING and state["locked"] and not (event == "socket.__new__" and arguments[1] == AF_UNIX):
            note("forbidden", f"{event}{str(arguments)[:120]}")
        elif event in CHANGING and state["locked"] and arguments and isinstance(arguments[0], str | bytes):
            full = os.path.realpath(os.path.join(own, os.fsdecode(arguments[0])))
            if not full.startswith(folders):
                note("forbidden", f"{event} {full}")

    sys.addaudithook(hook)

    def lock() -> None:
        state["locked"] = True

    return (lambda: {kind: list(texts) for kind, texts in texts_seen.items()}), lock


def _trusted_folders() -> tuple[str, ...]:
    """Return where installed code lies: the standard library, torch and other packages, and this package.

    Packages may lie in several places: those of a user (`pip install --user`) and of the system beside those of an environment. Nothing of a
    program has been run yet, which could name others.
    """
    files = [os.__file__, str(sys.modules["torch"].__file__), str(sys.modules["torch"].__path__[0]), str(pathlib.Path(__file__).parents[1])]
    folders = {os.path.dirname(os.path.abspath(file)) for file in files}
    named = [path.rstrip(os.sep) for path in sys.path if os.path.basename(path.rstrip(os.sep)) in ("site-packages", "dist-packages")]
    folders |= {place(path) for path in named for place in (os.path.abspath, os.path.realpath)}
    return (*sorted(folder + os.sep for folder in folders), "<frozen ")


def watch_threads(folder: str) -> Callable[[], list[str]]:
    """Return how to find Python threads, other than this one, that run the candidate's code."""
    frames, ident = sys._current_frames, threading.get_ident

    def stray() -> list[str]:
        threads = []
        for thread, frame in frames().items():
            walk: Any = frame
            while thread != ident() and walk is not None:
                if walk.f_code.co_filename.startswith(folder):
                    threads.append(f"a thread runs {walk.f_code.co_name}()")
                    break
                walk = walk.f_back
        return threads

    return stray
