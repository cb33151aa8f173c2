"""Watches the settings of a worker's process that others go by: torch's, Python's and the system's. A call leaves them as they were."""

from __future__ import annotations

import _locale
import _signal  # type: ignore[import-not-found]
import copyreg
import ctypes
import faulthandler
import gc
import math
import os
import re
import resource
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

HARMLESS_VARIABLES = (
    "TORCH_CUDA_ARCH_LIST", "MAX_JOBS", "CUDA_HOME", "CUDA_PATH", "TORCHINDUCTOR_", "TRITON_", "TORCH_EXTENSIONS_DIR", "TORCH_COMPILE_",
    "PYTORCH_", "CC", "CXX", "KINETO_", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK", "TVM_", "CUTE_", "PATH", "COLUMNS", "LINES",
    "NVCC_", "CUTLASS_", "USE_", "VERBOSE", "TORCH_LOGS", "_TORCHINDUCTOR_",
)  # fmt: skip
"""Variables that only steer compilers: a program may set these."""

NUMPY_ERRORS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
"""How numpy begins."""

SIGNALS = {one.name: int(one) for one in signal.Signals if one < 32 and one not in (signal.SIGKILL, signal.SIGSTOP)}
"""Those that a program can handle, by name."""

TIMERS = {"real time": signal.ITIMER_REAL, "processor's time": signal.ITIMER_VIRTUAL, "its and the system's": signal.ITIMER_PROF}
"""Of a process that runs all the while a signal that each call puts off never comes; it ends the user's process when the last call is over."""

WAKES = 32
"""The signal that wakes the C library's own thread when a timer is to call a function. Any other thread that gets it ends the process."""

CANNOT_BLOCK = sum(1 << number - 1 for number in (signal.SIGKILL, signal.SIGSTOP, WAKES, 33))
"""Bits of the signals that no mask shows: the library's thread blocks all others, and waits for WAKES; other threads block few or none."""

TIMER = re.compile(r"^signal: (\d+)/.*\nnotify: signal/(pid|tid)\.(\d+)", re.MULTILINE)


def _own_timers() -> list[str]:
    """Return the timers of native code (`timer_create`) that send the process a signal, or a thread. Those that wake a library's are its own."""
    try:
        with open("/proc/self/timers") as file:
            told = TIMER.findall(file.read())
    except OSError:  # a kernel that does not tell
        return []
    return [f"signal {number} to {kind} {whom}" for number, kind, whom in told if kind == "pid" or int(number) != WAKES or not _waits_for(int(whom))]


def _waits_for(thread: int) -> bool:
    """Whether a thread of this process blocks every signal that it can, as the C library's own does."""
    try:
        with open(f"/proc/self/task/{thread}/status") as file:
            blocked = next((int(line.split()[1], 16) for line in file if line.startswith("SigBlk:")), 0)
    except OSError:  # it has ended, and its timer with it
        return True
    return blocked | CANNOT_BLOCK == (1 << 64) - 1


