"""einsum as a product of matrices: every form that is one, and none that is not."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tests.domains.graph.techniques.exactness import assert_equal_in_double, captured, fixpoint
from warpwright.domains.graph.ir import aten, find, foldable
from warpwright.domains.graph.techniques.algebra.einsum import EINSUM, PARAMETERS_FIRST, read

SIZES = dict(zip("abcdefgh", (2, 3, 4, 5, 2, 3, 2, 4), strict=True))


class Sum(nn.Module):
    def __init__(self, equation: str) -> None:
        super().__init__()
        self.equation = equation

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.einsum(self.equation, x, y)


def check(equation: str) -> None:
    x, y = (torch.randn([SIZES[letter] for letter in operand]) for operand in equation.partition("->")[0].split(","))
    model = Sum(equation)
    before = captured(model, x, y)
    after, fired = fixpoint(before, [EINSUM])
    assert fired == ["einsum_as_product"] and not find(after, aten.einsum)
    assert_equal_in_double(before, after, [x, y], model)


@pytest.mark.parametrize("equation", ["abcd,de->abce", "ab,bc", "ab,ac->bc", "abcd,abed->abce", "abc,acd->dab", "abcd,cdef->abef", "cab,bda->dc"])
def test_forms(equation: str) -> None:
    check(equation)


@settings(max_examples=12, deadline=None)
@given(st.permutations("abcdefgh"), st.integers(0, 2), st.integers(1, 2), st.integers(1, 2), st.integers(1, 2), st.randoms(use_true_random=False))
def test_any_order_of_letters(letters: list[str], batch: int, left: int, right: int, summed: int, random: object) -> None:
    parts, at = [], 0
    for count in (batch, left, right, summed):
        parts.append(letters[at : at + count])
        at += count
    b, m, n, k = parts
    made = [[*b, *m, *k], [*b, *k, *n], [*b, *m, *n]]
    for operand in made:
        random.shuffle(operand)  # type: ignore[attr-defined]
    check(f"{''.join(made[0])},{''.join(made[1])}->{''.join(made[2])}")


@pytest.mark.parametrize("equation", ["ab,ab->ab", "aab,bc->ac", "ab,bc,cd->ad", "...a,ab->...b", "ab,cd->abcd", "abc,cd->ad", "ab,b->a"])
def test_what_is_no_product_of_matrices(equation: str) -> None:
    assert read(equation) is None


def test_broadcast_sizes_are_left_alone() -> None:
    ir = captured(Sum("ab,bc->ac"), torch.randn(3, 1), torch.randn(4, 5))
    assert not list(EINSUM.sites(ir))


class Fixed(nn.Module):
    """An einsum whose operands at `fixed` are parameters."""

    def __init__(self, equation: str, fixed: str, sizes: dict[str, int] = SIZES) -> None:
        super().__init__()
        self.equation, self.names = equation, fixed
        for at, letters in enumerate(equation.partition("->")[0].split(",")):
            if str(at) in fixed:
                self.register_parameter(f"p{at}", nn.Parameter(torch.randn([sizes[letter] for letter in letters]), requires_grad=False))

    def forward(self, *given: torch.Tensor) -> torch.Tensor:
        rest = list(given)
        count = self.equation.count(",") + 1
        return torch.einsum(self.equation, *(getattr(self, f"p{at}") if str(at) in self.names else rest.pop(0) for at in range(count)))


@pytest.mark.parametrize(
    ("equation", "fixed", "made"),
    [
        ("abcd,abed,abce,abef->abcf", "012", "abcd,abed,abce->abce"),  # the diagonal blocks of a state space model
        ("acd,ac,acf->adf", "01", "acd,ac->adc"),
        ("ab,cd,bc->ad", "01", None),  # two matrices that only the input joins: their product is larger than all three
        ("ab,bc,cd->ad", "0", None),
        ("ab,bc,cd->ad", "012", None),
    ],
)  # fmt: skip
def test_what_is_fixed_is_multiplied_first(equation: str, fixed: str, made: str | None) -> None:
    sizes = {**SIZES, "f": 7} if made else dict.fromkeys(SIZES, 6)
    letters = equation.partition("->")[0].split(",")
    inputs = [torch.randn([sizes[letter] for letter in own]) for at, own in enumerate(letters) if str(at) not in fixed]
    model = Fixed(equation, fixed, sizes)
    before = captured(model, *inputs) if inputs else captured(model)
    after, fired = fixpoint(before, [PARAMETERS_FIRST])
    if made is None:
        assert fired == []
        return
    assert fired == ["einsum_parameters_first"] and next(iter(find(after, aten.einsum))).args[0] == made
    assert {node.name for node in find(after, aten.einsum)} & {node.name for node in foldable(after.graph)}
    assert_equal_in_double(before, after, inputs, model)
