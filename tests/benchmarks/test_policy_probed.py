"""Searches beside one another in a task's whole space: what counts as an evaluation, and what is said of them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

from toy_space import GAIN, STEPS, program

from benchmarks.policy.live import probed, probed_table
from benchmarks.policy.recording.choice import body
from warpwright.search import SEARCHES
from warpwright.space import Space


@dataclass
class Stub(probed.Bench):
    """A bench whose programs take what the toy space says."""

    asked: list[Any] = field(default_factory=list)

    def measured(self, recipe: Any) -> tuple[str, str, float]:
        self.asked.append(recipe)
        seconds = self.eager
        for action in recipe:
            seconds /= GAIN[action.technique]
        text = body(self.space.candidate(recipe).source.text)
        return text, "ok" if "compile" not in text else "error 3 of the original's", seconds


def bench() -> Stub:
    space = Space(frozenset(), STEPS, lambda ir, actions: program(ir, actions))
    empty: Any = SimpleNamespace()
    return Stub(space, empty, empty, [], empty, empty, 1.0, True)


def test_a_program_made_twice_by_one_search_is_one_evaluation() -> None:
    one = bench()
    found = list(probed.followed(one, "t", SEARCHES["random"](one.space, Random(0), 1), 12, time.monotonic() + 60))
    texts = [body(one.space.candidate(recipe).source.text) for recipe, _, _ in found]
    assert len(found) == 12 == len(set(texts)) and len(one.asked) > 13 and one.asked[0] == ()
    assert all(speedup == 0 if told != "ok" else speedup > 0 for _, told, speedup in found) and any(told != "ok" for _, told, _ in found)
    assert not list(probed.followed(one, "t", SEARCHES["random"](one.space, Random(0), 1), 12, time.monotonic() - 1))


def evaluations(search: str, speedups: list[float], seed: int = 0, of: int = 16, stopped: str = "nothing new") -> list[dict[str, Any]]:
    shown = {"task": "t", "search": search, "seed": seed, "of": of}
    made = ({"row": "evaluation", **shown, "told": "ok" if one else "error", "speedup": one, "recipe": "a"} for one in speedups)
    return [*made, {"row": "run", **shown, "stopped": stopped}]


def test_shares_are_of_the_best_found_and_a_run_that_ended_early_keeps_what_it_had() -> None:
    lines = [
        {"row": "task", "task": "t", "eager us": 100.0}, {"row": "again", "task": "t", "again us": 104.0},
        *evaluations("policy", [4.0, 3.0]), *evaluations("random", [0.0, 2.0]), *evaluations("random", [4.0], 1),
        *evaluations("random", [8.0], 2, stopped="time"),
        *evaluations("evolve", [2.0] * 16, stopped="evaluations"), *evaluations("evolve", [2.0, 5.0], 3, 256, "time"),
    ]  # fmt: skip
    rows = list(probed_table.tables(lines))
    [task] = [row for row in rows if row.get("table") == "probed-tasks"]
    assert (
        task["best"] == "5.00x"
        and task["policy, best of 16"] == "0.80"
        and task["evolve's longer run"] == "1.00"
        and task["evaluations of that"] == 2
    )
    assert task["programs"] == 6  # five speed-ups, and what failed
    gains = {row["evaluations"]: row for row in rows if row.get("table") == "probed-gains"}
    assert (
        gains[1]["over random"].startswith("2.000 ")
        and gains[16]["over random"].startswith("1.414 ")
        and gains[16]["over evolve"].startswith("2.000 ")
    )
    [shares] = [row for row in probed_table.tables(lines, "x", ["random"]) if row.get("table") == "x-shares"]
    assert shares["search"] == "random" and shares["best of 16"].startswith("0.566 ")
    moved = [{**line, "again us": 150.0} if line["row"] == "again" else line for line in lines]
    assert [row["left out"] for row in probed_table.tables(moved)] == [{"t": "moved"}]


def test_what_a_longer_run_had_earlier_is_a_share_of_its_end() -> None:
    runs = [line | {"task": task} for task, last in (("t", 4.0), ("u", 8.0)) for line in evaluations("evolve", [2.0] * 16 + [last], 3, 256, "time")]
    exhausted = [line | {"task": "v"} for line in evaluations("evolve", [1.0] * 40, 3, 256)]
    [row] = probed_table.longer([*runs, *exhausted], ["t", "u", "v"], "probed")
    assert (row["evaluations"], row["runs"], row["least"]) == (16, 2, 0.25) and row["share of its end"].startswith("0.354 ")


def test_a_task_without_a_score_is_left_out_and_a_longer_run_may_be_missing() -> None:
    def lines_of(task: str, longer: bool) -> list[dict[str, Any]]:
        runs = [*evaluations("policy", [4.0, 3.0]), *evaluations("random", [2.0]), *(evaluations("evolve", [2.0, 8.0], 0, 256) if longer else [])]
        return [line | {"task": task} for line in ({"row": "task", "eager us": 1.0}, {"row": "again", "again us": 1.0}, *runs)]

    unscored = "level2_36_ConvTranspose2d_Min_Sum_GELU_Add"
    lines = [*lines_of("t", True), *lines_of("u", False), *lines_of("w", True), *lines_of(unscored, True)]
    lines.append({"row": "failure", "task": "w", "reason": "no score: the original differs from itself"})
    rows = list(probed_table.tables(lines, "x", ["policy", "random"]))
    assert rows[-1]["tasks"] == 2 and set(rows[-1]["left out"]) == {unscored, "w"} <= set(rows[-1]["left out"])
    [last] = [row for row in rows if row.get("table") == "x-gains" and row["evaluations"] == 16]
    assert last["over evolve's longer run (1 tasks)"].startswith("0.500 ") and last["over random"].startswith("2.000 ")
    both = [row for row in probed_table.tables(lines_of("t", True), "x", ["policy", "evolve"]) if row.get("table") == "x-tasks"]
    assert both[0]["evolve, best of 16"] == "1.00"  # the beginning of the longer run, which came to the end of the space


def test_what_the_verifier_said_of_the_bests() -> None:
    runs = evaluations("policy", [2.0, 4.0]) + evaluations("random", [1.0])
    for number, line in enumerate(line for line in runs if line["row"] == "evaluation"):
        line["recipe"] = f"r{number}"
    said = [{"row": "verdict", "task": "t", "recipe": "r0", "refused": "stale\nby a call"},
        {"row": "verdict", "task": "t", "recipe": "r1", "refused": ""}]
    rows = list(probed_table.verdicts([*runs, *said], ["t"], "x"))
    by = {(row["search"], row["best after"]): row for row in rows if row.get("table") == "x-verdicts"}
    assert (by["policy", 1]["refused"], by["policy", 16]["passed"], ("random", 1) in by) == (1, 1, False)
    assert [row["reason"] for row in rows if row.get("table") == "x-refused"] == ["stale by a call"] and rows[-1]["asked"] == 2
