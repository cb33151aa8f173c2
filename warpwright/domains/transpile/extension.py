"""Torch extensions with CUDA kernels, on the CPU: `compile_extension(text, functions)` gives callables that take and return tensors.

Host code is kept; it sees a small part of torch's C++ interface (runtime/pytorch) and believes that its tensors lie on a GPU. Torch's own headers
are not read: they take a minute to compile, this takes seconds. What the small part lacks is an error of the C++ compiler, shown with its line.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from warpwright import native
from warpwright.domains.transpile.errors import LaunchFailed, Refusal
from warpwright.domains.transpile.launch.library import built
from warpwright.domains.transpile.launch.runtime_text import runtime
from warpwright.domains.transpile.program import Program, compile_text
from warpwright.errors import UsageError

AXES = 12
"""Of a tensor that crosses the border."""

TYPES = (
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64,
    None, None, None, torch.bool, None, None, None, torch.bfloat16,
)  # fmt: skip
"""Element types by c10::ScalarType."""

NONE, TENSOR, INTEGER, NUMBER, BOOLEAN, INTEGERS, TENSORS, TEXT, OBJECT = range(9)

MODULE = re.compile(r"\bnn::(LSTM|GRU|MultiheadAttention)\b")
"""Modules of torch's C++ library that runtime/pytorch/modules.hpp has."""

CUBLAS = re.compile(r"\bcublas\w+")


class Value(ctypes.Structure):
    """One argument or result: ww::Value of runtime/pytorch/torch.hpp."""

    _fields_ = (
        ("kind", ctypes.c_int), ("type", ctypes.c_int), ("rank", ctypes.c_int), ("unused", ctypes.c_int),
        ("owner", ctypes.c_int64), ("integer", ctypes.c_int64), ("number", ctypes.c_double), ("data", ctypes.c_void_p),
        ("sizes", ctypes.c_int64 * AXES), ("strides", ctypes.c_int64 * AXES),
    )  # fmt: skip


LIBRARY = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(Value), ctypes.c_int, ctypes.POINTER(Value))
ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_void_p))


def translate_extension(text: str, functions: Sequence[str] = (), name: str = "extension.cu", **options: Any) -> Program:
    """Translate an extension's CUDA text. `functions`: what it offers, where the text has no PYBIND11_MODULE; options: those of compile_text."""
    program = compile_text(text, name, host=True, **options)
    missing = [function for function in functions if not re.search(rf"\b{re.escape(function)}\s*\(", text)]
    if missing:
        raise UsageError(f"expected the extension to define {', '.join(missing)}, saw no such function")
    head, mark, body = program.source.partition(f"\n// ---- {name} ----")
    parts: tuple[str, ...] = ("torch", "border", "library", "binding")
    parts += () if "inline cudaError_t& last_error()" in head else ("host",)
    parts += ("modules",) if MODULE.search(text) else ()
    parts += ("cublas",) if CUBLAS.search(text) and "cublasCreate(" not in head else ()
    binds = [f'static ww::Registrar ww_bind_{i}([](ww::Module& m) {{ m.def("{function}", &{function}); }});' for i, function in enumerate(functions)]
    return replace(program, source="\n".join([head, runtime(parts), mark + body, *binds, ""]))


def compile_extension(text: str, functions: Sequence[str] = (), name: str = "extension.cu", **options: Any) -> Extension:
    """Translate, build (cached) and load an extension. Refusal when a construct, or a part of torch's interface, is not translated."""
    program = translate_extension(text, functions, name, **options)
    try:
        path = built(program.source)
    except native.BuildError as error:
        located = re.search(r":(\d+):\d+: error: (.*)", str(error))
        what = located[2] if located else str(error)[-300:]
        line = program.source.splitlines()[int(located[1]) - 1].strip() if located and int(located[1]) <= program.source.count("\n") else ""
        reason = f"the C++ compiler says of `{line}`: {what}"
        raise Refusal(name, 0, "host-code", reason, "host code may use tensors' sizes, memory and views") from error
    return Extension(program, path)


