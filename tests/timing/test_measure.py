"""Tests of the timer: on stand-ins with a virtual clock, and on two real processes that run the same program."""

from __future__ import annotations

import math
from collections import Counter
from itertools import count
from random import Random
from typing import Any

import pytest
from fake_programs import Fake, Machine
from hypothesis import given, settings
from hypothesis import strategies as st

from warpwright.base import Measurement, Verdict
from warpwright.errors import BelowFloor, UsageError
from warpwright.timing import measure
from warpwright.timing.interleaved import looks, result
from warpwright.timing.interleaved.block import Look
from warpwright.timing.sequential import FIRST_LOOK


def compare(machine: Machine, candidate: Fake, baselines: dict[str, Fake], seconds: float = 60.0, **more: Any) -> Measurement:
    inputs = count()
    options = {"floor_seconds": 0.0, "overhead_seconds": 0.0, "rng": Random(machine.rng.random()), "clock": machine.clock, **more}
    return measure.compare(candidate, baselines, lambda: next(inputs), seconds=seconds, **options)


def two(speedup: float, seed: int, seconds: float = 60.0, call: float = 2e-3, **noise: float) -> Measurement:
    """Compare a candidate of a known speed-up with one baseline."""
    machine = Machine(Random(seed), **noise)
    return compare(machine, Fake("new", machine, call / speedup), {"eager": Fake("eager", machine, call)}, seconds)


def verdicts(speedup: float, runs: int, **noise: float) -> Counter[str]:
    return Counter(two(speedup, seed, **noise).verdict for seed in range(runs))


NOISES = [{}, {"drift": 0.02}, {"memory": 0.9}, {"outliers": 0.2}, {"spread": 0.02, "drift": -0.01, "memory": 0.5}]


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_a_program_against_itself_is_the_same(noise: dict[str, float]) -> None:
    seen = verdicts(1.0, 30, **noise)
    assert seen["SAME"] >= 28
    assert seen["FASTER"] + seen["SLOWER"] <= 1


def test_too_little_time_is_unsure_and_seldom_wrong() -> None:
    seen = Counter(two(1.0, seed, seconds=1.0, spread=0.1).verdict for seed in range(200))
    assert seen["FASTER"] + seen["SLOWER"] <= 8  # 3.2 % would be 6.4 of 200
    assert seen["UNSURE"] > 100


@pytest.mark.parametrize("noise", NOISES, ids=str)
def test_five_percent_are_found(noise: dict[str, float]) -> None:
    speedup = 1.1 if noise.get("outliers") == 0.2 else 1.05  # many outliers raise the margin
    assert verdicts(speedup, 12, **noise)["FASTER"] >= 11
    assert verdicts(1 / speedup, 12, **noise)["SLOWER"] >= 11


@pytest.mark.parametrize("speedup", [0.8, 0.97, 1.0, 1.04, 1.5, 2.5])
def test_interval_holds_the_truth(speedup: float) -> None:
    intervals = [two(speedup, seed, drift=0.01).interval for seed in range(10)]
    assert sum(low <= speedup <= high for low, high in intervals) >= 9


def test_a_quotable_speedup_is_precise() -> None:
    found = two(1.5, 7)
    low, high = found.interval
    assert found.verdict == "FASTER" and high / low <= measure.PRECISE
    assert low <= found.speedup <= high


@pytest.mark.parametrize("speedup", [0.8, 0.97, 1.3])
def test_an_interval_that_is_asked_for_is_reached_whatever_the_verdict(speedup: float) -> None:
    machine = Machine(Random(5))
    found = compare(machine, Fake("new", machine, 2e-3 / speedup), {"eager": Fake("eager", machine, 2e-3)}, interval=0.02)
    assert found.interval[1] / found.interval[0] <= 1.02**2
    assert found.verdict == ("FASTER" if speedup > 1 else "SLOWER")


def test_an_interval_without_a_lower_end_is_none_that_was_asked_for() -> None:
    """Pairs beside one baseline may be too few, because they drift, when the upper end beside another one is known."""
    look = Look("eager", 0.5, 0.0, 0.6, 0.0, "SLOWER")
    assert measure._decided(look, 9.0, 10.0) and not measure._decided(look, 9.0, 10.0, 0.5)


