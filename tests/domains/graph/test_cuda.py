"""Fused CUDA kernels, translated for the CPU: every function, reduction, layout and special value against float64 and against torch."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from benchmarks.kernels.templates import OnCpu
from tests.domains.graph import test_cpp
from tests.domains.graph.techniques.exactness import captured, draw
from tests.domains.graph.test_cpp import ELEMENTWISE, IMAGES, ROWS, TEXT, Function, Several
from warpwright.base import Action
from warpwright.domains.graph.cuda import ahead, generate, plan
from warpwright.domains.graph.cuda.kernel import CudaKernel
from warpwright.domains.graph.cuda.plan import DEFAULT, Tuning
from warpwright.domains.graph.ir import GraphIR, run
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques.kernels import fuse
from warpwright.domains.graph.techniques.kernels.fuse import FuseCuda, fuse_cuda
from warpwright.domains.graph.techniques.schedule import ChannelsLast

pytestmark = pytest.mark.compiler


def fused(ir: GraphIR, tuning: Tuning = DEFAULT) -> tuple[list[CudaKernel], Any]:
    """Return the kernels and the generated `optimized`, whose kernels run on the CPU."""
    technique = FuseCuda(tunings=(tuning,))
    after = technique.apply(ir, next(iter(technique.sites(ir))))
    kernels = list({n.target.__name__: n.target for n in after.graph.nodes if isinstance(n.target, CudaKernel)}.values())
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(lower(after, (), Original("test", TEXT, target="cuda")).source.text, "optimized.py", "exec"), names)
    names["CUDA_KERNELS"] = OnCpu(kernels)
    return kernels, names["optimized"]


def check(functions: list[Function], size: tuple[int, ...], kinds: tuple[str, ...], more: tuple[torch.Tensor, ...] = (),
          tuning: Tuning = DEFAULT, specials: bool = False) -> list[CudaKernel]:  # fmt: skip
    """Compare the fused kernels with torch and with float64, result by result."""
    model = Several(functions)
    kernels, optimized = fused(captured(model, torch.randn(size), *more), tuning)
    ir = captured(model, torch.randn(size), *more)
    for seed, kind in enumerate(kinds):
        x = draw(kind, size, seed)
        if specials:
            x.view(-1)[100:107] = torch.tensor([float("inf"), -float("inf"), float("nan"), 0.0, -0.0, 1e-42, 3e38])
        given = (x, *more)
        truth = run(ir, [t.double() if t.is_floating_point() else t for t in given], {}, torch.float64, flat=True)
        near = test_cpp.moved(ir, given, truth)
        for number, (seen, plain, exact) in enumerate(zip(optimized(*given), model(*given), truth, strict=True)):
            where = f"result {number}, {kind}"
            assert seen.shape == plain.shape and seen.dtype == plain.dtype, where
            if specials:
                plain = torch.where(plain.isnan() & ~exact.isnan(), exact.to(plain.dtype), plain)  # AVX-512's gelu of inf
                assert torch.equal(seen.isnan(), plain.isnan()), where
            scale = float(exact[exact.isfinite()].abs().max()) if exact.isfinite().any() else 0.0
            allowed = 2 * (test_cpp.errors(plain, exact) + near[number]) + 4 * torch.finfo(torch.float32).eps * min(scale, 3e38)
            assert test_cpp.errors(seen, exact) <= allowed, f"{where}: {test_cpp.errors(seen, exact)} {allowed}"
    return kernels


@pytest.mark.slow
def test_elementwise_functions() -> None:
    check(ELEMENTWISE, (37, 131), ("normal", "scaled", "offset", "negated", "zeros", "heavy"))


@pytest.mark.slow
@pytest.mark.parametrize("size", [(33, 257), (40, 1024), (3, 70001), (701, 12)], ids=str)
def test_rows(size: tuple[int, ...]) -> None:
    check(ROWS, size, ("normal", "offset", "heavy"))


@pytest.mark.slow
def test_long_rows_are_read_twice_at_most() -> None:
    functions = [ROWS[0], ROWS[1], ROWS[2], ROWS[7], ROWS[11], lambda x: torch.softmax(x * 2, -1) * 3]
    kernels = check(functions, (3, 70001), ("normal", "offset", "heavy"))
    assert not any(kernel.text.count("#pragma unroll 4") > 2 for kernel in kernels)
    assert all(kernel.generated.flags for kernel in kernels)  # in parts


def test_rows_of_a_multiprocessors_registers_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MULTIPROCESSORS", 2)
    kernels = check([ROWS[0], lambda x: torch.softmax(x, -1)], (3, 49152), ("normal",))
    assert all(kernel.generated.flags == 0 and kernel.generated.launch.block == 1024 for kernel in kernels)
    assert all(kernel.text.count("load<4>") == 1 for kernel in kernels)


def test_blocks_together_keep_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """They wait for one another's sums, after each phase that has some; the last part of a row may be short."""
    monkeypatch.setattr(plan, "MULTIPROCESSORS", 2)
    monkeypatch.setattr(plan, "HELD", 4)
    monkeypatch.setattr(ahead, "AHEAD", 4)
    functions = [ROWS[0], ROWS[7], lambda x: torch.softmax(x * 2, -1) * 3, lambda x: (x - x.mean(-1, keepdim=True)).abs().sum(-1, keepdim=True) + x]
    kernels = check(functions, (3, 17000), ("normal", "offset"))
    assert all(kernel.generated.together and kernel.generated.launch.grid == 3 * 9 for kernel in kernels)
    assert all(kernel.text.count("load<4>") == 1 for kernel in kernels)
    assert all("int later = shown + 4;" in kernel.text for kernel in kernels)