@dataclass
class Extension:
    """A loaded extension: `extension.name(tensor, 2, 0.5)`."""

    program: Program
    path: Path
    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        library = native.load(self.path)
        for symbol in (library.ww_bound_name, library.ww_bound_arguments, library.ww_error):
            symbol.restype = ctypes.c_char_p
        library.ww_results.restype = ctypes.POINTER(Value)
        calls = _calls_of(self.path)
        for index in range(library.ww_bound_count()):
            words = library.ww_bound_arguments(index).decode().split()
            name = library.ww_bound_name(index).decode()
            self.functions[name] = _bound(calls, index, name, words)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        try:
            return self.__dict__["functions"][name]  # type: ignore[no-any-return]
        except KeyError:
            raise AttributeError(f"expected one of {', '.join(self.__dict__.get('functions', {}))}, saw {name!r}") from None


def _bound(calls: _Calls, index: int, name: str, words: Sequence[str]) -> Callable[..., Any]:
    def function(*arguments: Any, **keywords: Any) -> Any:
        positional = [*arguments]
        for position, word in enumerate(words[len(positional) :], len(positional)):
            fallback = Value()
            if word in keywords:
                positional.append(keywords.pop(word))
            elif calls.library.ww_bound_default(index, position, ctypes.byref(fallback)):
                positional.append(fallback)
        if keywords:
            raise TypeError(f"{name}() got an unexpected keyword argument {next(iter(keywords))!r}")
        return calls.call(index, name, positional)

    function.__name__ = name
    return function


_KINDS: dict[str, type] = {kind.__name__: kind for kind in (list, tuple, dict, str, int, float, bool)} | {"Sequence": Sequence}

_PYTHON: dict[str, Callable[..., Any]] = {
    ".attr": getattr, ".item": operator.getitem, ".call": lambda function, *given: function(*given), ".len": len, ".list": list,
    ".contains": operator.contains, ".hasattr": hasattr, ".isinstance": lambda one, kind: isinstance(one, _KINDS[kind]),
    ".as": lambda one, kind: _KINDS[kind]() if one is None else _KINDS[kind](one),
}  # fmt: skip
"""What host code does with Python objects: `object` of runtime/pytorch/binding.hpp."""


def _asked(name: str, arguments: list[Any]) -> Any:
    """Answer one question of host code."""
    if name in _PYTHON:
        return _PYTHON[name](*arguments)
    if name.startswith("functional."):
        return getattr(torch.nn.functional, name.removeprefix("functional."))(*arguments)
    if name == "gelu":
        return torch.ops.aten.gelu(arguments[0], approximate=arguments[1])
    return getattr(torch.ops.aten, name)(*arguments)


@functools.cache
def _calls_of(path: Path) -> _Calls:
    """Return the one `_Calls` of a library: it asks the one that it was given last, also where a text was compiled, and so loaded, twice."""
    return _Calls(native.load(path))