LIMITS = {name: getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")}
"""A limit of the processor's time that each call puts off, say, does what an alarm does."""


def _limits(get: Callable[[int], tuple[int, int]] = resource.getrlimit) -> dict[str, float]:
    """Return the limits of resources that hold for this process; inf for none."""
    soft = {name: get(which)[0] for name, which in LIMITS.items()}
    return {name: math.inf if limit == resource.RLIM_INFINITY else limit for name, limit in soft.items()}


STOPS = {one.name: int(one) for one in (signal.SIGCONT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)}
"""Signals that a process is stopped and let go by. Who handles one in native code, which Python does not show, learns when it was stopped."""


def _stops_handled() -> list[str]:
    """Return which of those the process handles or ignores, by whatever code."""
    try:
        with open("/proc/self/status") as file:
            masks = [int(line.split()[1], 16) for line in file if line.startswith(("SigCgt:", "SigIgn:"))]
    except OSError:
        return []
    return [name for name, number in STOPS.items() if any(mask >> number - 1 & 1 for mask in masks)]


PRINTED = ("precision", "threshold", "edgeitems")
"""What is printed of a tensor: digits, and elements before some are left out. More of them hurt nobody."""


def _printed(torch_options: Any, modules: Any) -> list[Any]:
    """Return how much less than usual is printed of tensors and of numpy's arrays."""
    of_numpy = modules["numpy"].get_printoptions() if "numpy" in modules else {}
    found = [(of_torch, getattr(torch_options, of_torch)) for of_torch in PRINTED] + [(f"numpy's {one}", of_numpy.get(one)) for one in PRINTED]
    return [(name, value) for name, value in found if value is not None and value < USUALLY_PRINTED[name]]


USUALLY_PRINTED = {
    "precision": 4, "threshold": 1000, "edgeitems": 3, "numpy's precision": 8, "numpy's threshold": 1000, "numpy's edgeitems": 3,
}  # fmt: skip


def _pickled(table: dict[Any, Any] = copyreg.dispatch_table) -> dict[str, str]:
    """Return who pickles values of Python's and torch's own types."""
    kinds = {kind: getattr(kind, "__module__", "") for kind in list(table)}
    return {f"{kind.__module__}.{kind.__qualname__}": f"{id(table[kind]):#x}" for kind, module in kinds.items() if module in ("builtins", "torch")}


STACK_BYTES = 8 << 20


def _settings() -> dict[str, Callable[[], Any]]:
    """Return how to read each global setting."""
    import torch

    cuda, cudnn, tiny = torch.backends.cuda, torch.backends.cudnn, torch.tensor(1e-40)
    readers: dict[str, Callable[[], Any]] = {
        "torch.backends.cuda.matmul.allow_tf32": lambda get=torch._C._get_cublas_allow_tf32: get(),
        "torch.backends.cudnn.allow_tf32": lambda get=torch._C._get_cudnn_allow_tf32: get(),
        "torch.backends.cudnn.benchmark": lambda get=torch._C._get_cudnn_benchmark: get(),
        "torch.backends.cudnn.deterministic": lambda get=torch._C._get_cudnn_deterministic: get(),
        "torch.backends.cudnn.enabled": lambda get=torch._C._get_cudnn_enabled: get(),
        "torch.backends.mkldnn.enabled": lambda get=torch._C._get_mkldnn_enabled: get(),
        "fp16 reduced precision reduction": lambda: cuda.matmul.allow_fp16_reduced_precision_reduction,
        "bf16 reduced precision reduction": lambda: cuda.matmul.allow_bf16_reduced_precision_reduction,
        "float32 matmul precision": lambda get=torch._C._get_float32_matmul_precision: get(),
        "default dtype": torch.get_default_dtype,
        "default device": torch.get_default_device,
        "torch.set_num_threads": torch.get_num_threads,
        "grad mode": torch.is_grad_enabled,
        "inference mode": torch.is_inference_mode_enabled,
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled,
        "autocast on the CPU": lambda get=torch.is_autocast_enabled: get("cpu"),
        "autocast on CUDA": lambda get=torch.is_autocast_enabled: get("cuda"),
        "flush denormal": lambda one=tiny: float(one * 1.0) == 0.0,
        "working folder": os.getcwd,
        "fault handler": faulthandler.is_enabled,
        "signal handlers": lambda get=_signal.getsignal, names=SIGNALS: {
            name: f"{id(handler):#x}" for name, number in names.items() if type(handler := get(number)) is not int or handler
        },  # who they are, not what they say of themselves: signal.getsignal asks a handler whether it equals the default one
        "torch function modes": lambda get=torch._C._len_torch_function_stack: get(),
        "torch dispatch modes": lambda get=torch._C._len_torch_dispatch_stack: get(),
        "garbage collector": lambda get=gc.get_threshold, runs=gc.isenabled: [*get(), runs()],
        "switch interval": sys.getswitchinterval,
        "numpy's floating-point errors": lambda modules=sys.modules: modules["numpy"].geterr() if "numpy" in modules else NUMPY_ERRORS,
        "alarms and timers": lambda get=signal.getitimer, kinds=TIMERS: [*(name for name, which in kinds.items() if get(which)[0]), *_own_timers()],
        "umask": lambda set_mask=os.umask: [set_mask(0o022)],
    }
    for name in ("fp32_precision",):
        for where, backend in (("torch.backends", torch.backends), ("torch.backends.cudnn", cudnn), ("torch.backends.cuda.matmul", cuda.matmul)):
            if hasattr(backend, name):
                readers[f"{where}.{name}"] = lambda backend=backend, name=name: _PRECISION.get(getattr(backend, name), getattr(backend, name))
    readers |= _of_python() | _of_the_system()
    readers["fp16 accumulation"] = lambda: cuda.matmul.allow_fp16_accumulation
    attention = ("flash_sdp_enabled", "mem_efficient_sdp_enabled", "math_sdp_enabled", "cudnn_sdp_enabled")
    readers["attention kernels"] = lambda: [getattr(cuda, name)() for name in attention]
    if torch.cuda.is_initialized():
        readers["current stream"] = lambda get=torch.cuda.current_stream: get().stream_id
    limit = _persisting_cache_reader()
    if limit is not None:
        readers["persisting L2 cache"] = limit
    return readers


def _of_python() -> dict[str, Callable[[], Any]]:
    """Return how to read what steers Python and autograd for everybody. A higher limit of recursion, filters of single warnings and a quieter log are
    common where a module is imported, and hurt nobody; the other way round somebody's program fails, or its messages are lost."""
    import torch

    usual, limits, modules = sys.getrecursionlimit(), _limits(), sys.modules
    digits = sys.get_int_max_str_digits() or math.inf
    hooks = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    readers: dict[str, Callable[[], Any]] = {
        "recursion limit": lambda get=sys.getrecursionlimit: min(get(), usual),
        "limits of resources": lambda get=_limits: {name: limit for name, limit in get().items() if limit < limits[name]},
        "warnings as errors": lambda filters=warnings: [one[2].__name__ for one in filters.filters if one[0] == "error" and not (one[1] or one[3])],
        "blocked signals": lambda ask=signal.pthread_sigmask, how=signal.SIG_BLOCK: sorted(ask(how, [])),
        "logging disabled": lambda: "logging" in modules and modules["logging"].root.manager.disable >= modules["logging"].ERROR,
        "decimal numbers": lambda: _decimal_context(modules),
        "locale": lambda get=_locale.setlocale, all_of_it=_locale.LC_ALL: get(all_of_it),
        "hooks for errors that nobody catches": lambda system=sys, threads=threading: [
            f"{id(hook):#x}" for hook in (system.excepthook, system.unraisablehook, threads.excepthook)
        ],
        "digits of a number in a text": lambda get=sys.get_int_max_str_digits: min(get() or math.inf, digits),
        "stack of threads to come": lambda get=threading.stack_size: min(get() or STACK_BYTES, STACK_BYTES),
        "pickling": lambda get=_pickled: get(),
        "handlers of stopping": lambda get=_stops_handled: get(),
        "what is printed of a tensor": lambda get=_printed, where=torch._tensor_str: get(where.PRINT_OPTS, modules),
        "anomaly detection": torch.is_anomaly_enabled,
        "hooks of all modules": lambda module=torch.nn.modules.module: sorted(
            name for name in vars(module) if name.startswith("_global_") and name.endswith("_hooks") and getattr(module, name)
        ),
        "type of autocast": lambda get=torch.get_autocast_dtype: [get("cpu"), get("cuda")],
    }
    return {**readers, "hooks on saved tensors": lambda: hooks(True) is not None} if hooks else readers


class _Mallinfo(ctypes.Structure):
    """What glibc's mallinfo2 returns."""

    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]  # fmt: skip


