"""Sums that are made in the same memory, sums that are made zero together, and products that join their addition."""

from __future__ import annotations

import torch
from domains.rgnn.layers import LARGE, LAYERS, graph, inputs_of

from warpwright.domains.rgnn.emit.eager import Eager
from warpwright.domains.rgnn.emit.launch import Runner, added_outers, shared_sums
from warpwright.domains.rgnn.emit.rows import Kernel, Schedule, lower
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.plan import GRADIENT, STARTED, Options, Plan, onto, plan


def planned(name: str) -> Plan:
    layer, inputs = LAYERS[name]
    return plan(layer, tuple((key, *spec) for key, spec in inputs.items()), tuple(inputs), LARGE, Options())


class Plain(Runner):
    """Computes each stored result of a kernel by the torch emitter, and adds it where a kernel would."""

    at_once = True

    def launch(self, kernel: Kernel, number: int, index: Index, values: list[torch.Tensor]) -> None:
        program = self.schedule.program
        computed = Eager(program.__class__(program.ops, kernel.stored))(index, self.given)
        for position, value in zip(kernel.stored, computed, strict=True):
            if program.ops[position].kind == "segmax" or values[position].shape != value.shape:
                values[position].copy_(value.reshape(values[position].shape))
            elif position in self.sums.of or program.ops[position].domain is not kernel.rows:
                values[position].add_(value)
            else:
                values[position].copy_(value)

    given: dict[str, torch.Tensor]


def run(schedule: Schedule, index: Index, given: dict[str, torch.Tensor], donated: tuple[str, ...] = ()) -> list[torch.Tensor]:
    runner = Plain(schedule, donated)
    runner.given = given
    return runner(index, given)


def test_the_parts_of_an_input_s_gradient_are_summed_in_one_place() -> None:
    backward = planned("rgat_single").backward
    assert backward is not None
    schedule = lower(backward)
    shared = shared_sums(schedule, ())
    ops = backward.ops
    additions = [i for i, op in enumerate(ops) if op.function == "add" and op.domain is Domain.NODE]
    assert additions and all(i in shared.of for i in additions)
    assert len({shared.of[i] for i in additions}) == 1  # the three sums that x's gradient has are one
    assert added_outers(schedule)  # query's and key's share of the weight's gradient are products of weights


def test_shared_sums_and_joined_products_compute_what_the_program_says() -> None:
    index = graph(20, 90, 4)
    whole = planned("rgat_single")
    assert whole.backward is not None
    given = {name: x.detach() for name, x in inputs_of("rgat_single", index).items()}
    result, *saved = Eager(whole.forward)(index, given)
    given |= {f"saved{i}": x for i, x in enumerate(saved)} | {GRADIENT: torch.cos(result)}
    wanted = Eager(whole.backward)(index, given)
    seen = run(lower(whole.backward), index, given)
    assert all(torch.allclose(a, b, rtol=1e-10, atol=1e-12) for a, b in zip(seen, wanted, strict=True))


def test_a_gradient_is_made_where_another_part_of_it_is() -> None:
    index = graph(20, 90, 4)
    whole = planned("rgcn")
    assert whole.backward is not None
    given = {name: x.detach() for name, x in inputs_of("rgcn", index).items()}
    result, *saved = Eager(whole.forward)(index, given)
    given |= {f"saved{i}": x for i, x in enumerate(saved)} | {GRADIENT: torch.cos(result)}
    which = whole.wanted.index("x")
    wanted = Eager(whole.backward)(index, given)[which]
    start = torch.sin(wanted)
    total = (wanted + start).clone()
    program = onto(whole.backward, which)
    schedule = lower(program)
    assert shared_sums(schedule, (STARTED,)).seeds
    seen = run(schedule, index, given | {STARTED: start}, (STARTED,))[which]
    assert seen.data_ptr() == start.data_ptr() and torch.allclose(seen, total)