class _Calls:
    """Calls functions of a library, one at a time, and keeps the tensors that a call sees."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self.live: list[torch.Tensor] = []
        self.objects: list[Any] = []
        self.lock = threading.RLock()
        self.allocate = ALLOCATE(self._allocate)
        library.ww_allocate_with(self.allocate)
        self.failure = ""
        self.asked = LIBRARY(self._ask)
        library.ww_library_with(self.asked)

    def _allocate(self, kind: int, rank: int, sizes: Any, data: Any) -> int:
        try:
            self.live.append(torch.empty([sizes[i] for i in range(rank)], dtype=TYPES[kind], device="cpu"))
        except RuntimeError:
            return -1
        data[0] = self.live[-1].data_ptr()
        return len(self.live) - 1

    def _ask(self, name: bytes, values_asked: Any, count: int, result: Any) -> int:
        """Do what host code asks of torch's library (ATen's function of that name, on tensors that this call has seen) or of a Python object."""
        try:
            values = [values_asked[i] for i in range(count)]
            arguments = []
            while values:
                arguments.append(self._read(values))
            with torch.no_grad():
                ctypes.pointer(result[0])[0] = self._answer(_asked(name.decode(), arguments), name.decode())
        except Exception as error:  # it would be lost on its way through C++: the text goes into the error of the call
            self.failure = f": {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            return 1
        return 0

    def _answer(self, answer: Any, name: str) -> Value:
        """Return the value of an answer: what is no tensor, number, text or None is an object, kept until the call ends."""
        if isinstance(answer, str):
            self.objects.append(ctypes.create_string_buffer(answer.encode()))
            return Value(kind=TEXT, data=ctypes.addressof(self.objects[-1]))
        if answer is None or isinstance(answer, torch.Tensor | bool | int | float):
            return self._values(answer, name)[0]
        return Value(kind=OBJECT, integer=self._keep(answer))

    def _keep(self, one: Any) -> int:
        self.objects.append(one)
        return len(self.objects) - 1

    def call(self, index: int, name: str, arguments: Sequence[Any]) -> Any:
        """Call function number `index`; a failure inside is a LaunchFailed with its words."""
        with self.lock:
            try:
                values = [value for argument in arguments for value in self._values(argument, name)]
                count = self.library.ww_call(index, (Value * max(1, len(values)))(*values), len(values))
                if count < 0:
                    raise LaunchFailed(f"{name} failed: {self.library.ww_error().decode()}{self.failure}")
                results = self.library.ww_results()
                return self._result([results[i] for i in range(count)])
            finally:
                self.live, self.objects, self.failure = [], [], ""

    def _values(self, argument: Any, name: str) -> list[Value]:
        if isinstance(argument, Value):
            return [argument]
        if argument is None:
            return [Value(kind=NONE)]
        if isinstance(argument, torch.Tensor):
            return [self._tensor(argument, name)]
        if isinstance(argument, bool):
            return [Value(kind=BOOLEAN, integer=int(argument))]
        if isinstance(argument, int):
            return [Value(kind=INTEGER, integer=argument)]
        if isinstance(argument, float):
            return [Value(kind=NUMBER, number=argument)]
        if isinstance(argument, torch.dtype):
            return [Value(kind=INTEGER, integer=TYPES.index(argument))]
        if isinstance(argument, list | tuple) and argument and all(isinstance(item, torch.Tensor) for item in argument):
            head = Value(kind=TENSORS, integer=len(argument), owner=self._keep(argument))
            return [head, *(self._tensor(item, name) for item in argument)]
        if isinstance(argument, list | tuple | torch.Size) and all(isinstance(item, int) for item in argument) and len(argument) <= AXES:
            return [Value(kind=INTEGERS, rank=len(argument), owner=self._keep(argument), sizes=(ctypes.c_int64 * AXES)(*argument))]
        if isinstance(argument, list | tuple | Mapping | torch.nn.Module):
            return [Value(kind=OBJECT, integer=self._keep(argument))]
        raise TypeError(f"expected tensors, numbers and lists of them as arguments of {name}, saw {type(argument).__name__}")

    def _tensor(self, tensor: torch.Tensor, name: str) -> Value:
        if tensor.device.type != "cpu" or tensor.dtype not in TYPES or tensor.dim() > AXES:
            seen = f"{tensor.dtype} on {tensor.device}, {tensor.dim()} axes"
            raise TypeError(f"expected a CPU tensor of at most {AXES} axes as argument of {name}, saw {seen}")
        self.live.append(tensor)
        sizes, strides = (ctypes.c_int64 * AXES)(*tensor.shape), (ctypes.c_int64 * AXES)(*tensor.stride())
        owner, kind = len(self.live) - 1, TYPES.index(tensor.dtype)
        return Value(kind=TENSOR, type=kind, rank=tensor.dim(), owner=owner, data=tensor.data_ptr(), sizes=sizes, strides=strides)

    def _result(self, values: list[Value]) -> Any:
        items: list[Any] = []
        while values:
            items.append(self._read(values))
        return None if not items else items[0] if len(items) == 1 else tuple(items)

    def _read(self, values: list[Value]) -> Any:
        """Take the next argument or result from the front of the list: one value, or a list of tensors with its head."""
        value = values.pop(0)
        if value.kind == INTEGERS:
            return list(value.sizes[: value.rank])
        if value.kind == TENSORS:
            return [self._view(values.pop(0)) for _ in range(value.integer)]
        if value.kind == TEXT:
            return ctypes.string_at(value.data or 0).decode()
        if value.kind == OBJECT:
            return self.objects[value.integer]
        plain = {NONE: None, INTEGER: value.integer, NUMBER: value.number, BOOLEAN: bool(value.integer)}
        return self._view(value) if value.kind == TENSOR else plain[value.kind]

    def _view(self, value: Value) -> torch.Tensor | None:
        """Return the tensor that a result is: one of those that the call saw, or a view of its memory."""
        if value.kind != TENSOR:
            return None
        base = self.live[value.owner]
        sizes, strides = list(value.sizes[: value.rank]), list(value.strides[: value.rank])
        offset = ((value.data or 0) - base.data_ptr()) // base.element_size()
        if offset == 0 and sizes == list(base.shape) and strides == list(base.stride()):
            return base
        return base.as_strided(sizes, strides, base.storage_offset() + offset)