MAPPED = (32 << 20) + (1 << 16)
"""Bytes of a block that glibc maps by itself, however its threshold has moved, unless it was told to map none (M_MMAP_MAX) or has a free one."""

PR_GET_TIMERSLACK, PR_GET_THP_DISABLE = 30, 42


def _of_the_system() -> dict[str, Callable[[], Any]]:
    """Return how to read what steers the C library and the kernel for the whole process, where they are those that tell."""
    try:
        library = ctypes.CDLL(None)
        prctl, info, malloc, free = library.prctl, library.mallinfo2, library.malloc, library.free
    except (OSError, AttributeError):
        return {}
    mathematics = _mathematics()
    rounding, traps = (getattr(mathematics, name, lambda: 0) for name in ("fegetround", "fegetexcept"))
    info.restype, malloc.restype, malloc.argtypes, free.argtypes = _Mallinfo, ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]

    def mapped() -> bool:
        """Ask for more than all that is free together: three tensors of 16 MiB that were freed side by side would do for a block of MAPPED bytes."""
        before = info()
        block = malloc(MAPPED + before.fordblks)
        now = info()
        free(block)
        return block is None or now.hblks > before.hblks

    return {
        "large blocks of memory are mapped": mapped,
        "direction of rounding": lambda: rounding(),
        "traps of floating-point operations": lambda: traps(),  # a later division by zero, anybody's, ends the process
        "slack of timers, ns": lambda: prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0),
        "no huge pages": lambda: prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0),
    }


