"""How a generated file launches several CUDA kernels by one native call: a loop in C over a table, called by ctypes.

Two launches or more, or one of a small kernel, are recorded as a CUDA graph at the first call: one launch of that costs a host less than one of a
kernel. At each call the nodes whose pointers differ from the last call's are given the new ones; torch's allocator as a rule gives the same memory
again, and then there are none. Nothing of a call is kept but these numbers. Where that cannot be (a caller records a graph of his own, another thread
is in the same plan, the driver does not know a function, something fails) the kernels are launched one by one.

The C text is the same for every program, so that a machine compiles it once (0.1 s, any C compiler, no header of CUDA's); without a compiler the
file says so and launches kernel by kernel from Python.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, type-arg"

from __future__ import annotations

from pathlib import Path

from warpwright.native.kept import _folders, _ours

MOST_POINTERS = 64
"""Arguments of a kernel."""
MARK = "# --- generated programs hold what follows\n"


def loader() -> str:
    """Return Python text that defines _LaunchPlan; CUDA_KERNELS' loader stands before it."""
    body = Path(__file__).read_text().split(MARK)[-1].strip("\n")
    return f"{body}\n\n\n"


# --- generated programs hold what follows
import ctypes as _c  # noqa: E402
import functools as _functools  # noqa: E402
import hashlib as _hashlib  # noqa: E402
import os as _os  # noqa: E402
import pathlib as _pathlib  # noqa: E402
import platform as _platform  # noqa: E402
import shutil as _shutil  # noqa: E402
import struct as _struct  # noqa: E402
import subprocess as _subprocess  # noqa: E402
import tempfile as _tempfile  # noqa: E402
import threading as _threads  # noqa: E402
import warnings as _warn  # noqa: E402

