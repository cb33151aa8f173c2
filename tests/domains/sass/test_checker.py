"""The model of hazards: silent on compilers' schedules, and on none of the faults that are planted into them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from sass_cubins import LISTED, NOT_LEARNT, checker, kernel

from warpwright.domains.sass.code import control, isa
from warpwright.domains.sass.code.disassembly import UR, Line
from warpwright.domains.sass.code.instruction import Instruction, read
from warpwright.domains.sass.code.kernel import Schedule
from warpwright.domains.sass.model import hazards
from warpwright.domains.sass.model.checker import Checker, complaints, dependences, independent
from warpwright.domains.sass.model.distances import Distances, learnt, shipped
from warpwright.domains.sass.model.hazards import State, Violation, Watch


@pytest.mark.parametrize("name", LISTED)
def test_compilers_schedules_are_legal(name: str) -> None:
    assert not checker(name).accepted, "the model finds fault with the compiler"
    assert not complaints(kernel(name).original, checker(name))


@pytest.mark.parametrize("name", [name for name in LISTED if name not in NOT_LEARNT])
def test_the_shipped_distances_hold_without_the_kernels_own(name: str) -> None:
    distances = shipped(kernel(name).cubin.arch)
    found: list[Violation] = []
    original = kernel(name).original
    for entry, block in zip(hazards.entries(original), kernel(name).blocks, strict=True):
        if entry is not None:
            hazards.run(entry.copy(), hazards.items(original, block), Watch(report=found.append, needed=distances.needed))
    assert not found


def planted(schedule: Schedule, place: int, word: int) -> bool:
    """Does the model see it when one word is another?"""
    return bool(complaints(schedule.with_words({place: word}), checker_of_schedule(schedule)))


def checker_of_schedule(schedule: Schedule):
    return next(checker(name) for name in LISTED if kernel(name) is schedule.kernel)


@pytest.mark.parametrize("name", ["rmsnorm_80", "stencil_90", "softmax_90", "layernorm_120", "copied_90", "turned_90"])
def test_a_missing_wait_is_seen(name: str) -> None:
    """A few waits order what neither registers nor operations in flight show, or are redundant."""
    original = kernel(name).original
    waits = [(place, board) for place, word in enumerate(original.words) for board in range(6) if control.waits(word) >> board & 1]
    seen = {pair: planted(original, pair[0], original.words[pair[0]] & ~(1 << 116 + pair[1])) for pair in waits}
    assert sum(seen.values()) >= 0.9 * len(waits), [original.at(place).text for (place, _), found in seen.items() if not found]


@pytest.mark.parametrize("name", ["rmsnorm_90", "stencil_86", "layernorm_120"])
def test_a_board_that_is_never_set_is_seen(name: str) -> None:
    original = kernel(name).original
    loads = [place for place, word in enumerate(original.words) if control.write_board(word) < 6 and original.at(place).base == "LDG"]
    assert loads
    for place in loads:
        assert planted(original, place, control.with_write_board(original.words[place], control.NO_BOARD)), original.at(place).text


def test_a_wait_one_cycle_after_its_board_is_seen() -> None:
    original = kernel("softmax_90").original
    setters = [
        place for place, word in enumerate(original.words[:-1])
        if control.write_board(word) < 6 and control.waits(original.words[place + 1]) >> control.write_board(word) & 1
    ]  # fmt: skip
    assert setters, "expected a wait right after its load"
    for place in setters:
        assert control.stall(original.words[place]) >= 2
        assert planted(original, place, control.with_stall(original.words[place], 1))


@pytest.mark.parametrize("name", ["softmax_90", "copied_90", "drained_90"])
def test_a_wait_that_is_planted_one_cycle_after_its_board_is_seen(name: str) -> None:
    """Also where a DEPBAR drains a board a cycle after LDGDEPBAR has set it: that is no wait of a control word."""
    original, tried = kernel(name).original, 0
    for place, bits in enumerate(original.words[:-1]):
        boards = [board for board in (control.write_board(bits), control.read_board(bits)) if board < control.BOARDS]
        if boards and original.at(place + 1).kind != "fence" and original.kernel.block_of[place] == original.kernel.block_of[place + 1]:
            words = {place: control.with_stall(bits, 1), place + 1: original.words[place + 1] | 1 << 116 + boards[0]}
            assert f"DISTANCE at {place + 1}" in str(complaints(original.with_words(words), checker(name))), original.at(place).text
            tried += 1
    assert tried >= 5


def test_an_address_stays_until_the_board_of_its_store_can_be_waited_for() -> None:
    """A store's address overwritten a cycle after the store made an H200 report a misaligned address (hgemm, 2026-11-28)."""
    original, rules = kernel("drained_90").original, checker("drained_90")
    store = next(place for place, word in enumerate(original.words) if original.at(place).base == "STS" and control.read_board(word) < control.BOARDS)
    board = control.read_board(original.words[store])
    over = next(place for place in range(store + 1, len(original.words)) if control.waits(original.words[place]) >> board & 1)
    close = original.moved(over, store + 1)
    assert f"DISTANCE at {over}" in str(complaints(close, rules))
    assert not complaints(close.with_words({store: control.with_stall(close.words[store], 2)}), rules)