def test_an_interval_that_is_asked_for_takes_no_more_time_than_there_is() -> None:
    machine = Machine(Random(6), spread=0.3)
    found = compare(machine, Fake("new", machine, 4e-3), {"eager": Fake("eager", machine, 2e-3)}, 2.0, interval=0.002)
    assert found.interval[1] / found.interval[0] > 1.002**2
    assert found.conditions["seconds"] < 2.5


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), speedup=st.floats(0.2, 6), baselines=st.integers(1, 4), seconds=st.floats(0.01, 3))
def test_whatever_happens_the_measurement_is_coherent(seed: int, speedup: float, baselines: int, seconds: float) -> None:
    machine = Machine(Random(seed))
    rows = {f"b{i}": Fake(f"b{i}", machine, 2e-3 * (1 + i)) for i in range(baselines)}
    found = compare(machine, Fake("new", machine, 2e-3 / speedup), rows, seconds)
    low, high = found.interval
    assert 0 < low <= found.speedup <= high < math.inf
    assert set(found.baselines) == set(rows) and found.best_baseline in rows
    for timing in [found.candidate, *found.baselines.values()]:
        assert 0 < timing.low <= timing.median <= timing.high < math.inf
    if found.verdict == "FASTER":
        assert low > 1
    if found.verdict == "SLOWER":
        assert high < 1


def test_headline_is_against_the_best_eligible_baseline() -> None:
    machine = Machine(Random(1))
    rows = {"eager": Fake("eager", machine, 4e-3), "compile": Fake("compile", machine, 2e-3), "tf32": Fake("tf32", machine, 1e-3)}
    found = compare(machine, Fake("new", machine, 1.5e-3), rows, eligible=["eager", "compile"])
    assert found.best_baseline == "compile" and found.verdict == "FASTER"
    assert found.speedup == pytest.approx(2 / 1.5, rel=0.05)
    assert found.conditions["speedup_over_eager"] == pytest.approx(4 / 1.5, rel=0.1)
    assert found.baselines["tf32"].median == pytest.approx(1e-3, rel=0.1)
    assert rows["eager"].calls < rows["compile"].calls  # a baseline that cannot be the best is not timed to the end


def test_equal_baselines_do_not_make_the_candidate_slower() -> None:
    seen: Counter[str] = Counter()
    for seed in range(15):
        machine = Machine(Random(seed))
        rows = {f"b{i}": Fake(f"b{i}", machine, 2e-3) for i in range(5)}
        seen[compare(machine, Fake("new", machine, 2e-3), rows, 120.0).verdict] += 1
    assert seen["SAME"] >= 13 and seen["SLOWER"] + seen["FASTER"] <= 1


def test_no_eligible_baseline_is_an_error() -> None:
    machine = Machine(Random(1))
    with pytest.raises(UsageError, match="eligible"):
        compare(machine, Fake("new", machine, 1e-3), {"eager": Fake("eager", machine, 1e-3)}, eligible=[])


def test_every_call_has_fresh_inputs_and_all_programs_the_same() -> None:
    machine = Machine(Random(2))
    new, old = Fake("new", machine, 1e-3), Fake("eager", machine, 1e-3)
    compare(machine, new, {"eager": old}, 2.0)
    assert new.seen == old.seen and len(set(new.seen)) == len(new.seen)


def test_order_is_balanced() -> None:
    order: list[str] = []

    class Noted(Fake):
        def go(self) -> float:
            order.append(self.name)
            return super().go()

    machine = Machine(Random(3))
    rows = {name: Noted(name, machine, 1e-3) for name in ("a", "b")}
    compare(machine, Noted("new", machine, 1e-3), rows, 3.0)
    rounds = [order[i : i + 6] for i in range(3, len(order) - 5, 6)]  # the first pass stands alone
    assert all(six[:3] == six[3:][::-1] for six in rounds)
    assert len({tuple(six[:3]) for six in rounds}) == 6


def test_warm_up_is_left_out() -> None:
    machine = Machine(Random(4), spread=0.01, outliers=0.0)
    falling = (300.0, *(1 + 4 * 0.7**i for i in range(20)))
    found = compare(machine, Fake("new", machine, 2e-3, first_calls=falling), {"eager": Fake("eager", machine, 2e-3)})
    assert max(found.candidate.samples) < 2 * found.candidate.median
    assert found.verdict == "SAME"


