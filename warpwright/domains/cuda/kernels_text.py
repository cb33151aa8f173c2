"""The text with which a generated program builds its CUDA source and calls the entries: with nvcc on a GPU, translated on a CPU."""

from __future__ import annotations

import pprint
from collections.abc import Mapping

from warpwright.native import kept


def kernels_text(source: str, entries: Mapping[str, str], flags: tuple[str, ...], name: str) -> str:
    """Return Python text that defines `kernels_for(inputs)`. `entries`: entry -> a code of ctypes for each parameter (`unit.ENTRY_CODES`)."""
    quoted = f"r'''{source}'''" if "'''" not in source and not source.endswith(("\\", "'")) else repr(source)
    pieces = {"@SOURCE": quoted, "@ENTRIES": pprint.pformat(dict(entries), width=140), "@FLAGS": repr(flags), "@NAME": repr(name)}
    text = _TEXT
    for mark in ("@ENTRIES", "@FLAGS", "@NAME", "@SOURCE"):  # the source last: it may hold anything
        text = text.replace(mark, pieces[mark])
    return kept.text() + text


_TEXT = """CUDA_SOURCE = @SOURCE
ENTRIES = @ENTRIES  # parameters of each entry, as codes of ctypes: P an address
FLAGS = @FLAGS


class Kernels:
    \"\"\"The entries of CUDA_SOURCE as methods: tensors go as addresses, numbers as the C types that the source declares.\"\"\"

    def __init__(self, library):
        for entry, codes in ENTRIES.items():
            setattr(self, entry, self._entry(library, entry, codes))

    def _entry(self, library, entry, codes):
        function, failed, stream = getattr(library, entry), library.ww_last_error, getattr(library, "ww_set_stream", None)
        function.argtypes = [_CODES[code] for code in codes]
        function.restype = None

        def call(*values):
            if stream is not None:
                stream(_ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
            function(*(value.data_ptr() if isinstance(value, torch.Tensor) else value for value in values))
            code = failed()
            if code:
                raise RuntimeError(f"a launch of {entry} failed with CUDA error {code}")

        return call


_CODES = {code._type_: code for code in (
    _ctypes.c_bool, _ctypes.c_byte, _ctypes.c_ubyte, _ctypes.c_short, _ctypes.c_ushort, _ctypes.c_int, _ctypes.c_uint, _ctypes.c_long,
    _ctypes.c_ulong, _ctypes.c_float, _ctypes.c_double, _ctypes.c_void_p)}


def _built_by_nvcc(device):
    \"\"\"Return the library that nvcc makes of CUDA_SOURCE, from this user's cache if it was made before.\"\"\"
    import hashlib
    import os
    import pathlib
    import shutil
    import subprocess
    import tempfile

    compiler = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if compiler is None:
        raise RuntimeError("expected NVIDIA's compiler nvcc on PATH, saw none: install the CUDA toolkit")
    major, minor = torch.cuda.get_device_capability(device)
    arch = f"{major}{minor}" + ("a" if major == 9 else "")
    options = ["-O3", "-std=c++17", f"-gencode=arch=compute_{arch},code=sm_{arch}", "-shared", "-Xcompiler", "-fPIC", *FLAGS]
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout
    key = hashlib.sha256(chr(0).join([CUDA_SOURCE, version, *options]).encode()).hexdigest()[:24]
    reason = "there is none"
    for folder in _folders():
        library = folder / f"{key}.so"
        try:
            if not library.exists():
                folder.mkdir(mode=0o755, parents=True, exist_ok=True)
                with tempfile.TemporaryDirectory(dir=folder) as work:
                    source, made = pathlib.Path(work, "kernels.cu"), pathlib.Path(work, "kernels.so")
                    source.write_text(_on_a_stream(CUDA_SOURCE))
                    done = subprocess.run([compiler, *options, str(source), "-o", str(made)], capture_output=True, text=True)
                    if done.returncode:
                        raise RuntimeError(f"nvcc refused {@NAME}:\\n{(done.stderr or done.stdout)[:4000]}")
                    made.chmod(0o755)
                    os.replace(made, library)  # atomic: two builders of the same text are no race
            if _ours(library):
                return _ctypes.CDLL(str(library))
            reason = f"another user may have written {library}"
        except OSError as error:
            reason = str(error)  # a folder that cannot be written, or whose files cannot be run
    raise RuntimeError(f"expected a folder to keep built kernels in: {reason}; set WARPWRIGHT_CACHE to one of your own")


def _on_a_stream(source):
    \"\"\"Return the source with what a caller needs besides: the last error, and the stream on which launches without one of their own go.

    The headers are for files that leave them to whoever includes them.
    \"\"\"
    keep = _KEEP if "cudaMallocAsync" in source else "static void ww_keep_memory() {}"
    return f'''#include <cfloat>
#include <climits>
#include <cstdint>
#include <cuda_runtime.h>
static thread_local cudaStream_t ww_stream = 0;
#define WW_STREAM ww_stream
{keep}
extern "C" void ww_set_stream(void* stream) {{ ww_stream = (cudaStream_t)stream; ww_keep_memory(); }}
extern "C" int ww_last_error() {{ return (int)cudaGetLastError(); }}
#line 1 "{@NAME}"
{source}'''


_KEEP = '''static void ww_keep_memory() {  // what a call frees is there for the next one, where CUDA would give it back at every synchronisation
    static bool kept[64];
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess || device >= 64 || kept[device]) return;
    cudaMemPool_t pool;
    unsigned long long most = ~0ull;
    if (cudaDeviceGetDefaultMemPool(&pool, device) == cudaSuccess) cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &most);
    kept[device] = true;
}'''


@_functools.cache
def _kernels_on(device):
    if device.type == "cuda":
        return Kernels(_built_by_nvcc(device))
    from warpwright.targets import cuda_on_cpu  # the CUDA text is translated; its times there say nothing of a GPU

    return Kernels(cuda_on_cpu.library(CUDA_SOURCE, @NAME))


def kernels_for(inputs):
    \"\"\"Return the kernels, built for the device on which the inputs lie.\"\"\"
    return _kernels_on(next((leaf.device for leaf in torch.utils._pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor)), torch.device("cpu")))


def dense(inputs):
    \"\"\"Return the inputs with every tensor contiguous: kernels know no strides.\"\"\"
    return torch.utils._pytree.tree_map_only(torch.Tensor, torch.Tensor.contiguous, list(inputs))
"""
