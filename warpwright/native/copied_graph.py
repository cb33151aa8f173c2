"""How a generated file launches a recorded CUDA graph together with the copies of what a call gives and gets: one launch, by the driver.

    copy x to the recording's x  ->  the recorded graph  ->  copy the recording's result to a new tensor

torch's way takes a host one call for each of these, and two for the order of streams: 63 to 67 us a call of three kernels on an H200's host, where
this takes 12.8 with the checks before it (results/launch_plan_h200). Here the copies are nodes of one graph, of which the recorded one is a node too;
a node whose pointer differs from the last call's is given the new one. The driver has a graph begin after its last launch has ended, on whichever
stream, and nobody else uses the recording's memory: calls from several streams need no events.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, type-arg"

from __future__ import annotations

from pathlib import Path

MARK = "# --- generated programs hold what follows\n"


def text() -> str:
    """Return Python text that defines _CopiedGraph."""
    return Path(__file__).read_text().split(MARK)[-1].strip("\n") + "\n\n\n"


# --- generated programs hold what follows
import ctypes as _c  # noqa: E402
import functools as _functools  # noqa: E402

import torch  # noqa: E402


class _Copy(_c.Structure):
    """CUDA_MEMCPY3D, of which a copy of one row in a GPU's memory is made."""

    _fields_ = (
        *((f"from_{name}", _c.c_size_t) for name in ("x", "y", "z", "level")), ("from_kind", _c.c_int), ("from_host", _c.c_void_p),
        ("source", _c.c_uint64), ("from_array", _c.c_void_p), ("from_context", _c.c_void_p),
        ("from_pitch", _c.c_size_t), ("from_height", _c.c_size_t),
        *((f"to_{name}", _c.c_size_t) for name in ("x", "y", "z", "level")), ("to_kind", _c.c_int), ("to_host", _c.c_void_p),
        ("target", _c.c_uint64), ("to_array", _c.c_void_p), ("to_context", _c.c_void_p),
        ("to_pitch", _c.c_size_t), ("to_height", _c.c_size_t),
        ("width", _c.c_size_t), ("height", _c.c_size_t), ("depth", _c.c_size_t),
    )  # fmt: skip


_ON_GPU = 2  # CU_MEMORYTYPE_DEVICE


@_functools.cache
def _graph_driver():
    """Return NVIDIA's driver with its functions for graphs; None where it lacks one."""
    try:
        driver = _c.CDLL("libcuda.so.1")
        word, pointer = _c.c_uint64, _c.c_void_p
        driver.cuGraphCreate.argtypes = [pointer, _c.c_uint]
        driver.cuGraphAddMemcpyNode.argtypes = [pointer, word, pointer, _c.c_size_t, pointer, pointer]
        driver.cuGraphAddChildGraphNode.argtypes = [pointer, word, pointer, _c.c_size_t, word]
        driver.cuGraphInstantiateWithFlags.argtypes = [pointer, word, _c.c_ulonglong]
        driver.cuGraphExecMemcpyNodeSetParams.argtypes = [word, word, pointer, pointer]
        driver.cuGraphLaunch.argtypes = [word, pointer]
        driver.cuCtxGetCurrent.argtypes, driver.cuCtxSetCurrent.argtypes = [pointer], [pointer]
        driver.cuGraphDestroy.argtypes, driver.cuGraphExecDestroy.argtypes = [word], [word]
    except (OSError, AttributeError):
        return None
    return driver


def _kept_graph():
    """Return a CUDA graph whose recording stays at hand, where this torch has such."""
    try:
        return torch.cuda.CUDAGraph(keep_graph=True) if hasattr(torch.cuda.CUDAGraph, "raw_cuda_graph") else torch.cuda.CUDAGraph()
    except TypeError:
        return torch.cuda.CUDAGraph()


