"""cuDNN's graphs, QuACK and FlashInfer as candidates and as baselines: which calls of a program are theirs, and what each is given.

Neither the packages nor a GPU are needed: modules of the same names stand in, whose functions are torch's, and every tensor says that it lies on a
GPU. With cuDNN's front end, cuDNN itself compiles each graph for an H200: it asks for no GPU, but for a driver, and a library stands in for that.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.domains.graph.techniques.exactness import captured
from warpwright import targets
from warpwright.base import Action
from warpwright.domains.graph import libraries
from warpwright.domains.graph.costs import cost_model
from warpwright.domains.graph.ir import run
from warpwright.domains.graph.kernels.others import TABLES, calls, cudnn, flashinfer, liger, quack
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques import techniques
from warpwright.domains.graph.techniques.kernels.libraries import LibraryCall, LibraryKernels
from warpwright.errors import NotApplicable, UsageError
from warpwright.reports import doctor
from warpwright.tasks import taskfile
from warpwright.tf32 import tf32_flags


class Declined(Exception):
    """cuDNN's own for a graph that it has no kernel for."""


class Place(SimpleNamespace):
    """A tensor of a graph of cuDNN's: a function of those that it is given, and what it is set to."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("set_"):
            raise AttributeError(name)
        return lambda seen: (setattr(self, name[4:], seen), self)[1]


class Graph:
    """A graph of cuDNN's, by torch. `log`: what it was asked for."""

    log: ClassVar[list[Any]] = []

    def __init__(self, io_data_type: Any, intermediate_data_type: Any, compute_data_type: Any, handle: Any) -> None:
        assert intermediate_data_type is compute_data_type is Kind.FLOAT and handle.stream == 7
        self.places: list[Place] = []

    def tensor(self, dim: list[int], stride: list[int], data_type: Any, is_pass_by_value: bool, uid: int) -> Place:
        assert len(dim) == len(stride) and min(stride) > 0, "cuDNN takes no tensor that is spread"
        self.places.append(Place(uid=uid, dim=dim, stride=stride, kind=data_type, of=lambda given: given[uid].float()))
        return self.places[-1]

    def _computed(self, name: str, computed: Callable[..., torch.Tensor], *places: Place) -> Place:
        self.log.append(name)
        self.places.append(Place(of=lambda given: computed(*(place.of(given) for place in places))))
        return self.places[-1]

    def __getattr__(self, name: str) -> Any:
        ends = {"relu": "relu", "swish": "silu", "gelu": "gelu", "gelu_approx_tanh": "gelu_tanh", "sigmoid": "sigmoid", "tanh": "tanh"}
        if name in ends:
            return lambda input: self._computed(name, calls.ENDS[ends[name]], input)
        if name in ("validate", "build_operation_graph", "check_support", "build_plans"):
            return lambda: None
        raise AttributeError(name)

    def add(self, a: Place, b: Place) -> Place:
        return self._computed("add", torch.add, a, b)

    def matmul(self, a: Place, b: Place) -> Place:
        return self._computed("matmul", torch.matmul, a, b)

    def conv_fprop(self, image: Place, weight: Place, padding: Any, stride: Any, dilation: Any) -> Place:
        return self._computed("conv_fprop", lambda x, w: F.conv2d(x, w, None, stride, padding, dilation), image, weight)

    def sdpa(self, q: Place, k: Place, v: Place, attn_scale: float, generate_stats: bool, bias: Place | None = None, **diagonal: Any) -> Any:
        causal = diagonal == {"diagonal_alignment": "top left", "diagonal_band_right_bound": 0}
        assert not generate_stats and (causal or not diagonal)

        def attended(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *mask: torch.Tensor) -> torch.Tensor:
            return F.scaled_dot_product_attention(q, k, v, *mask, is_causal=causal, scale=attn_scale, enable_gqa=True)

        return self._computed("sdpa", attended, q, k, v, *([] if bias is None else [bias])), None

    def layernorm(self, input: Place, scale: Place, bias: Place, epsilon: Place, norm_forward_phase: Any) -> Any:
        def normed(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, eps: torch.Tensor) -> torch.Tensor:
            return F.layer_norm(x, x.shape[1:], w[0], b[0], float(eps))

        return self._computed("layernorm", normed, input, scale, bias, epsilon), None, None

    def rmsnorm(self, input: Place, scale: Place, epsilon: Place, norm_forward_phase: Any) -> Any:
        return self._computed("rmsnorm", lambda x, w, eps: F.rms_norm(x, x.shape[1:], w[0], float(eps)), input, scale, epsilon), None

    def create_execution_plans(self, modes: Any) -> None:
        if "decline" in self.log:
            raise Declined("no engine")

    def deselect_numeric_notes(self, notes: list[str]) -> None:
        self.log.append(notes)

    def get_workspace_size(self) -> int:
        return 16

    def execute(self, given: dict[int, torch.Tensor], workspace: torch.Tensor, handle: Any) -> None:
        assert workspace.nbytes == 16 and handle.stream == 7
        assert not any(one.requires_grad for one in given.values()), "torch gives no memory of these to others"
        for place in self.places:
            if hasattr(place, "dim"):
                seen = given[place.uid]
                kind = getattr(place, "data_type", None) or place.kind
                assert (list(seen.shape), list(seen.stride()), KINDS[seen.dtype]) == (place.dim, place.stride, kind)
        self.log.append("executed")
        [result] = [place for place in self.places if getattr(place, "output", False)]
        given[result.uid].copy_(result.of(given))


