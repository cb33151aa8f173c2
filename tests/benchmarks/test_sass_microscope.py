"""The microscope counts what it says, and a variant undoes one kind of change alone."""

from __future__ import annotations

from sass_cubins import checker, kernel

from benchmarks.sass.microscope import REASONS, counted, kinds, looked_at, variants
from benchmarks.sass.moves import hot
from warpwright.domains.sass.code import control
from warpwright.domains.sass.editing import edits


def test_issue_and_switches_are_sums_over_the_loop() -> None:
    original = kernel("stencil_90").original
    words = [original.words[index] for index in hot(original.kernel)]
    seen = counted(original)
    assert seen["issue"] == sum(map(control.stall, words)) and seen["switches"] == sum(not control.held(word) for word in words)
    assert kinds(seen, seen, {}) == [] and kinds(seen, seen, {"barrier": 2, "hints": ""}) == ["barrier"]


def test_a_load_moved_up_hides_more_and_yields_alone_change_switches_alone() -> None:
    rules, original = checker("stencil_90"), kernel("stencil_90").original
    before = counted(original)
    loads = [index for index in hot(original.kernel) if original.kernel.instructions[index].base == "LDG"]
    moved = next(found for index in reversed(loads) if (found := edits.move(rules, original, index, -4)) is not None)
    after = counted(moved)
    assert after["hidden"] > before["hidden"] and "hidden +" in kinds(before, after, {})
    block = edits.block_of(original, loads[0])
    yielding = edits.holds(moved, block, lambda _: False)
    assert yielding is not None
    for name, one in variants(yielding, rules):
        changed = {count for count, value in counted(one).items() if value != before[count]}
        if name == "yields alone":
            assert one.order == original.order and "switches" in changed and "hidden" not in changed
        if name == "order, waits and stalls alone":
            assert one.order == yielding.order and "switches" not in changed
    assert set(kinds(before, counted(yielding), {})) <= set(REASONS)


def test_hints_and_shuffles_are_told() -> None:
    original = kernel("rmsnorm_90").original
    changed = edits.hinted(original, range(len(original.words)), "STG", "first", -1)
    assert changed is not None
    row, found = looked_at(changed, 1.02)
    stores = sum(one.base == "STG" for one in original.kernel.instructions)
    assert row["hints"] == f"{stores} STG first" and found == ["hints"] and row["words with other registers"] == 0
    moved = edits.move(checker("rmsnorm_90"), original, next(one.index for one in original.kernel.instructions if one.base == "SHFL") - 1, 64)
    assert moved is None or "hints" not in looked_at(moved, 1.0)[1]