class _CopiedGraph:
    """A recorded graph between the copies of its inputs and of its results. One call at a time."""

    def __init__(self, driver, graph, inputs, results):
        """`inputs`, `results`: the recording's tensors."""
        self.driver, self.inner, self.held = driver, graph, (inputs, results)
        self.graph, self.ready, self.context = _c.c_uint64(), _c.c_uint64(), _c.c_void_p()
        self.places = [(t.data_ptr(), t.nbytes) for t in (*inputs, *results)]
        self.count, self.index = len(inputs), (*inputs, *results)[0].get_device()
        self.forms = [(tuple(t.size()), tuple(t.stride()), t.dtype) for t in results]  # torch's short way takes nothing but tuples
        self.seen, self.copies, self.nodes = [], [], []

    def __call__(self, inputs):
        """Return new results, or None where the driver refuses; on the current stream of the recording's GPU, which is the current one."""
        try:
            results = [_fresh_on_gpu(*form) for form in self.forms]
            pointers = [t.data_ptr() for t in (*inputs, *results)]
            stream = torch._C._cuda_getCurrentRawStream(self.index)
        except (RuntimeError, TypeError):  # another version's
            return None
        failed = self.launch(pointers, stream)
        if failed == 201 and not self.driver.cuCtxSetCurrent(self.context):  # a thread that has not used this GPU yet
            failed = self.launch(pointers, stream)
        return None if failed else results

    def launch(self, pointers, stream):
        """Give the nodes whose pointers differ from the last call's the new ones, and launch; return the driver's error."""
        if pointers != self.seen:
            failed = self.change(pointers) if self.ready.value else self.make(pointers)
            if failed:
                return failed
        return self.driver.cuGraphLaunch(self.ready, stream)

    def make(self, pointers):
        """Make the graph, of copies from and to these addresses; return the driver's error."""
        driver, child = self.driver, _c.c_uint64()
        self.copies, self.nodes = [self.row(number, pointer) for number, pointer in enumerate(pointers)], []
        failed = driver.cuCtxGetCurrent(_c.byref(self.context)) or driver.cuGraphCreate(_c.byref(self.graph), 0)
        for number, copy in enumerate(self.copies):
            if number == self.count:
                failed = failed or self.add(child)
            node, after = _c.c_uint64(), number >= self.count
            before = _c.byref(child) if after else None
            failed = failed or driver.cuGraphAddMemcpyNode(_c.byref(node), self.graph, before, int(after), _c.byref(copy), self.context)
            self.nodes.append(node)
        failed = failed or driver.cuGraphInstantiateWithFlags(_c.byref(self.ready), self.graph, 0)
        self.seen = [] if failed else pointers
        return failed

    def add(self, child):
        """Add the recorded graph, which begins when the inputs are there."""
        before = (_c.c_uint64 * self.count)(*(node.value for node in self.nodes))
        return self.driver.cuGraphAddChildGraphNode(_c.byref(child), self.graph, before, self.count, self.inner.raw_cuda_graph())

    def row(self, number, pointer):
        """Return the copy from an address to an input of the recording, or from a result of it to the address."""
        place, size = self.places[number]
        source, target = (pointer, place) if number < self.count else (place, pointer)
        rows = {"from_pitch": size, "to_pitch": size, "from_height": 1, "to_height": 1, "width": size, "height": 1, "depth": 1}
        return _Copy(from_kind=_ON_GPU, source=source, to_kind=_ON_GPU, target=target, **rows)

    def change(self, pointers):
        """Give the nodes these addresses; return the driver's error."""
        for number, (pointer, seen) in enumerate(zip(pointers, self.seen, strict=True)):
            if pointer != seen:
                copy = self.copies[number]
                setattr(copy, "source" if number < self.count else "target", pointer)
                failed = self.driver.cuGraphExecMemcpyNodeSetParams(self.ready, self.nodes[number], _c.byref(copy), self.context)
                if failed:
                    return failed
        self.seen = pointers
        return 0

    def __del__(self):
        for gone, handle in (("cuGraphExecDestroy", self.ready), ("cuGraphDestroy", self.graph)):  # put off by the driver while it runs
            if handle.value:
                getattr(self.driver, gone)(handle)


def _plain_on_gpu(sizes, strides, kind):
    return torch.empty_strided(sizes, strides, dtype=kind, device="cuda")


_fresh_on_gpu = getattr(getattr(getattr(torch._C, "_dynamo", None), "guards", None), "_empty_strided_cuda", _plain_on_gpu)


def _as_bytes(tensor):
    """Is a copy of this tensor on a GPU one of its bytes: does it fill its memory, and as its copy would?"""
    if not isinstance(tensor, torch.Tensor) or not tensor.is_cuda or tensor.layout is not torch.strided:
        return False
    if not tensor.numel() or tensor.is_conj() or tensor.is_neg():
        return False
    last = sum((size - 1) * stride for size, stride in zip(tensor.size(), tensor.stride(), strict=True))
    return last + 1 == tensor.numel() and torch.empty_like(tensor, device="meta").stride() == tensor.stride()
