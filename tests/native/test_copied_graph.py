"""A recorded CUDA graph between its copies: one launch, new pointers where they differ, and torch's way where the driver refuses; the driver is a
stand-in that copies in this process's memory."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.domains.graph import models
from tests.domains.graph.test_lower import Standing
from warpwright.base import Action
from warpwright.domains import graph
from warpwright.native import copied_graph
from warpwright.native.copied_graph import _CopiedGraph, _Copy

CHILD = 77


class Driver:
    """CUDA graphs of copies and of one recorded graph, which `inner` stands for."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.nodes, self.told = inner, list[Any](), list[str]()
        self.failures: dict[str, list[int]] = {}

    def said(self, what: str) -> int:
        self.told.append(what)
        waiting = self.failures.get(what.partition(" ")[0], [])
        return waiting.pop(0) if waiting else 0

    def cuCtxGetCurrent(self, out: Any) -> int:
        out._obj.value = 5
        return 0

    def cuCtxSetCurrent(self, context: Any) -> int:
        assert context.value == 5
        return self.said("context")

    def cuGraphCreate(self, out: Any, flags: int) -> int:
        out._obj.value, self.nodes = 11, []
        return self.said("created")

    @staticmethod
    def read(copy: Any) -> tuple[int, int, int]:
        one = copy._obj
        assert (one.from_kind, one.to_kind, one.height, one.depth) == (2, 2, 1, 1) and one.from_pitch == one.to_pitch == one.width
        assert one.from_height == one.to_height == 1
        return one.target, one.source, one.width

    def cuGraphAddMemcpyNode(self, out: Any, graph: Any, before: Any, count: int, copy: Any, context: Any) -> int:
        assert graph.value == 11 and context.value == 5
        begun = "child" in self.nodes
        assert count == begun and (not count or self.nodes[before._obj.value - 1] == "child"), "what comes out waits for the recorded graph"
        self.nodes.append(self.read(copy))
        out._obj.value = len(self.nodes)
        return 0

    def cuGraphAddChildGraphNode(self, out: Any, graph: Any, before: Any, count: int, child: int) -> int:
        assert child == CHILD and list(before) == list(range(1, len(self.nodes) + 1)) and count == len(self.nodes), "it waits for all inputs"
        self.nodes.append("child")
        out._obj.value = len(self.nodes)
        return self.said("child")

    def cuGraphInstantiateWithFlags(self, out: Any, graph: Any, flags: int) -> int:
        assert graph.value == 11 and flags == 0
        out._obj.value = 12
        return self.said("made")

    def cuGraphExecMemcpyNodeSetParams(self, ready: Any, node: Any, copy: Any, context: Any) -> int:
        assert ready.value == 12 and context.value == 5
        if failed := self.said(f"node {node.value}"):
            return failed
        self.nodes[node.value - 1] = self.read(copy)
        return 0

    def cuGraphLaunch(self, ready: Any, stream: int) -> int:
        assert ready.value == 12 and stream == 7
        if failed := self.said("launched"):
            return failed
        for node in self.nodes:
            if node == "child":
                self.inner()
            else:
                ctypes.memmove(*node)
        return 0

    def cuGraphDestroy(self, graph: Any) -> int:
        return self.said(f"gone {graph.value}")

    cuGraphExecDestroy = cuGraphDestroy


class Recording:
    """Of torch.cuda.CUDAGraph what is asked for."""

    def raw_cuda_graph(self) -> int:
        return CHILD


@pytest.fixture(autouse=True)
def without_gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "cuda" in request.keywords:
        return
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda index: 7, raising=False)
    monkeypatch.setattr(copied_graph, "_fresh_on_gpu", fresh)


def fresh(sizes: Any, strides: Any, kind: torch.dtype) -> torch.Tensor:
    """Torch's short way, which takes tuples and nothing like them."""
    assert type(sizes) is tuple and type(strides) is tuple
    return torch.empty_strided(sizes, strides, dtype=kind)