Kind = Enum("Kind", "FLOAT HALF BFLOAT16")
KINDS = {torch.float32: Kind.FLOAT, torch.float16: Kind.HALF, torch.bfloat16: Kind.BFLOAT16}
TENSOR_CORES = ["tensor core", "converted", "reduced"]


def _cudnn() -> dict[str, Any]:
    notes = SimpleNamespace(**dict(zip(("TENSOR_CORE", "DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION"), TENSOR_CORES, strict=True)))
    return {
        "cudnnGraphNotSupportedError": Declined, "pygraph": Graph, "data_type": Kind, "numerical_note": notes,
        "heur_mode": SimpleNamespace(A="A", FALLBACK="B"), "diagonal_alignment": SimpleNamespace(TOP_LEFT="top left"),
        "norm_forward_phase": SimpleNamespace(INFERENCE="inference"), "create_handle": SimpleNamespace,
        "set_stream": lambda handle, stream: setattr(handle, "stream", stream),
    }  # fmt: skip


def _quack(asked: Callable[[str, Any], Any]) -> dict[str, Any]:
    def layer_norm(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, eps: float) -> torch.Tensor:
        assert x.dim() == 2 and w.dtype is torch.float32
        return F.layer_norm(x.float(), w.shape, w, b, eps).to(x.dtype)

    def top_k(x: torch.Tensor, k: int) -> Any:
        values, indices = torch.topk(x, k)
        return values, indices.int()

    def loss(x: torch.Tensor, target: torch.Tensor, ignore_index: int, reduction: str) -> torch.Tensor:
        return F.cross_entropy(x, target, ignore_index=ignore_index, reduction=reduction)

    return {
        "softmax": asked("softmax", lambda x: torch.softmax(x, 1)),
        "rmsnorm": asked("rmsnorm", lambda x, w, eps: F.rms_norm(x, x.shape[-1:], w, eps)),
        "cross_entropy": asked("cross_entropy", loss),
        ".rmsnorm": {"layernorm_fwd": asked("layernorm_fwd", layer_norm)}, ".topk": {"topk": asked("topk", top_k)},
    }  # fmt: skip