LAUNCH_SOURCE = r"""#include <stddef.h>

typedef unsigned long long word;
typedef int (*launcher)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
typedef int (*clearer)(word, unsigned char, size_t, void*);
typedef int (*chooser)(void*);

/* As cuda.h of CUDA 12 and later has them. */
typedef struct {
    void* kernel; unsigned grid[3], block[3], shared; void** places; void** extra; void* other_kernel; void* context;
} kernel_node;
typedef struct { word address; size_t pitch; unsigned value, element; size_t width, height; } memset_node;
typedef struct {
    int (*create)(void**, unsigned);
    int (*add_kernel)(void**, void*, void* const*, size_t, const kernel_node*);
    int (*add_memset)(void**, void*, void* const*, size_t, const memset_node*, void*);
    int (*instantiate)(void**, void*, unsigned long long);
    int (*set_kernel)(void*, void*, const kernel_node*);
    int (*set_memset)(void*, void*, const memset_node*, void*);
    int (*launch)(void*, void*);
    int (*is_capturing)(void*, int*);
} graphs;
enum { BUSY, STATUS, RECORDED, NODES };  /* words of a state; behind them a node for each step, and then the pointers of the last call */

static void fill_kernel(kernel_node* node, const word* step, void** places, void* context) {
    const kernel_node made = {(void*)step[0], {(unsigned)step[1], 1, 1}, {(unsigned)step[2], 1, 1}, 0, places, 0, 0, context};
    *node = made;
}

static void fill_memset(memset_node* node, const word* step, word address) {
    const memset_node made = {address, 0, 0, 1, (size_t)step[1], 1};
    *node = made;
}

/* Record the steps, or give those nodes new pointers whose own differ from the last call's. */
static int prepare(const word* table, const graphs* driver, word* state, const word* given, void** places, word* values) {
    void *graph = 0, *recorded = (void*)state[RECORDED], *before = 0;
    const word* step = table + 7;
    word* seen = state + NODES + table[4];
    int failed = recorded ? 0 : driver->create(&graph, 0);
    for (word s = 0; s < table[4] && !failed; ++s) {
        const word count = step[3];
        int differs = !recorded;
        kernel_node kernel;
        memset_node clear;
        for (word i = 0; i < count; ++i) {
            values[i] = given[step[4 + 2 * i]] + step[5 + 2 * i];
            differs |= values[i] != seen[i];
        }
        if (differs) {
            void** node = (void**)&state[NODES + s];
            fill_kernel(&kernel, step, places, (void*)table[3]);
            fill_memset(&clear, step, values[0]);
            if (recorded) {
                failed = step[0] ? driver->set_kernel(recorded, *node, &kernel) : driver->set_memset(recorded, *node, &clear, (void*)table[3]);
            } else {
                failed = step[0] ? driver->add_kernel(node, graph, &before, before != 0, &kernel)
                                 : driver->add_memset(node, graph, &before, before != 0, &clear, (void*)table[3]);
                before = *node;
            }
            for (word i = 0; i < count; ++i) seen[i] = failed ? 0 : values[i];
        }
        seen += count;
        step += 4 + 2 * count;
    }
    if (!failed && !recorded) failed = driver->instantiate((void**)&state[RECORDED], graph, 0);
    return failed;
}

/* Launch the table's graph: 1 where that was done, 0 where it could not be. */
static int launch_recorded(const word* table, void* stream, const word* given, void** places, word* values) {
    const graphs* driver = (const graphs*)table[5];
    word* state = (word*)table[6];
    int capturing = 1, failed;
    if (!driver || state[STATUS] || driver->is_capturing(stream, &capturing) || capturing) return 0;
    if (__atomic_exchange_n(&state[BUSY], 1, __ATOMIC_ACQUIRE)) return 0;
    failed = prepare(table, driver, state, given, places, values);
    if (!failed) failed = driver->launch((void*)state[RECORDED], stream);
    if (failed == 201 && !((chooser)table[2])((void*)table[3])) {  /* a thread that has not used this GPU yet */
        failed = prepare(table, driver, state, given, places, values);
        if (!failed) failed = driver->launch((void*)state[RECORDED], stream);
    }
    if (failed) state[STATUS] = (word)failed;  /* from now on one by one, where an error that stays is told */
    __atomic_store_n(&state[BUSY], 0, __ATOMIC_RELEASE);
    return !failed;
}

/* table: cuLaunchKernel, cuMemsetD8Async, cuCtxSetCurrent, the context, the number of steps, the driver's functions for graphs (0: none) and a state;
   of each step the kernel (0: set to zero), blocks (or bytes), threads of a block, the number of pointers, and of each its slot among `given` and an
   offset in bytes. Returns the driver's error. */
int ww_launch_plan(const word* table, void* stream, const word* given) {
    const word* step = table + 7;
    word values[64];
    void* places[64];
    for (int i = 0; i < 64; ++i) places[i] = values + i;
    if (launch_recorded(table, stream, given, places, values)) return 0;
    for (word s = 0; s < table[4]; ++s) {
        const word count = step[3];
        for (word i = 0; i < count; ++i) values[i] = given[step[4 + 2 * i]] + step[5 + 2 * i];
        for (int again = 0;; ++again) {
            const int failed = step[0]
                ? ((launcher)table[0])((void*)step[0], (unsigned)step[1], 1, 1, (unsigned)step[2], 1, 1, 0, stream, places, 0)
                : ((clearer)table[1])(values[0], 0, (size_t)step[1], stream);
            if (!failed) break;
            /* 201: a thread that has not used this GPU yet */
            if (failed != 201 || again || ((chooser)table[2])((void*)table[3])) return failed;
        }
        step += 4 + 2 * count;
    }
    return 0;
}
"""