def test_the_time_of_the_first_pass_is_not_counted() -> None:
    machine = Machine(Random(4))
    slow_start = Fake("compile", machine, 2e-3, first_calls=(30_000.0,))  # a minute of compiling
    found = compare(machine, Fake("new", machine, 1e-3), {"compile": slow_start}, 10.0)
    assert found.verdict == "FASTER"


def test_some_calls_are_checked_and_a_wrong_one_ends_the_run() -> None:
    machine = Machine(Random(5))
    good = Fake("new", machine, 1e-3, verdict=lambda call: Verdict(True, "ok"))
    found = compare(machine, good, {"eager": Fake("eager", machine, 1e-3)})
    share = len(good.checks) / good.calls
    assert found.conditions["checked_calls"] == len(good.checks) and 0.03 < share < 0.25
    wrong = Verdict(False, "wrong", "expected 1, saw 2")
    late = Fake("new", machine, 1e-3, verdict=lambda call: wrong if call > 30 else Verdict(True, "ok"))
    with pytest.raises(measure.WrongDuringTiming, match="expected 1, saw 2") as error:
        compare(machine, late, {"eager": Fake("eager", machine, 1e-3)})
    assert error.value.verdict is wrong


def test_at_least_one_call_is_checked() -> None:
    machine = Machine(Random(6))
    program = Fake("new", machine, 1e-3)
    compare(machine, program, {"eager": Fake("eager", machine, 5e-3)}, 0.01, check_share=1e-9)
    assert program.checks == [program.calls]


def test_checks_that_take_long_become_rare() -> None:
    machine = Machine(Random(6))

    class Slow(Fake):
        def check(self) -> Verdict | None:
            self.machine.now += 2.0
            return super().check()

    program = Slow("new", machine, 1e-3)
    compare(machine, program, {"eager": Fake("eager", machine, 1e-3)}, 30.0, check_share=0.5)
    assert 3 <= len(program.checks) <= 8


def test_below_the_floor_is_rejected() -> None:
    machine = Machine(Random(7))
    with pytest.raises(BelowFloor) as error:
        compare(machine, Fake("new", machine, 1e-4), {"eager": Fake("eager", machine, 2e-3)}, floor_seconds=5e-4)
    assert error.value.seconds == pytest.approx(1e-4, rel=0.2)


def test_a_floor_above_a_baseline_is_not_believed() -> None:
    machine = Machine(Random(7))
    found = compare(machine, Fake("new", machine, 1e-3), {"eager": Fake("eager", machine, 2e-3)}, floor_seconds=3e-3)
    assert found.verdict == "FASTER" and "peaks" in str(found.conditions["note"])