def _flashinfer(asked: Callable[[str, Any], Any]) -> dict[str, Any]:
    def attended(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, kv_layout: str, sm_scale: float | None) -> torch.Tensor:
        assert kv_layout == "HND"
        return F.scaled_dot_product_attention(q.transpose(0, 1), k, v, is_causal=causal, scale=sm_scale, enable_gqa=True).transpose(0, 1)

    def decoded(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, kv_layout: str, sm_scale: float | None) -> torch.Tensor:
        return attended(q[None], k, v, False, kv_layout, sm_scale)[0]

    return {
        "single_prefill_with_kv_cache": asked("prefill", attended), "single_decode_with_kv_cache": asked("decode", decoded),
        "rmsnorm": asked("rmsnorm", lambda x, w, eps: F.rms_norm(x, x.shape[-1:], w, eps)),
        "silu_and_mul": asked("silu_and_mul", calls.OWN["silu_halves"]), "gelu_tanh_and_mul": asked("gelu", calls.OWN["gelu_halves"]),
    }  # fmt: skip


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Stand in for the packages, nvcc and a GPU, and give the names of the functions that are called."""
    log: ClassVar[list[Any]] = []
    monkeypatch.setattr(Graph, "log", log)

    def function(name: str, computed: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **kwargs: Any) -> Any:
            log.append(name)
            assert not any(one.requires_grad for one in args if isinstance(one, torch.Tensor)), "torch gives no memory of these to others"
            return computed(*args, **kwargs)

        return called

    for name, held in {"cudnn": _cudnn(), "quack": _quack(function), "flashinfer": _flashinfer(function)}.items():
        package = ModuleType(name)
        package.__spec__ = importlib.util.spec_from_loader(name, None)
        monkeypatch.setitem(sys.modules, name, package)
        for key, one in held.items():
            if key.startswith("."):
                monkeypatch.setitem(sys.modules, name + key, SimpleNamespace(**one))
            else:
                setattr(package, key, one)
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=7))
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(calls, "_LIBRARIES", {})
    monkeypatch.setattr(cudnn, "_PLANS", {})
    yield log


MODEL = """import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.scale = nn.LayerNorm(64, dtype=@kind), nn.Parameter(torch.rand(64, dtype=@kind))
        self.convolved, self.apart = nn.Conv2d(4, 8, 3, 2, padding=1, dtype=@kind), nn.Conv2d(8, 8, 1, bias=False, dtype=@kind)
        self.table, self.wide = nn.Linear(64, 64, dtype=@kind), nn.Linear(64, 128, bias=False, dtype=@kind)

    def forward(self, x, image, target, q, k):
        y = torch.softmax(F.rms_norm(self.norm(x), (64,), self.scale), -1)
        z = F.gelu(self.table(y))
        a, b = self.wide(z).chunk(2, -1)
        gated = F.silu(a) * b
        values, indices = torch.topk(x, 8)
        seen = self.apart(F.relu(self.convolved(image)))
        attended = F.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True)
        last = F.scaled_dot_product_attention(q[:, :, :1], k, k, enable_gqa=True)
        return F.cross_entropy(gated.float(), target), values, indices, torch.relu(seen), attended, last


def get_inputs():
    x, image = torch.randn(16, 64), torch.randn(2, 4, 8, 8)
    return [x.to(@kind), image.to(@kind), torch.randint(0, 64, (16,)), *(torch.randn(1, n, 32, 64).to(@kind) for n in (4, 2))]


def get_init_inputs():
    return []
"""
HALF, FULL = MODEL.replace("@kind", "torch.bfloat16"), MODEL.replace("@kind", "torch.float32")
TEXTS = {"bfloat16": HALF, "float32": FULL}
CONVOLVED = ["conv_fprop", "add", "relu", "executed", "executed"], ["conv_fprop", "executed"]  # once with NaN, once with the image
EXPECTED = {
    ("cudnn", "bfloat16"): [
        "layernorm", "executed", "rmsnorm", "executed", "matmul", "add", "gelu", "executed", "executed", "matmul", "executed",
        *CONVOLVED[0], *CONVOLVED[1], "sdpa", "executed", "sdpa", "executed",
    ],
    ("cudnn", "float32"): [
        "layernorm", TENSOR_CORES, "executed", "rmsnorm", TENSOR_CORES, "executed", *CONVOLVED[0][:3], TENSOR_CORES, *CONVOLVED[0][3:], "conv_fprop",
        TENSOR_CORES, "executed",
    ],
    ("quack", "bfloat16"): ["layernorm_fwd", "rmsnorm", "softmax", "topk", "cross_entropy"],
    ("quack", "float32"): ["layernorm_fwd", "rmsnorm", "softmax", "topk", "cross_entropy"],
    ("flashinfer", "bfloat16"): ["rmsnorm", "silu_and_mul", "prefill", "decode"],
}  # fmt: skip


def _model(text: str, name: str) -> Any:
    return taskfile.run_text(text, f"<{name}>", name)


def _strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forbid TF32, as the strict track has it."""
    monkeypatch.setattr(torch._C, "_get_fp32_precision_getter", lambda backend, kind: "none")