@_functools.cache
def _native_launch():
    """Return the function of LAUNCH_SOURCE, built or taken from an earlier run; None, and a warning, where that cannot be."""
    names = (_os.environ.get("CC"), "cc", "gcc", "clang", "g++", "clang++")
    compiler = next((path for name in names if name and (path := _shutil.which(name))), None)
    flags = ["-x", "c", "-O2", "-fPIC", "-shared"]
    key = _hashlib.sha256("\0".join([LAUNCH_SOURCE, _platform.machine(), *flags]).encode()).hexdigest()[:24]
    reason = "there is no folder to build in: set WARPWRIGHT_CACHE"
    for folder in _folders():
        library = folder / f"{key}.so"
        try:
            if not library.exists():
                if compiler is None:
                    reason = "there is no C compiler (cc, gcc, clang or CC)"
                    continue
                folder.mkdir(mode=0o755, parents=True, exist_ok=True)
                with _tempfile.TemporaryDirectory(dir=folder) as work:
                    source, made = _pathlib.Path(work, "launch.c"), _pathlib.Path(work, "launch.so")
                    source.write_text(LAUNCH_SOURCE)
                    _subprocess.run([compiler, *flags, str(source), "-o", str(made)], check=True, capture_output=True, text=True)
                    made.chmod(0o755)
                    _os.replace(made, library)  # atomic: two builders of the same text are no race
            if not _ours(library):
                reason = f"another user may have written {library}"
                continue
            run = _c.CDLL(str(library)).ww_launch_plan
            run.argtypes, run.restype = [_c.c_void_p, _c.c_void_p, _c.c_char_p], _c.c_int
            return run
        except OSError as error:
            reason = str(error)  # a folder that cannot be written, or whose files cannot be run
        except _subprocess.CalledProcessError as error:
            reason = f"{compiler} refused the text: {error.stderr[-1000:]}"
            break
    _warn.warn(f"kernels are launched one by one from Python, which is slower: {reason}", RuntimeWarning, stacklevel=2)
    return None


class _LaunchPlan:
    """Kernels that are launched by one native call. Safe in several threads: one that comes while another launches goes kernel by kernel."""

    def __init__(self, kernels, pointers, steps, small=False):
        """`steps`: of each the kernel's name ("": set memory to zero), the bytes to set, and its pointers as (which of a call's, offset in bytes).
        `small`: one step alone is a graph, too."""
        self.small, self.kernels, self.steps, self.pack = small, kernels, steps, _struct.Struct(f"{pointers}Q").pack
        self.lock, self.tables, self.run, self.kept = _threads.Lock(), {}, _native_launch, []  # run: until there is a table

    def of(self, tensor):
        """Return the table for the GPU that the tensor lies on, where that is the current one; else None."""
        index = self.kernels.current(tensor)
        try:
            return self.tables[index]
        except KeyError:
            return None if index < 0 else self.built(tensor, index)

    def built(self, tensor, index):
        """Write the table for one GPU; None where there are no kernels, where nothing can launch them at once, or where each launch is looked at."""
        usable = self.kernels.usable(tensor) and "launch" not in vars(self.kernels)
        with self.lock:
            if index not in self.tables:
                run = _native_launch() if usable else None
                self.run = run or self.run
                self.tables[index] = self.written(index) if run is not None else None
            return self.tables[index]

    def written(self, index):
        """Return the table's address and the GPU's index."""
        functions, kernels = self.kernels.handles(index)
        graphs = getattr(self.kernels, "graphs", lambda: ())() if self.small or len(self.steps) > 1 else ()
        driver = (_c.c_void_p * len(graphs))(*graphs)
        state = (_c.c_uint64 * (3 + len(self.steps) + sum(len(pointers) for *_, pointers in self.steps)))()
        self.kept += [driver, state]
        words = [*functions, len(self.steps), _c.addressof(driver) if graphs else 0, _c.addressof(state)]
        for name, size, pointers in self.steps:
            words += [*(kernels[name] if name else (0, size, 0)), len(pointers), *(word for pair in pointers for word in pair)]
        table = (_c.c_uint64 * len(words))(*words)
        self.kept.append(table)
        return _c.addressof(table), index

    def launch(self, table, *pointers):
        """Launch all kernels on the current stream of the table's GPU, which is the current one."""
        failed = self.run(table[0], self.kernels.stream(table[1]), self.pack(*pointers))
        if failed:
            raise RuntimeError(f"launching a plan of kernels failed: {self.kernels.reason(failed)}")