def line(text: str, defs: tuple[int, ...] = (), uses: tuple[int, ...] = ()) -> Line:
    return Line(text, 0, frozenset(defs), frozenset(uses))


def word(stall: int = 1, write: int = 7, read: int = 7, wait: int = 0) -> int:
    return control.encode(0, control.Control(stall, True, write, read, wait, 0))


def violations(program: list[tuple[Line, int]], distances: Distances | None = None) -> list[tuple[str, int]]:
    """Run a straight program by hand."""
    found: list[Violation] = []
    instructions: list[tuple[Instruction, int]] = [(read(index, text), bits) for index, (text, bits) in enumerate(program)]
    hazards.run(State(), instructions, Watch(report=found.append, needed=distances.needed if distances else None))
    return [(violation.rule, violation.index) for violation in found]


LOAD, USE = line("LDG.E R4, [R2.64]", (4,), (2, 3)), line("FADD R5, R4, R4", (5,), (4,))


def test_a_load_is_waited_for() -> None:
    assert violations([(LOAD, word(2, write=0)), (USE, word())]) == [("RAW", 1)]
    assert violations([(LOAD, word(2, write=0)), (USE, word(wait=1))]) == []
    assert violations([(LOAD, word(2, write=0)), (USE, word(wait=2))]) == [("RAW", 1)]


def test_a_later_load_from_shared_memory_says_nothing_of_one_from_global_memory() -> None:
    shared = line("LDS R8, [R9]", (8,), (9,))
    assert violations([(LOAD, word(2, write=0)), (shared, word(2, write=1)), (USE, word(wait=2))]) == [("RAW", 2)]


def test_results_of_one_kind_come_back_in_order() -> None:
    first, second = line("LDS R4, [R2]", (4,), (2,)), line("LDS R8, [R9]", (8,), (9,))
    assert violations([(first, word(2)), (second, word(2, write=1)), (USE, word(wait=2))]) == []
    assert violations([(first, word(2)), (USE, word(wait=2))]) == [("RAW", 1)]


def test_the_sources_of_a_load_stay_until_they_are_read() -> None:
    over = line("IADD3 R2, R2, 0x4, RZ", (2,), (2,))
    assert violations([(LOAD, word(2, write=0)), (over, word())]) == [("WAR", 1)]
    assert violations([(LOAD, word(2, write=0, read=3)), (over, word(wait=8))]) == []


def test_what_later_operations_say_of_the_sources_of_earlier_ones() -> None:
    """The pairs that ptxas relies on (isa.READ_BEFORE), and two that it does not."""
    first = {
        "F2I": line("F2I.S32 R6, R4", (6,), (4,)),
        "I2F": line("I2F.U8 R6, R4", (6,), (4,)),
        "STL": line("STL [R1], R4", (), (1, 4)),
        "LDG": line("LDG.E R6, [R4.64]", (6,), (4, 5)),
    }
    later = {
        "F2I": line("F2I.S32 R7, R8", (7,), (8,)),
        "I2F": line("I2F.U8 R7, R8", (7,), (8,)),
        "STS": line("STS [R9], R8", (), (8, 9)),
        "MEMBAR": line("MEMBAR.ALL.CTA"),
        "LDS": line("LDS R7, [R9]", (7,), (9,)),
    }
    over = line("FADD R4, R10, R11", (4,), (10, 11))
    covered = [("F2I", "F2I"), ("I2F", "I2F"), ("STL", "STS"), ("LDG", "MEMBAR")]
    for earlier, after in [*covered, ("LDG", "LDS"), ("F2I", "LDS")]:
        board = {"write": 1} if after == "LDS" else {"read": 1}
        program = [(first[earlier], word(4)), (later[after], word(4, **board)), (over, word(wait=2))]
        assert violations(program) == ([] if (earlier, after) in covered else [("WAR", 2)]), (earlier, after)
        assert violations([*program[:2], (over, word())]) == [("WAR", 2)], "not before its board is waited for"


