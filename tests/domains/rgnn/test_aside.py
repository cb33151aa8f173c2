"""Weight gradients on a second stream, with a stand-in that does what is launched there only when both streams meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from domains.rgnn.layers import LARGE, LAYERS, SPARSE, graph

from warpwright.domains.rgnn.derive import GRADIENT
from warpwright.domains.rgnn.emit import aside
from warpwright.domains.rgnn.emit.aside import Aside
from warpwright.domains.rgnn.emit.eager import Eager, value_of
from warpwright.domains.rgnn.emit.launch import Runner, Values
from warpwright.domains.rgnn.emit.own import outer
from warpwright.domains.rgnn.emit.rows import Kernel, added, lower
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.plan import Options, plan

WAITING: list[Callable[[], Any]] = []


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    WAITING.clear()

    def meet(device: torch.device) -> None:
        while WAITING:
            WAITING.pop(0)()

    monkeypatch.setattr(aside, "elsewhere", lambda device, launch: WAITING.append(launch))
    monkeypatch.setattr(aside, "meet", meet)
    yield


class Late(Runner):
    """Runs kernels by torch, weight gradients aside."""

    taken = 0

    def memory(self, like: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
        return torch.full(shape, torch.nan, dtype=like.dtype)

    def launch(self, kernel: Kernel, number: int, index: Index, values: list[Any]) -> None:
        found, seen = outer.outer_of(self.schedule, kernel), list(values)
        if found is None:
            self._compute(kernel, index, seen)
            return
        assert isinstance(values, Values)
        self.taken += 1
        values.aside = values.aside or Aside(index.device)
        values.aside.run(lambda: self._compute(kernel, index, seen), values[found.result], values[found.left.value], values[found.right.value])

    def _compute(self, kernel: Kernel, index: Index, values: list[Any]) -> None:
        program, own = self.schedule.program, [None if i in kernel.stored else value for i, value in enumerate(values)]

        def computed(i: int) -> Any:
            if own[i] is None:
                for j in program.ops[i].inputs:
                    computed(j)
                own[i] = value_of(program.ops[i], program, own, index, {}, torch.zeros((), dtype=torch.float64))
            return own[i]

        for position in kernel.stored:
            result = computed(position)
            onto = program.ops[position].kind != "segmax" and added(program.ops[position], position, kernel)
            values[position].add_(result) if onto else values[position].copy_(result)


@pytest.mark.parametrize("name", ["rgcn", "rgat_single", "hgt_single"])
@pytest.mark.parametrize("rows", [LARGE, SPARSE], ids=["large", "sparse"])
def test_what_is_computed_aside_is_there_when_it_is_read(name: str, rows: dict[Domain, int]) -> None:
    layer, given = LAYERS[name]
    sizes = {key: (domain, tuple(4 if n == 5 else 8 for n in shape)) for key, (domain, shape) in given.items()}
    whole = plan(layer, tuple((key, *spec) for key, spec in sizes.items()), tuple(given), rows, Options())
    index = graph()
    random = torch.Generator().manual_seed(0)
    inputs = {
        key: torch.randn(*(() if domain is Domain.ONE else (index.rows[domain],)), *shape, generator=random, dtype=torch.float64)
        for key, (domain, shape) in sizes.items()
    }  # fmt: skip
    out, *saved = Eager(whole.forward)(index, inputs)
    assert whole.backward is not None
    inputs |= {f"saved{i}": x for i, x in enumerate(saved)} | {GRADIENT: torch.cos(torch.arange(out.numel()).double()).reshape(out.shape)}
    inputs = {key: inputs[key] for key in whole.backward.names()}
    late = Late(lower(whole.backward, rows is SPARSE))
    for a, b in zip(late(index, inputs), Eager(whole.backward)(index, inputs), strict=True):
        torch.testing.assert_close(a, b)
    assert late.taken and not WAITING


def test_only_what_is_written_aside_is_waited_for() -> None:
    beside, memory = Aside(torch.device("cpu")), torch.zeros(4, 10)
    beside.run(lambda: memory[1].fill_(1.0), memory[1])
    beside.before([memory[0], memory[2:], None, torch.zeros(3)])
    assert WAITING and not memory.any()
    beside.before([memory[:, 3]])
    assert not WAITING and memory[1].all()
