"""Questions to many tensors in one call."""

from __future__ import annotations

import ctypes
import gc
import shutil
import weakref
from typing import Any

import pytest
import torch

from warpwright.domains.rgnn import index as indices
from warpwright.domains.rgnn import tensors
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.nn import launches
from warpwright.domains.rgnn.nn.common import typed_index
from warpwright.domains.rgnn.nn.members import Members


class Blind:
    """A library that answers yes to everything, which its check has to find out."""

    def __init__(self, library: ctypes.PyDLL) -> None:
        self.remember, self.forget = library.remember, library.forget
        self.holds = self.at_versions = lambda *_: 1


@pytest.mark.slow  # torch's headers take a compiler ten seconds
@pytest.mark.compiler
def test_the_library_sees_what_changes_and_its_check_refuses_one_that_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("c++") is None:
        pytest.skip("needs a C++ compiler")
    library = tensors.loaded()
    assert tensors.right(library) and not tensors.right(Blind(library))  # type: ignore[arg-type]
    monkeypatch.setattr(tensors, "library", lambda like: library)
    _a_layout_is_asked_in_one_call()
    _versions_are_asked_in_one_call()
    monkeypatch.setattr(tensors, "built", lambda: library)
    _members_are_asked_in_one_call()
    assert not tensors.Seen(library, ["no tensor"]).holds(["no tensor"])  # type: ignore[list-item]
    x = torch.zeros(3)
    seen, gone = tensors.Seen(library, [x]), weakref.ref(x)
    del x
    assert gone() is None and not seen.holds([torch.zeros(4)])
    del seen
    gc.collect()


def _a_layout_is_asked_in_one_call() -> None:
    parameters = [torch.nn.Parameter(torch.zeros(3, 2)) for _ in range(3)]
    first = launches.layout(parameters)
    assert launches.layout(parameters, first) is first and first.seen is not None
    with torch.inference_mode():
        assert launches.layout(parameters, first) is first
    kept, parameters[1].data = parameters[1].data, torch.ones(3, 2)
    assert launches.layout(parameters, first) is not first
    parameters[1].data = kept
    assert launches.layout(parameters, first) is first
    assert not first.holds([*parameters[:2], torch.nn.Parameter(parameters[2].data)])
    one, two = (torch.nn.Parameter(torch.zeros(3, 2)) for _ in range(2))
    first = launches.layout([one])
    assert first.holds([one])
    torch.utils.swap_tensors(one, two)
    assert not first.holds([one])


def _members_are_asked_in_one_call() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Sequential(torch.nn.Linear(3, 3, bias=False)))
    members = Members()
    for _ in range(2):
        found = members.parameters(model)
        assert [id(x) for x in found] == [id(x) for x in model.parameters()]
    assert members.parameters(model) is found  # nothing has been walked
    inner, outer = model[1], model[0]
    changes = (
        lambda: setattr(inner[0], "weight", torch.nn.Parameter(torch.ones(3, 3))), lambda: setattr(outer, "bias", None),
        lambda: inner.append(torch.nn.Linear(3, 2)), lambda: outer.register_parameter("scale", torch.nn.Parameter(torch.ones(1))),
        lambda: model.__setitem__(0, torch.nn.Linear(3, 3)), lambda: delattr(inner[0], "weight"),
    )  # fmt: skip
    for change in changes:
        change()
        for _ in range(2):
            assert [id(x) for x in members.parameters(model)] == [id(x) for x in model.parameters()]


def _versions_are_asked_in_one_call() -> None:
    edges, types = torch.randint(5, (2, 9)), torch.randint(2, (9,))
    with indices.watched() as graphs:
        typed_index(edges, types, 5, 5, 2)
    known = indices.Versions(graphs)
    assert known.same() and known.at_once is not None and known.same()
    types[:1] = types[:1].clone()
    assert not known.same()
    with indices.watched() as graphs:
        typed_index(edges, types, 5, 5, 2)
    known = indices.Versions(graphs)
    assert known.same() and known.same()
    del edges
    assert not known.same()
    told = tensors.Versions(tensors.library(types), [weakref.ref(types)], [types.detach()])  # type: ignore[arg-type]
    assert told.same()
    with torch.inference_mode():
        told.others[0] = torch.zeros(1)  # has no version
    assert not told.same()
    told.others.clear()
    assert not told.same()


