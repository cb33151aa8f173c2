"""What the hidden cases draw: other integers, masks and numbers within what a task's own inputs show, and values that are no ordinary numbers."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from warpwright.base import Case, Task
from warpwright.verifier.checks import DISTRIBUTIONS, INFINITE
from warpwright.verifier.draw import STRIDED, UNEVEN, Draw, with_draw
from warpwright.verifier.judge import discrete, distributions
from warpwright.verifier.judge_client import AGAIN, cases
from warpwright.workers.tensors import variants

torch = pytest.importorskip("torch")
SEEDS = range(20)


def masks(name: str) -> list[torch.Tensor]:
    mask = torch.ones(16, 16).tril().bool()
    return [discrete.vary([mask], name, seed, distinct=False)[0] for seed in SEEDS]


@pytest.mark.parametrize("name", ["normal", "edited", "permuted"])
def test_masks_vary_and_no_row_becomes_empty(name: str) -> None:
    causal = torch.ones(16, 16).tril().bool()
    assert all(not torch.equal(mask, causal) and bool(mask.any(-1).all()) for mask in masks(name))


def test_a_mask_is_edited_by_single_elements() -> None:
    changes = [int((mask != torch.ones(16, 16).tril().bool()).sum()) for mask in masks("edited")]
    assert min(changes) == 1 and max(changes) <= discrete.FEW_EDITS


def test_a_row_that_is_empty_from_the_start_may_stay_so() -> None:
    mask = torch.tensor([[True, False], [False, False]])
    assert any(not discrete.vary([mask], "normal", seed, distinct=False)[0][1].any() for seed in SEEDS)


@pytest.mark.parametrize("name", discrete.LEVEL)
def test_rows_of_a_mask_are_full_nearly_full_nearly_empty_or_fill_a_byte(name: str) -> None:
    for seed in SEEDS:
        [mask] = discrete.vary([torch.rand(64, 300) < 0.5], name, seed, distinct=False)
        assert {300, 299, 1, 256} <= set(mask.sum(-1).tolist())
        [plain] = discrete.vary([torch.rand(64, 300) < 0.5], name, seed, distinct=False, mild=True)
        assert not {300, 1} & set(plain.sum(-1).tolist())


@pytest.mark.parametrize("name", discrete.LEVEL)
def test_a_mask_of_one_row_gets_each_of_these_numbers_in_turn(name: str) -> None:
    drawn = [discrete.vary([torch.rand(1, 300) < 0.5], name, seed, distinct=False)[0] for seed in range(40)]
    assert {int(mask.sum()) for mask in drawn} == {300, 299, 1, 256}


@pytest.mark.parametrize("name", UNEVEN)
def test_one_tensor_of_several_is_smaller_than_the_others(name: str) -> None:
    lesser = set()
    for seed in SEEDS:
        sizes = [float(tensor.abs().amax()) for tensor in distributions.redistribute([torch.ones(3), torch.ones(4)], name, seed)]
        assert max(sizes) == pytest.approx(min(sizes) / UNEVEN[name])
        lesser.add(sizes.index(min(sizes)))
    assert lesser == {0, 1}
    [alone] = distributions.redistribute([torch.ones(3)], name, 1)
    assert float(alone.amax()) in (3.0, pytest.approx(0.01), -1.0, 11.0)


@pytest.mark.parametrize("value", [3, 0.5])
def test_numbers_become_others_nothing_and_negative(value: float) -> None:
    assert discrete.vary([value], "negated", 1, distinct=False) == [-value]
    assert discrete.vary([value], "zeros", 1, distinct=False) == [0]
    drawn = [discrete.vary([value], "normal", seed, distinct=False)[0] for seed in range(200)]
    assert min(drawn) == -value and 0 in drawn and all(type(number) is type(value) for number in drawn)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_denormal_values_are_below_the_smallest_normal_number(dtype: torch.dtype) -> None:
    [x] = distributions.redistribute([torch.randn(64, 64, dtype=dtype)], "denormal", 3)
    assert x.dtype is dtype and 0 < float(x.abs().max()) < torch.finfo(torch.float32 if dtype is torch.bfloat16 else dtype).tiny


def test_coarse_values_are_exact_in_a_few_digits() -> None:
    [x, scale] = distributions.redistribute([torch.randn(64, 64), torch.full((1,), 0.0625)], "coarse", 3)
    assert torch.equal((x * 128).round(), x * 128) and math.log2(scale.item()).is_integer()
    halves = (x / scale) % 1 == 0.5
    assert bool(halves.any())


@pytest.mark.parametrize("shape", [(64, 64), (64, 512), (512, 64), (300,), (4, 16, 16), (512, 3)])
@pytest.mark.parametrize("make", [torch.randn, torch.rand, lambda *shape: torch.rand(*shape) - 5], ids=["signs", "positive", "negative"])
def test_coarse_values_tie_where_they_are_quantised_by_their_own_size(shape: tuple[int, ...], make: Any) -> None:
    """By the largest of a row, of a column or of all, and by the range of all: 8 bits, and no value leaves the range that it came in."""
    given = make(*shape)
    [x] = distributions.redistribute([given], "coarse", 4)
    assert float(given.min()) <= float(x.min()) and float(x.max()) <= float(given.max())
    for dim in (-1, 0, tuple(range(x.dim()))):
        if x.dim() != 2 or min(x.shape) < 16 or float(given.max()) < 0:
            continue  # one of each row and column would be a third of all; values of one size stay as they are
        quotient = x / (x.abs().amax(dim, keepdim=True) / 127)
        assert float(((quotient.abs() % 1) == 0.5).float().mean()) > 0.005
    [x] = distributions.redistribute([given], "coarse", 5)
    assert float(given.min()) <= float(x.min()) and float(x.max()) <= float(given.max())
    quotient = (x - x.min()) / ((x.max() - x.min()) / 255)
    assert float(((quotient % 1) == 0.5).float().mean()) > 0.005


@pytest.mark.parametrize("seed", [6, 7])
@pytest.mark.parametrize("make", [torch.rand, torch.randn, lambda *shape: 2 * torch.rand(*shape) - 1], ids=["positive", "normal", "even"])
def test_sums_of_squares_of_coarse_values_are_not_rounded_to_one_side(seed: int, make: Any) -> None:
    """An honest norm by rows is as near as it is elsewhere: with as many odd as even values it was 22 units in the last place off."""
    first, second = distributions.redistribute([make(128, 4096), make(128, 4096)], "coarse", seed)
    exact = (first.double() - second.double()).square().mean()
    found = torch.linalg.vector_norm(first - second, dim=1).square().sum() / first.numel()
    assert abs(float(found.double() / exact) - 1) < 4 * 2**-23


@pytest.mark.parametrize("name", INFINITE)
def test_infinities_leave_every_row_a_number(name: str) -> None:
    [x] = distributions.redistribute([torch.randn(256, 128)], name, 3)
    assert bool(x.isinf().any()) and bool(x.isfinite().any(-1).all()) and not bool(x.isnan().any())


@pytest.mark.parametrize(("name", "decades"), distributions.GRADED.items())
def test_rows_are_of_many_sizes(name: str, decades: float) -> None:
    values = torch.randn(128, 64)
    [usual], [graded] = (distributions.redistribute([values], name, 3, mild=mild) for mild in (True, False))
    first = 128 // distributions.CALM_PART if name in distributions.CALM else 0
    shares = (graded / usual)[first:].amax(1)
    assert bool((shares[::2] == 1).all()) and bool((shares[1::2] < 1).all())
    assert bool(torch.isfinite(graded.square()).all()) and float(graded.abs().amin(1).min()) > 1e-20
    sizes = -shares[1::2].log10()
    assert sizes.min() < decades / 8 and sizes.max() > 7 * decades / 8 and sizes.max() <= decades


@pytest.mark.parametrize("name", distributions.GRADED)
def test_what_has_no_rows_has_one_size(name: str) -> None:
    for values in (torch.randn(64), torch.randn(()), torch.randn(1, 64), torch.randn(4, 0)):
        one, other = (distributions.redistribute([values], name, 3, mild=mild) for mild in (True, False))
        assert torch.equal(one[0], other[0])


def test_every_distribution_has_its_cases() -> None:
    task = Task("any", "/nowhere/any.py")
    names = [case.name for case in cases(task, 5)]
    assert set(names) == set(DISTRIBUTIONS) - {"special"}
    assert all(names.count(name) == 1 + AGAIN.count(name) for name in AGAIN) and names.count("nominal") == 2


def test_the_uneven_cases_make_different_tensors_small() -> None:
    for secret in range(40):
        for several in (2, 3, 5):
            uneven = [case for case in cases(Task("any", "/nowhere/any.py"), secret) if case.name in UNEVEN]
            drawn = {case.name: distributions.redistribute([torch.ones(3)] * several, case.name, case.seed) for case in uneven}
            sizes = {name: [float(tensor.abs().amax()) for tensor in tensors] for name, tensors in drawn.items()}
            least = {name: each.index(min(each)) for name, each in sizes.items()}
            assert len(least) == 4 and len(set(least.values())) == min(several, 4)
            assert least["negated"] != least["offset"] and least["large"] != least["small"]


def test_parameters_of_a_case_are_read_as_they_were_written() -> None:
    draws = [Draw(), Draw(of=0), Draw(fixed=1, variant=7), Draw(layout=random.Random(1).randrange(9))]
    assert [Draw.of_case(with_draw(Case("normal", 1), draw)) for draw in draws] == draws


@pytest.mark.parametrize("name", sorted(set(DISTRIBUTIONS) - {"nominal", "special"}))
def test_what_rises_goes_on_rising(name: str) -> None:
    """Edges of buckets mean nothing out of order; values that are in no order stay in none."""
    edges, values = distributions.redistribute([torch.linspace(-2, 2, 33), torch.randn(33)], name, 3)
    assert bool((edges[1:] >= edges[:-1]).all())
    assert name == "zeros" or not bool((values[1:] >= values[:-1]).all())


@pytest.mark.parametrize("seed", SEEDS)
def test_in_a_turn_of_calls_what_rises_stays_as_it_is(seed: int) -> None:
    inputs = [torch.linspace(-2, 2, 33), torch.randn(33)]
    edges, values = variants.vary(inputs, seed, variants.like(inputs))
    assert torch.equal(edges, inputs[0]) and not torch.equal(values, inputs[1])
    assert not torch.equal(variants.vary(inputs[:1], seed, variants.like(inputs[:1]))[0], inputs[0])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.complex128])
def test_the_variants_of_a_turn_are_those_of_its_calls(dtype: torch.dtype) -> None:
    inputs = [torch.randn(7, 5, dtype=torch.complex128).to(dtype) if dtype.is_complex else torch.randn(7, 5).to(dtype), torch.rand(9) < 0.5]
    slots = [variants.like(inputs) for _ in SEEDS]
    variants.vary_all(inputs, SEEDS, slots)
    for seed, slot in zip(SEEDS, slots, strict=True):
        alone = variants.vary(inputs, seed, variants.like(inputs))
        assert all(torch.equal(one.view(torch.uint8), other.view(torch.uint8)) for one, other in zip(alone, slot, strict=True))
        assert torch.equal(slot[1], inputs[1]) and not torch.equal(slot[0].view(torch.uint8), inputs[0].view(torch.uint8))
    assert len({bytes(slot[0].view(torch.uint8).flatten().tolist()) for slot in slots}) > len(SEEDS) / 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64])
def test_in_a_turn_of_calls_values_are_others(dtype: torch.dtype) -> None:
    """Were they the same ones elsewhere, a program could move its last answer along."""
    inputs = [torch.randn(80, 50, dtype=torch.float64).to(dtype)]
    slots = [variants.like(inputs) for _ in SEEDS]
    variants.vary_all(inputs, SEEDS, slots)
    source = variants._flat(inputs[0])
    for [slot], way in zip(slots, variants._draws(SEEDS, 0, 4000)[0], strict=True):
        seen = variants._flat(slot)
        assert float((seen != source.roll(way)).double().mean()) > 0.5, "a few patterns leave most of 16 bits as they were"
        real, own = ((torch.view_as_real(one) if one.is_complex() else one).double() for one in (slot, inputs[0]))
        assert float(own.min()) <= float(real.min()) and float(real.max()) <= float(own.max())
    if dtype.itemsize > 2:
        assert float(torch.isin(variants._flat(slots[0][0]), variants._flat(slots[1][0])).double().mean()) < 0.3


def test_in_a_turn_of_calls_round_numbers_and_ranges_stay() -> None:
    """A mask of ones, labels that are real numbers, infinities, and what has an upper bound that the original goes by."""
    masked = torch.randn(40, 40).masked_fill(torch.rand(40, 40) < 0.5, -math.inf)
    kinds = [(torch.rand(40, 40) < 0.5).float(), torch.randint(0, 999, (40, 40)).float(), masked]
    for [slot], [source] in [(variants.vary([one], 3, variants.like([one])), [one]) for one in kinds]:
        round_ones = source[source == source.round()].unique()
        assert bool(torch.isin(slot[slot == slot.round()], round_ones).all())
        assert (source is masked) == bool((~torch.isin(slot[slot.isfinite()], source)).any())
    share = torch.rand(100, 100) * 10
    assert float(variants.vary([share], 5, variants.like([share]))[0].max()) < 10


def test_moving_along_is_the_same_by_one_piece_as_by_two() -> None:
    source, distances = torch.arange(9), [1, 4, 8]
    rolled = []
    for twice in (False, True):
        targets = [torch.zeros(9, dtype=torch.int64) for _ in distances]
        for target, piece in zip(*variants._moved_along(source, targets, distances, twice), strict=True):
            target.copy_(piece)
        rolled.append(targets)
    for one, other, far in zip(*rolled, distances, strict=True):
        assert torch.equal(one, other) and torch.equal(one, source.roll(far))


def test_a_turn_is_written_where_its_tensors_lie_by_then() -> None:
    """A program may give an input memory of its own, or another form."""
    inputs = [torch.randn(6, 4)]
    slots = [variants.like(inputs) for _ in SEEDS]
    kept = variants.Slots(slots)
    kept.write(inputs, SEEDS)
    slots[0][0].data = torch.zeros(6, 4)
    slots[1][0].t_()
    kept.write(inputs, SEEDS)
    for seed, slot in zip(SEEDS, slots, strict=True):
        alone = variants.vary(inputs, seed, variants.like(inputs))[0]
        assert torch.equal(slot[0], alone.t() if slot is slots[1] else alone)


def test_draws_are_spread_over_all_places() -> None:
    ways, places, origins, _ = variants._draws(range(4000), 1, 101)
    assert set(ways) == set(range(1, 101)) and set(places.flatten().tolist()) == set(range(101)) == set(origins.flatten().tolist())
    assert not bool((places == origins).any()) and len({tuple(row) for row in places.tolist()}) == 4000
    counts = torch.bincount(places.flatten(), minlength=101).double()
    assert float((counts - counts.mean()).abs().max() / counts.mean().sqrt()) < 5


def laid_out(turned: int, real_only: bool = False) -> list[torch.Tensor]:
    inputs = [torch.randn(4, 6, 8), torch.randn(32), torch.randint(9, (8, 8)), torch.rand(8, 8) < 0.5]
    made = discrete.restride(inputs, 5, turned, real_only)
    assert all(torch.equal(new, old) and new.shape == old.shape for new, old in zip(made, inputs, strict=True))
    return list(made)


def test_of_the_strided_cases_each_tensor_lies_in_memory_in_three_ways() -> None:
    one, other, dense = laid_out(turned=0), laid_out(turned=1), laid_out(turned=2)
    assert all(tensor.storage_offset() > 0 for tensor in one + other)
    assert all(tensor.is_contiguous() and tensor.storage_offset() % 4 for tensor in dense), "no place for a wide load"
    assert all({x.stride(-1) == 1, y.stride(-1) == 1} == {True, False} for x, y in zip(one, other, strict=True))


def test_integers_keep_their_place_where_the_original_takes_no_other() -> None:
    assert [tensor.storage_offset() > 0 for tensor in laid_out(turned=1, real_only=True)] == [True, True, False, False]


def test_the_strided_cases_of_a_task_are_turns_of_one_layout() -> None:
    one, other, dense = (Draw.of_case(case) for case in cases(Task("any", "/nowhere/any.py"), 5) if case.name == STRIDED)
    assert one.layout == other.layout == dense.layout is not None and (one.turned, other.turned, dense.turned) == (None, 1, 2)


@pytest.mark.parametrize("name", discrete.LEVEL)
def test_integers_stand_nearly_all_at_one_end_unless_that_is_too_much(name: str) -> None:
    nominal = torch.randint(-128, 128, (64, 64), dtype=torch.int8)
    shares = {}
    for mild in (False, True):
        drawn = [discrete.vary([nominal], name, seed, distinct=False, mild=mild)[0] for seed in SEEDS]
        shares[mild] = [max(float((tensor == end).double().mean()) for end in (nominal.min(), nominal.max())) for tensor in drawn]
    assert min(shares[False]) > 0.9 and max(shares[True]) < 0.6


def test_switches_are_thrown_unless_that_is_too_much() -> None:
    assert [discrete.vary([True, 2], "near_one", seed, distinct=False)[0] for seed in SEEDS] == [False] * len(SEEDS)
    assert discrete.vary([True], "near_one", 1, distinct=False, mild=True) == discrete.vary([True], "normal", 1, distinct=False) == [True]


def test_a_negated_case_negates_every_number() -> None:
    assert all(discrete.vary([3, 0.5], "negated", seed, distinct=False) == [-3, -0.5] for seed in range(100))


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_integers_are_drawn_where_they_lie_and_the_same_for_a_seed(device: str) -> None:
    kinds = [torch.randint(0, 256, (1000,), dtype=torch.int32), torch.arange(1000), torch.rand(40, 25) < 0.5, torch.tensor([7])]
    inputs = [kind.to(device) for kind in kinds]
    for name in DISTRIBUTIONS:
        for distinct in (False, True):
            one, other = (discrete.vary(inputs, name, 3, distinct) for _ in range(2))
            assert all(a.device.type == device and torch.equal(a, b) for a, b in zip(one, other, strict=True))


SPARSE = ("padded", "masked", "infinite", "special", "edited")
"""They change few elements, of 48 perhaps none."""


def test_real_and_imaginary_parts_vary_each_by_itself() -> None:
    """Of weights that begin as real numbers the imaginary parts stayed zero, and complex inputs had their own values under every name."""
    weight = torch.linspace(1, 0.5, 9).to(torch.complex64)
    states = [distributions.random_state({"weight": weight}, set(), seed)["weight"] for seed in (3, 4)]
    for state in states:
        assert state.dtype is torch.complex64 and bool((state.imag != 0).all()) and bool((state.real != weight.real).all())
    x = torch.randn(8, 6, dtype=torch.complex64).t()
    for name in distributions.DISTRIBUTIONS:
        [drawn] = distributions.redistribute([x], name, 5)
        assert (drawn.dtype, drawn.shape, drawn.stride()) == (x.dtype, x.shape, x.stride())
        assert name in SPARSE or torch.equal(drawn, x) == (name == "nominal")
    moved = distributions.move([x], 4.0)[0]
    assert torch.allclose(moved, x * (1 + 4 * torch.finfo(torch.float32).eps), rtol=1e-7)
    assert 0 < float((distributions.perturb([x], 1)[0] - x).abs().max()) < 1e-6


def test_of_a_smooth_input_every_second_element_says_nearly_what_all_say() -> None:
    for seed in range(10):
        [x] = distributions.redistribute([torch.randn(4, 32, 32)], "smooth", seed)
        whole, half = x.var(), x.view(-1)[::2].var()
        assert 0.4 < whole < 0.6 and 1e-6 < abs(half / whole - 1) < 0.02
        assert float((x.view(-1)[1:] - x.view(-1)[:-1]).abs().max()) < 0.5


@pytest.mark.parametrize("name", sorted(DISTRIBUTIONS))
def test_inputs_lie_in_memory_as_the_tasks_own(name: str) -> None:
    images, turned = torch.randn(16, 4, 6, 6).to(memory_format=torch.channels_last), torch.randn(8, 32).T
    spread = torch.randn(9, 5, dtype=torch.complex64).T
    drawn = distributions.redistribute([images, turned, spread], name, 5)
    assert [one.stride() for one in drawn] == [images.stride(), turned.stride(), spread.stride()]
    whole = [torch.randint(0, 9, (6, 7)).T, torch.rand(5, 4).T > 0.5]
    assert [one.stride() for one in discrete.vary(whole, name, 5, False)] == [(1, 7), (1, 4)]


def test_a_long_wave_is_one_wave(monkeypatch: pytest.MonkeyPatch) -> None:
    [whole] = distributions.redistribute([torch.randn(10, 100)], "smooth", 3)
    monkeypatch.setattr(distributions, "SINES", 64)
    [in_pieces] = distributions.redistribute([torch.randn(10, 100)], "smooth", 3)
    assert torch.equal(whole, in_pieces)


def test_of_large_inputs_the_first_rows_are_small_in_order_and_without_ties() -> None:
    [x, line] = distributions.redistribute([torch.randint(0, 50, (64, 128)).float() + 1, torch.rand(64)], "large", 61)
    assert bool((x[:8, 1:] > x[:8, :-1]).all()) and float(x[:8].min()) > 0 and float(x[:8].max()) <= 8
    [like_the_others] = distributions.redistribute([torch.full((64, 128), 2.0)], "large", 61, mild=True)
    assert bool((like_the_others == 6).all())
    assert float(x[8:].max()) == 150 and int((x[8:].sort(1).values.diff(dim=1) == 0).sum()) > 100
    assert int((line.diff() < 0).sum()) > 10


def test_of_four_edited_cases_two_change_a_single_element_and_one_has_large_ones() -> None:
    edited = [case for case in cases(Task("any", "/nowhere/any.py"), 5) if case.name == "edited"]
    assert sorted(case.seed % 4 for case in edited) == [0, 1, 1, 2]
    inputs = [torch.zeros(256), torch.zeros(256)]  # of 64 elements one draw in 60 changes none
    for case in edited:
        changed = distributions.redistribute(inputs, "edited", case.seed + 1)
        counts = [int((tensor != 0).sum()) for tensor in changed]
        assert sum(counts) == 1 if case.seed % 2 else min(counts) > 0
        assert (max(float(tensor.abs().max()) for tensor in changed) > 20) is (case.seed % 4 == 2)


@pytest.mark.parametrize(
    ("dtype", "lower"), [("float32", "float16"), ("float32", "bfloat16"), ("float64", "float32"), ("bfloat16", "float8_e4m3fn"), ("complex64", "")]
)
def test_alike_inputs_are_the_same_in_the_next_lower_precision(dtype: str, lower: str) -> None:
    """A program that remembers answers under rounded inputs does not tell them from the first ones."""
    x = torch.randn(40, 30, dtype=getattr(torch, dtype)).t().clamp(-400, 400) if lower else torch.randn(40, 30, dtype=torch.complex64).t()
    flags, none = torch.arange(9), torch.tensor([0.0, math.inf, -math.inf, math.nan])
    drawn, left, same = distributions.redistribute([x, none, flags], "alike", 5)
    assert float((drawn == x).float().mean()) < 0.2 and (drawn.dtype, drawn.stride()) == (x.dtype, x.stride()) and same is flags
    assert torch.equal(left.nan_to_num(7), none.nan_to_num(7)), "what has no digits keeps them"
    if lower:
        low = getattr(torch, lower)
        assert torch.equal(drawn.to(low).double(), x.to(low).double())
    assert discrete.vary([flags], "alike", 5, distinct=False)[0] is flags


def test_wide_integers_come_next_to_powers_of_two_and_narrow_ones_do_not() -> None:
    wide, narrow = torch.randint(-(2**62), 2**62, (64, 64)), torch.randint(0, 4000, (64, 64))
    drawn = discrete.vary([wide, narrow], "normal", 3, distinct=False)
    near = {sign * 2**bit + by for bit in range(20, 63) for sign in (1, -1) for by in (-1, 0, 1)}
    found = [value for value in drawn[0].flatten().tolist() if value in near]
    assert len(found) > 100 and max(map(abs, found)) > 2**53 and int(wide.min()) <= min(found) and max(found) <= int(wide.max())
    assert set(drawn[1].flatten().tolist()) <= set(narrow.flatten().tolist())


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("shape", [(16,), (4, 8)])
def test_floats_of_8_bits_are_drawn_perturbed_and_varied(dtype: str, shape: tuple[int, ...]) -> None:
    x = torch.linspace(-400, 448, math.prod(shape)).view(shape).to(getattr(torch, dtype))
    for name in DISTRIBUTIONS:
        assert distributions.redistribute([x], name, 3)[0].dtype is x.dtype
    [moved] = distributions.perturb([x], 1)
    assert moved.float().isfinite().all() and (moved.float() / x.float() - 1).abs().max() <= torch.finfo(x.dtype).eps
    [other] = variants.vary([x], 1, variants.like([x]))
    assert other.dtype is x.dtype and not torch.equal(other.float(), x.float())


def test_what_may_move_is_the_same_whichever_zero_is_found_as_the_least() -> None:
    values = torch.tensor([*[0.0] * 10, 3e-40, 5e-40, 1e-39, 2.3, 7.9, 1.3, 4.4])
    first, second = values.clone(), values.clone()
    first[:5], second[5:10] = -0.0, -0.0
    ours, others = variants._movable(first), variants._movable(second)
    assert ours is not None and others is not None and torch.equal(ours, others)
