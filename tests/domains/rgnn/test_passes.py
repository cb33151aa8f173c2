"""Every pass keeps what a program computes: interpreted before and after, in float64, on random graphs."""

from __future__ import annotations

import pytest
import torch
from domains.rgnn.layers import LARGE, LAYERS, SPARSE, graph, inputs_of
from hypothesis import example, given, settings
from hypothesis import strategies as st

from warpwright.domains.rgnn.derive import GRADIENT, differentiate
from warpwright.domains.rgnn.emit.eager import Eager
from warpwright.domains.rgnn.front import trace
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.interpret import interpret
from warpwright.domains.rgnn.ir import Program, verify
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.order import Ordering, flatten, joined, through_pairs
from warpwright.domains.rgnn.plan import Options, plan
from warpwright.errors import UsageError

names = st.sampled_from(sorted(LAYERS))
graphs = st.builds(
    graph, nodes=st.integers(1, 12), count=st.integers(0, 60), relations=st.integers(1, 6), seed=st.integers(0, 5), hub=st.integers(0, 20)
)
quick = settings(max_examples=10, deadline=None)


def program_of(name: str) -> Program:
    layer, inputs = LAYERS[name]
    return trace(layer, inputs)


def joint(name: str) -> Program:
    return differentiate(flatten(program_of(name)), list(LAYERS[name][1]))


def given_to(name: str, index: Index) -> dict[str, torch.Tensor]:
    """Return inputs, and a gradient of the result."""
    inputs = {key: x.detach() for key, x in inputs_of(name, index).items()}
    result = interpret(program_of(name), index, inputs)[0]
    return inputs | {GRADIENT: torch.cos(torch.arange(result.numel(), dtype=torch.float64)).reshape(result.shape)}


def assert_same(program: Program, other: Program, index: Index, inputs: dict[str, torch.Tensor]) -> None:
    verify(other)
    for a, b in zip(interpret(program, index, inputs), interpret(other, index, inputs), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10)


@quick
@given(name=names, index=graphs)
def test_flattening(name: str, index: Index) -> None:
    assert_same(program_of(name), flatten(program_of(name)), index, given_to(name, index))


@quick
@given(name=names, index=graphs)
def test_derivatives_are_those_of_autograd(name: str, index: Index) -> None:
    inputs = inputs_of(name, index)
    told = given_to(name, index)
    (result,) = interpret(program_of(name), index, inputs)
    wanted = torch.autograd.grad(result, list(inputs.values()), told[GRADIENT], allow_unused=True)
    program = joint(name)
    verify(program)
    _, *seen = interpret(program, index, told)
    for a, b, x in zip(seen, wanted, inputs.values(), strict=True):
        torch.testing.assert_close(a, torch.zeros_like(x) if b is None else b, rtol=1e-8, atol=1e-9)


@quick
@given(name=names, index=graphs, rows=st.sampled_from([LARGE, SPARSE, None]), flags=st.tuples(st.booleans(), st.booleans()))
@example(name="hetero_sage", index=graph(nodes=3, count=5, relations=2, seed=1, hub=0), rows=LARGE, flags=(False, False))
def test_ordering(name: str, index: Index, rows: dict[Domain, int] | None, flags: tuple[bool, bool]) -> None:
    ordered = Ordering(rows or index.rows, reorder=flags[0], compact=flags[1]).run(joint(name))
    assert_same(joint(name), ordered, index, given_to(name, index))


@quick
@given(name=names, index=graphs)
def test_numbers_of_nodes_by_way_of_pairs(name: str, index: Index) -> None:
    program = through_pairs(Ordering(index.rows).run(joint(name)))
    verify(program)
    assert not [op for op in program.ops if op.over is Domain.EDGE and op.domain is Domain.DST and not op.shape and op.kind == "segmax"]
    assert_same(joint(name), program, index, given_to(name, index))
    told = given_to(name, index)
    for a, b in zip(interpret(program, index, told), Eager(program)(index, told), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10)


