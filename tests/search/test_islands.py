"""Evolution on islands with a scripted model: features, contrast, tuning, migration, limits across islands, dead endpoints, and a run in pieces."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from test_fsr import Gates, fenced, space, text
from toy_space import TASK

from warpwright.archive import Archive
from warpwright.base import Budget, Candidate, Record, Source
from warpwright.errors import ChatError, UsageError
from warpwright.llm.chat import Message
from warpwright.loop import Course, Outcome, optimize
from warpwright.search.llm import fsr
from warpwright.search.llm.conversation import Tried
from warpwright.search.llm.fsr import Fsr
from warpwright.search.llm.islands import FEATURES, Island, Islands, Options, _migrate
from warpwright.search.llm.tuning import tunable, with_value


@dataclass
class Model:
    """Answers a question by its own words: a program that is a little faster than the one it was shown, or what `instead` says for its number."""

    instead: dict[int, str | Exception] = field(default_factory=dict)
    gain: float = 1.3
    name: str = "scripted"
    asked: list[str] = field(default_factory=list)

    def ask(self, messages: Sequence[Message]) -> str:
        question = messages[-1]["content"]
        self.asked.append(question)
        answer = self.instead.get(len(self.asked))
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            return answer
        shown = re.search(r"speed=([\d.]+)", question)
        speed = float(shown[1]) if shown else 1.0
        return fenced(f"speed={speed * self.gain:.3f} by answer {len(self.asked)}")


def run(chat: Any, options: str, log: Path | None = None, archive: Archive | None = None, seed: int = 0) -> tuple[Outcome, Islands]:
    search = Islands(chat, Options.parse(options), log)
    return optimize(TASK, space(), Gates(), search, Budget(None), archive, Course(seed=seed)), search


def test_each_question_brings_a_feature_in_and_programs_become_faster() -> None:
    chat = Model()
    outcome, search = run(chat, "islands=2,rounds=5,candidates=1,tunes=0")
    assert len(chat.asked) == 10 and not search.stopped
    assert outcome.best is not None and outcome.best.speedup > 2.5
    named = [[name for name, advice in FEATURES.items() if advice in question] for question in chat.asked]
    assert all(len(names) == 1 for names in named) and len({names[0] for names in named}) == 10, "what was never tried comes first"
    assert "given" in chat.asked[0] and "given" in chat.asked[1], "each island begins with the source as given"
    assert any("The second:" in question and "differences" in question for question in chat.asked), "exemplars of other score buckets"
    assert any("What changed since the program that it was made from" in question for question in chat.asked)


def test_a_feature_that_gains_is_asked_for_again() -> None:
    class Partial(Model):
        def ask(self, messages: Sequence[Message]) -> str:
            question = messages[-1]["content"]
            self.asked.append(question)
            shown = re.search(r"speed=([\d.]+)", question)
            gain = 1.5 if FEATURES["shared memory"] in question else 1.001
            return fenced(f"speed={(float(shown[1]) if shown else 1.0) * gain:.4f} by answer {len(self.asked)}")

    chat = Partial()
    run(chat, "islands=1,rounds=40,candidates=1,tunes=0,repair=0")
    share = sum(FEATURES["shared memory"] in question for question in chat.asked[10:]) / len(chat.asked[10:])
    assert share > 0.3, f"{share:.2f} of the later questions, a tenth would be chance"


def tuned_text(tile: int, note: str = "") -> str:
    return f"#define TILE {tile}  // tune: 8 16 32\n" + text(f"speed={ {8: 1.5, 16: 2.0, 32: 3.5}[tile]} {note}")


class Tunes(Gates):
    """A program's speed is that of its tile."""

    def record(self, candidate: Candidate) -> Record:
        code = candidate.source.text
        tile = re.search(r"TILE (\d+)", code)
        if tile is not None:
            code = re.sub(r"speed=[\d.]+", f"speed={ {8: 1.5, 16: 2.0, 32: 3.5}[int(tile[1])]}", code)
        made = super().record(Candidate(Source("python", (("optimized.py", code),)), "cpu"))
        return Record(TASK, candidate, self.device, made.status, made.verdict, made.measurement, versions=self.versions)


@pytest.mark.parametrize(
    ("search", "options"), [(Islands, Options.parse("islands=1,rounds=1,candidates=1")), (Fsr, fsr.Options(candidates=1, depth=1))]
)
def test_a_programs_own_constants_are_tuned_without_a_question(search: Any, options: Any) -> None:
    chat = Model({1: f"```cuda\n{tuned_text(16)}```"})
    outcome = optimize(TASK, space(), Tunes(), search(chat, options), Budget(None))
    assert len(chat.asked) == 1 and outcome.proposals == 3 and "// tune: VALUE" in chat.asked[0]
    assert outcome.best is not None and outcome.best.speedup == 3.5 and "TILE 32" in outcome.best.candidate.source.text
    untuned = Model({1: f"```cuda\n{tuned_text(16)}```"})
    assert optimize(TASK, space(), Tunes(), search(untuned, replace(options, tunes=0)), Budget(None)).proposals == 1


