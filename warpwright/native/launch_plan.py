"""How a generated file launches several CUDA kernels by one native call: a loop in C over a table, called by ctypes.

Two launches or more, or one of a small kernel, are recorded as a CUDA graph at the first call: one launch of that costs a host less than one of a
kernel. At each call the nodes whose pointers differ from the last call's are given the new ones; torch's allocator as a rule gives the same memory
again, and then there are none. Nothing of a call is kept but these numbers. Where that cannot be (a caller records a graph of his own, another thread
is in the same plan, the driver does not know a function, something fails) the kernels are launched one by one.

A kernel whose text waits for the one before (domains/graph/cuda/dependent.py) is launched programmatically where the GPU and the driver know that: in
the graph by the edge to it, one by one by an attribute of its launch, which a caller's recording turns into such an edge.

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
typedef int (*early_launcher)(const void*, void*, void**, void**);
typedef int (*clearer)(word, unsigned char, size_t, void*);
typedef int (*chooser)(void*);

/* As cuda.h of CUDA 12 and later has them. */
typedef struct {
    void* kernel; unsigned grid[3], block[3], shared; void** places; void** extra; void* other_kernel; void* context;
} kernel_node;
typedef struct { word address; size_t pitch; unsigned value, element; size_t width, height; } memset_node;
typedef struct { unsigned char from_port, to_port, type, reserved[5]; } edge;
typedef struct { int id; char pad[4]; int value; char rest[60]; } attribute;
typedef struct { unsigned grid[3], block[3], shared; void* stream; attribute* attributes; unsigned count; } launch_config;
enum { PROGRAMMATIC_PORT = 1, PROGRAMMATIC_EDGE = 1, PROGRAMMATIC_STREAM_SERIALIZATION = 6 };
typedef struct {
    int (*create)(void**, unsigned);
    int (*add_kernel)(void**, void*, void* const*, size_t, const kernel_node*);
    int (*add_memset)(void**, void*, void* const*, size_t, const memset_node*, void*);
    int (*instantiate)(void**, void*, unsigned long long);
    int (*set_kernel)(void*, void*, const kernel_node*);
    int (*set_memset)(void*, void*, const memset_node*, void*);
    int (*launch)(void*, void*);
    int (*is_capturing)(void*, int*);
    int (*add_edges)(void*, void* const*, void* const*, const edge*, size_t);
} graphs;
enum { LAUNCH, CLEAR, CHOOSE, CONTEXT, LAUNCH_EARLY, STEPS, GRAPHS, STATE, FIRST };  /* words of a table */
enum { KERNEL, BLOCKS, THREADS, EARLY, COUNT, POINTERS };                            /* words of a step */
enum { BUSY, STATUS, RECORDED, NODES };  /* words of a state; behind them a node for each step, and then the pointers of the last call */

static void fill_kernel(kernel_node* node, const word* step, void** places, void* context) {
    const kernel_node made = {(void*)step[KERNEL], {(unsigned)step[BLOCKS], 1, 1}, {(unsigned)step[THREADS], 1, 1}, 0, places, 0, 0, context};
    *node = made;
}

static void fill_memset(memset_node* node, const word* step, word address) {
    const memset_node made = {address, 0, 0, 1, (size_t)step[BLOCKS], 1};
    *node = made;
}

/* Add a step's kernel behind the step before. */
static int add_kernel(const graphs* driver, void** node, void* graph, void** before, const word* step, const kernel_node* kernel) {
    static const edge programmatic = {PROGRAMMATIC_PORT, 0, PROGRAMMATIC_EDGE, {0}};
    const int failed = driver->add_kernel(node, graph, before, *before && !step[EARLY], kernel);
    return failed || !step[EARLY] ? failed : driver->add_edges(graph, before, node, &programmatic, 1);
}

/* Record the steps, or give those nodes new pointers whose own differ from the last call's. */
static int prepare(const word* table, const graphs* driver, word* state, const word* given, void** places, word* values) {
    void *graph = 0, *recorded = (void*)state[RECORDED], *before = 0;
    const word* step = table + FIRST;
    word* seen = state + NODES + table[STEPS];
    int failed = recorded ? 0 : driver->create(&graph, 0);
    for (word s = 0; s < table[STEPS] && !failed; ++s) {
        const word count = step[COUNT];
        int differs = !recorded;
        kernel_node kernel;
        memset_node clear;
        for (word i = 0; i < count; ++i) {
            values[i] = given[step[POINTERS + 2 * i]] + step[POINTERS + 1 + 2 * i];
            differs |= values[i] != seen[i];
        }
        if (differs) {
            void** node = (void**)&state[NODES + s];
            void* context = (void*)table[CONTEXT];
            fill_kernel(&kernel, step, places, context);
            fill_memset(&clear, step, values[0]);
            if (recorded) {
                failed = step[KERNEL] ? driver->set_kernel(recorded, *node, &kernel) : driver->set_memset(recorded, *node, &clear, context);
            } else {
                failed = step[KERNEL] ? add_kernel(driver, node, graph, &before, step, &kernel)
                                      : driver->add_memset(node, graph, &before, before != 0, &clear, context);
                before = *node;
            }
            for (word i = 0; i < count; ++i) seen[i] = failed ? 0 : values[i];
        }
        seen += count;
        step += POINTERS + 2 * count;
    }
    if (!failed && !recorded) failed = driver->instantiate((void**)&state[RECORDED], graph, 0);
    return failed;
}

/* Launch the table's graph: 1 where that was done, 0 where it could not be. */
static int launch_recorded(const word* table, void* stream, const word* given, void** places, word* values) {
    const graphs* driver = (const graphs*)table[GRAPHS];
    word* state = (word*)table[STATE];
    int capturing = 1, failed;
    if (!driver || state[STATUS] || driver->is_capturing(stream, &capturing) || capturing) return 0;
    if (__atomic_exchange_n(&state[BUSY], 1, __ATOMIC_ACQUIRE)) return 0;
    failed = prepare(table, driver, state, given, places, values);
    if (!failed) failed = driver->launch((void*)state[RECORDED], stream);
    if (failed == 201 && !((chooser)table[CHOOSE])((void*)table[CONTEXT])) {  /* a thread that has not used this GPU yet */
        failed = prepare(table, driver, state, given, places, values);
        if (!failed) failed = driver->launch((void*)state[RECORDED], stream);
    }
    if (failed) state[STATUS] = (word)failed;  /* from now on one by one, where an error that stays is told */
    __atomic_store_n(&state[BUSY], 0, __ATOMIC_RELEASE);
    return !failed;
}

/* Launch a step, or set its memory to zero. */
static int launch_step(const word* table, const word* step, void* stream, void** places, const word* values) {
    const unsigned blocks = (unsigned)step[BLOCKS], threads = (unsigned)step[THREADS];
    if (!step[KERNEL]) return ((clearer)table[CLEAR])(values[0], 0, (size_t)step[BLOCKS], stream);
    if (step[EARLY]) {
        attribute serialization = {PROGRAMMATIC_STREAM_SERIALIZATION, {0}, 1, {0}};
        const launch_config config = {{blocks, 1, 1}, {threads, 1, 1}, 0, stream, &serialization, 1};
        return ((early_launcher)table[LAUNCH_EARLY])(&config, (void*)step[KERNEL], places, 0);
    }
    return ((launcher)table[LAUNCH])((void*)step[KERNEL], blocks, 1, 1, threads, 1, 1, 0, stream, places, 0);
}

/* table: cuLaunchKernel, cuMemsetD8Async, cuCtxSetCurrent, the context, cuLaunchKernelEx, the number of steps, the driver's functions for graphs (0:
   none) and a state; of each step the kernel (0: set to zero), blocks (or bytes), threads of a block, whether it begins while the kernel before still
   runs, the number of pointers, and of each its slot among `given` and an offset in bytes. Returns the driver's error. */
int ww_launch_plan(const word* table, void* stream, const word* given) {
    const word* step = table + FIRST;
    word values[64];
    void* places[64];
    for (int i = 0; i < 64; ++i) places[i] = values + i;
    if (launch_recorded(table, stream, given, places, values)) return 0;
    for (word s = 0; s < table[STEPS]; ++s) {
        const word count = step[COUNT];
        for (word i = 0; i < count; ++i) values[i] = given[step[POINTERS + 2 * i]] + step[POINTERS + 1 + 2 * i];
        for (int again = 0;; ++again) {
            const int failed = launch_step(table, step, stream, places, values);
            if (!failed) break;
            /* 201: a thread that has not used this GPU yet */
            if (failed != 201 || again || ((chooser)table[CHOOSE])((void*)table[CONTEXT])) return failed;
        }
        step += POINTERS + 2 * count;
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

    def __init__(self, kernels, pointers, steps, small=False, early=()):
        """`steps`: of each the kernel's name ("": set memory to zero), the bytes to set, and its pointers as (which of a call's, offset in bytes).
        `small`: one step alone is a graph, too. `early`: steps whose kernels wait for the one before, and so may begin while that still runs."""
        self.small, self.early, self.kernels, self.steps, self.pack = small, early, kernels, steps, _struct.Struct(f"{pointers}Q").pack
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
        early = self.early if self.kernels.overlaps(index) else ()
        graphs = getattr(self.kernels, "graphs", lambda: ())() if self.small or len(self.steps) > 1 else ()
        driver = (_c.c_void_p * len(graphs))(*graphs)
        state = (_c.c_uint64 * (3 + len(self.steps) + sum(len(pointers) for *_, pointers in self.steps)))()
        self.kept += [driver, state]
        words = [*functions, len(self.steps), _c.addressof(driver) if graphs else 0, _c.addressof(state)]
        for number, (name, size, pointers) in enumerate(self.steps):
            shape = kernels[name] if name else (0, size, 0)
            words += [*shape, number in early, len(pointers), *(word for pair in pointers for word in pair)]
        table = (_c.c_uint64 * len(words))(*words)
        self.kept.append(table)
        return _c.addressof(table), index

    def launch(self, table, *pointers):
        """Launch all kernels on the current stream of the table's GPU, which is the current one."""
        failed = self.run(table[0], self.kernels.stream(table[1]), self.pack(*pointers))
        if failed:
            raise RuntimeError(f"launching a plan of kernels failed: {self.kernels.reason(failed)}")