def _mathematics() -> ctypes.CDLL | None:
    """Return the C library's functions of numbers, a library of its own where there is one."""
    try:
        return ctypes.CDLL("libm.so.6")
    except OSError:
        return None


def _decimal_context(modules: Any) -> list[Any]:
    """Return digits and rounding of Python's decimal numbers, the usual ones where nobody has imported them."""
    if "decimal" not in modules:
        return [28, "ROUND_HALF_EVEN"]
    context = modules["decimal"].getcontext()
    return [context.prec, context.rounding]


PERSISTING_L2_CACHE_SIZE = 6  # CU_LIMIT_PERSISTING_L2_CACHE_SIZE


def _persisting_cache_reader() -> Callable[[], int] | None:
    """Return how to read how much of the L2 cache is set aside for what shall stay in it: that survives the flush before a timed call."""
    import torch

    if not torch.cuda.is_initialized():
        return None
    read, limit = ctypes.CDLL("libcuda.so.1").cuCtxGetLimit, ctypes.c_size_t()

    def reader() -> int:
        return int(limit.value) if read(ctypes.byref(limit), PERSISTING_L2_CACHE_SIZE) == 0 else -1

    return reader


_PRECISION = {"none": "ieee"}
"""Writing `allow_tf32 = False` back turns an unset precision into the explicit name of the same thing."""


def _read(reader: Callable[[], Any]) -> str:
    try:
        return repr(reader())
    except (RuntimeError, AttributeError) as error:  # torch refuses to read a TF32 flag by its old name once the new one was set
        return f"unreadable: {error}"


def watch_settings() -> Callable[[], list[str]]:
    """Note the global settings; the result names those that differ now."""
    readers = _settings()
    for reader in readers.values():
        _read(reader)
    noted = {name: _read(reader) for name, reader in readers.items()}
    variables = dict(os.environ)
    environment = os.environ

    def changed() -> list[str]:
        changes = [f"{name}: was {noted[name]}, is {now}" for name, reader in readers.items() if (now := _read(reader)) != noted[name]]
        names = {name for name in {*variables, *environment} if variables.get(name) != environment.get(name)}
        return changes + [f"environment variable {name}" for name in sorted(names) if not name.startswith(HARMLESS_VARIABLES)]

    return changed
