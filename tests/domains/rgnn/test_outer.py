"""Weight gradients by the CUDA kernel, run on the CPU by the transpiler, against float64; and which kernels over rows are taken for it."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest
import torch
from domains.rgnn.layers import LARGE, SPARSE, widened
from domains.rgnn.translated import launch_of

from warpwright.domains.rgnn.emit.own import outer
from warpwright.domains.rgnn.emit.own.kernel import MANY
from warpwright.domains.rgnn.emit.places import is_gradient
from warpwright.domains.rgnn.emit.rows import Kernel, lower
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.models import hgt_single, rgat_single, rgcn
from warpwright.domains.rgnn.plan import Options, few, plan


@pytest.fixture(scope="module")
def launch() -> outer.Launch:
    return launch_of(outer, "typed_outer")


@pytest.mark.compiler
def test_the_check_of_a_device_passes_with_the_kernel_and_not_without(launch: outer.Launch) -> None:
    assert outer.right_on(launch, torch.device("cpu"))
    assert not outer.right_on(lambda *_: None, torch.device("cpu"))


@pytest.mark.compiler
@pytest.mark.parametrize(
    ("shape", "scaled"),
    [
        *itertools.product([(33, 64, 64, 1), (130, 20, 36, 3)], [0, 1, 2]), ((70, 32, 128, 2), 1), ((60, 20, 36, 25), 2),
        *(pytest.param((200, 64, 64, 40), scaled, marks=pytest.mark.slow) for scaled in (0, 1, 2)),
        *(pytest.param((70, 32, 128, 2), scaled, marks=pytest.mark.slow) for scaled in (0, 2)),
    ],
    ids=str,
)  # fmt: skip
def test_sums_are_those_of_float64(launch: outer.Launch, shape: tuple[int, int, int, int], scaled: int) -> None:
    rows, height, width, relations = shape
    random = torch.Generator().manual_seed(rows)
    left, right = torch.randn(9, height, generator=random), torch.randn(rows, width, generator=random)
    at = torch.randint(9, (rows,), generator=random, dtype=torch.int32)
    relation = torch.sort(torch.randint(relations, (rows,), generator=random, dtype=torch.int32))[0]
    scale = torch.randn(9, generator=random)
    scale[4] = 0.0
    out, total = torch.zeros(relations, height, width), torch.zeros(relations, width)
    outer.add(launch, left, right, out, total, (at, None, at, relation), scale if scaled else None, scaled, rows)
    factors = {0: torch.ones(9), 1: scale, 2: torch.where(scale == 0, 0.0, 1 / scale)}[scaled].double()
    taken = (left.double() * factors[:, None])[at.long()]
    for kind in range(relations):
        wanted = taken[relation == kind].T @ right[relation == kind].double()
        assert (out[kind] - wanted).norm() <= 1e-6 * max(1e-3, wanted.norm())
    assert (total - torch.stack([right[relation == r].double().sum(0) for r in range(relations)])).norm() <= 1e-6 * total.norm()


@pytest.mark.compiler
def test_parts_have_their_columns_side_by_side(launch: outer.Launch) -> None:
    """Each is as if it were alone, and narrower than a tile."""
    random = torch.Generator().manual_seed(0)
    left, *parts = (torch.randn(70, width, generator=random) for width in (64, 20, 20, 20))
    out, total = torch.zeros(1, 64, 60), torch.zeros(60)
    outer.add(launch, left, parts[0], out, total, more=parts[1:])
    wanted = left.double().T @ torch.cat(parts, 1).double()
    assert (out[0] - wanted).norm() <= 1e-6 * wanted.norm()
    assert (total - torch.cat(parts, 1).double().sum(0)).norm() <= 1e-6 * total.norm()


@pytest.mark.compiler
def test_infinities_stay_in_their_relation(launch: outer.Launch) -> None:
    left, right = torch.ones(64, 64), torch.ones(64, 64)
    left[:20] = torch.inf
    out, relation = torch.zeros(2, 64, 64), (torch.arange(64) >= 20).int()
    outer.add(launch, left, right, out, None, (None, None, None, relation), None, 0, 64)
    assert torch.equal(out[1], torch.full((64, 64), 44.0)) and not out[0].isfinite().any()


LAYERS = {"rgcn": rgcn, "rgat_single": rgat_single, "hgt_single": hgt_single}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("rows", [LARGE, SPARSE], ids=["large", "sparse"])
@pytest.mark.parametrize("fuse", [True, False])
def test_weight_gradients_of_large_graphs_are_taken(name: str, rows: dict[Domain, int], fuse: bool) -> None:
    inputs = tuple((key, domain, tuple(64 for _ in shape)) for key, (domain, shape) in widened(name).items())
    whole = plan(LAYERS[name], inputs, tuple(key for key, *_ in inputs), rows, Options())
    assert whole.backward is not None
    schedule = lower(whole.backward, fuse)
    kernels = [step for step in schedule.steps if isinstance(step, Kernel)]
    with_gradient = [kernel for kernel in kernels if any(is_gradient(schedule.program.ops[i]) for i in kernel.stored)]
    assert with_gradient and all(outer.outer_of(schedule, kernel) is not None for kernel in with_gradient)
    others = [kernel for kernel in kernels if kernel not in with_gradient]
    assert not any(outer.outer_of(schedule, kernel) for kernel in others)


def test_a_gradient_beside_the_sums_that_it_takes_is_not_alone() -> None:
    inputs = (("x", Domain.NODE, (64,)), ("weight", Domain.ETYPE, (64, 64)))
    whole = plan(rgcn, inputs, ("x", "weight"), SPARSE, Options())
    assert whole.backward is not None
    apart, beside = (lower(whole.backward, True, beside=beside) for beside in (False, True))
    assert sum(isinstance(step, Kernel) for step in apart.steps) == sum(isinstance(step, Kernel) for step in beside.steps) + 1


def test_kernels_are_joined_where_both_edges_and_pairs_are_few() -> None:
    def joined(edges: int, of_dst: int, of_src: int) -> bool:
        return few(SimpleNamespace(edges=edges, rows={Domain.PAIR_DST: of_dst, Domain.PAIR_SRC: of_src}), MANY)  # type: ignore[arg-type]

    assert joined(148_100, 90_000, 90_000)
    assert not joined(620_232, 100_000, 194_913) and not joined(620_232, 194_913, 100_000) and not joined(1_000_000, 900, 900)
