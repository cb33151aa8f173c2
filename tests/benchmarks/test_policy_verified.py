"""Searches whose best has to pass the verifier: they are told what is refused, and the best of 16 is the best that passes."""

from __future__ import annotations

import queue
import time
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from toy_space import GAIN, STEPS, program

from benchmarks.policy.live import longer, probed, verified
from benchmarks.policy.live.probed_table import tables, times
from benchmarks.policy.live.sharing import Memory, Waves
from benchmarks.policy.live.verdicts import NoScore, Steps, Verdicts
from benchmarks.policy.recording.choice import body
from warpwright.search import SEARCHES
from warpwright.space import Space


class Refusing:
    """A verifier that refuses what has `tile`."""

    def __init__(self, technique: str = "tile") -> None:
        self.technique, self.known, self.closed, self.steps = technique, dict[str, str](), False, Steps()

    def refused(self, name: str, candidate: Any) -> str:
        if self.technique == "everything":
            raise NoScore("a constant passes")
        self.known.setdefault(name, "stale_state" if any(one.technique == self.technique for one in candidate.actions) else "")
        return self.known[name]

    def close(self) -> None:
        self.closed = True


class Toy(verified.Bench):
    """A bench whose programs take what the toy space says."""

    def measured(self, recipe: Any) -> tuple[str, str, float]:
        seconds = self.eager
        for action in recipe:
            seconds /= GAIN[action.technique]
        return self.name(recipe), "ok", seconds


def task(verdicts: Any) -> verified.Task:
    space = Space(frozenset(), STEPS, lambda ir, actions: program(ir, actions))
    empty: Any = SimpleNamespace()
    bench = Toy(space, empty, empty, [], empty, empty, 1.0, True)
    made = verified.Task(Path("t.py"), bench, {name: SEARCHES[name] for name in ("random", "greedy")}, verdicts=verdicts)
    for name in made.chosen:
        made.runs.append(verified.Run(name, 16))
        made.follow(made.runs[-1], time.monotonic() + 60)
    return made


def rows(lines: Any) -> list[dict[str, Any]]:
    return [lines.get() for _ in range(lines.qsize())]


def test_a_search_is_told_what_is_refused_until_its_best_passes() -> None:
    lines, end = queue.Queue[Any](), time.monotonic() + 60
    refused = next(action.technique for action in task(Refusing()).runs[0].best()[0])  # type: ignore[index]
    verdicts = Refusing(refused)
    one = task(verdicts)
    recipes = [str(action) for action in one.bench.space.actions(frozenset())]
    longer = one.found([name for name in recipes if refused in name][:1] + [name for name in recipes if refused not in name][:1], end)
    one.runs.append(longer)
    before = {run.search: [made[0] for made in run.made] for run in one.runs}
    assert one.settle(lines, end)
    for run in one.runs:
        best = run.best()
        assert best is None or not verdicts.known[best[1]]
        assert all(told.startswith("refused") == (one.bench.refused.get(text, "") != "") for _, text, told, _ in run.made)
    random = one.runs[0]
    assert random.followed > 1 and [made[0] for made in random.made] == before["random"]  # it does not look at what it is told
    told = rows(lines)
    assert {line["refused"] for line in told if line["row"] == "verdict"} == {"", "stale_state"}
    assert [line["stopped"] for line in told if line["row"] == "run"][-1] == "evaluations"
    assert all(line["speedup"] == 0 for line in told if line["row"] == "evaluation" and line["told"].startswith("refused"))
    assert len([line for line in told if line["row"] == "verdict"]) == len(verdicts.known)  # each program once
    one.close()
    assert verdicts.closed


def test_without_time_or_a_passing_program_nothing_is_claimed() -> None:
    lines = queue.Queue[Any]()
    one = task(Refusing())
    assert not one.settle(lines, time.monotonic() - 1)
    assert {line["stopped"] for line in rows(lines) if line["row"] == "run"} == {"time"}
    name = next(str(action) for action in one.bench.space.actions(frozenset()))
    one = task(Refusing(name.partition("(")[0]))
    one.runs = [one.found([name], time.monotonic() + 60)]
    assert one.settle(lines, time.monotonic() + 60)
    told = rows(lines)
    assert [line["stopped"] for line in told if line["row"] == "run"] == ["none passed"] and not any(line["row"] == "evaluation" for line in told)
    with pytest.raises(NoScore):
        task(Refusing("everything")).settle(lines, time.monotonic() + 60)


def test_of_an_earlier_run_the_fastest_are_looked_at_few_of_the_same_techniques() -> None:
    recipes = [*(f"fuse(at, n={n})" for n in range(5)), "fuse(at, n=9); graph()", "graph()"]
    shown = {"row": "evaluation", "task": "t", "told": "ok", "of": 256}
    lines = [{**shown, "recipe": recipe, "speedup": 10 - number} for number, recipe in enumerate(recipes)]
    lines += [{**shown, "recipe": "tile()", "speedup": 99, "of": probed.EVALUATIONS}, {**shown, "recipe": "tile()", "speedup": 0, "told": "error"}]
    assert longer.fastest(lines) == {"t": [*recipes[: longer.ALIKE], *recipes[-2:]]}
    found = sorted([Path("b.py"), Path("t.py"), Path("a.py")], key=lambda file: verified.order({"t": 1}, file))
    assert found[0].stem == "t"