def test_a_part_of_a_row_is_read_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads that wait for the maximum of those before them are one at a time: ptxas left a softmax's so, and a later block's part is asked for."""
    monkeypatch.setattr(ahead, "AHEAD", 88)
    ir = captured(torch.nn.Softmax(-1), torch.empty(2048, 65536, device="meta"))
    [kernel] = [node.target for node in FuseCuda().apply(ir, fuse_cuda(1, DEFAULT)).graph.nodes if isinstance(node.target, CudaKernel)]
    loads, joins, asked = (kernel.text.index(part) for part in ("load<4>(", "join(r", "fetch_ahead("))
    assert loads < asked < joins and kernel.text.count("load<4>(") == 1
    assert "if (threadIdx.x == 0 && shown < 6056)" in kernel.text and "later % 3) * 22528" in kernel.text


def test_a_sum_of_operands_is_kept_where_they_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MULTIPROCESSORS", 2)
    monkeypatch.setattr(plan, "HELD", 4)
    monkeypatch.setitem(plan.REGISTERS, 512, 4)

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return torch.softmax(x + y, -1)

    x, y = torch.randn(3, 17000), torch.randn(3, 17000)
    kernels, optimized = fused(captured(Model(), x, y))
    assert [kernel.text.count("load<4>") for kernel in kernels] == [2] and kernels[0].generated.together
    torch.testing.assert_close(optimized(x, y), torch.softmax(x + y, -1))


def test_what_a_norm_reads_out_of_order_is_turned_by_a_kernel() -> None:
    """A convolution's result with its channels last, whose rows are reduced: torch's own copy would take longer than the norm."""

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv2d(8, 16, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.instance_norm(self.conv(x)) / 2.0

    torch.manual_seed(0)
    model, x = Model(), torch.randn(2, 8, 66, 66)
    ir = captured(model, x)
    technique = ChannelsLast()
    kernels, optimized = fused(technique.apply(ir, next(iter(technique.sites(ir)))))
    assert not any(kernel.copied for kernel in kernels)
    assert any(kernel.__name__.endswith("contiguous") and kernel.expected for kernel in kernels)
    with torch.no_grad():
        torch.testing.assert_close(optimized(x, *model.parameters()), model(x), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_chunks_of_rows_follow_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "CHUNK_BYTES", 3 << 18)  # two rows
    check([ROWS[0], ROWS[7], ROWS[13]], (9, 70001), ("normal",))


def text_of(function: Function, *size: int, tuning: Tuning = DEFAULT) -> str:
    """Return the text of the one kernel that a function becomes."""
    technique, ir = FuseCuda(tunings=(tuning,)), captured(Several([function]), torch.empty(size))
    [text] = [node.target.text for node in technique.apply(ir, next(iter(technique.sites(ir)))).graph.nodes if isinstance(node.target, CudaKernel)]
    return text


def parts_of(text: str) -> int:
    """Return how many parts a row of a kernel has."""
    return int(re.findall(r"part = place % (\d+)", text)[0])


def test_whoever_ends_a_row_that_is_read_once_joins_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that were launched to join them waited on the multiprocessors for those that read. What is read again is read in chunks."""
    monkeypatch.setattr(plan, "CHUNK_BYTES", 1 << 12)
    [kernel] = check([lambda x: x.sum(1)], (3, 1500, 40), ("normal",))
    [items] = re.findall(r"const int step = drawn / (\d+), place", kernel.text)
    assert kernel.generated.launch.grid == int(items) and "chunk" not in kernel.text and "while" not in kernel.text
    once = [text_of(function, 3, 90000, 40) for function in (lambda x: x.amax(1), lambda x: x.square().mean((1, 2)))]
    assert all("chunk" not in text and "while" not in text and "drawn = blockIdx.x" in text for text in once)
    assert "chunk * " in text_of(lambda x: torch.softmax(x, 1), 3, 90000, 40)


