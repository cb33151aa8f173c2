"""Rows of made-up tasks in which a step pays that the program's words announce: what the tests of training run on. Nothing in them was measured."""

from __future__ import annotations

from pathlib import Path

from warpwright.learn.policy import rows
from warpwright.learn.policy.rows import Row

GAINS = {"sum": {"tree": 8.0, "tile": 0.5, "unroll": 1.1}, "product": {"tree": 0.5, "tile": 8.0, "unroll": 1.2}}


def drawn(count: int = 10) -> list[Row]:
    """Return the rows of `count` tasks."""
    found = []
    for number in range(count):
        kind = ("sum", "product")[number % 2]
        program = ("input", f"e{10 + number}", "@kernel", kind, f"e{number}")
        for name, gain in GAINS[kind].items():
            for each, factor in ((2, 1.0), (4, 1.3)):
                for more, extra in (((), 1.0), (("fast_math()",), 1.1)):
                    recipe = ("restrict(kernel)", f"{name}(kernel, each={each})", *more)
                    found.append(Row(f"{kind}_{number}", f"key{number}", "made up", program, 0.1, recipe, "ok", gain * factor * extra))
        found.append(Row(f"{kind}_{number}", f"key{number}", "made up", program, 0.1, ("restrict(kernel)", "broken(kernel)"), "wrong", 0.0))
    return found


CONFIG = """
seeds = [0]
threads = 1
[data]
rows = ["rows.jsonl"]
[model]
width = 32
layers = 1
context = 128
[supervised]
epochs = 1
[self_supervised]
samples = 2
[contrastive]
steps = 8
groups = 2
group = 4
checkpoint = 2
[comparing]
evaluations = [1, 2]
runs = 4
"""


def write_config(folder: Path, text: str = CONFIG, count: int = 10) -> Path:
    """Write rows of `count` tasks and a config that trains on them in seconds; return the config's file."""
    rows.write(folder / "rows.jsonl", drawn(count))
    path = folder / "small.toml"
    path.write_text(text)
    return path