def test_a_large_speedup_needs_a_second_block() -> None:
    machine = Machine(Random(8))
    honest = Fake("new", machine, 2e-4)
    found = compare(machine, honest, {"eager": Fake("eager", machine, 2e-3)})
    assert found.verdict == "FASTER" and found.conditions["speedup_in_second_block"] == pytest.approx(10, rel=0.1)
    calls, machine = honest.calls, Machine(Random(8))  # the same noise: the first block is the same
    fading = Fake("new", machine, 2e-4, first_calls=(1.0,) * (calls // 2) + (10.0,) * 100_000)
    found = compare(machine, fading, {"eager": Fake("eager", machine, 2e-3)})
    assert found.verdict != "FASTER"
    assert found.interval[0] < 1.2


@pytest.mark.parametrize(("slower", "verdict"), [(1.4, "FASTER"), (2.5, "UNSURE")])
def test_of_two_blocks_that_are_alike_the_smaller_speedup_is_claimed(slower: float, verdict: str) -> None:
    """3.5x is confirmed by 2.5x, which is claimed; not by 1.4x, though that is FASTER too."""
    machine = Machine(Random(8))
    counting = Fake("new", machine, 2e-3 / 3.5)
    compare(machine, counting, {"eager": Fake("eager", machine, 2e-3)})
    machine = Machine(Random(8))
    fading = Fake("new", machine, 2e-3 / 3.5, first_calls=(1.0,) * (counting.calls // 2) + (slower,) * 100_000)
    found = compare(machine, fading, {"eager": Fake("eager", machine, 2e-3)})
    assert found.verdict == verdict and found.speedup == pytest.approx(3.5 / slower, rel=0.15)


def test_long_calls_are_timed_up_to_the_first_look() -> None:
    found = two(2.0, 3, seconds=1.0, call=0.1)  # ten pairs take 1.5 s
    assert found.verdict == "FASTER" and found.conditions["pairs"] == 10
    found = two(2.0, 3, seconds=1.0, call=1.0)  # and here 15 s
    assert found.verdict == "UNSURE" and found.conditions["pairs"] < 10


def test_overhead_is_subtracted() -> None:
    machine = Machine(Random(9), spread=0.02)
    rows = {"eager": Fake("eager", machine, 3e-4, overhead=1e-4)}
    found = compare(machine, Fake("new", machine, 2e-4, overhead=1e-4), rows, overhead_seconds=1e-4)
    assert found.speedup == pytest.approx(1.5, rel=0.05) and found.verdict == "FASTER"
    assert found.candidate.median == pytest.approx(2e-4, rel=0.05)


def test_a_note_says_which_bound_is_missing() -> None:
    def looked(low: float, high: float) -> str:
        return result._missing(Look("eager", 2.0, low, high, 0.1, "FASTER"))

    assert looked(1.9, math.inf).startswith("its upper bound") and looked(0.0, 2.1) == "its lower bound"
    assert looked(0.0, math.inf) == "an interval" and not looked(1.9, 2.1)


def test_calls_that_drown_in_the_overhead_give_no_verdict() -> None:
    machine = Machine(Random(10), spread=0.02)
    rows = {"eager": Fake("eager", machine, 5e-6, overhead=8e-5)}
    found = compare(machine, Fake("new", machine, 3e-6, overhead=8e-5), rows, 5.0, overhead_seconds=8e-5)
    assert found.verdict == "UNSURE" and "empty" in str(found.conditions["note"])


def test_doubt_about_the_overhead_widens_the_interval() -> None:
    machine = Machine(Random(11), spread=0.005, outliers=0.0)
    rows = {"eager": Fake("eager", machine, 6e-5, overhead=1e-4)}
    found = compare(machine, Fake("new", machine, 4e-5, overhead=1e-4), rows, 20.0, overhead_seconds=1e-4)
    low, high = found.interval
    assert low < 5 / 3.5 and high > 7 / 5 and found.verdict == "FASTER"


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.99, 1.01, "SAME"), (1.005, 1.015, "SAME"), (1.021, 1.03, "FASTER"), (1.015, 1.03, "UNSURE"),
     (1.5, 9.0, "FASTER"), (0.5, 0.9, "SLOWER"), (0.97, 1.03, "UNSURE"),
     (1.005, 1.05, "UNSURE"), (0.0, math.inf, "UNSURE")],
)  # fmt: skip
def test_what_an_interval_allows(low: float, high: float, verdict: str) -> None:
    assert measure.judge(low, high) == verdict


def test_a_busy_machine_raises_the_margin() -> None:
    assert looks.margin(0.08) == measure.BAND
    assert looks.margin(0.5) == pytest.approx(1.02 * math.exp(0.19))
    assert two(1.12, 3, spread=0.5, outliers=0.0).verdict == "UNSURE"
    assert two(2.0, 3, spread=0.5, outliers=0.0).verdict == "FASTER"


def test_a_neighbour_that_stays_for_a_second_does_not_decide() -> None:
    machine = Machine(Random(13), spread=0.02)

    class Disturbed(Fake):
        def go(self) -> float:
            return super().go() * (1.3 if self.machine.now < 1.5 else 1.0)

    assert compare(machine, Disturbed("new", machine, 2e-3), {"eager": Fake("eager", machine, 2e-3)}).verdict == "SAME"


def beside_a_neighbour(moves: bool, seed: int) -> str:
    """Compare a program with itself while a neighbour slows the first of two cores by 1.6x; `moves`: each goes to the core it is told."""
    machine = Machine(Random(seed), spread=0.04, outliers=0.0)

    class Placed(Fake):
        core = 0

        def prepare(self, inputs: object, place: float) -> None:
            super().prepare(inputs, place)
            self.core = int(2 * place) if moves else int(self.name == "new")

        def go(self) -> float:
            return super().go() * (1.6 if self.core == 0 else 1.0)

    return compare(machine, Placed("new", machine, 2e-3), {"eager": Placed("eager", machine, 2e-3)}).verdict


def test_a_neighbour_on_one_core_makes_no_difference() -> None:
    assert Counter(beside_a_neighbour(True, seed) for seed in range(20))["SAME"] >= 19
    assert Counter(beside_a_neighbour(False, seed) for seed in range(20))["FASTER"] == 20  # it would, if programs stayed where they are


@pytest.mark.parametrize("speedup", [4.0, 0.25, 1 / 30])
@pytest.mark.parametrize("noise", [{}, {"spread": 0.4}, {"outliers": 0.3}], ids=str)
def test_large_differences_are_seen_on_busy_machines_too(speedup: float, noise: dict[str, float]) -> None:
    assert verdicts(speedup, 10, **noise) == {"FASTER" if speedup > 1 else "SLOWER": 10}


def test_a_hopeless_baseline_does_not_stand_in_the_way() -> None:
    machine = Machine(Random(3))
    rows = {"eager": Fake("eager", machine, 10e-3), "compile": Fake("compile", machine, 50e-3)}
    found = compare(machine, Fake("new", machine, 5e-3), rows)
    assert found.verdict == "FASTER" and found.best_baseline == "eager"
    assert found.speedup == pytest.approx(2, rel=0.05)


TURNS = {"GRU": (0.25, 0.24, 0.034, 0.008), "both directions": (0.42, 0.40, 0.089, 0.035), "21x": (0.193, 0.191, 0.192, 0.009)}


@pytest.mark.parametrize("turns", TURNS.values(), ids=TURNS)
def test_slow_calls_beside_hopeless_baselines_are_decided(turns: tuple[float, float, float, float]) -> None:
    """In turns of four calls, seen on an H200: 4.2x, 2.5x and 21x were no verdict after 2 s, of which slow baselines took most."""
    machine = Machine(Random(5))
    rows = {name: Fake(name, machine, seconds) for name, seconds in zip(("eager", "compile", "cuda_graph"), turns, strict=False)}
    found = measure.compare(
        Fake("new", machine, turns[-1]), rows, lambda: None, seconds=2.0, floor_seconds=0.0, overhead_seconds=0.0, rng=Random(1),
        clock=machine.clock, kept="cuda_graph",
    )  # fmt: skip
    assert found.verdict == "FASTER", found.conditions
    assert found.interval[0] > 0.85 * min(turns[:-1]) / turns[-1]
    assert found.conditions["seconds"] < measure.UNSEEN * 2.0


def test_what_is_surely_not_worthwhile_is_timed_no_longer() -> None:
    def calls(worthwhile: float) -> int:
        machine = Machine(Random(3))
        new = Fake("new", machine, 2e-3)
        found = measure.compare(
            new, {"eager": Fake("eager", machine, 2.01e-3)}, lambda: None, worthwhile=worthwhile,
            seconds=4.0, floor_seconds=0.0, overhead_seconds=0.0, rng=Random(1), clock=machine.clock,
        )  # fmt: skip
        assert found.verdict != "FASTER"
        return len(found.candidate.samples)

    assert calls(1.08) < calls(0.0)


def inputs_of_calls(seconds: float) -> list[Any]:
    """Return what each call of a program was made on that was compared for so many seconds."""
    machine = Machine(Random(4))
    new = Fake("new", machine, 2e-3)
    seen: list[Any] = []
    prepare = new.prepare
    new.prepare = lambda inputs, place: (seen.append(inputs), prepare(inputs, place))[1]
    measure.compare(
        new, {"eager": Fake("eager", machine, 2e-3)}, lambda: "nominal", hidden_inputs=lambda: "hidden",
        seconds=seconds, floor_seconds=0.0, overhead_seconds=0.0, rng=Random(1), clock=machine.clock,
    )  # fmt: skip
    return seen


def test_hidden_cases_are_called_and_checked_between_timed_ones() -> None:
    seen = inputs_of_calls(2.0)
    assert seen.count("hidden") >= 2 and seen.count("nominal") > 5 * seen.count("hidden") / 2
    assert seen[-1] == "hidden"  # the last call of all: a program that counts its calls has had most of them by then


def test_a_run_that_is_short_of_time_has_as_many_hidden_cases_all_the_same() -> None:
    seen = inputs_of_calls(1e-3)
    assert seen.count("hidden") >= measure.FEWEST_HIDDEN and seen.count("nominal") < 50


@pytest.mark.parametrize(("share", "left_out"), [(0.25, True), (1.0, False)])
def test_passes_in_which_the_core_was_slow_are_left_out_unless_they_are_most(share: float, left_out: bool) -> None:
    """A baseline that waits for the host takes half as long again on a slow core; the candidate waits for the device."""
    machine = Machine(Random(11), spread=0.01)
    slow = Random(12)
    state = [False]

    class Host(Fake):
        def go(self) -> float:
            return super().go() * (1.5 if state[0] else 1.0)

    def fresh() -> None:
        state[0] = slow.random() < share

    new, old = Fake("new", machine, 1e-3), Host("eager", machine, 1.1e-3)
    found = measure.compare(
        new, {"eager": old}, fresh, seconds=4.0, floor_seconds=0.0, overhead_seconds=0.0, rng=Random(1), clock=machine.clock,
        interval=0.01, sound=lambda: not state[0],
    )  # fmt: skip
    dropped, kept = found.conditions["disturbed_passes"], found.conditions["pairs"]
    assert isinstance(dropped, int) and isinstance(kept, int) and 0 < dropped <= kept
    assert found.speedup == pytest.approx(1.1 if left_out else 1.65, rel=0.02)
    assert len({len(found.candidate.samples), len(found.baselines["eager"].samples)}) == 1


@pytest.mark.parametrize("until", [0.001, 1.0, 2.0])
def test_it_ends_in_time_with_the_pairs_of_a_first_look(until: float) -> None:
    machine = Machine(Random(3), spread=0.05)
    beside = {"eager": Fake("eager", machine, 2e-3)}
    found = compare(machine, Fake("new", machine, 2e-3), beside, interval=0.002, until=until)
    assert found.conditions["pairs"] == FIRST_LOOK or machine.now < until + 0.1
    assert int(str(found.conditions["pairs"])) >= FIRST_LOOK and machine.now < 3.0


def test_a_baseline_that_is_far_slower_in_every_pass_is_dropped_although_passes_differ() -> None:
    """Their slowest is above the other's quickest: what slows a pass down hits both."""
    machine = Machine(Random(13), spread=0.01)
    pace = Random(14)
    state = [1.0]

    class Host(Fake):
        def go(self) -> float:
            return super().go() * state[0]

    def fresh() -> None:
        state[0] = pace.choice((1.0, 1.8))

    rows = {"compile": Host("compile", machine, 1.2e-3), "eager": Host("eager", machine, 2.2e-3)}
    found = measure.compare(
        Fake("new", machine, 1e-3), rows, fresh, seconds=4.0, floor_seconds=0.0, overhead_seconds=0.0, rng=Random(1), clock=machine.clock,
    )  # fmt: skip
    assert len(found.baselines["eager"].samples) < 10 <= len(found.baselines["compile"].samples)


@pytest.mark.parametrize("kept", ["", "quick"])
def test_a_baseline_that_is_slowed_down_until_it_is_dropped_is_timed_to_the_end_if_it_was_the_quickest_before(kept: str) -> None:
    machine = Machine(Random(5), spread=0.01)

    class Slowed(Fake):
        def go(self) -> float:
            return super().go() * (3.0 if self.calls <= 17 else 1.0)

    beside = {"quick": Slowed("quick", machine, 1e-3), "slow": Fake("slow", machine, 2e-3)}
    found = compare(machine, Fake("new", machine, 1e-3), beside, seconds=4.0, interval=0.005, kept=kept)
    assert found.best_baseline == (kept or "slow") and found.verdict == ("FASTER" if not kept else "SAME")
