"""The text with which a generated file builds and loads its C++ kernels: such a file runs with torch alone, without warpwright.

It follows `libraries.build` (choice of compiler, cache folder, content hash, atomic rename) but never raises: without a compiler or a
writable folder the file warns and falls back to plain torch calls.
"""

from __future__ import annotations

from collections.abc import Mapping

from warpwright.native import kept


def loader(source: str, pointers: Mapping[str, int]) -> str:
    """Return Python text that binds KERNELS to the library built from the C++ text `source`, or to None.

    `pointers` maps each function to the number of its pointer arguments; C ints, such as a number of threads, follow them.
    """
    counts = ", ".join(f'"{name}": {count}' for name, count in pointers.items())
    return kept.text() + _TEXT.replace("@SOURCE", source).replace("@COUNTS", counts)


_TEXT = """KERNEL_SOURCE = r'''
@SOURCE'''


def load_kernels(pointers):
    \"\"\"Build KERNEL_SOURCE, or take what an earlier run built, and load it. Without a compiler: None, and a warning.

    `pointers` maps each function to the number of its pointer arguments.
    \"\"\"
    import ctypes
    import hashlib
    import os
    import pathlib
    import shutil
    import subprocess
    import tempfile
    import warnings

    compiler = next((path for name in (os.environ.get("CXX"), "g++", "clang++", "c++") if name and (path := shutil.which(name))), None)
    if compiler is None:
        warnings.warn("no C++ compiler (g++, clang++ or CXX): the fused kernels run as plain torch calls, which is slower")
        return None
    flags = ["-O3", "-march=native", "-std=c++17", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi", "-fopenmp"]
    probe = subprocess.run([compiler, "-march=native", "-E", "-dM", "-x", "c++", os.devnull], capture_output=True, text=True)
    # torch's own OpenMP threads are used where its runtime is loaded, so that there is one pool
    runtime = [] if hasattr(ctypes.CDLL(None), "GOMP_parallel") else ["-fopenmp"]
    key = hashlib.sha256("\\0".join([KERNEL_SOURCE, compiler, probe.stdout, *flags, *runtime]).encode()).hexdigest()[:24]
    for folder in _folders():
        library = folder / f"{key}.so"
        try:
            if not library.exists():
                folder.mkdir(mode=0o755, parents=True, exist_ok=True)
                with tempfile.TemporaryDirectory(dir=folder) as work:
                    source, unit, made = (pathlib.Path(work, name) for name in ("kernels.cpp", "kernels.o", "kernels.so"))
                    source.write_text(KERNEL_SOURCE)
                    for command in ([*flags, "-c", source, "-o", unit], ["-shared", unit, "-o", made, *runtime]):
                        subprocess.run([compiler, *command], check=True, capture_output=True, text=True)
                    made.chmod(0o755)
                    os.replace(made, library)  # atomic: two builders of the same text are no race
            if _ours(library):
                break
        except OSError:
            continue  # a folder that cannot be written; the last one is the system's own for such files
        except subprocess.CalledProcessError as error:
            warnings.warn(f"{compiler} refused the fused kernels, which run as plain torch calls: {error.stderr[-2000:]}")
            return None
    else:
        warnings.warn("no folder to build the fused kernels in (set WARPWRIGHT_CACHE): they run as plain torch calls")
        return None
    kernels = ctypes.CDLL(str(library))
    for name, count in pointers.items():
        getattr(kernels, name).argtypes = [ctypes.c_void_p] * count + [ctypes.c_int]
        getattr(kernels, name).restype = None
    return kernels


KERNELS = load_kernels({@COUNTS})


"""
