"""OpenEvolve's evaluator: evaluate(program_path) -> metrics and artifacts (openevolve-run initial_program.py evaluator.py --config config.yaml)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from warpwright.adapters.judge import Judge, Where, handed_in, instruction
from warpwright.errors import MissingExtra


def evaluator(where: Where) -> Callable[[str], Any]:
    """Return the function that OpenEvolve calls. `combined_score` is the speed-up over the best baseline, 0 for what did not pass."""

    @cache
    def judge() -> Judge:
        return Judge(where)

    def evaluate(program_path: str) -> Any:
        try:
            from openevolve.evaluation_result import EvaluationResult
        except ImportError as error:
            raise MissingExtra("openevolve", "evolution", "an evaluator of OpenEvolve") from error
        judged = judge().score(handed_in(program_path))
        metrics = {"combined_score": judged.score, "correct": float(judged.correct), "faster": float(judged.verdict == "FASTER")}
        return EvaluationResult(metrics=metrics, artifacts={"verdict": judged.verdict, "feedback": judged.feedback})

    return evaluate


EVALUATOR = """# What OpenEvolve evaluates programs with.
from warpwright.adapters import openevolve
from warpwright.adapters.judge import Where

evaluate = openevolve.evaluator({where!r})
"""

CONFIG = """# openevolve-run {initial} evaluator.py --config config.yaml
llm:  # any endpoint of OpenAI's form; its key is taken from OPENAI_API_KEY
  api_base: "{api_base}"
  models:
    - name: "{model}"  # put the name of yours here, or start openevolve-run with --primary-model NAME
      weight: 1.0
max_iterations: 50
language: {language}
file_suffix: "{suffix}"
diff_based_evolution: false
max_code_length: 100000
prompt:
  system_message: |
{message}
evaluator:
  timeout: 600
  cascade_evaluation: false
  parallel_evaluations: 1
"""

API_BASE, MODEL = "https://api.openai.com/v1", "MODEL"
"""What stands in the config until its owner has named another endpoint and a model."""

MARKS = {"python": ("# EVOLVE-BLOCK-START", "# EVOLVE-BLOCK-END"), "cuda": ("// EVOLVE-BLOCK-START", "// EVOLVE-BLOCK-END")}


def marked(program: Mapping[str, Any]) -> str:
    """Return a task's program between the marks of what may be evolved: all of it."""
    first, last = MARKS[program["language"]]
    return f"{first}\n{program['source'].strip()}\n{last}\n"


def suffix(program: Mapping[str, Any]) -> str:
    """Return the ending of a program's file."""
    return {"python": ".py", "cuda": ".cu"}[program["language"]]


def files(where: Where, described: Mapping[str, Any]) -> dict[str, str]:
    """Return the folder that `openevolve-run` takes."""
    program = described["program"]
    initial = f"initial_program{suffix(program)}"
    message = "\n".join(f"    {line}" for line in instruction(described).splitlines())
    return {
        initial: marked(program),
        "evaluator.py": EVALUATOR.format(where=where),
        "config.yaml": CONFIG.format(
            initial=initial, language=program["language"], suffix=suffix(program), message=message, api_base=API_BASE, model=MODEL
        ),
    }
