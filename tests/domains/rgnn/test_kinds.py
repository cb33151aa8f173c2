"""Products by node type by the CUDA kernels, run on the CPU by the transpiler, against float64; and HGT's layer with them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest
import torch
from domains.rgnn.translated import launch_of, launches_of

from warpwright.domains.rgnn.emit.own import kinds, outer
from warpwright.domains.rgnn.emit.own.kernel import ALIGNED, Launch
from warpwright.domains.rgnn.nn import hgt_nodes, node_types
from warpwright.domains.rgnn.plan import Options
from warpwright.rgnn import HGTConv


@pytest.fixture(scope="module")
def launches() -> tuple[Launch, ...]:
    return launches_of(kinds.OWN)


@pytest.mark.compiler
@pytest.mark.parametrize(("width", "columns"), [(20, 12), *(pytest.param(*sizes, marks=pytest.mark.slow) for sizes in ((64, 64), (100, 72)))])
def test_the_check_of_a_device_passes_with_the_kernels(launches: tuple[Launch, ...], width: int, columns: int) -> None:
    assert kinds.right_on(launches, torch.device("cpu"), width, columns)


@pytest.mark.slow
@pytest.mark.compiler
@pytest.mark.parametrize("silent", range(6))
def test_the_check_of_a_device_fails_without_one(launches: tuple[Launch, ...], silent: int) -> None:
    assert not kinds.right_on(tuple((lambda *_: None) if at == silent else launch for at, launch in enumerate(launches)), torch.device("cpu"))


def test_a_device_is_checked_with_rows_and_results_of_several_steps_and_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []

    def passes(launches: tuple[Launch, ...], device: torch.device, width: int, columns: int) -> bool:
        asked.append((width, columns))
        return True

    monkeypatch.setattr(kinds, "right_on", passes)
    assert kinds.right((), torch.device("cpu"))
    assert any(width > 2 * kinds.SIDE and columns > kinds.SIDE for width, columns in asked)


@pytest.mark.compiler
def test_weight_gradients_are_those_of_float64_by_the_kernel_of_relations() -> None:
    torch.manual_seed(0)
    counts, width, columns = (70, 0, 5), 20, 12
    own, x, parts = kinds.Kinds((), counts), torch.randn(75, width), [torch.randn(75, columns) for _ in range(3)]
    matrix, total = own._by_outer(launch_of(outer, "typed_outer"), parts, x)
    weight, bias = torch.zeros(3, 3 * columns, width), torch.zeros(3, 3 * columns)
    for found, wanted in zip((matrix, total), kinds.plain(counts, x, weight, bias, parts)[2:], strict=True):
        assert (found.double() - wanted).norm() <= 1e-6 * wanted.norm()


def test_some_types_have_the_rows_of_these_alone() -> None:
    rows = kinds.table((70, 3, 5), (0, 2), 64, torch.device("cpu")).rows
    assert rows.tolist() == [[0, 0, 64], [0, 64, 6], [1, 73, 5]]


@pytest.mark.parametrize("place", [0, 1])
def test_rows_that_lie_between_addresses_of_16_bytes_are_moved_or_left_to_torch(monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    given: list[int] = []

    def launch(_: int, *arguments: Any) -> None:
        given.extend(x.data_ptr() for x in arguments if isinstance(x, torch.Tensor) and x.dtype is torch.float32)
        given.extend(address for x in arguments if isinstance(x, bytes) for address in struct.unpack(f"{kinds.PLACES}Qq", x)[:-1])

    def lying(*shape: int) -> torch.Tensor:
        return torch.zeros(64)[place : place + torch.Size(shape).numel()].view(shape)

    x, bias, weight = lying(3, 8), lying(8), torch.zeros(8, 8)
    kinds.Kinds((launch,) * 6, (3,)).mixed(x, lying(3, 8), torch.zeros(1, 8, 8), torch.zeros(1, 8), torch.zeros(1))
    assert len(given) > kinds.PLACES and not any(address % ALIGNED for address in given)
    monkeypatch.setattr(kinds, "_launches", lambda device: (launch,))
    monkeypatch.setattr(kinds, "takes", lambda x, columns: True)
    for bias_, out in ((bias, None), (None, lying(3, 8))):
        assert (kinds.product(x, weight, bias_, out) is None) is bool(place)


TYPES = ["a", "b", "c"]
RELATIONS = [("a", "to", "b"), ("b", "to", "a"), ("a", "to", "c"), ("c", "self", "c")]


@pytest.mark.slow
@pytest.mark.compiler
@pytest.mark.parametrize("heads", [1, 4])
@pytest.mark.parametrize("relations", [RELATIONS, RELATIONS[:2]], ids=["all mixed", "one is no destination"])
def test_a_layer_and_its_gradients_are_those_without_them(
    launches: tuple[Launch, ...], monkeypatch: pytest.MonkeyPatch, relations: list[tuple[str, str, str]], heads: int
) -> None:
    torch.manual_seed(0)
    layer, counts, asked = HGTConv(8, 8, (TYPES, relations), heads=heads), {"a": 70, "b": 9, "c": 5}, list[int]()
    layer.options = Options(emitter="gpu" if heads > 1 else "auto")  # several heads: a GPU's order of operations, by torch calls
    for gate in layer.skip.values():
        gate.data.normal_()
    edges = {kind: torch.stack([torch.randint(counts[kind[side]], (60,)) for side in (0, 2)]) for kind in relations}
    rows = {kind: torch.randn(n, 8) for kind, n in counts.items()}

    def taken(x: torch.Tensor, counts: tuple[int, ...], columns: int) -> kinds.Kinds:
        asked.append(columns)
        return kinds.Kinds(launches, counts)

    def results(choose: Callable[..., kinds.Kinds | None]) -> list[torch.Tensor | None]:
        monkeypatch.setattr(node_types, "by_kind", choose)
        layer.zero_grad()
        given = {kind: x.clone().requires_grad_() for kind, x in rows.items()}
        out = layer(given, edges)
        (sum(x.square().sum() for x in out.values()) + out["a"].sum()).backward()
        return [*out.values(), *(x.grad for x in given.values()), *(x.grad for x in layer.parameters())]

    wanted, found = results(lambda *_: None), results(taken)
    assert set(asked) == {8} and len(asked) == 4  # rows and gradients put together, projections, ends
    assert [x is None for x in found] == [x is None for x in wanted]
    for a, b in zip(found, wanted, strict=True):
        if a is not None and b is not None:
            torch.testing.assert_close(a, b, rtol=2e-5, atol=2e-5)


@pytest.mark.compiler
@pytest.mark.parametrize("relations", [RELATIONS, RELATIONS[:2]], ids=["all mixed", "one is no destination"])
def test_rows_are_read_where_they_lie_without_gradients(
    launches: tuple[Launch, ...], monkeypatch: pytest.MonkeyPatch, relations: list[tuple[str, str, str]]
) -> None:
    torch.manual_seed(0)
    layer, counts = HGTConv(8, 8, (TYPES, relations)), {"a": 70, "b": 9, "c": 5}
    edges = {kind: torch.stack([torch.randint(counts[kind[side]], (60,)) for side in (0, 2)]) for kind in relations}
    rows, put_together = {kind: torch.randn(n, 8) for kind, n in counts.items()}, list[int]()
    with torch.no_grad():
        wanted = layer(rows, edges)
    monkeypatch.setattr(node_types, "by_kind", lambda x, counts, columns: kinds.Kinds(launches, counts))
    laid = node_types.laid
    for module in (node_types, hgt_nodes):
        monkeypatch.setattr(module, "laid", lambda *given: put_together.append(1) or laid(*given))
    for given, copies in ((rows, 0), ({**rows, "b": torch.randn(8, 9).t().copy_(rows["b"])}, 1)):  # what has gaps is put together, as before
        put_together.clear()
        with torch.no_grad():
            found = layer(given, edges)
        assert len(put_together) == copies and list(found) == list(wanted)
        for kind, x in wanted.items():
            torch.testing.assert_close(found[kind], x, rtol=2e-5, atol=2e-5)