@quick
@given(name=names, index=graphs)
def test_sums_of_numbers_of_pairs_are_sums_over_edges(name: str, index: Index) -> None:
    assert_same(joint(name), joined(flatten(joint(name))), index, given_to(name, index))


@quick
@given(name=names, index=graphs, rows=st.sampled_from([LARGE, SPARSE]))
def test_the_torch_emitter(name: str, index: Index, rows: dict[Domain, int]) -> None:
    ordered = Ordering(rows).run(joint(name))
    told = given_to(name, index)
    for a, b in zip(interpret(ordered, index, told), Eager(ordered)(index, told), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", LAYERS)
def test_forward_and_backward_together_are_the_derivative(name: str) -> None:
    index = graph()
    told = given_to(name, index)
    layer, inputs = LAYERS[name]
    whole = plan(layer, tuple((key, *spec) for key, spec in inputs.items()), tuple(inputs), SPARSE, Options())
    result, *saved = interpret(whole.forward, index, told)
    told |= {f"saved{i}": x for i, x in enumerate(saved)}
    assert whole.backward is not None
    seen = [result, *interpret(whole.backward, index, told)]
    for a, b in zip(seen, interpret(joint(name), index, told), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-10)


def test_a_message_is_computed_for_each_pair_and_not_for_each_edge() -> None:
    program = program_of("rgcn")
    assert next(op.domain for op in program.ops if op.kind == "contract" and not op.sums) is Domain.PAIR_SRC


def test_many_edges_per_pair_are_aggregated_first() -> None:
    ordered = Ordering(LARGE).run(program_of("rgcn"))
    sums = [(op.over, op.domain) for op in ordered.ops if op.kind == "contract" and op.sums]
    assert sums == [(Domain.EDGE, Domain.PAIR_DST), (Domain.PAIR_DST, Domain.DST)]


def test_the_destination_side_of_attention_needs_no_product_per_pair() -> None:
    for rows in (LARGE, SPARSE):
        ordered = Ordering(rows).run(program_of("rgat_single"))
        products = [op for op in ordered.ops if op.kind == "contract"]
        of_targets = [op for op in products if any(ordered.ops[i].kind == "view" and ordered.ops[i].domain is Domain.DST for i in op.inputs)]
        assert [(op.domain, op.shape) for op in of_targets] == [(Domain.PAIR_DST, ())]


def test_a_factor_that_may_be_infinite_stays_in_its_sum() -> None:
    def layer(g, x, scale):  # type: ignore[no-untyped-def]
        return g.sum_in(g.src(x) / g.dst(scale))

    index = graph()
    program = trace(layer, {"x": (Domain.NODE, (3,)), "scale": (Domain.NODE, ())})
    scale = torch.ones(20, dtype=torch.float64)
    scale[16:] = 0  # these have no edges in: nothing divides by them
    told = {"x": torch.randn(20, 3, dtype=torch.float64), "scale": scale}
    assert_same(program, Ordering(LARGE).run(program), index, told)
    assert interpret(Ordering(LARGE).run(program), index, told)[0].isfinite().all()


def test_a_program_with_wrong_shapes_is_refused() -> None:
    program = program_of("rgcn")
    wrong = [op if op.kind != "contract" else type(op)(**{**vars(op), "shape": (99,)}) for op in program.ops]
    with pytest.raises(UsageError, match="expected"):
        verify(Program(tuple(wrong), program.outputs))


def test_options_leave_out_what_they_say() -> None:
    layer, inputs = LAYERS["rgat_single"]
    signature = tuple((key, *spec) for key, spec in inputs.items())

    def rows_of(**options: bool) -> set[Domain]:
        program = plan(layer, signature, (), LARGE, Options(**options)).infer
        return {op.domain for op in program.ops if op.kind == "contract" and op.shape and op.domain not in {Domain.DST, Domain.ETYPE}}

    assert rows_of() == {Domain.PAIR_DST}  # aggregated first; W q and W k are weights
    assert Domain.PAIR_SRC in rows_of(reorder=False)  # the message of each source and relation, as the layer is written
    assert rows_of(compact=False) == rows_of(reorder=False, compact=False) == {Domain.EDGE}
