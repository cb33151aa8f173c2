"""The runtime's headers as text, to be written into the output."""

from __future__ import annotations

import functools
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "runtime"

ALWAYS = ("base", "vmath", "vectors", "half", "atomics", "launch", "fibers")
"""Headers of every program."""

ORDER = (
    *ALWAYS, "counts", "vtrig", "vcalls", "complex", "half_more", "device_more", "directed", "carry", "simd", "fp8", "nested", "values",
    "doubles", "lanes", "trees", "masked", "inside", "grid", "groups", "barriers", "pipeline_primitives", "cub", "libcudacxx", "curand",
    "sobol", "wmma", "host", "launch_calls", "cooperative", "host_more", "driver", "driver_memory", "driver_modules", "nvrtc", "texture",
    "surface", "driver_textures", "texture_reference", "graphs", "cub_device", "cublas", "cublas_solve", "cublas_levels", "cublas_lt",
    "curand_host", "nvtx", "demangle", "thrust", "torch", "border", "library", "modules", "binding", "shadow",
)  # fmt: skip
"""Headers in the order that they need one another."""


@functools.cache
def header(name: str) -> str:
    """Return the text of one header of the runtime, in whichever of its folders it is."""
    (path,) = FOLDER.rglob(f"{name}.hpp")
    return path.read_text()


def runtime(names: tuple[str, ...]) -> str:
    """Return the named headers as one text, in their order."""
    return "\n".join(header(name) for name in ORDER if name in names)
