"""GEPA's evaluator: evaluator(candidate, example) -> (score, side_info), for `gepa.optimize_anything`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from warpwright.adapters.judge import Judge, Where, instruction
from warpwright.errors import UsageError


def evaluator(where: Where) -> Callable[..., tuple[float, dict[str, Any]]]:
    """Return the function that GEPA calls with a program's text.

    An example is a mapping with `task`, the file of another task, for searches over several; without one it is the task of `where`.
    """

    @cache
    def judge(task: str) -> Judge:
        return Judge(replace(where, task=task))

    def evaluate(candidate: str | Mapping[str, str], example: Any = None) -> tuple[float, dict[str, Any]]:
        task = str(example["task"]) if isinstance(example, Mapping) and "task" in example else where.task
        judged = judge(task).score(_text(candidate))
        return judged.score, {"verdict": judged.verdict, "feedback": judged.feedback, "scores": {"correct": float(judged.correct)}}

    return evaluate


def _text(candidate: str | Mapping[str, str]) -> Any:
    if not isinstance(candidate, Mapping):
        return candidate
    if len(candidate) != 1:
        raise UsageError(f"expected a candidate of one text, saw {', '.join(candidate)}", "optimize the program's text alone")
    return next(iter(candidate.values()))


OPTIMIZE = """# Optimizes {name} with GEPA; the model's name and key are those of GEPA's reflection model.
from gepa.optimize_anything import EngineConfig, GEPAConfig, optimize_anything

from warpwright.adapters import gepa
from warpwright.adapters.judge import Where

OBJECTIVE = "A program that is right on every input, and as fast as can be. The score is its speed-up over the best baseline."
BACKGROUND = {task!r}
SEED = {source!r}

if __name__ == "__main__":
    found = optimize_anything(
        seed_candidate=SEED, evaluator=gepa.evaluator({where!r}), objective=OBJECTIVE, background=BACKGROUND,
        config=GEPAConfig(engine=EngineConfig(max_metric_calls=100, parallel=False)),
    )
    print(found.best_candidate)
"""


def files(where: Where, described: Mapping[str, Any]) -> dict[str, str]:
    """Return one script."""
    name, source = described["task"]["name"], described["program"]["source"]
    return {"optimize.py": OPTIMIZE.format(name=name, task=instruction(described), source=source, where=where)}