class Held:
    """A recording of two inputs and two results."""

    def __init__(self) -> None:
        self.x, self.y = torch.zeros(3, 4), torch.zeros(4)
        self.sum, self.turned = torch.zeros(3, 4), torch.zeros(3, 4).t()
        self.driver = Driver(self.run)
        self.made = _CopiedGraph(self.driver, Recording(), [self.x, self.y], [self.sum, self.turned])

    def run(self) -> None:
        self.sum.copy_(self.x + self.y)
        self.turned.copy_((self.x * self.y).t())

    def check(self, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        found = self.made([x, y])
        assert found is not None
        assert torch.equal(found[0], x + y) and torch.equal(found[1], (x * y).t()) and found[1].stride() == (1, 4)
        return found


def test_a_call_is_one_launch_and_new_pointers_are_told() -> None:
    held = Held()
    x, y = torch.randn(3, 4), torch.randn(4)
    kept = held.check(x, y)
    assert held.driver.told == ["created", "child", "made", "launched"]
    held.driver.told.clear()
    other = torch.randn(4)
    again = held.check(x, other)
    assert held.driver.told == ["node 2", "node 4", "node 5", "launched"], "y, and the two results"
    assert {t.data_ptr() for t in kept}.isdisjoint(t.data_ptr() for t in again)
    before = [t.clone() for t in kept]
    held.driver.told.clear()
    x.mul_(2)
    del again
    held.check(x, other)
    assert held.driver.told[-1] == "launched" and "created" not in held.driver.told
    assert all(torch.equal(one, other) for one, other in zip(before, kept, strict=True))


def test_a_graph_goes_with_its_recording() -> None:
    held = Held()
    held.check(torch.randn(3, 4), torch.randn(4))
    del held.made
    assert held.driver.told[-2:] == ["gone 12", "gone 11"]


@pytest.mark.parametrize("what", ["created", "child", "made", "launched", "node"])
def test_where_the_driver_refuses_it_is_said(what: str) -> None:
    held = Held()
    if what == "node":
        held.check(torch.randn(3, 4), torch.randn(4))
    held.driver.failures[what] = [1]
    assert held.made([torch.randn(3, 4), torch.randn(4)]) is None


def test_where_torch_has_another_way_to_a_tensor_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held()

    def refused(*_: Any) -> torch.Tensor:
        raise RuntimeError("another version's")

    monkeypatch.setattr(copied_graph, "_fresh_on_gpu", refused)
    assert held.made([torch.randn(3, 4), torch.randn(4)]) is None and not held.driver.told


def test_a_thread_without_context_is_given_one() -> None:
    held = Held()
    held.check(torch.randn(3, 4), torch.randn(4))
    held.driver.failures["launched"] = [201]
    held.check(torch.randn(3, 4), torch.randn(4))
    assert held.driver.told[-2:] == ["context", "launched"]


def test_only_what_is_its_bytes_is_copied_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class OnGpu(torch.Tensor):
        is_cuda = True

    def may(tensor: Any) -> bool:
        return copied_graph._as_bytes(tensor.as_subclass(OnGpu))

    assert not copied_graph._as_bytes(torch.ones(2)) and not copied_graph._as_bytes(3)
    x = torch.randn(4, 6)
    assert may(x) and may(x.t()) and may(torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)) and may(torch.tensor(1.0))
    assert not may(x[:, :3]) and not may(x[::2]) and not may(x[:, :1].expand(4, 6)) and not may(torch.empty(0))
    assert not may(torch.randn(3, dtype=torch.complex64).conj()) and not may(torch._neg_view(torch.randn(3)))


