"""The way of a language model: fine-tuning lowers the loss, GRPO runs, the adapter is merged, the checkpoint loads. Random weights."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from stand_in import StandIn
from test_sft import tiny

from warpwright import domains
from warpwright.base import Action, Candidate, Record, Source
from warpwright.errors import UsageError
from warpwright.learn.policy import language
from warpwright.server.verbs import Verbs

EXAMPLE = Path(__file__).parents[2] / "examples" / "linear_sum_task.py"


@pytest.fixture(scope="module")
def records() -> list[Record]:
    """The original and three variants, as an evaluator recorded them."""
    with StandIn(domains.describe(EXAMPLE)) as evaluator:
        programs = [Candidate(Source("python", (("optimized.py", f"class ModelNew{n}: pass"),)), "cpu", (Action("step"),) * n) for n in (1, 3, 9)]
        return [*evaluator.evaluate_baselines(), *evaluator.evaluate(programs)]


def test_the_prompt_shows_two_attempts_with_their_speeds(records: list[Record]) -> None:
    [task] = language.tasks_of(records)
    made = language.examples([task], 0)
    assert len(made) == 3 and all("Attempt A" in one["prompt"] and "times as fast" in one["prompt"] for one in made)
    assert all(one["completion"].startswith("1. Analysis: Attempt A is") and "class ModelNew" in one["completion"] for one in made)
    assert not any(one["completion"].rpartition("```\nclass")[2] in one["prompt"] for one in made), "an answer is never among its own exemplars"


def test_an_answer_is_paid_what_was_recorded(records: list[Record]) -> None:
    [task] = language.tasks_of(records)
    assert task.paid("class ModelNew9: pass\n") == 20.0 and task.paid("class ModelNew2: pass") == 0.0


def test_nothing_to_learn_from_is_refused() -> None:
    with pytest.raises(UsageError, match="verified variants"):
        language.examples([], 0)


def test_answers_are_paid_by_several_evaluators_in_turn(records: list[Record], monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Stub:
        def __init__(self, where: Any) -> None:
            self.where = where
            made.append(self)

        def score(self, text: str) -> Any:
            return SimpleNamespace(score=float(len(text)) if self.where.server == "a:1" else 0.0)

    monkeypatch.setattr(language, "Judge", Stub)
    [task] = language.tasks_of(records)
    paid = language.evaluated([task], [("a:1", "secret"), ("b:2", "other")], "cuda")
    assert [paid(task.name, "four") for _ in range(4)] == [4.0, 0.0, 4.0, 0.0]
    assert [(one.where.task, one.where.server, one.where.token) for one in made] == [(str(EXAMPLE), "a:1", "secret"), (str(EXAMPLE), "b:2", "other")]


def test_evaluators_on_a_cluster_pay_and_what_is_no_program_is_not_sent(records: list[Record]) -> None:
    asked: list[dict[str, Any]] = []

    class Stub(Verbs):
        def ask(self, **fields: Any) -> dict[str, Any]:
            asked.append(fields)
            status = "ok" if "fast" in fields["candidate"]["text"] else "wrong"
            return {"status": status, "verdict": "", "feedback": "", "speedup": {"best": 3.0, "eager": 3.0}}

    [task] = language.tasks_of(records)
    paid = language.over(Stub(), [task], "cuda")
    assert [paid(task.name, text) for text in ("fast", "slow", " ")] == [3.0, 0.0, 0.0] and len(asked) == 2
    assert asked[0] | {"candidate": None} == {
        "verb": "evaluate", "task": str(EXAMPLE), "candidate": None, "device": "cuda", "baselines": ["eager"]
    }  # fmt: skip


def test_a_tiny_model_trains_merges_and_loads(records: list[Record], tmp_path: Path) -> None:
    pytest.importorskip("trl", reason="training a language model needs trl (extra learn)")
    pytest.importorskip("peft", reason="training a language model needs peft (extra learn)")
    from transformers import AutoModelForCausalLM

    asked: list[tuple[str, str]] = []

    def paid(name: str, text: str) -> float:
        asked.append((name, text))
        return 1.0

    model, tokenizer = tiny(tmp_path / "model")
    before: dict[str, Any] = {name: value.clone() for name, value in model.state_dict().items()}
    settings = language.Settings(steps=6, rate=4e-2, batch=2, rl_steps=2, group=2, answer=16, length=4096, rank=4, modules=("q_proj", "v_proj"))
    said = language.train(language.tasks_of(records), model, tokenizer, tmp_path / "out", settings, paid)
    assert said["losses"][-1] < said["losses"][0] and len(said["rewards"]) == 2 and len(asked) == 4
    after = AutoModelForCausalLM.from_pretrained(tmp_path / "out").state_dict()
    assert set(after) == set(before), "no adapter is left beside the weights"
    moved = {name for name in before if not after[name].equal(before[name])}
    assert moved and all("q_proj" in name or "v_proj" in name for name in moved)
