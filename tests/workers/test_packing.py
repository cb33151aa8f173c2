"""Small tensors travel as one block and are what they were; what an untrusted process says of the block is not believed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from warpwright.errors import WorkerProtocol  # noqa: E402
from warpwright.workers.tensors import exchange, packing  # noqa: E402

STATE = {
    "weight": torch.arange(12.0).view(3, 4), "columns": torch.arange(12.0).view(3, 4).T, "gaps": torch.arange(20)[::2], "count": torch.tensor(3),
    "none": torch.zeros(0, 5), "flag": torch.tensor([True, False, True]), "half": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
    "phase": torch.tensor([1 + 2j]).conj(), "nan": torch.tensor([float("nan"), -0.0]), "code": torch.tensor([7, 255], dtype=torch.uint8),
    "same": torch.ones(1).expand(4), "large": torch.arange(packing.SMALL // 4 + 1.0),
}  # fmt: skip


def sent(state: dict[str, Any]) -> tuple[Any, list[torch.Tensor]]:
    """Return state as it is sent, each tensor by its number, and the tensors."""
    tensors: list[torch.Tensor] = []
    return packing.packed(state, lambda tensor: tensors.append(tensor) or {"number": len(tensors) - 1}), tensors


def test_tensors_come_out_as_they_went_in() -> None:
    tree, tensors = sent(STATE)
    assert len(tensors) == 2 and list(tree["others"]) == ["large"]  # one block, and what is large where it lies
    assert tensors[tree["others"]["large"]["number"]].data_ptr() == STATE["large"].data_ptr()
    taken = packing.unpacked(tree, lambda item: tensors[item["number"]])
    assert taken.keys() == STATE.keys()
    for name, tensor in STATE.items():
        assert (taken[name].dtype, taken[name].shape) == (tensor.dtype, tensor.shape)
        assert torch.equal(torch.view_as_real(taken[name]) if tensor.is_complex() else taken[name].nan_to_num(9),
                           torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor.nan_to_num(9))  # fmt: skip
        assert tensor.numel() < 2 or taken[name].stride() == tensor.stride()
    assert str(taken["nan"][1]) == "tensor(-0.)"


def copies_to_the_device(action: Any) -> int:
    """Return how often tensors go from one device to another in an action: on a CPU, how often that is asked for."""

    class Counting(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
            self.count += function is torch.ops.aten._to_copy.default
            return function(*arguments, **(keywords or {}))

    with Counting() as mode:
        action()
    return mode.count


def test_small_tensors_go_to_another_device_as_one() -> None:
    state = {name: tensor.resolve_conj() for name, tensor in STATE.items()}
    there = packing.moved(state, "meta")
    assert all((there[name].shape, there[name].dtype, there[name].device.type) == (one.shape, one.dtype, "meta") for name, one in state.items())
    assert copies_to_the_device(lambda: packing.moved(state, "meta")) == 1
    assert packing.moved({}, "cpu") == {}


def test_a_state_arrives_as_it_was_and_in_memory_of_its_own(tmp_path: Path) -> None:
    shelf = exchange.Shelf(str(tmp_path))
    state = {name: tensor.resolve_conj() for name, tensor in STATE.items()}
    copies = packing.inlined(state)
    assert list(copies) == list(state)
    places = {tensor.untyped_storage().data_ptr() for tensor in state.values()} - {0}
    assert not places & {tensor.untyped_storage().data_ptr() for tensor in copies.values()}
    items = {name: shelf.put(tensor, "state") for name, tensor in copies.items()}
    assert {"data" in item for item in items.values()} == {True, False}
    arrived = packing.taken(items, "cpu")
    assert list(arrived) == list(state)
    for name, tensor in state.items():
        assert torch.equal(exchange.flat_bytes(arrived[name].contiguous()), exchange.flat_bytes(tensor.contiguous())), name
        assert arrived[name].dtype is tensor.dtype and (tensor.numel() < 2 or arrived[name].stride() == tensor.stride())
    storages = [tensor.untyped_storage().data_ptr() for tensor in arrived.values() if tensor.numel()]
    assert len(set(storages)) == len(storages)


def test_no_tensors_are_none() -> None:
    tree, tensors = sent({})
    assert packing.unpacked(tree, lambda item: tensors[item["number"]]) == {}


def test_through_the_exchange(tmp_path: Path) -> None:
    shelf = exchange.Shelf(str(tmp_path))
    tree = packing.packed(STATE, lambda tensor: shelf.put(tensor, "state"))
    taken = packing.unpacked(tree, lambda item: exchange.take(item, "cpu", folder=str(tmp_path)))
    assert all(torch.equal(taken[name], tensor) for name, tensor in STATE.items() if name not in ("nan", "phase"))


def test_a_state_that_the_parent_read_by_itself_is_taken_too() -> None:
    tree = exchange.encode({"weight": STATE["weight"]}, lambda tensor: {"number": 0})
    assert packing.unpacked(tree, lambda item: STATE["weight"])["weight"] is STATE["weight"]


@pytest.mark.parametrize(
    "part",
    [
        {"at": -16}, {"at": 8}, {"at": True}, {"at": None}, {"at": 1 << 40}, {"at": 48}, {"shape": [1 << 40, 4]}, {"shape": [3, -4]}, {"shape": [3]},
        {"stride": [1 << 30, 1]}, {"dtype": "float128"}, {"dtype": "float64"},
    ],
)  # fmt: skip
def test_what_lies_outside_of_the_block_is_refused(part: dict[str, Any]) -> None:
    tree, tensors = sent({"weight": STATE["weight"]})
    tree["parts"]["weight"] |= part
    with pytest.raises(WorkerProtocol):
        packing.unpacked(tree, lambda item: tensors[item["number"]])


@pytest.mark.parametrize("change", [{"parts": []}, {"parts": {"weight": 3}}, {"others": None}, {"more": {}}])
def test_another_form_is_refused(change: dict[str, Any]) -> None:
    tree, tensors = sent({"weight": STATE["weight"]})
    with pytest.raises(WorkerProtocol):
        packing.unpacked(tree | change, lambda item: tensors[item["number"]])


def test_a_block_of_another_kind_is_refused() -> None:
    tree, tensors = sent({"weight": STATE["weight"]})
    for block in (tensors[0].view(torch.int64), tensors[0].view(2, -1)):
        with pytest.raises(WorkerProtocol):
            packing.unpacked(tree, lambda item, block=block: block)