LIBRARY = r"""
#include <cuda.h>
#include <string.h>
static CUDA_MEMCPY3D nodes[8];
static unsigned long long order[8], count, ready;
static void (*inner)(void);
void bind(void (*run)(void)) { inner = run; count = 0; ready = 0; }
static int made(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t many, unsigned long long kind) {
    if ((unsigned long long)graph != 0x500000011ull) return 1;
    for (size_t i = 0; i < many; ++i) if (!before || (unsigned long long)before[i] > count || !before[i]) return 2;
    order[count++] = kind;
    *node = (CUgraphNode)count;
    return 0;
}
CUresult cuCtxGetCurrent(CUcontext* context) { *context = (CUcontext)0x500000005ull; return 0; }
CUresult cuCtxSetCurrent(CUcontext context) { return (unsigned long long)context != 0x500000005ull; }
CUresult cuGraphCreate(CUgraph* graph, unsigned flags) { *graph = (CUgraph)0x500000011ull; return flags; }
CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t many, const CUDA_MEMCPY3D* copy,
                              CUcontext context) {
    nodes[count] = *copy;
    return cuCtxSetCurrent(context) ? 3 : made(node, graph, before, many, 0);
}
CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, size_t many, CUgraph child) {
    return (unsigned long long)child != 0x700000077ull || many != count ? 4 : made(node, graph, before, many, 1);
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
    *exec = (CUgraphExec)0x500000012ull;
    return (unsigned long long)graph != 0x500000011ull || flags;
}
CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* copy, CUcontext context) {
    if ((unsigned long long)exec != 0x500000012ull || cuCtxSetCurrent(context)) return 5;
    nodes[(unsigned long long)node - 1] = *copy;
    return 0;
}
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
    if ((unsigned long long)exec != 0x500000012ull || stream != (CUstream)7) return 6;
    for (unsigned long long i = 0; i < count; ++i)
        if (order[i]) inner();
        else if (nodes[i].srcMemoryType != CU_MEMORYTYPE_DEVICE || nodes[i].dstMemoryType != CU_MEMORYTYPE_DEVICE) return 7;
        else memcpy((void*)nodes[i].dstDevice, (const void*)nodes[i].srcDevice, nodes[i].WidthInBytes);
    return 0;
}
CUresult cuGraphDestroy(CUgraph graph) { return (unsigned long long)graph != 0x500000011ull; }
CUresult cuGraphExecDestroy(CUgraphExec exec) { return (unsigned long long)exec != 0x500000012ull; }
"""


def test_the_drivers_functions_are_called_as_c_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By ctypes, with handles of 64 bits."""
    header = next((path for root in sys.path for path in Path(root).glob("triton/backends/nvidia/include/cuda.h")), None)
    compiler = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)
    if header is None or compiler is None:
        pytest.skip("there is no cuda.h (pip install triton), or no C compiler")
    source, library = tmp_path / "cuda.c", tmp_path / "cuda.so"
    source.write_text(LIBRARY)
    subprocess.run([compiler, "-w", "-shared", "-fPIC", "-I", str(header.parent), str(source), "-o", str(library)], check=True)
    real = ctypes.CDLL
    monkeypatch.setattr(ctypes, "CDLL", lambda name: real(str(library)) if name == "libcuda.so.1" else real(name))
    driver = copied_graph._graph_driver.__wrapped__()
    held = Held()
    run = ctypes.CFUNCTYPE(None)(held.run)
    driver.bind(run)
    recording = Recording()
    monkeypatch.setattr(recording, "raw_cuda_graph", lambda: 0x700000077)
    held.made = _CopiedGraph(driver, recording, [held.x, held.y], [held.sum, held.turned])
    x, y = torch.randn(3, 4), torch.randn(4)
    kept = [held.check(x, y), held.check(x + 1, y), held.check(x, y * 2)]
    assert torch.equal(kept[0][0], x + y)
    assert held.made.context.value == 0x500000005 and held.made.ready.value == 0x500000012


def test_a_copy_is_laid_out_as_the_drivers_header_says(tmp_path: Path) -> None:
    header = next((path for root in sys.path for path in Path(root).glob("triton/backends/nvidia/include/cuda.h")), None)
    if header is None:
        pytest.skip("there is no cuda.h: pip install triton")
    compiler = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)
    if compiler is None:
        pytest.skip("there is no C compiler")
    names = ["XInBytes", "Y", "Z", "LOD", "MemoryType", "Host", "Device", "Array"]
    fields = [*(f"src{name}" for name in names), "reserved0", "srcPitch", "srcHeight"]
    fields += [*(f"dst{name}" for name in names), "reserved1", "dstPitch", "dstHeight", "WidthInBytes", "Height", "Depth"]
    own = [name for name, _ in _Copy._fields_]
    asked = f'_Static_assert(sizeof(CUDA_MEMCPY3D) == {ctypes.sizeof(_Copy)}, "");\n'
    asked += f'_Static_assert(CU_MEMORYTYPE_DEVICE == {copied_graph._ON_GPU}, "");\n'
    asked += "".join(
        f'_Static_assert(offsetof(CUDA_MEMCPY3D, {theirs}) == {getattr(_Copy, ours).offset}, "");\n' for ours, theirs in zip(own, fields, strict=True)
    )
    asked += """
