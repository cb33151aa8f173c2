"""A baseline of ours is verified by its values: on every case and in every state, in fewer calls than a candidate."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scaled_relu import TASK

from warpwright.base import Source, Verdict
from warpwright.tasks import taskfile
from warpwright.verifier import verify
from warpwright.workers.sandbox import Worker

pytest.importorskip("torch")

NEW = TASK.replace("class Model(", "class ModelNew(")
PROGRAMS = {
    "right": (NEW, ""),
    "wrong_for_large_inputs": (NEW.replace("torch.relu(x)", "torch.relu(x).clamp(max=100.0)"), "values"),
    "wrong_after_an_update": (NEW.replace("return torch.relu(x) * self.scale", """if not hasattr(self, "kept"):
            self.kept = self.scale.detach().clone()
        return torch.relu(x) * self.kept"""), "values"),  # what it keeps is of the state in which it was warmed up
}  # fmt: skip


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[verify.Judge]:
    path = Path(tmp_path_factory.mktemp("task")) / "scaled_relu.py"
    path.write_text(TASK)
    with verify.Judge(taskfile.describe(path)) as made:
        made.certify()
        yield made


def verified(judge: verify.Judge, name: str, ours: bool) -> tuple[Verdict, int]:
    """Return the verdict on a program, and how many calls of it that took."""
    calls = 0
    with Worker("baseline", "cpu") as worker:
        _, rejected = verify.build(judge, worker, name, Source("python", (("program.py", PROGRAMS[name][0]),)))
        assert rejected is None
        go = worker.go

        def counted(*args, **options):  # type: ignore[no-untyped-def]
            nonlocal calls
            calls += 1
            return go(*args, **options)

        worker.go = counted  # type: ignore[method-assign]
        return verify.verify(judge, worker, name, judge.task, ours=ours), calls


@pytest.mark.parametrize("name", PROGRAMS)
def test_values_count(judge: verify.Judge, name: str) -> None:
    verdict, _ = verified(judge, name, ours=True)
    assert (verdict.check or "") == PROGRAMS[name][1], verdict.reason
    assert verdict.ok == (name == "right")


def test_it_takes_half_the_calls_or_fewer(judge: verify.Judge) -> None:
    assert 2 * verified(judge, "right", ours=True)[1] <= verified(judge, "right", ours=False)[1]