def test_a_longer_run_may_be_made_beside_the_searches_and_its_best_has_to_pass_too() -> None:
    verdicts, lines, end = Refusing("collapse"), queue.Queue[Any](), time.monotonic() + 60
    one = task(verdicts)
    one.chosen["evolve"] = SEARCHES["evolve"]
    one.runs.append(verified.Run("evolve", 16))
    one.follow(one.runs[-1], end)
    one.runs.append(one.longer_run(end))
    assert one.runs[-1].stopped == "nothing new" and len(one.runs[-1].made) > 16
    made = [recipe for recipe, *_ in one.runs[-1].made]
    assert one.settle(lines, end)
    assert [recipe for recipe, *_ in one.runs[-1].made] == made and one.runs[-1].followed == 1  # told what is refused, not followed once more
    best = one.runs[-1].best()
    assert best and verdicts.known[best[1]] == "" and all(action.technique != "collapse" for action in best[0])
    told = [{"row": "task", "task": "t", "eager us": 1.0}, {"row": "again", "task": "t", "again us": 1.0}, *rows(lines)]
    [row] = [row for row in tables(told, "v") if row.get("table") == "v-tasks"]
    assert row["evaluations of that"] == len(made) and row["evolve's longer run"] == "1.00"
    assert one.longer_run(time.monotonic() - 1).stopped == "its time"


def test_a_policy_is_not_asked_again_what_it_has_answered() -> None:
    asked: list[Any] = []

    class Counting(verified.Policy):
        def write(self, prompts: Any, *given: Any) -> Any:
            asked.append(prompts)
            return [str(Random(str(prompts)).random())]

    class Remembering(verified.Remembering, Counting):
        pass

    policy = Remembering(None, None)
    first = policy.write(["p"], [None], [{(): 1.0}], 7)
    assert policy.write(["p"], [None], [{(): 1.0}], 7) == first and len(asked) == 1
    policy.write(["p"], [None], [{(): 1.0, ("a",): 0.0}], 7)
    policy.write(["p"], [None], [{(): 1.0}], 8)
    assert len(asked) == 3


def test_texts_are_told_apart_without_their_comments() -> None:
    bench = task(Refusing()).bench
    recipe = (next(iter(bench.space.actions(frozenset()))),)
    assert bench.name(recipe) == body(bench.space.candidate(recipe).source.text)


def test_memory_is_reserved_first_come_first_served_and_given_back(tmp_path: Path) -> None:
    free = [100.0]
    memory, soon = Memory(tmp_path, 100.0, lambda: free[0]), time.monotonic() + 0.05
    with memory.reserved(500.0, soon) as there:  # alone it may have all
        assert there and memory.held() == [500.0]
        with memory.reserved(1.0, soon) as beside:
            assert not beside
    assert memory.held() == []
    with memory.reserved(60.0, soon), memory.reserved(30.0, soon) as there:
        assert there and sorted(memory.held()) == [30.0, 60.0]
    free[0] = 20.0  # somebody took more than was reserved
    with memory.reserved(10.0, soon), memory.reserved(30.0, soon) as there:
        assert not there
    (tmp_path / "memory" / "1.held").write_text("90")  # whose process is gone
    assert memory.held() == []


def test_two_kinds_of_work_do_not_mix_until_patience_ends(tmp_path: Path) -> None:
    patient, waves = Waves(tmp_path, patience=600.0), Waves(tmp_path, patience=0.3)
    with patient.at("probing"), patient.at("probing"):  # at once: it would wait ten minutes
        began = time.monotonic()
        with waves.at("verifying"):
            assert time.monotonic() - began >= 0.3
    with patient.at("verifying"):
        pass


def test_a_verdict_tells_what_its_steps_took() -> None:
    steps = Steps()
    for name in ("building", "verifying", "building"):
        steps.tell(name)
        time.sleep(0.06)
    told = steps.told()
    assert told["building"] >= 0.1 and told["verifying"] >= 0.05 and set(told) == {"building", "verifying"}
    steps.clear()
    assert steps.told() == {}


def test_times_of_verdicts_are_told_by_task() -> None:
    shown = {"searched s": 20.0, "waited s": 1.0, "verified s": 9.0}
    said = [{"row": "verdict", "task": "t", "recipe": f"a(n={s})", "refused": "wrong" if s == 2 else "", "s": s} for s in (9, 2, 3, 4)]
    [row, other] = times([*said, {"row": "done", "task": "t", **shown}, {"row": "cut", "task": "u", **shown}])
    assert (row["done"], row["verdicts"], row["refused"], row["first s"], row["later, median s"]) == (True, 4, 1, 9, 3)
    assert (other["done"], other["verdicts"], other["first s"], other["later, median s"]) == (False, 0, "", "")


def test_a_want_of_memory_is_no_refusal_wherever_a_reason_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    said = iter(["wrong, state_names: " + 300 * "x" + " CUDA out of memory", "wrong, values: " + 300 * "y"])
    verdicts = Verdicts.__new__(Verdicts)
    verdicts.known, verdicts.steps = {}, Steps()
    monkeypatch.setattr(verdicts, "_asked", lambda candidate: next(said))
    monkeypatch.setattr("benchmarks.policy.live.verdicts.AGAIN_SECONDS", 0.0)
    assert verdicts.refused("p", None).startswith("wrong, values") and len(verdicts.known["p"]) == 200