CUresult (*a)(CUgraphNode*, CUgraph, const CUgraphNode*, size_t, const CUDA_MEMCPY3D*, CUcontext) = cuGraphAddMemcpyNode;
CUresult (*b)(CUgraphNode*, CUgraph, const CUgraphNode*, size_t, CUgraph) = cuGraphAddChildGraphNode;
CUresult (*c)(CUgraphExec, CUgraphNode, const CUDA_MEMCPY3D*, CUcontext) = cuGraphExecMemcpyNodeSetParams;
CUresult (*d)(CUgraphExec*, CUgraph, unsigned long long) = cuGraphInstantiateWithFlags;
CUresult (*e)(CUgraphExec, CUstream) = cuGraphLaunch;
"""
    source = tmp_path / "check.c"
    source.write_text(f"#include <stddef.h>\n#include <cuda.h>\n{asked}")
    made = subprocess.run([compiler, "-Wall", "-Werror", "-I", str(header.parent), "-c", str(source), "-o", str(tmp_path / "check.o")],
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert not made.returncode, made.stderr
    text = (tmp_path / "check.o").read_bytes()
    for name in ("cuGraphAddMemcpyNode", "cuGraphAddChildGraphNode", "cuGraphExecMemcpyNodeSetParams", "cuGraphLaunch"):
        assert name.encode() + b"_" not in text, "the name that the driver's library has is the one of this form"


# --- in a generated file ---------------------------------------------------------------------------------------------


class Program:
    """A generated file whose recording is a stand-in: what the driver's graph runs is the function, on the recording's memory."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drawn: bool = False) -> None:
        source = graph.space(models.task(tmp_path, models.NORMED), "cuda").candidate([Action("cuda_graph")]).source.text
        self.names: dict[str, Any] = {"__name__": "generated"}
        exec(source, self.names)
        self.names["VERIFIED"]["device"] = "cpu"
        for name in ("Event", "Stream", "graph", "stream", "current_stream", "current_device", "synchronize"):
            monkeypatch.setattr(torch.cuda, name, lambda *_, **__: Standing())
        monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
        states = iter(range(100)) if drawn else iter([0] * 100)
        monkeypatch.setattr(torch.cuda, "get_rng_state", lambda: torch.tensor([next(states)]))
        self.driver, self.replayed = Driver(self.run), 0
        self.names |= {"_graph_driver": lambda: self.driver, "_as_bytes": lambda tensor: True, "_kept_graph": lambda: self}
        self.names["_fresh_on_gpu"] = fresh
        built = self.names["get_init_inputs"]()
        self.model, self.new = (self.names[name](*built) for name in ("Model", "ModelNew"))
        self.new.load_state_dict(self.model.state_dict())

    def raw_cuda_graph(self) -> int:
        return CHILD

    def replay(self) -> None:
        self.replayed += 1
        self.run()

    def run(self) -> None:
        """What the recorded graph does."""
        recorded = self.new._watch.recorded
        for place, value in zip(recorded.results, self.names["optimized"](*recorded.inputs, *self.new._watch.reads()), strict=True):
            place.copy_(value)

    def check(self) -> Any:
        [x] = self.names["get_inputs"]()
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("error")
            wanted, seen = self.model(x), self.new(x)
        torch.testing.assert_close(seen, wanted)
        return seen


