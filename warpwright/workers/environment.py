"""The environment variables of a worker: where its caches lie, and which of them it shares."""

from __future__ import annotations

import os
from importlib import metadata

from warpwright import native
from warpwright.workers import vector_code

OWN_PLACES = {
    "HOME": ".", "TMPDIR": "tmp", "TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton",
    "TORCH_EXTENSIONS_DIR": "extensions", "CUDA_CACHE_PATH": "cuda", "XDG_CACHE_HOME": "cache", "MPLCONFIGDIR": "cache",
}  # fmt: skip

COMPILE_THREADS = "TORCHINDUCTOR_COMPILE_THREADS"
"""1 in a candidate, whose processes would be taken for ones that it leaves behind (`ForkServer`)."""

SHARED_CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


def _trusted_caches(apart: bool) -> dict[str, str]:
    """Return the variables of the compile caches that trusted workers share; `apart`: candidates have users of their own."""
    environment = {name: os.path.abspath(os.environ[name]) for name in SHARED_CACHES if os.environ.get(name)}
    if not apart:
        return environment
    folder = native.cache_folder().absolute()
    own = {"WARPWRIGHT_CACHE": str(folder)}
    if " " in str(folder):  # torch.compile does not quote the paths that it gives to the C++ compiler
        return own | environment
    kept = folder / f"torch-{metadata.version('torch')}"
    return own | {name: str(kept / OWN_PLACES[name]) for name in SHARED_CACHES} | environment


def of_worker(folder: str, trusted: bool, apart: bool) -> dict[str, str]:
    """Return the variables that keep every cache of a worker in its own folder.

    A trusted worker uses the compile caches that this process was given, or, where candidates have users of their own (`apart`), those of the
    package: compiling a baseline anew takes 15 s, up to minutes; the kernels of an original that is CUDA text 3.5 s, and the core of the mpi domain
    20 s, in the judge and again in the baselines' process. An untrusted one never does, because it could leave a slow or a wrong program there.
    """
    own = {name: os.path.normpath(os.path.join(folder, place)) for name, place in OWN_PLACES.items()}
    environment = _trusted_caches(apart) if trusted else {}
    if trusted and COMPILE_THREADS in os.environ:
        environment[COMPILE_THREADS] = os.environ[COMPILE_THREADS]
    name = {"USER": "warpwright", "LOGNAME": "warpwright"}  # inductor asks for one, and a dropped user has no entry in passwd
    if not trusted:  # the package's own cache cannot be written by another user, or below a root that cannot be written
        environment["WARPWRIGHT_CACHE"] = os.path.join(folder, "cache", "warpwright")
    return own | environment | vector_code.environment() | name