def test_memory_comes_some_cycles_after_a_barrier() -> None:
    barrier, shared, product = line("BAR.SYNC.DEFER_BLOCKING 0x0"), line("LDS R8, [R9]", (8,), (9,)), line("FADD R5, R5, R6", (5,), (5, 6))
    known = shipped(90)
    assert violations([(barrier, word(5)), (shared, word(2, write=0))], known) == [("DISTANCE", 1)]
    assert violations([(barrier, word(6)), (shared, word(2, write=0))], known) == []
    assert violations([(barrier, word(1)), (product, word(5)), (shared, word(2, write=0))], known) == []
    assert violations([(barrier, word(1)), (product, word(1))], known) == []


def test_an_operation_close_behind_another_of_its_pipe_sets_its_board_late() -> None:
    first, second = line("LDS R8, [R9]", (8,), (9,)), line("LDG.E R4, [R2.64]", (4,), (2, 3))
    root, idle, reader = line("MUFU.RSQ R6, R7", (6,), (7,)), line("@!PT LDS RZ, [RZ]"), line("FADD R5, R4, R7", (5,), (4, 7))
    known, waits = shipped(90), word(1, wait=2)
    assert violations([(first, word(1, write=0)), (second, word(2, write=1)), (reader, waits)], known) == [("DISTANCE", 2)]  # taken 3 cycles later
    assert violations([(first, word(1, write=0)), (second, word(5, write=1)), (reader, waits)], known) == []
    assert violations([(first, word(4, write=0)), (second, word(2, write=1)), (reader, waits)], known) == []
    assert violations([(root, word(1, write=0)), (second, word(2, write=1)), (reader, waits)], known) == []  # another pipe
    assert violations([(idle, word(1)), (second, word(2, write=1)), (reader, waits)], known) == []  # never executed


def test_a_special_register_does_not_wait_for_what_a_copy_reads() -> None:
    copy = line("LDGSTS.E.BYPASS.128 [R9], desc[UR10][R8.64]", (), (8, 9))
    special = line("S2R R8, SR_CTAID.X", (8,))
    assert violations([(copy, word(2, read=1)), (special, word(2, write=0))]) == [("WAR", 1)]
    assert violations([(copy, word(2, read=1)), (special, word(2, write=0, wait=2))]) == []
    over = line("LDS R9, [R2]", (9,), (2,))
    store = line("STS [R9], R3", (), (9, 3))
    assert violations([(store, word(4)), (over, word(2, write=0))]) == []  # shared memory reads its sources in order


@pytest.mark.parametrize("name", ["stencil_90", "softmax_90"])
def test_a_barrier_that_is_left_a_cycle_early_is_seen(name: str) -> None:
    """On an H200 each of these gave other bits."""
    original = kernel(name).original
    barriers = [place for place in range(len(original.words)) if original.at(place).base == "BAR" and control.stall(original.words[place]) == 6]
    assert barriers
    assert all(planted(original, place, control.with_stall(original.words[place], 5)) for place in barriers)


def test_distances_tell_operand_slots_apart() -> None:
    key = ("RAW", "FMA", "FMA.a", "R")
    distances = Distances({key: 4, ("RAW", "FMA", "FMA.c", "R"): 3})
    multiply = line("FFMA R4, R1, R1, R1", (4,), (1,))
    factor, addend = line("FFMA R5, R4, R1, R1", (5,), (4, 1)), line("FFMA R5, R1, R1, R4", (5,), (4, 1))
    assert violations([(multiply, word(3)), (factor, word())], distances) == [("DISTANCE", 1)]
    assert violations([(multiply, word(3)), (addend, word())], distances) == []
    unseen = line("MUFU.RCP R5, R4", (5,), (4,))
    assert violations([(multiply, word(5)), (unseen, word(write=0))], distances) == [("DISTANCE", 1)]  # unseen pairs need six cycles
    assert violations([(multiply, word(6)), (unseen, word(write=0))], distances) == []


