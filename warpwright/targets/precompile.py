"""`python -m warpwright.targets.precompile`: compile baseline programs once, in a process of its own, so that torch's cache has their kernels.

It reads one JSON object: the task, the device, the programs' texts by key, and a folder in which it notes how long each took to build.
"""

from __future__ import annotations

import copy
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpwright.base import Task, from_json

if TYPE_CHECKING:
    from warpwright.tasks.reference import Reference

MEMORY_SHARE = 0.25
"""Of the device's memory, at most: the run whose baselines these are has the rest."""


def main() -> None:
    """Compile one after another. What fails here is left to whoever builds the baseline."""
    order = json.load(sys.stdin)
    import torch

    from warpwright.tasks import taskfile

    task, place = from_json(Task, order["task"]), order["place"]
    if place != "cpu":
        torch.cuda.set_per_process_memory_fraction(MEMORY_SHARE, torch.device(place))
    reference = taskfile.load(task)
    inputs = reference.make_inputs(0, place)
    for key, text in order["programs"].items():
        began = time.monotonic()
        _compile(reference, f"{task.key}_{key}", text, place, inputs)
        _note(Path(order["builds"]), key, time.monotonic() - began)


def _compile(reference: Reference, name: str, text: str, place: str, inputs: Sequence[Any]) -> None:
    """Construct the program as a worker does, and call it once."""
    import torch

    from warpwright.tasks.reference import Form, run_text

    namespace = run_text(text, f"{name}.py", name)
    with torch.no_grad():
        model = namespace.ModelNew(*copy.deepcopy(reference.init_inputs)).to(place)
        mode = Form.of(reference.task).mode
        if mode != "as_is":
            model.train(mode == "train")
        model(*inputs)
    if place != "cpu":
        torch.cuda.synchronize()


def _note(folder: Path, key: str, seconds: float) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / key).write_text(f"{seconds:.3f}")


if __name__ == "__main__":
    main()