def test_the_next_level_begins_with_the_tuned_program() -> None:
    chat = Model({1: f"```cuda\n{tuned_text(16)}```"})
    optimize(TASK, space(), Tunes(), Fsr(chat, fsr.Options(candidates=1, depth=2)), Budget(None))
    assert "TILE 32" in chat.asked[1] and "3.50 times" in chat.asked[1] and "TILE tuned: passed" in chat.asked[1]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("#define TILE 16  // tune: 8 16 32", {"TILE": (16, (8, 16, 32))}),
        ("constexpr int T = 4;  // tune: 2, 4, 8", {"T": (4, (2, 4, 8))}),
        ("static const unsigned W = 1; // tune: 1 2", {"W": (1, (1, 2))}),
        ("#define TILE 16  // the tile", {}),
        ("#define F(x) x  // tune: 1 2", {}),
        ("int n = 4; // tune: 1 2", {}),
    ],
)
def test_constants_that_may_be_tuned(line: str, found: dict[str, Any]) -> None:
    assert tunable(f"// x\n{line}\nvoid k();\n") == found
    for name, (value, values) in found.items():
        changed = with_value(f"a\n{line}\nb", name, values[0])
        assert tunable(changed)[name] == (values[0], values) and with_value(changed, name, value) == f"a\n{line}\nb"


def one(speed: float, name: str) -> Tried:
    candidate = space().candidate((space().writing.action(text(f"speed={speed} {name}")),))  # type: ignore[union-attr]
    return Tried(text(f"speed={speed} {name}"), Gates().record(candidate), name)


def test_champions_migrate_to_the_next_island_all_at_once() -> None:
    islands = [Island(name) for name in ("a", "b", "c")]
    for island, speed in zip(islands, (4.0, 2.0, 1.0), strict=True):
        island.take("registers", one(speed, island.name))
    _migrate(islands)
    assert [[f"{kept.speedup:g}" for _, kept in island.programs] for island in islands] == [["4", "1"], ["4", "2"], ["2", "1"]]


def test_an_island_keeps_different_features_and_buckets() -> None:
    island = Island("a")
    for number, (feature, speed) in enumerate([("x", 2.0), ("x", 2.01), ("y", 2.0), ("x", 1.0), ("z", 9.0), ("x", 0.0)]):
        failed = Tried("t", Record(TASK, Candidate(Source("python", (("a", ""),)), "cpu"), "cpu", "wrong"), "")
        island.take(feature, one(speed, f"n{number}") if speed else failed)
    assert [(feature, kept.speedup) for feature, kept in island.programs] == [("z", 9.0), ("x", 2.01), ("y", 2.0), ("x", 1.0)]
    parent = island.programs[0][1]
    other = island.contrast(parent, Random(0))
    assert other is not None and other.speedup < 9.0


def test_one_cap_of_dollars_holds_for_all_islands(tmp_path: Path) -> None:
    chat = Model()
    _, search = run(chat, "islands=4,rounds=50,candidates=2,dollars=0.06,price_answered=5", tmp_path / "log.jsonl")
    assert "dollars" in search.stopped and search.meter is not None and search.meter.dollars <= 0.06
    spent = search.meter.dollars
    again = Model()
    _, search = run(again, "islands=4,rounds=50,candidates=2,dollars=0.06,price_answered=5", tmp_path / "log.jsonl")
    assert search.meter is not None and "dollars" in search.stopped
    assert not again.asked and search.meter.dollars == pytest.approx(spent), "a run in pieces keeps the cap, too"


def test_a_dead_model_ends_all_islands_and_the_best_stays() -> None:
    chat = Model({number: ChatError("gone") for number in range(4, 200)})
    outcome, search = run(chat, "islands=3,rounds=50,candidates=1,tunes=0")
    assert len(chat.asked) <= 7 and "in a row" in search.stopped + "in a row" and search.stopped
    assert outcome.best is not None and outcome.best.speedup == pytest.approx(1.3, rel=0.01)


def test_one_that_did_not_pass_is_repaired_once() -> None:
    chat = Model({1: fenced("broken x"), 2: fenced("wrong y"), 3: fenced("speed=2.0 z")})
    outcome, _ = run(chat, "islands=1,rounds=1,candidates=2,repair=1")
    assert len(chat.asked) == 3 and "functional validation" in chat.asked[2] and "element 17" in chat.asked[2]
    assert outcome.best is not None and outcome.best.speedup == 2.0


def test_a_run_that_was_cut_short_goes_on_where_it_stood(tmp_path: Path) -> None:
    log = tmp_path / "run.chat.jsonl"
    options = "islands=2,rounds=4,candidates=2,migration=2,tunes=0"
    whole = Model()
    with Archive(tmp_path / "whole.db") as archive:
        first, _ = run(whole, options, None, archive)
    with Archive(tmp_path / "cut.db") as archive:
        cut = Model({number: ChatError("gone") for number in range(8, 30)})
        run(cut, options, log, archive)
        again = Model()
        again.asked = ["" for _ in range(7)]  # its answers are numbered from there on
        second, search = run(again, options, log, archive)
    assert not search.stopped and again.asked[7:] == whole.asked[7:], "the questions of the whole run, those answered left out"
    assert first.best is not None and second.best is not None and second.best.candidate.key == first.best.candidate.key
    answered = [row for row in map(json.loads, log.read_text().splitlines()) if "answer" in row]
    assert len(answered) == len(whole.asked)


def test_options_are_told_what_is_known() -> None:
    assert Options.parse("islands=2, dollars=0.5") == Options(islands=2, dollars=0.5)
    for wrong in ("island=3", "rounds=x", "dollars=inf", "dollars=nan"):
        with pytest.raises(UsageError, match="islands=3"):
            Options.parse(wrong)


