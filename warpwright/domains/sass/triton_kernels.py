"""Schedules of Triton's kernels: kept by their cubins, and used when Triton compiles, through its own inspection hook.

    from warpwright.domains.sass import triton_kernels
    triton_kernels.use("schedules")        # before the first launch

    schedules/NAME_DIGEST.cubin     each kernel as Triton compiled it: `warpwright optimize` takes it, with a harness
    schedules/NAME_DIGEST.json      its schedule (that search's schedule.json): from then on Triton loads the edited cubin

The digest is the cubin's own, so another ptxas, other options or another architecture never get a schedule that was not made for them. One that the
rules refuse is not used, with a warning. Remove the json, and Triton loads its own cubin again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from warpwright.base import digest
from warpwright.domains.sass import script
from warpwright.domains.sass.checker import complaints
from warpwright.domains.sass.cubin import Cubin
from warpwright.domains.sass.domain import checker_of
from warpwright.domains.sass.kernel import read_kernel
from warpwright.errors import WarpwrightError

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


def edited(image: bytes, folder: Path) -> bytes:
    """Return a cubin with the schedule that the folder has for it; keep the cubin there."""
    kept = folder / f"{Cubin(image).kernels[0]}_{digest(image.hex())}.cubin"
    if not kept.exists():
        kept.write_bytes(image)
    text = kept.with_suffix(".json")
    if not text.exists():
        return image
    try:
        kernel = read_kernel(Cubin(image), Cubin(image).kernels[0])
        schedule = script.read(text.read_text(), kernel)
        refused = complaints(schedule, checker_of(kernel))
    except WarpwrightError as error:
        refused = [str(error)]
    if refused:
        warnings.warn(f"{text} is not used, Triton's own cubin is: {refused[0]}", stacklevel=2)
        return image
    return schedule.cubin.data
