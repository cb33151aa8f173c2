"""Schedules of Triton's kernels: kept by their cubins, and used when Triton compiles, through its own inspection hook.

    from warpwright.domains.sass import triton_kernels
    triton_kernels.use("schedules")        # before the first launch

    compiled = kernel[grid](x, y, n, SIZE=256)
    triton_kernels.write_harness("schedules", compiled, grid, (x, y, n))

    schedules/NAME_DIGEST.cubin     each kernel as Triton compiled it: `warpwright optimize` takes it, with a harness
    schedules/NAME_DIGEST.py        that harness, from a launch
    schedules/NAME_DIGEST.json      its schedule (that search's schedule.json): from then on Triton loads the edited cubin

The digest is the cubin's own, so another ptxas, other options or another architecture never get a schedule that was not made for them. One that the
rules refuse is not used, with a warning. Remove the json, and Triton loads its own cubin again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from warpwright.base import digest
from warpwright.domains.sass import script
from warpwright.domains.sass.code.cubin import Cubin
from warpwright.domains.sass.code.kernel import read_kernel
from warpwright.domains.sass.domain import checker_of
from warpwright.domains.sass.model.checker import complaints
from warpwright.errors import UsageError, WarpwrightError

Stages = dict[str, Callable[[Any, Any], Any]]

STAGE = "cubin"


def use(folder: str | Path) -> None:
    """Keep the cubins that Triton compiles from now on in a folder, and load those that have a schedule there edited.

    Triton's cache on disk is one of the folder's own, another for other schedules: Triton 3.6 does not ask the hook for its key. So call it again
    when a schedule has come.
    """
    from triton import knobs

    inspect = hook(Path(folder))
    knobs.runtime.add_stages_inspection_hook = inspect
    knobs.cache.dir = str(Path(folder).resolve() / "triton" / state(Path(folder)))


def state(folder: Path) -> str:
    """Return what tells a folder's schedules from others."""
    return digest(str(folder.resolve()), *(path.name + digest(path.read_text()) for path in sorted(folder.glob("*.json"))))


def hook(folder: Path) -> Callable[..., tuple[str, str] | None]:
    """Return what Triton calls: without arguments for the key of its cache, else with the stages of a compilation, which it may change."""
    folder.mkdir(parents=True, exist_ok=True)

    def inspect(*compilation: Any) -> tuple[str, str] | None:
        if not compilation:
            return state(folder), repr(state(folder))
        stages: Stages = compilation[1]
        if STAGE in stages:
            compiled = stages[STAGE]
            stages[STAGE] = lambda source, metadata: edited(compiled(source, metadata), folder)
        return None

    return inspect


def write_harness(folder: str | Path, compiled: Any, grid: Sequence[int], arguments: Sequence[Any]) -> Path:
    """Write how a kernel is launched, for `warpwright optimize`; return the file.

    `compiled` is what the launch returned, `arguments` are those that are no constants of the compilation: tensors and numbers, in order. Each tensor
    becomes a random array of its size that the kernel may read and write; integers in it lie below the tensor's greatest. Raise UsageError for a
    tensor of a type that a harness does not know, or another number of arguments than the kernel takes.
    """
    image, metadata = bytes(compiled.asm[STAGE]), compiled.metadata
    cubin = Cubin(image)
    name = cubin.kernels[0]
    taken = len(cubin.parameters(name))
    if not taken - HIDDEN <= len(arguments) <= taken:
        raise UsageError(f"expected {taken - HIDDEN} to {taken} arguments of {name}, saw {len(arguments)}", "leave out its constants")
    sizes = (*map(int, grid), 1, 1)[:3]
    words = ", ".join(map(_argument, arguments))
    launch = f'Launch("{name}", {sizes}, ({32 * metadata.num_warps}, 1, 1), ({words},), {metadata.shared})'
    text = f"from warpwright.domains.sass.harness import Launch, updated\n\n\ndef launch():\n    return {launch}\n\n\nsmall = launch\n"
    path = Path(folder) / f"{_stem(image)}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'"""How Triton launched {name}."""\n\n{text}')
    return path


HIDDEN = 2
"""Pointers to scratch memory that Triton passes behind a kernel's own arguments; those that a harness leaves out are null."""

KINDS = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "int32": "i32", "float8_e4m3fn": "e4m3"}


def _argument(value: Any) -> str:
    if isinstance(value, bool | int | float):
        return repr(value)
    kind = KINDS.get(str(getattr(value, "dtype", "")).removeprefix("torch."))
    if kind is None:
        raise UsageError(f"expected a number, or a tensor of {', '.join(KINDS)}, saw {str(value)[:80]}", "write the harness by hand (docs/sass.md)")
    count = value.untyped_storage().nbytes() // value.element_size()
    scale = f", scale={int(value.max()) + 1}" if kind == "i32" and value.numel() else ""
    return f'updated("{kind}", {max(1, count)}{scale})'


def _stem(image: bytes) -> str:
    return f"{Cubin(image).kernels[0]}_{digest(image.hex())}"


def edited(image: bytes, folder: Path) -> bytes:
    """Return a cubin with the schedule that the folder has for it; keep the cubin there."""
    kept = folder / f"{_stem(image)}.cubin"
    if not kept.exists():
        kept.write_bytes(image)
    text = kept.with_suffix(".json")
    if not text.exists():
        return image
    try:
        kernel = read_kernel(Cubin(image), Cubin(image).kernels[0])
        schedule = script.read(text.read_text(), kernel)
        refused = complaints(schedule, checker_of(schedule.kernel))
    except WarpwrightError as error:
        refused = [str(error)]
    if refused:
        warnings.warn(f"{text} is not used, Triton's own cubin is: {refused[0]}", stacklevel=2)
        return image
    return schedule.cubin.data