def test_rows_of_which_nothing_stays_in_a_cache_are_all_read_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """No block waits then, but at the end of the first reading, and parts are larger."""

    def norm(x: torch.Tensor) -> torch.Tensor:
        return (x - x.mean((0, 2), keepdim=True)) * torch.rsqrt(x.var((0, 2), correction=0, keepdim=True) + 1e-5)

    near, shape = text_of(norm, 3, 2, 2500000), (3, 2, 9000000)
    assert "chunk * " in text_of(norm, 3, 200, 500000) and "chunk" not in text_of(norm, *shape)
    assert parts_of(near) == 458 and parts_of(text_of(norm, *shape)) == 1024 and parts_of(text_of(norm, 3, 64, 9000000)) == 412
    monkeypatch.setattr(plan, "FAR_BYTES", 1 << 16)
    [kernel] = check([norm], (3, 2, 70001), ("normal", "offset"))
    assert "chunk" not in kernel.text and kernel.text.count("while") == 1


def test_neighbouring_columns_that_are_read_once_are_strips(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that blocks which run at once read one piece of memory; the threads of a block beside those of its columns have rows of their own."""
    monkeypatch.setattr(plan, "MANY_COLUMNS", 400)
    monkeypatch.setattr(plan, "THREADS", 400)
    kernels = check([lambda x: x.sum(1), lambda x: x.amax(1) * 2, lambda x: torch.argmin(x, 1)], (5, 700, 101), ("normal", "negated"))
    assert all("threadIdx.x % 128, member = threadIdx.x / 128" in kernel.text and not kernel.generated.flags for kernel in kernels)
    assert all(kernel.shape[2] == 512 for kernel in kernels)
    assert "threadIdx.x % 256, member = threadIdx.x / 256" in text_of(lambda x: x.sum(1), 5, 100, 101)


def test_few_columns_are_shared_by_more_threads() -> None:
    """So that a kernel whose blocks of 32 columns would leave half of the multiprocessors idle has more of them, down to 64 bytes of a row."""
    wide = {columns: text_of(lambda x: x - x.mean(0), 256, columns) for columns in (8, 1024, 2112, 2144)}
    blocks = {columns: int(re.findall(r"column = threadIdx.x % (\d+)", text)[0]) for columns, text in wide.items()}
    assert blocks == {8: 16, 1024: 16, 2112: 16, 2144: 32}
    check([lambda x: x - x.mean(0), lambda x: torch.softmax(x, 0)], (256, 100), ("normal", "offset"))


def test_more_rows_are_on_their_way_where_only_their_results_are_written() -> None:
    """A thread that waits for the others within a row holds nothing back then but its own loads."""
    blocks = {"read": lambda x: torch.logsumexp(x, 1), "written": lambda x: torch.softmax(x, 1), "one phase": lambda x: x.sum(1)}
    sizes = {name: re.findall(r"__launch_bounds__\((\d+)", text_of(function, 300, 4096)) for name, function in blocks.items()}
    assert sizes == {"read": ["256"], "written": ["512"], "one phase": ["512"]}


def test_more_of_a_column_may_be_read_before_it_is_used() -> None:
    for unroll in (1, 2, 4):
        assert f"#pragma unroll {4 * unroll}\n" in text_of(lambda x: x.sum(1), 3, 90000, 40, tuning=Tuning(unroll=unroll))


def test_infinities_in_long_rows() -> None:
    x = torch.randn(6, 70000)
    x[0, 100:60000] = -torch.inf
    x[1] = -torch.inf
    x[2, 7] = torch.inf
    x[3, 9] = torch.nan
    x[4, 69999], x[4, 3] = torch.inf, -torch.inf
    functions: list[Function] = [lambda x: torch.softmax(x, -1), lambda x: torch.logsumexp(x, -1)]
    _, optimized = fused(captured(Several(functions), x))
    for seen, plain in zip(optimized(x), Several(functions)(x), strict=True):
        torch.testing.assert_close(seen, plain, equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(3, 64, 20, 12), (1, 2, 200, 300)], ids=str)
def test_images(size: tuple[int, ...]) -> None:
    check(IMAGES, size, ("normal", "offset"))


STRIDED: list[Function] = [
    lambda x: (x[..., 1:-3] - x[..., 4:]).abs() * 2,
    lambda x: (x[:, 1:] - x[:, :-1]).abs().mean(),
    lambda x: torch.sigmoid(x.chunk(2, -1)[0]) * x.chunk(2, -1)[1],
    lambda x: torch.softmax(x[:, :, 2:], -1),
    lambda x: F.layer_norm(x[..., 3:], (x.shape[-1] - 3,)) * 2,
    lambda x: F.gelu(x.permute(0, 2, 3, 1)) * 2,
    lambda x: torch.tanh(x.permute(0, 2, 3, 1)).sum((0, 2)),
    lambda x: x.permute(0, 2, 3, 1).amax(-1) + 1,
]


@pytest.mark.parametrize("size", [(2, 6, 20, 24), (3, 5, 7, 301)], ids=str)
def test_slices_chunks_and_transposed_tensors_are_read_as_they_lie(size: tuple[int, ...]) -> None:
    functions = [function for n, function in enumerate(STRIDED) if size[-1] % 2 == 0 or n != 2]
    kernels = check(functions, size, ("normal", "heavy"))
    assert all(kernel.expected and not kernel.copied for kernel in kernels)
    assert any(kernel.generated.loose for kernel in kernels) and any(kernel.laid for kernel in kernels)


def test_a_tensor_that_lies_otherwise_than_captured_is_copied() -> None:
    x = torch.randn(4, 6, 8, 8)
    _, optimized = fused(captured(Several([STRIDED[5]]), x.contiguous(memory_format=torch.channels_last)))
    torch.testing.assert_close(optimized(x)[0], STRIDED[5](x))
    odd = torch.randn(4 * 6 * 8 * 8 + 1)[1:].view(4, 8, 8, 6).permute(0, 3, 1, 2)
    torch.testing.assert_close(optimized(odd)[0], STRIDED[5](odd))


def in_tiles(kernel: CudaKernel) -> bool:
    """Does a kernel turn an operand in shared memory?"""
    return re.search(r"__shared__ (__align__\(16\) )?float s\d+\[", kernel.text) is not None


class Turned(Several):
    """Element-wise chains of tensors that lie in two orders: `x` and `z` with the channels last, `y` with the channels first."""

    def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.relu(y) + x * 2, (torch.tanh(x) + 1).contiguous(), (y.abs() * z.float() + x)[:, :, 1:], torch.sigmoid(x) * y


@pytest.mark.parametrize("size", [(3, 20, 17, 33), (2, 64, 32, 48), (1, 35, 130, 130), (2, 8, 40, 41), (2, 260, 3, 3)], ids=str)
def test_tensors_that_lie_in_two_orders_are_turned_in_shared_memory(size: tuple[int, ...]) -> None:
    x, y, z = torch.randn(size).to(memory_format=torch.channels_last), torch.randn(size), torch.randn(size).bfloat16()
    z = z.to(memory_format=torch.channels_last)
    kernels, optimized = fused(captured(Turned([]), x, y, z))
    assert sum(in_tiles(kernel) for kernel in kernels) >= 3
    assert not any(kernel.copied for kernel in kernels)
    for seen, plain in zip(optimized(x, y, z), Turned([])(x, y, z), strict=True):
        assert seen.stride() == plain.stride()
        torch.testing.assert_close(seen, plain)


class TurnedHalves(Several):
    """What stands around a convolution in float16 with the channels last: `x` is turned back to float32, `y` to float16."""

    def forward(self, x: torch.Tensor, y: torch.Tensor, each: torch.Tensor) -> tuple[torch.Tensor, ...]:
        back = torch.relu(x.float() * 0.5 + each.reshape(1, -1, 1, 1)).contiguous()
        return back, (y * 4).to(torch.float16, memory_format=torch.channels_last), (x * 2).contiguous()


@pytest.mark.parametrize(("size", "at_once"), [
    ((1, 24, 12, 9), 8), ((1, 20, 18, 6), 4), ((1, 70, 6, 11), 2),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in (((2, 64, 16, 18), 8), ((1, 8, 6, 52), 8), ((1, 13, 11, 13), 1))),
], ids=str)  # fmt: skip
def test_halves_are_turned_by_wide_reads_and_writes(size: tuple[int, ...], at_once: int) -> None:
    x, y, each = torch.randn(size).half().to(memory_format=torch.channels_last), torch.randn(size), torch.randn(size[1])
    kernels, optimized = fused(captured(TurnedHalves([]), x, y, each))
    assert all(in_tiles(kernel) for kernel in kernels) and max(kernel.generated.vector for kernel in kernels) == at_once
    for seen, plain in zip(optimized(x, y, each), TurnedHalves([])(x, y, each), strict=True):
        assert seen.stride() == plain.stride() and seen.dtype == plain.dtype
        torch.testing.assert_close(seen, plain)


def test_tensors_of_2_to_the_31_elements_are_turned_with_wide_indices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "counted", lambda program: "long long")
    size = (2, 24, 9, 11)
    x, y, each = torch.randn(size).half().to(memory_format=torch.channels_last), torch.randn(size), torch.randn(size[1])
    kernels, optimized = fused(captured(TurnedHalves([]), x, y, each))
    assert all("(long long)(p0 + p) * " in kernel.text and "const long long row" in kernel.text for kernel in kernels)
    for seen, plain in zip(optimized(x, y, each), TurnedHalves([])(x, y, each), strict=True):
        torch.testing.assert_close(seen, plain)


class Heads(Several):
    """What attention does with its heads: dimensions change places, and the copy into order stands alone."""

    def forward(self, x: torch.Tensor, each: torch.Tensor, counts: torch.Tensor) -> tuple[torch.Tensor, ...]:
        turned = F.gelu(x.permute(0, 2, 1, 3) + each)
        return turned.transpose(2, 3).contiguous(), x.transpose(1, 2).contiguous(), counts.t().contiguous()


def test_large_copies_into_order_are_kernels_and_those_of_integers_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuse, "LEAST_COPIED", 1)
    x, each, counts = torch.randn(2, 33, 4, 24), torch.randn(24), torch.arange(2**25, 2**25 + 1600).reshape(40, 40)
    kernels, optimized = fused(captured(Heads([]), x, each, counts))
    assert sum("contiguous" in kernel.__name__ for kernel in kernels) == 2 and sum(in_tiles(kernel) for kernel in kernels) == 1
    for seen, plain in zip(optimized(x, each, counts), Heads([])(x, each, counts), strict=True):
        assert seen.stride() == plain.stride() and seen.dtype == plain.dtype
        torch.testing.assert_close(seen, plain)


class Reordered(Several):
    """Copies into another order behind element-wise calls: with a bias of one dimension, of a value that is read twice, in two steps."""

    def forward(self, x: torch.Tensor, each: torch.Tensor) -> tuple[torch.Tensor, ...]:
        heads = F.gelu(x.permute(0, 2, 1, 3) + each * 2).transpose(2, 3).contiguous()
        twice = torch.relu(x)
        rows = (torch.sigmoid(x) * 2).permute(0, 3, 1, 2).transpose(1, 2).contiguous().reshape(x.shape[0], -1)
        return heads, twice.transpose(1, 2).contiguous() + 1, twice, rows @ torch.ones(rows.shape[1], 3)


def test_a_copy_into_another_order_behind_element_wise_calls_is_part_of_their_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuse, "LEAST_COPIED", 1)
    x, each = torch.randn(2, 40, 16, 24), torch.randn(24)
    kernels, optimized = fused(captured(Reordered([]), x, each))
    assert sum(in_tiles(kernel) for kernel in kernels) == 2 and not any(kernel.copied for kernel in kernels)
    for seen, plain in zip(optimized(x, each), Reordered([])(x, each), strict=True):
        assert seen.stride() == plain.stride()
        torch.testing.assert_close(seen, plain)


def test_a_convolution_with_channels_last_is_turned_before_and_after() -> None:
    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Conv2d(16, 32, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.gelu(self.layer(x)) * 2

    x, model = torch.randn(2, 16, 34, 34), Block()
    ir = captured(model, x)
    ir = ChannelsLast().apply(ir, Action("channels_last"))
    technique = FuseCuda()
    after = technique.apply(ir, next(iter(technique.sites(ir))))
    first, last = (node.target for node in after.graph.nodes if isinstance(node.target, CudaKernel))
    assert in_tiles(first) and in_tiles(last) and first.laid and not last.laid
    [seen] = run(after, [x], dict(model.state_dict()), torch.float32, flat=True)
    torch.testing.assert_close(seen, model(x))


class Halves(Several):
    """Weights and results in bfloat16, one result converted."""

    def __init__(self, width: int) -> None:
        super().__init__([])
        self.weight = torch.nn.Parameter((torch.rand(width) + 0.5).bfloat16())

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        scaled = (x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)).bfloat16() * self.weight
        return scaled, torch.softmax(x + y, -1), F.gelu(x * self.weight) + y, x.sum(-1), (x - y).float(), x.mean(0) > 0


@pytest.mark.slow
@pytest.mark.parametrize("size", [(40, 1024), (65, 130), (3, 70002), (9, 500)], ids=str)
def test_bfloat16(size: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    model, x, y = Halves(size[-1]), torch.randn(size).bfloat16(), torch.randn(size).bfloat16()
    ir = captured(model, x, y)
    kernels, optimized = fused(ir)
    assert len(kernels) >= 5 and max(n for n in (8, 4, 2) if size[-1] % n == 0) in {kernel.generated.vector for kernel in kernels}
    weight = model.weight.detach()
    exact = run(ir, [x.double(), y.double()], {"weight": weight.double()}, torch.float64, flat=True)
    for number, (seen, plain, truth) in enumerate(zip(optimized(x, y, weight), [t.detach() for t in model(x, y)], exact, strict=True)):
        assert seen.dtype == plain.dtype and seen.shape == plain.shape, number
        if seen.dtype == torch.bool:
            assert torch.equal(seen, truth)
            continue
        allowed = 1.1 * test_cpp.errors(plain, truth) + (2.0**-9 if seen.dtype == torch.bfloat16 else 1e-6) * float(truth.abs().max())
        assert test_cpp.errors(seen, truth) <= allowed, number


def test_an_rms_norm_of_16_bits_without_eps_has_torchs() -> None:
    """That of float32, in which torch sums them: rows of 1e-3 were a hundred times too small by that of their own type."""
    x = 1e-3 * torch.randn(6, 128, generator=torch.Generator().manual_seed(0)).bfloat16()
    model = Several([lambda x: F.rms_norm(x, (128,))])
    kernels, optimized = fused(captured(model, x))
    [seen], [plain] = optimized(x), model(x)
    assert len(kernels) == 1
    torch.testing.assert_close(seen, plain, rtol=2.0**-7, atol=0.0)


class Convolved(torch.nn.Module):
    """Convolutions with a bias before a chain, and one whose result is one of the model's."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Conv2d(3, 8, 3), torch.nn.ConvTranspose2d(8, 4, 2)
        self.last = torch.nn.Conv1d(4, 4, 3, padding="same")

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.tanh(self.second(F.gelu(self.first(x)) * 2) - 0.5)
        return y, self.last(y.flatten(2))


def test_a_convolutions_bias_joins_the_kernel_behind_it() -> None:
    torch.manual_seed(0)
    model, x = Convolved(), torch.randn(2, 3, 40, 40)
    kernels, optimized = fused(captured(model, x))
    assert [len(kernel.sources) for kernel in kernels] == [2, 2]  # the convolution's result, and its bias
    with torch.no_grad():
        for seen, plain in zip(optimized(x, *model.state_dict().values()), model(x), strict=True):
            torch.testing.assert_close(seen, plain, rtol=1e-5, atol=1e-6)


class Losses(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            F.cross_entropy(x, labels), F.cross_entropy(x, labels, reduction="none", ignore_index=3),
            F.cross_entropy(x, labels, label_smoothing=0.1, reduction="sum"), F.triplet_margin_loss(x, y, z, margin=0.5),
            F.cosine_similarity(x, y), F.kl_div(F.log_softmax(x, -1), F.softmax(y, -1), reduction="batchmean"), torch.softmax(x, -1).mean(),
        )  # fmt: skip


@pytest.mark.slow
def test_losses_over_rows() -> None:
    torch.manual_seed(0)
    given = (*(torch.randn(200, 1001) for _ in range(3)), torch.randint(0, 1001, (200,)))
    given[3][:9] = 3
    kernels, optimized = fused(captured(Losses(), *given))
    assert sum("logsumexp" in kernel.__name__ for kernel in kernels) >= 2
    exact = Losses()(*(t.double() if t.is_floating_point() else t for t in given))
    for number, (seen, plain, truth) in enumerate(zip(optimized(*given), Losses()(*given), exact, strict=True)):
        assert seen.shape == plain.shape and seen.dtype == plain.dtype, number
        allowed = 2 * test_cpp.errors(plain, truth) + 5e-7 * float(truth.abs().max())
        assert test_cpp.errors(seen, truth) <= allowed, f"{number}: {test_cpp.errors(seen, truth)} {allowed}"


class Converted(torch.nn.Module):
    """From float16 and to it."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.neg(x.float()), torch.neg(y).half()


@pytest.mark.parametrize("columns", [512, 513], ids=["vectors", "single"])
def test_float16_rounds_as_torch_does(columns: int) -> None:
    """Every float16; and floats between two of them, at their ends, below the smallest and above the largest."""
    every = torch.arange(65536, dtype=torch.int32).to(torch.uint16).view(torch.float16)
    torch.manual_seed(0)
    finite = every.float().nan_to_num()
    sizes = torch.cat([finite, finite * 1.00048828125, torch.randn(65536) * 2.0 ** torch.randint(-30, 20, (65536,))])
    edges = torch.tensor([65504.0, 65519.9, 65520.0, 1e9, 2.0**-24, 2.0**-25, 2.0**-26, 5.96e-8, 0.0, -0.0, torch.inf, -torch.inf, torch.nan])
    rows = len(every) // columns
    x, y = every[: rows * columns].view(rows, columns), torch.cat([edges, sizes])[: rows * columns].view(rows, columns)
    _, optimized = fused(captured(Converted(), x, y))
    for seen, plain in zip(optimized(x, y), Converted()(x, y), strict=True):
        assert seen.dtype == plain.dtype and torch.equal(seen.isnan(), plain.isnan())
        kind = torch.int16 if seen.dtype == torch.float16 else torch.int32
        there = ~plain.isnan()
        assert torch.equal(seen[there].view(kind), plain[there].view(kind))