@pytest.mark.parametrize("asked", ["by Python", pytest.param("at once", marks=[pytest.mark.slow, pytest.mark.compiler])])
def test_other_memory_of_an_edge_tensor_is_another_graph(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    """`edge_index.data = other` changes no version; and the allocator gives what the old one had to the next."""
    if asked == "at once":
        library = tensors.loaded()
        monkeypatch.setattr(tensors, "library", lambda like: library)
    many = [torch.randint(50, (2, 90)) for _ in range(indices.MANY)]
    edges, types = many[0], torch.randint(2, (90,))

    def right() -> bool:
        index, whole = typed_index(edges, types, 50, 50, 2), joined()
        ends = edges, torch.cat(many, 1)
        nodes = [x[side].sort().values for x in ends for side in (0, 1)]
        found = [x.lift(domain, Domain.EDGE).long().sort().values for x in (index, whole) for domain in (Domain.SRC, Domain.DST)]
        return all(map(torch.equal, found, nodes)) and recorded.same() == (recorded_as == indices.told(edges))

    def joined() -> indices.Index:
        def make(tidy: Any) -> indices.Index:
            kinds = torch.arange(len(many)).repeat_interleave(torch.tensor([e.shape[1] for e in many]))
            return indices.Index(*torch.cat(many, 1), kinds, 50, 50, len(many))

        return indices.of(many, (50, 50), make)

    recorded, recorded_as = indices.Versions.of([edges]), indices.told(edges)
    assert right() and right()
    for change in [lambda: torch.randint(50, (2, 90)), lambda: edges.data.flip(1), lambda: edges.data.clone().random_(50)] * 8:
        edges.data = change()
        assert right() and right()
    types = types[:40]
    edges.data = edges.data[:, :40]
    assert right()


def test_without_the_library_python_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "library", lambda like: None)
    parameters = [torch.nn.Parameter(torch.zeros(3, 2))]
    first = launches.layout(parameters)
    assert launches.layout(parameters, first) is first and first.seen is None


def test_on_a_cpu_nothing_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "_building", lambda: pytest.fail("a build has begun"))
    assert tensors.library(torch.zeros(1)) is None and not tensors.awaited(torch.zeros(1), 1.0)


def test_an_index_goes_with_the_first_of_its_edges_and_no_other_does() -> None:
    pairs = [(torch.randint(5, (2, 9)), torch.randint(2, (9,))) for _ in range(3)]
    made = [weakref.ref(typed_index(*pair, 5, 5, 2)) for pair in pairs]
    edges, types = pairs.pop(0)
    del edges
    typed_index(*pairs[0], 5, 5, 2)  # known: nothing is looked through
    assert all(ref() is not None for ref in made)
    late = typed_index(torch.randint(5, (2, 9)), types, 5, 5, 2)  # its edges are gone at once
    assert made[0]() is None and made[1]() is not None and made[2]() is not None
    assert typed_index(*pairs[0], 5, 5, 2) is made[1]()
    late = typed_index(torch.randint(5, (2, 9)), types, 5, 5, 2)
    assert late.edges == 9 and made[2]() is not None


def test_a_key_that_other_tensors_have_by_now_is_kept() -> None:
    one, two, types = torch.randint(5, (2, 9)), torch.randint(5, (2, 9)), torch.randint(2, (9,))
    found, key = typed_index(one, types, 5, 5, 2), next(reversed(indices._KEPT))
    stale = indices._KEPT[key][0][0]
    indices._KEPT[key] = [weakref.ref(two), weakref.ref(types)], found
    indices._died(key, stale)
    indices._drop_dead()
    assert key in indices._KEPT
    del indices._KEPT[key]


def test_threads_that_drop_indices_at_once_do_not_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    class Emptied(list[object]):
        def pop(self, *_: object) -> object:
            self.clear()
            raise IndexError

    edges, types = torch.randint(5, (2, 9)), torch.randint(2, (9,))
    monkeypatch.setattr(indices, "_DEAD", Emptied([None]))
    found = typed_index(edges, types, 5, 5, 2)

    class Evicted(dict[object, object]):
        def move_to_end(self, key: object) -> None:
            raise KeyError(key)

    monkeypatch.setattr(indices, "_KEPT", Evicted(indices._KEPT))
    assert typed_index(edges, types, 5, 5, 2) is found
