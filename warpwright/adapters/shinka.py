"""ShinkaEvolve's evaluation: evaluate.py --program_path P --results_dir D, which writes metrics.json and correct.json.

Each evaluation is a process of its own: start `warpwright serve` in the server's folder first, or each begins from nothing.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any

from warpwright.adapters.judge import Judge, Where, handed_in, instruction
from warpwright.adapters.openevolve import marked, suffix
from warpwright.files import make_folder


def main(where: Where, arguments: Sequence[str] | None = None) -> None:
    """Evaluate one program and write what ShinkaEvolve reads."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--program_path", required=True)
    parser.add_argument("--results_dir", required=True)
    options = parser.parse_args(arguments)
    judged = Judge(where).score(handed_in(options.program_path))
    folder = make_folder(options.results_dir)
    metrics = {
        "combined_score": judged.score, "public": {"verdict": judged.verdict}, "private": {}, "extra_data": {"answer": dict(judged.answer)},
        "text_feedback": judged.feedback,
    }  # fmt: skip
    (folder / "metrics.json").write_text(json.dumps(metrics, indent=1) + "\n")
    correct = {"correct": judged.correct, "error": "" if judged.correct else judged.feedback}
    (folder / "correct.json").write_text(json.dumps(correct, indent=1) + "\n")


EVALUATE = """# What ShinkaEvolve evaluates programs with: --program_path P --results_dir D.
from warpwright.adapters import shinka
from warpwright.adapters.judge import Where

if __name__ == "__main__":
    shinka.main({where!r})
"""

RUN = """# Evolves {initial} with ShinkaEvolve.
from shinka.core import EvolutionConfig, ShinkaEvolveRunner
from shinka.database import DatabaseConfig
from shinka.launch import LocalJobConfig

TASK = {task!r}

if __name__ == "__main__":
    evolution = EvolutionConfig(
        task_sys_msg=TASK, init_program_path={initial!r}, language={language!r}, num_generations=20, max_api_costs=5.0, use_text_feedback=True
    )
    ShinkaEvolveRunner(evo_config=evolution, job_config=LocalJobConfig(eval_program_path="evaluate.py"), db_config=DatabaseConfig()).run()
"""


def files(where: Where, described: Mapping[str, Any]) -> dict[str, str]:
    """Return the folder: the first program, its evaluation, and a run of the engine."""
    program = described["program"]
    initial = f"initial{suffix(program)}"
    return {
        initial: marked(program),
        "evaluate.py": EVALUATE.format(where=where),
        "run_evo.py": RUN.format(initial=initial, task=instruction(described), language=program["language"]),
    }