def test_the_low_half_of_a_wide_addend_is_needed_sooner_than_the_high_one() -> None:
    wide = line("IMAD.WIDE R10, R5, 0x14, -R50", (10, 11), (5, 50, 51))
    low, high = line("MOV R50, 0x10", (50,)), line("MOV R51, 0x0", (51,))
    distances = shipped(90)
    assert violations([(high, word(3)), (wide, word())], distances) == []
    assert violations([(low, word(3)), (wide, word())], distances) == [("DISTANCE", 1)]  # an H200 went astray
    assert violations([(low, word(5)), (wide, word())], distances) == []


def test_the_high_half_of_a_product_is_as_late_alone_as_beside_the_low_one() -> None:
    """Three cycles, which the low half needs, were in each of nineteen schedules that an H200 found wrong; compilers leave four and more."""
    high, wide = line("IMAD.HI.U32 R49, R8, R9, RZ", (49,), (8, 9)), line("IMAD.WIDE R48, R8, R9, RZ", (48, 49), (8, 9))
    of_high, of_low = line("SHF.R.U32.HI R12, RZ, 0x1f, R49", (12,), (49,)), line("IADD3 R12, R48, 0x1, RZ", (12,), (48,))
    for producer, consumer, needed in ((high, of_high, 5), (wide, of_high, 5), (wide, of_low, 3)):
        assert violations([(producer, word(needed - 1)), (consumer, word())], shipped(90)) == [("DISTANCE", 1)]
        assert violations([(producer, word(needed)), (consumer, word())], shipped(90)) == []


def test_uniform_arithmetic_reads_its_sources_late() -> None:
    """One cycle, which four schedules had, made an H200 report an illegal instruction; compilers leave three."""
    shift, over = line("ULEA UR8, UR6, UR8, 0x18", (UR + 8,), (UR + 6, UR + 8)), line("ULDC UR6, c[0x0][0x228]", (UR + 6,))
    assert violations([(shift, word(1)), (over, word())], shipped(90)) == [("DISTANCE", 1)]
    assert violations([(shift, word(3)), (over, word())], shipped(90)) == []


def test_an_address_is_not_known_to_be_read_when_a_later_load_of_another_kind_is_done() -> None:
    far, near, over = line("LDG.E R4, [R2.64]", (4,), (2, 3)), line("LDS R8, [R9]", (8,), (9,)), line("MOV R2, R1", (2,), (1,))
    assert violations([(far, word(4, write=0)), (near, word(2, write=1)), (over, word(wait=2))]) == [("WAR", 2)]
    again = line("LDG.E R8, [R12.64]", (8,), (12, 13))
    assert violations([(far, word(4, write=0)), (again, word(2, write=1)), (over, word(wait=2))]) == []


def test_a_read_only_load_may_be_in_flight_at_a_barrier_and_pass_it() -> None:
    here = checker("stencil_90")
    constant = next(instruction for instruction in kernel("stencil_90").instructions if instruction.private and instruction.base == "LDG")
    barrier, shared = (next(one for one in kernel("stencil_90").instructions if one.base == base) for base in ("BAR", "LDS"))
    assert independent(barrier, replace(constant, uses=frozenset(), defs=frozenset()))
    assert not independent(barrier, replace(shared, uses=frozenset(), defs=frozenset()))
    found: list[Violation] = []
    for load, refused in ((constant, 0), (shared, 1)):
        state = State()
        hazards.issue(state, load, word(4, write=0))
        found.clear()
        hazards.examine(state, barrier, word(), here.judge.watch(found, set()))
        assert len([one for one in found if one.rule == "FLIGHT"]) == refused, load.text


def test_the_sources_of_a_matrix_product_are_read_late() -> None:
    """Compilers leave at least seven cycles before they overwrite them."""
    product, over = line("HMMA.16816.F32 R24, R4, R8, R24", (24, 25), (4, 5, 8, 24, 25)), line("FADD R4, R1, R1", (4,), (1,))
    distances = shipped(90)
    assert distances.least["WAR", "<HMMA", "FMA", "R"] == 7
    assert violations([(product, word(6)), (over, word())], distances) == [("DISTANCE", 1)]
    assert violations([(product, word(7)), (over, word())], distances) == []


