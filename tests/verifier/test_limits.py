"""What docs/trust.md says remains possible: a wrong program for a row, accepted as the row says, and right on the inputs that its task makes."""

from __future__ import annotations

from pathlib import Path

import corpus
import pytest

from warpwright.tasks import taskfile
from warpwright.verifier import verify
from warpwright.workers.limits import Limits

torch = pytest.importorskip("torch")

PAGE = Path(__file__).parents[2] / "docs/trust.md"
LIMITS = Limits(build_seconds=120, call_seconds=20, memory_bytes=3 << 30, processes=192)
PROGRAMS = corpus.programs("limits")


def test_each_program_stands_for_a_row_of_the_table() -> None:
    table = PAGE.read_text().partition("| way | what it can gain at most |")[2]
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.count("|") == 3]
    assert len(PROGRAMS) >= 8
    assert {program.limit for program in PROGRAMS} <= set(rows)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_what_it_gains_is_no_wrong_answer_on_the_inputs_of_its_task(program: corpus.Program) -> None:
    reference = taskfile.load(corpus.task(program.task))
    namespace: dict[str, object] = {}
    exec(program.source.files[0][1], namespace)  # our own file
    ours = namespace["ModelNew"](*reference.init_inputs)  # type: ignore[operator]
    original = reference.make_judged_model(3, "cpu")
    ours.load_state_dict(original.state_dict())
    with torch.no_grad():
        for seed in range(3):
            wanted, seen = (model(*reference.make_inputs(seed, "cpu")) for model in (original, ours))
            torch.testing.assert_close(seen, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_it_is_still_accepted(program: corpus.Program) -> None:
    """Where this fails, the verifier has become better than docs/trust.md says."""
    assert verify.audit(corpus.task(program.task), program.source, "cpu", LIMITS)[1].ok
