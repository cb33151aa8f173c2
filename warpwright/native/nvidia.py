"""Where NVIDIA's tools lie: on the PATH, in CUDA's folders, in packages from an index."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path


def tools(name: str) -> tuple[str, ...]:
    """Return the paths of every tool called `name` here, such as nvcc or nvdisasm, the likeliest first."""
    wheels = (f"nvidia/cu*/bin/{name}", f"nvidia/cuda_{name}/bin/{name}", f"triton/backends/nvidia/bin/{name}")
    paths = [shutil.which(name) or "", *map(str, sorted(Path("/usr/local").glob(f"cuda*/bin/{name}")))]
    for folder in (*sys.path, sysconfig.get_paths()["purelib"]):
        for pattern in wheels if folder else ():
            paths += map(str, sorted(Path(folder).glob(pattern)))
    return tuple(dict.fromkeys(os.path.realpath(path) for path in paths if path))