def test_a_warp_groups_product_owns_its_registers_until_it_is_waited_for() -> None:
    product = line("HGMMA.64x64x16.F32 R24, gdesc[UR4], R24, gsb0", (24, 25), (24, 25, 260))
    use, wait = line("FADD R5, R24, R24", (5,), (24,)), line("WARPGROUP.DEPBAR.LE gsb0, 0x0")
    assert violations([(product, word()), (use, word())]) == [("GMMA", 1)]
    assert violations([(product, word()), (wait, word()), (use, word())]) == []


def test_an_operation_that_outlives_a_barrier_is_seen() -> None:
    """Rule 7: a wait that moves behind a barrier no longer protects what other threads write after it."""
    original = kernel("stencil_90").original
    seen = 0
    for place, bits in enumerate(original.words):
        if original.at(place).base == "BAR" and control.waits(bits):
            seen += planted(original, place, bits & ~(63 << 116))
    fences = sum(original.at(place).base == "BAR" and control.waits(bits) > 0 for place, bits in enumerate(original.words))
    assert seen == fences


def test_learning_takes_the_least_distance_and_survives_json() -> None:
    found = learnt([kernel("rmsnorm_90"), kernel("softmax_90")])
    assert Distances.from_json(found.to_json()) == found
    assert found.least["RAW", "FMA", "FMA.a", "R"] == 4 and all(cycles >= 1 for cycles in found.least.values())
    assert all(cycles >= 2 for key, cycles in found.least.items() if key[0] == "SET")


def test_dependences_forbid_what_the_checker_refuses() -> None:
    here = kernel("softmax_90")
    pairs = set(dependences(here, 0))
    rng = Random(0)
    for _ in range(200):
        place = rng.randrange(len(here.blocks[0]) - 1)
        if checker("softmax_90").exchangeable(here.original, place):
            assert (place, place + 1) not in pairs


def test_complaints_name_what_is_wrong() -> None:
    here, rules = kernel("rmsnorm_90"), checker("rmsnorm_90")
    words = list(here.words)
    words[5] ^= 1  # another operand
    assert any("does something else" in text for text in complaints(Schedule(here, here.original.order, tuple(words)), rules))
    dependent = next(i for i in range(len(here.words) - 1) if here.instructions[i].defs & here.instructions[i + 1].uses)
    assert any("passed" in text for text in complaints(here.original.exchanged(dependent), rules))
    assert {"BRA", "EXIT"} <= isa.ENDS


def test_a_false_alarm_is_one_register_at_one_place_and_nothing_about_it_moves() -> None:
    """What the model finds in a compiler's schedule is passed over there; the same rule broken by another operation, or sooner, is not."""
    rules = Checker(kernel("rmsnorm_90"), shipped(90))
    alarm = Violation("WAR", 74, 25, (False, "MUFU", 60), 0)
    too_close = Violation("DISTANCE", 80, 4, None, 0, ("RAW", "ALU", "ALU.a", "R"), 3, 4)
    rules.__dict__["false_alarms"] = [alarm, too_close]
    assert rules.judge.known(alarm) and rules.judge.known(too_close)
    assert not rules.judge.known(replace(alarm, fact=(False, "MUFU", 61))) and not rules.judge.known(replace(alarm, register=26))
    assert not rules.judge.known(replace(too_close, cycles=2)) and rules.judge.known(replace(too_close, cycles=4))
    assert not any(rules.movable(index) for index in (74, 60, 80)) and rules.movable(75)


@pytest.mark.parametrize("name", ["stencil_86", "layernorm_120"])
def test_what_a_changed_block_leaves_others_lacking_is_found_without_the_whole_kernel(name: str) -> None:
    rules, original, planted = checker(name), kernel(name).original, 0
    for number, block in enumerate(kernel(name).blocks):
        words = list(original.words)
        words[block[-1]] = control.with_stall(words[block[-1]], 1)  # what the block itself needs stands before that
        schedule = original.with_all(words)
        if not rules.reachable(number) or schedule.words == original.words:
            continue
        every = {(violation.rule, violation.index) for violation in rules.all_violations(schedule)}
        found = {(violation.rule, violation.index) for violation in rules.lacking(schedule, number)}
        assert every <= found and bool(every) == bool(found) == (rules.accept(schedule, number) is None)
        planted += bool(every)
    assert planted
    assert not rules.lacking(original, 0)