def test_a_recorded_program_is_one_launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(tmp_path, monkeypatch)
    first = program.check()
    kept = [t.clone() for t in first]
    for _ in range(3):
        program.check()
    assert all(map(torch.equal, first, kept)) and program.driver.told.count("launched") == 4 and not program.replayed
    with torch.no_grad():  # another place: recorded anew
        for model in (program.model, program.new):
            next(model.parameters()).data = next(model.parameters()).data + 1
    program.check()
    assert program.driver.told.count("created") == 2 and "gone 12" in program.driver.told


def test_where_the_driver_refuses_torch_replays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(tmp_path, monkeypatch)
    program.check()
    program.driver.failures["launched"] = [1]
    for _ in range(3):
        program.check()
    assert program.replayed == 3 and program.driver.told.count("launched") == 2


def test_what_draws_random_numbers_is_torchs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(tmp_path, monkeypatch, drawn=True)
    program.check()
    assert program.replayed == 1 and not program.driver.told


# --- on a GPU --------------------------------------------------------------------------------------------------------


@pytest.mark.cuda
def test_on_a_gpu_a_recorded_program_is_one_launch_on_any_stream(tmp_path: Path) -> None:
    """A first call, other inputs, kept results, other streams and threads, changed and moved weights."""
    source = graph.space(models.task(tmp_path, models.NORMED), "cuda").candidate([Action("cuda_graph")]).source.text
    names: dict[str, Any] = {"__name__": "generated"}
    exec(source, names)
    built = names["get_init_inputs"]()
    model, new = (names[name](*built).cuda() for name in ("Model", "ModelNew"))
    new.load_state_dict(model.state_dict())
    model, told = model.double(), list[str]()

    def check(x: torch.Tensor) -> Any:
        with torch.no_grad():
            seen, wanted = new(x), model(x.double())
        for one, right in zip(seen, wanted, strict=True):
            torch.testing.assert_close(one.double(), right, rtol=1e-2, atol=1e-2)
        return seen

    xs = [torch.rand(2, 3, 8, 8, device="cuda") for _ in range(6)]
    kept = [check(x) for x in xs]
    copies = [[t.clone() for t in one] for one in kept]
    recorded = new._watch.recorded
    assert isinstance(recorded.at_once, names["_CopiedGraph"]) and recorded.at_once.ready.value
    for number in range(6):
        stream, fresh_x = torch.cuda.Stream(), torch.zeros_like(xs[0])
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(2_000_000)  # 1 ms, so that who does not wait reads zeros
            fresh_x.copy_(xs[number])
            check(fresh_x)
        stream.synchronize()

    def call(number: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(20):
                with torch.no_grad():
                    seen = new(xs[number])
                torch.cuda.current_stream().synchronize()
                told.extend(["wrong"] if any(not torch.allclose(a, b, atol=1e-2) for a, b in zip(seen, copies[number], strict=True)) else [])

    torch.cuda.synchronize()
    threads = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.cuda.synchronize()
    assert not told and recorded.at_once is not None
    for one, copy in zip(kept, copies, strict=True):
        assert all(map(torch.equal, one, copy))
    with torch.no_grad():  # in place, and at another place
        for part in (model, new):
            part.layers[1].weight.mul_(0.5)
        check(xs[0])
        for part in (model, new):
            part.layers[1].weight.data = part.layers[1].weight + 0.5
    check(xs[1])
    assert recorded.at_once is not None and recorded.at_once.ready.value
