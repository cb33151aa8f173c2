"""TRL's environment (`GRPOTrainer(environment_factory=...)`): reset gives the task, a tool judges programs, an episode's best one is its reward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from warpwright.adapters.judge import Judge, Where, instruction
from warpwright.search.llm.answers import program_of


class KernelEnvironment:
    """One episode after another. `where` is set by `environment`: TRL makes its environments without arguments."""

    where: Where

    def __init__(self) -> None:
        self._judges: dict[str, Judge] = {}
        self._task = self.where.task
        self._best, self._tried = 0.0, 0

    def reset(self, **row: Any) -> str:
        """Begin an episode; a data set's row may name another task's file in its column `task`. Returns the task in words."""
        self._task = str(row.get("task") or self.where.task)
        self._best, self._tried = 0.0, 0
        return instruction(self._judge().describe())

    def evaluate(self, program: str) -> str:
        """Verify a program against the reference and time it; returns what became of it.

        Args:
            program: The whole text of the program.
        """
        judged = self._judge().score(program)
        self._tried += 1
        self._best = max(self._best, judged.score)
        return judged.feedback

    def get_reward(self) -> float:
        """Return the episode's reward: the best speed-up over the best baseline, 0 where no program passed."""
        return self._best

    def _judge(self) -> Judge:
        if self._task not in self._judges:
            self._judges[self._task] = Judge(replace(self.where, task=self._task))
        return self._judges[self._task]


def environment(where: Where) -> type[KernelEnvironment]:
    """Return the class of environments of a task."""
    return type("KernelEnvironment", (KernelEnvironment,), {"where": where})


def reward_func(environments: Sequence[KernelEnvironment], **others: Any) -> list[float]:
    """Return the reward of each environment's episode, for trainers that take the reward as a function."""
    return [one.get_reward() for one in environments]


class CompletionReward:
    """A reward of finished answers, for training in one turn without tools: reward(completions=..., task=...)."""

    __name__ = "speedup"

    def __init__(self, where: Where) -> None:
        self.where = where
        self._judges: dict[str, tuple[Judge, tuple[str, ...]]] = {}

    def __call__(self, completions: Sequence[Any], task: Sequence[str] | None = None, **others: Any) -> list[float]:
        """Return the score of the program in each answer."""
        tasks = task or [self.where.task] * len(completions)
        return [self._score(completion, one) for completion, one in zip(completions, tasks, strict=True)]

    def _score(self, completion: Any, task: str) -> float:
        text = said(completion)
        if task not in self._judges:
            judge = Judge(replace(self.where, task=task))
            self._judges[task] = judge, marks(judge.describe())
        judge, wanted = self._judges[task]
        return judge.score(program_of(text, wanted)).score


def said(completion: Any) -> str:
    """Return the last words of an answer: a text, or messages, whose content may be parts, or nothing beside a tool's call."""
    if isinstance(completion, str):
        return completion
    for message in reversed(completion if isinstance(completion, list | tuple) else ()):
        content = message.get("content") if isinstance(message, Mapping) and message.get("role", "assistant") == "assistant" else None
        parts = content if isinstance(content, list | tuple) else [content]
        text = "".join(one if isinstance(one, str) else str(one.get("text", "")) for one in parts if isinstance(one, str | Mapping))
        if text:
            return text
    return ""


def marks(described: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a program of a task has in it for certain."""
    return ("__global__",) if described["program"]["language"] == "cuda" else ("class ModelNew",)


TRAIN = """# Trains a model on {name} with TRL: `python train.py MODEL`.
import sys

from warpwright.adapters import trl
from warpwright.adapters.judge import Where

WHERE = {where!r}
Environment = trl.environment(WHERE)

if __name__ == "__main__":
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    rows = Dataset.from_list([{{"prompt": [{{"role": "user", "content": "Make the program faster."}}], "task": WHERE.task}}] * 64)
    settings = GRPOConfig(output_dir="trained", max_completion_length=4096)
    GRPOTrainer(model=sys.argv[1], args=settings, train_dataset=rows, environment_factory=Environment).train()
"""


def files(where: Where, described: Mapping[str, Any]) -> dict[str, str]:
    """Return one script."""
    return {"train.py": TRAIN.format(name=described["task"]["name"], where=where)}