@pytest.mark.parametrize(("library", "kind"), EXPECTED)
def test_each_call_of_a_program_becomes_one_of_the_library(library: str, kind: str, asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    _strict(monkeypatch)
    torch.manual_seed(0)
    technique, text = LibraryKernels(libraries.LIBRARIES[library]), TEXTS[kind]
    module = _model(text, f"{library}_task")
    model, inputs = module.Model().eval(), module.get_inputs()
    ir = captured(model, *inputs)
    [action] = technique.sites(ir)
    assert action == Action(libraries.LIBRARIES[library].technique)
    after = technique.apply(ir, action)
    assert any(isinstance(node.target, LibraryCall) for node in after.graph.nodes) and not list(technique.sites(after))
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(lower(after, (action,), Original("test", text)).source.text, "optimized.py", "exec"), names)
    with torch.no_grad():
        expected = model(*inputs)
        torch.testing.assert_close(run(after, inputs, dict(model.named_parameters())), expected, atol=0.02, rtol=0.02)
        assert not asked, "the graph's own meaning is torch's"
        program = names["ModelNew"]()
        program.load_state_dict(model.state_dict())
        result = program.eval()(*inputs)
    torch.testing.assert_close(result, expected, atol=0.02, rtol=0.02)
    assert sorted(map(str, asked)) == sorted(map(str, EXPECTED[library, kind]))


