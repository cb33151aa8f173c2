"""CUDA kernels as functions of Python, on the CPU (docs/transpile.md).

    import warpwright.transpile

    kernels = warpwright.transpile.load("kernels.cu")           # or loads(text); instances=["scale<float, 256>"] for templates
    kernels.saxpy[(n + 255) // 256, 256](n, 2.0, x, y)          # numpy arrays, torch tensors, whatever has __dlpack__: in place
    print(kernels.saxpy.signature, kernels.saxpy.tier)

    @warpwright.transpile.kernel
    def twice():
        '''__global__ void twice(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }'''
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from warpwright.domains import transpile
from warpwright.domains.transpile import BadArgument, BadValue, Finding, LaunchFailed, Refusal
from warpwright.errors import UsageError
from warpwright.native import BuildError

__all__ = ["BadArgument", "BadValue", "Finding", "Kernel", "Kernels", "LaunchFailed", "Refusal", "kernel", "load", "loads"]


class Kernel:
    """A kernel: `kernel[grid, block, shared_bytes](*arguments)`; arrays are changed in place.

    A call raises BadArgument (a TypeError) for an argument of another type than its parameter, BadValue (a ValueError) for a number or a shape out
    of range and for an array that is not contiguous or, where the kernel writes, read-only; LaunchFailed for a kernel that stopped.
    """

    def __init__(self, loaded: transpile.LoadedKernel, info: transpile.KernelInfo) -> None:
        self._loaded = loaded
        self.name = loaded.name
        self.tier = info.tier
        """fibers, loops or vectors."""
        self.reason = info.reason
        """Why no faster tier took it, or empty."""
        self.line = info.line
        self.parameters = tuple(name for name, _ in info.parameters)
        self.signature = f"void {self.name}({', '.join(text for _, text in info.parameters)})"
        kind = inspect.Parameter.POSITIONAL_ONLY
        self.__signature__ = inspect.Signature([inspect.Parameter(name, kind, annotation=text) for name, text in info.parameters])
        self._written = tuple(i for i, (_, text) in enumerate(info.parameters) if "*" in text and not text.lstrip().startswith("const "))

    def __getitem__(self, shape: tuple[Any, ...]) -> Callable[..., None]:
        """Give the launch shape: `[grid, block]` or `[grid, block, shared_bytes]`; grid and block are a number or up to three."""
        launcher = self._loaded[shape]
        _check(launcher.shape, self.name)

        def launch(*arguments: Any) -> None:
            for index in self._written:
                flags = getattr(arguments[index], "flags", None) if index < len(arguments) else None
                if flags is not None and not getattr(flags, "writeable", True):
                    raise BadValue(f"expected an array that can be written for argument {index} of {self.name}, saw a read-only one")
            launcher(*arguments)

        return launch

    def __call__(self, *_: Any) -> None:
        """Say how a kernel is launched."""
        raise BadArgument(f"expected {self.name}[grid, block](...), saw a call without a launch shape")

    def __repr__(self) -> str:
        return f"<{self.signature}, tier {self.tier}>"

    def findings(self) -> list[Finding]:
        """Return what the sanitizer saw in the last launch of a program that was loaded with sanitize=True."""
        return self._loaded.findings()

    def notes(self) -> list[Finding]:
        """Return what it says of that launch that is no bug: threads of a block wrote one value to one place, with no barrier between."""
        return self._loaded.notes()


_MOST_BLOCKS, _MOST_THREADS = (2**31 - 1, 65535, 65535), (1024, 1024, 64)


def _check(shape: tuple[int, ...], kernel: str) -> None:
    """Raise BadValue for a launch shape that no GPU takes."""
    grid, block = shape[:3], shape[3:]
    for what, seen, most in (("grid", grid, _MOST_BLOCKS), ("block", block, _MOST_THREADS)):
        if any(number > limit for number, limit in zip(seen, most, strict=True)):
            raise BadValue(f"expected a {what} of {kernel} of at most {most}, saw {seen}")
    if block[0] * block[1] * block[2] > 1024:
        raise BadValue(f"expected at most 1024 threads a block of {kernel}, saw {block}: {block[0] * block[1] * block[2]}")


class Kernels(Mapping[str, Kernel]):
    """The kernels of a program, by name and as attributes; instances of templates by name, as `kernels["scale<float>"]`."""

    def __init__(self, program: transpile.Program) -> None:
        self.source = program.source
        """The C++."""
        loaded = program.load()
        self._refused = {name: info for name, info in program.kernels.items() if info.tier == "refused"}
        self._kernels = {name: Kernel(one, program.kernels[name.partition("<")[0].strip()]) for name, one in loaded.items()}

    def __getitem__(self, name: str) -> Kernel:
        if why := self._refused.get(name):
            raise UsageError(f"{name} was left out, line {why.line}: {why.reason}")
        return self._kernels[name]

    def __getattr__(self, name: str) -> Kernel:
        try:
            return self.__dict__["_kernels"][name]  # type: ignore[no-any-return]
        except KeyError:
            if why := self.__dict__.get("_refused", {}).get(name):
                raise AttributeError(f"{name} was left out, line {why.line}: {why.reason}") from None
            known = ", ".join(self.__dict__.get("_kernels", {})) or "none"
            raise AttributeError(f"expected one of the kernels {known}, saw {name!r}; a template needs instances=[...]") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._kernels.values()))


def load(
    path: str | Path, *, instances: Sequence[str] = (), include: Sequence[str | Path] = (), define: Sequence[str] = (), tier: str | None = None,
    sanitize: bool = False,
) -> Kernels:  # fmt: skip
    """Translate a CUDA file and build its kernels (cached by content); what only its host code needs is left out.

    instances: template kernels to offer, as `scale<float, 256>`; those that the file launches are found by themselves.
    include, define: folders of its own headers beside its own, and macros as NAME=VALUE.
    tier: the fastest tier to use: fibers, loops or vectors.
    sanitize: check every access when it runs (`Kernel.findings`).
    """
    file = Path(path)
    if not file.is_file():
        raise UsageError(f"expected a CUDA source, saw no file {str(path)!r}")
    folders = [file.parent, *(Path(one) for one in include)]
    text = file.read_text(errors="replace")
    return _built(text, str(file), define, tier, instances, folders, sanitize)


def loads(
    text: str, *, name: str = "input.cu", instances: Sequence[str] = (), include: Sequence[str | Path] = (), define: Sequence[str] = (),
    tier: str | None = None, sanitize: bool = False,
) -> Kernels:  # fmt: skip
    """The same for a text."""
    return _built(text, name, define, tier, instances, [Path(one) for one in include], sanitize)


def _built(
    text: str, name: str, define: Sequence[str], tier: str | None, instances: Sequence[str], folders: Sequence[Path], sanitize: bool
) -> Kernels:  # fmt: skip
    """Return the kernels of a text; those that the C++ compiler does not take are left out, with its words, as those that reach a refusal are."""
    broken: list[Refusal] = []
    while True:
        try:
            program = transpile.compile_text(text, name, define, tier, instances, folders, sanitize=sanitize, broken=broken)
            return Kernels(program)
        except Refusal as why:
            if why.code != "not-cuda" or any((why.file, why.line) == (one.file, one.line) for one in broken):
                raise
            broken.append(why)
        except BuildError:
            known = {(why.file, why.line, why.reason) for why in broken}
            fresh = [why for why in program.errors() if (why.file, why.line, why.reason) not in known]
            if not fresh:
                raise
            broken += fresh


def kernel(text: str | Callable[..., Any]) -> Kernel:
    """Return the one kernel of a text, or of the docstring of the function that this decorates."""
    cuda = text if isinstance(text, str) else inspect.getdoc(text) or ""
    kernels = loads(cuda, name="input.cu" if isinstance(text, str) else f"{text.__name__}.cu")
    if len(kernels) != 1:
        raise UsageError(f"expected one kernel, saw {', '.join(kernels) or 'none'}", "loads(text) offers several")
    return next(iter(kernels.values()))