@pytest.mark.parametrize("library", ["cudnn", "quack", "flashinfer"])
def test_the_baseline_is_the_original_with_its_calls(library: str, asked: list[Any]) -> None:
    torch.manual_seed(0)
    assert library in targets.names_for("cuda") and library not in targets.names_for("cpu") and library not in targets.names_for("cuda", True)
    program = _model(targets.baselines(HALF, "cuda:0", [library])[library].text, f"{library}_baseline")
    model, inputs = program.Model().eval(), program.get_inputs()
    new = program.ModelNew().eval()
    new.load_state_dict(model.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(new(*inputs), model(*inputs), atol=0.02, rtol=0.02)
    seen = {one for one in asked if isinstance(one, str)}
    assert seen == {
        "cudnn": {"layernorm", "rmsnorm", "matmul", "add", "conv_fprop", "sdpa", "executed"},
        "quack": {"layernorm_fwd", "rmsnorm", "softmax", "topk", "cross_entropy"}, "flashinfer": {"rmsnorm", "prefill", "decode"},
    }[library], "without a graph nothing ends with what follows it"  # fmt: skip


def test_gradients_are_left_to_torch(asked: list[Any]) -> None:
    program = _model(targets.baselines(FULL, "cuda:0", ["cudnn"])["cudnn"].text, "cudnn_gradients")
    with pytest.raises(RuntimeError, match="none of the program's calls"):
        program.ModelNew()(*program.get_inputs())
    assert not asked


def test_tf32_is_used_where_the_flags_permit_it(asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    x, weight, bias = torch.randn(2, 4, 8, 8), torch.randn(8, 4, 3, 3), torch.randn(8)
    rest = (weight, bias, [1, 1], [1, 1], [1, 1], 1, "relu")
    monkeypatch.setattr(torch._C, "_get_fp32_precision_getter", lambda backend, kind: "tf32")
    cudnn.cudnn("convolution", x, *rest)
    assert TENSOR_CORES not in asked
    _strict(monkeypatch)
    cudnn.cudnn("convolution", x, *rest)
    assert asked.count(TENSOR_CORES) == 1 and len(cudnn._PLANS) == 2
    cudnn.cudnn("convolution", x + 1, *rest)
    assert len(cudnn._PLANS) == 2 and asked[-1] == "executed", "a plan is kept"


def test_products_in_float32_are_cudnns_where_tf32_is_permitted(asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    x, linear = torch.randn(4, 64), nn.Linear(64, 8)
    ir, library = captured(linear, x), libraries.LIBRARIES["cudnn"]
    assert not list(LibraryKernels(library).sites(ir))
    [technique] = [one for one in techniques("cuda", tf32=True) if one.name == "cudnn_graphs"]
    assert technique == LibraryKernels(library, tf32=True) and [node.target.call for node in technique.apply(ir, *technique.sites(ir)).graph.nodes
                                                                if isinstance(node.target, LibraryCall)] == ["linear"]  # fmt: skip
    with torch.no_grad():
        expected = linear(x)
        torch.testing.assert_close(cudnn.cudnn("linear", x, linear.weight, linear.bias, ""), expected)
        assert not asked, "the flags forbid it when it is called"
        with tf32_flags(True):
            torch.testing.assert_close(cudnn.cudnn("linear", x, linear.weight, linear.bias, ""), expected)
    assert asked == ["matmul", "add", "executed"]


def test_what_cudnn_has_no_kernel_for_is_torchs_and_it_says_so(asked: list[Any]) -> None:
    asked.append("decline")
    x, weight = torch.randn(4, 64, dtype=torch.float16), torch.randn(8, 64, dtype=torch.float16)
    with pytest.warns(UserWarning, match="torch makes the call linear for cuDNN: it has no kernel for it: no engine"):
        torch.testing.assert_close(cudnn.cudnn("linear", x, weight, None, "relu"), torch.relu(F.linear(x, weight)))
    assert "executed" not in asked and list(cudnn._PLANS.values()) == [None]


def test_a_relu_that_makes_nothing_of_nan_is_not_used(asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Graph, "relu", lambda self, input: self._computed("relu", lambda x: torch.relu(x).nan_to_num(0), input), raising=False)
    x, weight, bias = torch.full((1, 4, 8, 8), float("nan")), torch.randn(8, 4, 3, 3), torch.randn(8)
    with pytest.warns(UserWarning, match="does not keep NaN"):
        assert cudnn.cudnn("convolution", x, weight, bias, [1, 1], [0, 0], [1, 1], 1, "relu").isnan().all()


def test_a_mask_that_is_spread_to_all_heads_is_given_as_it_is(asked: list[Any]) -> None:
    q, mask = torch.randn(2, 4, 8, 16).bfloat16(), torch.randn(1, 1, 8, 8).bfloat16().expand(2, 4, 8, 8)
    expected = F.scaled_dot_product_attention(q, q, q, mask)
    torch.testing.assert_close(cudnn.cudnn("attention", q, q, q, mask, False, None, False), expected, atol=0.02, rtol=0.02)
    assert asked == ["sdpa", "executed"]
    spread = q[:, :1].expand(2, 4, 8, 16)
    expected = F.scaled_dot_product_attention(q, spread, spread)
    torch.testing.assert_close(cudnn.cudnn("attention", q, spread, spread, None, False, None, False), expected)
    row = torch.randn(64).bfloat16().expand(3, 64)
    cudnn.cudnn("rms_norm", row, (64,), torch.rand(64).bfloat16(), 1e-6)
    assert asked == ["sdpa", "executed", "rmsnorm", "executed"]


@pytest.mark.parametrize("library", [cudnn.cudnn, quack.quack, flashinfer.flashinfer])
def test_tensors_that_begin_between_vectors_are_torchs(library: Callable[..., torch.Tensor], asked: list[Any]) -> None:
    memory, weight = torch.randn(4 * 64 + 1).bfloat16(), torch.rand(64).bfloat16()
    for offset in (0, 1):
        x = memory[offset : offset + 256].view(4, 64)
        torch.testing.assert_close(library("rms_norm", x, (64,), weight, 1e-6), F.rms_norm(x, (64,), weight, 1e-6))
        assert [one for one in asked if isinstance(one, str)].count("rmsnorm") == 1


def test_what_a_library_multiplies_is_estimated_as_torchs(asked: list[Any]) -> None:
    module = _model(HALF, "estimated_task")
    ir = captured(module.Model(), *module.get_inputs())
    technique = LibraryKernels(libraries.LIBRARIES["cudnn"])
    [action] = technique.sites(ir)
    after = technique.apply(ir, action)

    def work(ir: Any, *ops: str) -> list[Any]:
        names = [(node, getattr(node.target, "__name__", "")) for node in ir.graph.nodes]
        return sorted(cost_model.operations_of(node) for node, name in names if name.partition(".")[0] in ops)

    theirs = work(after, "cudnn_attention", "cudnn_convolution", "cudnn_linear")
    assert theirs == work(ir, "scaled_dot_product_attention", "conv2d", "linear") and len(theirs) == 6 and all(kind for kind, _ in theirs)


class Others(nn.Module):
    """What none of them has kernels for."""

    def forward(self, x: torch.Tensor, q: torch.Tensor, image: torch.Tensor, weight: torch.Tensor, odd: torch.Tensor) -> tuple[torch.Tensor, ...]:
        grouped = F.silu(F.conv2d(image, weight, groups=2))
        masked = F.scaled_dot_product_attention(q, q, q, torch.ones(6, 6, dtype=torch.bool, device=q.device))
        least = torch.topk(x, 4, largest=False)[0], torch.topk(x, 4, 0)[0], torch.topk(x, 3)[0]
        return torch.softmax(x, 0), F.linear(x, x), grouped, masked, *least, F.rms_norm(odd, (7,)), F.layer_norm(odd, (7,))


def test_what_they_have_no_kernel_for_stays(asked: list[Any]) -> None:
    inputs = torch.randn(64, 64), torch.randn(2, 2, 6, 32), torch.randn(1, 4, 8, 8), torch.randn(4, 2, 3, 3), torch.randn(5, 7)
    ir = captured(Others(), *inputs)
    assert [name for name in ("cudnn", "quack", "flashinfer") if list(LibraryKernels(libraries.LIBRARIES[name]).sites(ir))] == []


def test_flashinfer_needs_a_compiler_or_its_kernels_compiled(asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "flashinfer-python" in doctor._libraries().seen and libraries.LIBRARIES["flashinfer"].installed
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "flashinfer-python needs nvcc or flashinfer_jit_cache" in doctor._libraries().seen
    assert "flashinfer" not in targets.names_for("cuda")
    with pytest.raises(UsageError, match="the baseline 'flashinfer' needs nvcc or flashinfer_jit_cache beside flashinfer-python"):
        targets.baselines(HALF, "cuda:0", ["flashinfer"])
    ir = captured(_model(HALF, "flashinfer_without").Model(), *_model(HALF, "flashinfer_inputs").get_inputs())
    with pytest.raises(NotApplicable, match=r"flashinfer-python has a kernel for \(16-bit attention.*\), and the package"):
        LibraryKernels(libraries.LIBRARIES["flashinfer"]).apply(ir, Action("flashinfer_kernels"))


@pytest.mark.slow
@pytest.mark.compiler
@pytest.mark.skipif(not libraries.LIBRARIES["cudnn"].found, reason="needs the package nvidia-cudnn-frontend")
def test_cudnn_compiles_every_graph_for_an_h200() -> None:
    said = subprocess.run([sys.executable, "-m", "benchmarks.kernels.cudnn_without_gpu"], capture_output=True, text=True, check=True, timeout=550)
    rows = [json.loads(line) for line in said.stdout.splitlines()]
    assert len(rows) > 60 and [row for row in rows if "engine" not in row] == []
    engines = {(row["case"], row["TF32"]): row["engine"].partition("_")[0] for row in rows}
    convolutions = {name for name, tf32 in engines if not tf32 and name.startswith("convolution") and "groups" not in name}
    assert len(convolutions) >= 10 and all(engines[name, True] != engines[name, False] for name in convolutions), "strict ones are on no tensor core"


@pytest.mark.slow
@pytest.mark.skipif(not libraries.LIBRARIES["quack"].found, reason="needs the package quack-kernels")
def test_quack_compiles_each_call_for_an_h200_and_takes_what_it_is_given() -> None:
    text = """
import quack, torch
from warpwright.domains.graph.kernels.others.quack import QUACK
torch.set_grad_enabled(False)
for kind in (torch.float32, torch.bfloat16):
    x, w, target = torch.randn(8, 1024, dtype=kind), torch.rand(1024, dtype=kind), torch.zeros(8, dtype=torch.int64)
    given = {"softmax": (x, -1), "layer_norm": (x, (1024,), w, w, 1e-5), "rms_norm": (x, (1024,), w, None), "top_k": (x, 8)}
    given |= {"cross_entropy": (x, target, 1, -100, 0.0)} if kind is torch.float32 else {}
    for call, args in given.items():
        fits, made = QUACK[call]
        assert fits(*args)
        try:
            made(quack, *args)
        except ValueError as error:  # all is as it should be, but the device
            assert "expected device_type=cuda" in str(error), error
            print(call)
"""
    device = {"CUTE_DSL_ARCH": "sm_90a", "QUACK_ARCH": "90"}
    said = subprocess.run([sys.executable, "-c", text], env=os.environ | device, capture_output=True, text=True, check=True, timeout=550)
    assert said.stdout.split() == ["softmax", "layer_norm", "rms_norm", "top_k", "cross_entropy", "softmax", "layer_norm", "rms_norm", "top_k"]


def _given(kind: torch.dtype) -> dict[str, tuple[Any, ...]]:
    """Return small calls of each sort, on a GPU."""

    def drawn(*sizes: int) -> torch.Tensor:
        return torch.randn(*sizes, device="cuda").to(kind)

    x, w, image, filters = drawn(48, 1024), drawn(1024), drawn(4, 16, 28, 28), drawn(32, 16, 3, 3)
    q, k = drawn(1, 4, 96, 128), drawn(1, 2, 96, 128)
    places = [1, 1], [1, 1], [1, 1], 1
    return {
        "softmax": (x, -1), "layer_norm": (x, (1024,), w, w, 1e-5), "rms_norm": (x, (1024,), w, 1e-5), "top_k": (x, 8), "silu_halves": (x,),
        "cross_entropy": (x, torch.arange(48, device="cuda"), 1, -100, 0.0), "linear": (x, drawn(64, 1024), drawn(64), "gelu"),
        "attention": (q, k, k, None, True, None, True), "convolution": (image, filters, drawn(32), *places, "relu"),
        "group_norm": (image, 4, drawn(16), drawn(16), 1e-5), "silu_mul": (x, x),
    }  # fmt: skip


@pytest.mark.cuda
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("library", libraries.LIBRARIES)
def test_on_a_gpu_a_library_gives_what_torch_gives(library: str, kind: torch.dtype) -> None:
    if not libraries.LIBRARIES[library].installed:
        pytest.skip(f"needs the package {libraries.LIBRARIES[library].package}")
    torch.manual_seed(0)
    called = {"liger": liger.liger, "cudnn": cudnn.cudnn, "quack": quack.quack, "flashinfer": flashinfer.flashinfer}[library]
    seen = 0
    with torch.no_grad(), warnings.catch_warnings(), tf32_flags(False):
        warnings.filterwarnings("error", message="torch makes the call")
        for call, given in _given(kind).items():
            if call not in TABLES[library] or not TABLES[library][call][0](*given):
                continue
            wide = calls.OWN[call](*(one.double() if isinstance(one, torch.Tensor) and one.is_floating_point() else one for one in given))
            result, own = called(call, *given), calls.OWN[call](*given)
            for one, by_torch, exact in zip(*(each if isinstance(each, tuple) else (each,) for each in (result, own, wide)), strict=True):
                assert one.shape == by_torch.shape and one.dtype == by_torch.dtype, call
                if one.is_floating_point():  # topk's indices are compared by the values that they name
                    error, limit = (float((t.double() - exact).square().mean().sqrt()) for t in (one, by_torch))
                    assert error <= 2 * limit + 1e-7 * float(exact.abs().max()), (call, error, limit)
            seen += 1
    assert seen >= 2 or (library, kind) == ("flashinfer", torch.float32), "something is taken"


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_a_norm_without_an_epsilon_has_torchs(kind: torch.dtype) -> None:
    """Small numbers tell: in 16 bits torch adds float32's epsilon, a 65,536th of bfloat16's."""
    x = torch.full((2, 8), 1e-3, dtype=kind)
    torch.testing.assert_close(F.rms_norm(x, (8,)), F.rms_norm(x, (8,), None, calls.eps_of(x, None)))
