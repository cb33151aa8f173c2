"""Every cheat of the corpus is rejected by the check that its header names, and every honest candidate passes: in real workers.

Programs are sorted by task, cheats and honest ones together (`conftest.py`), so that one judge serves all of a task's programs. Cheats marked
"timing" are honest while they are verified and are caught by the checks of timed calls; they go through the whole evaluator. Cheats marked "cuda"
need a GPU; programs marked "slow" repeat what others show on another task. Of the cheats that share a row of the table and the check that rejects
them, one runs in the fast part, as does a third of the honest programs; the others, and what is known to be accepted, run with `make test-slow`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import corpus
import pytest

from warpwright.base import Candidate, Verdict
from warpwright.space import Measuring
from warpwright.targets.local import LocalEvaluator
from warpwright.verifier import verify
from warpwright.workers import fork_server
from warpwright.workers.limits import Limits

torch = pytest.importorskip("torch")

HAS_CUDA = torch.cuda.is_available()
HAS_COMPILER = shutil.which("c++") is not None
LIMITS = Limits(build_seconds=120, call_seconds=20, memory_bytes=3 << 30, processes=192)
ON_CUDA = replace(LIMITS, memory_bytes=24 << 30, processes=256)  # CUDA's libraries count as the candidate's memory

SECONDS = 60.0
"""Of timing at most; a quiet machine decides sooner. Cheats that count calls change after 40, of which verification makes about 20: 20 s did not
hold the rest with fifteen busy processes on two cores."""

REPRESENTATIVES = 1
"""Cheats of one row and one check in the fast part."""

KNOWN_GAPS = {
    "slows_the_others": "its thread is stopped while others are timed, so that it gains nothing (1.02x); it is seen on a quiet machine only",
}
"""Cheats that the verifier does not reject yet, and why. They are run all the same."""


class Judges:
    """The judge of the latest task and device: programs come sorted by task."""

    def __init__(self) -> None:
        self.key: tuple[str, str] | None = None
        self.judge: verify.Judge | None = None

    def get(self, task: str, device: str) -> verify.Judge:
        """Return the judge of a task, started anew if it has died."""
        if self.judge is None or self.key != (task, device) or not self.judge.worker.alive:
            self.close()
            self.key, self.judge = (task, device), verify.Judge(corpus.task(task), device)
        return self.judge

    def close(self) -> None:
        """End it."""
        if self.judge is not None:
            self.judge.close()
        self.judge = None


@pytest.fixture(scope="module")
def judges() -> Iterator[Judges]:
    kept = Judges()
    yield kept
    kept.close()


def parameters(folder: str, timing: bool = False) -> list[object]:
    """Return the programs of a folder with the marks of what they need, on each device that they are for."""
    chosen = [program for program in corpus.programs(folder) if ("timing" in program.needs) == timing]
    return [
        pytest.param(program, device, id=program.name if device == "cpu" else f"{program.name}-cuda", marks=marks(program, device))
        for program in chosen
        for device in (("cuda:0",) if "cuda" in program.needs else ("cpu",))
    ]


def repeated() -> frozenset[str]:
    """Return the names of the cheats whose class (row, check) the fast part shows by others, of tasks that have many: a judge takes seconds."""
    seen: Counter[tuple[str, str]] = Counter()
    names = set()
    ordinary = [program for program in corpus.programs("cheats") if not program.needs & {"timing", "slow", "cuda"}]
    of_task = Counter(program.task for program in ordinary)
    for program in sorted(ordinary, key=lambda program: (-of_task[program.task], hashlib.sha256(program.name.encode()).digest())):
        seen[group := (program.row, (program.checks or (program.status,))[0])] += 1
        if seen[group] > REPRESENTATIVES:
            names.add(program.name)
    return frozenset(names)


REPEATED = repeated()


HONEST_SHARE = 3
LATER = {one.name for one in corpus.programs("honest") if hashlib.sha256(one.name.encode()).digest()[0] % HONEST_SHARE}
"""Honest programs that run with `make test-slow`, all but one in HONEST_SHARE, by their names' digests."""


def marks(program: corpus.Program, device: str) -> list[pytest.MarkDecorator]:
    """Return a program's marks."""
    found = []
    if program.name in KNOWN_GAPS:
        found += [pytest.mark.xfail(reason=KNOWN_GAPS[program.name], strict=False)]
    if device != "cpu":
        found += [pytest.mark.cuda, pytest.mark.skipif(not HAS_CUDA, reason="needs an NVIDIA GPU; its analogue for the CPU runs")]
    if "slow" in program.needs or program.name in REPEATED or program.name in LATER or program.name in KNOWN_GAPS:
        found += [pytest.mark.slow]
    if "compiler" in program.needs:
        found += [pytest.mark.compiler, pytest.mark.skipif(not HAS_COMPILER, reason="needs a C++ compiler")]
    return found


def audited(judges: Judges, program: corpus.Program, device: str) -> Verdict:
    """Build and verify a program in a worker of its own."""
    task = corpus.task(program.task)
    return verify.audit(task, program.source, device, LIMITS if device == "cpu" else ON_CUDA, judges.get(program.task, device))[1]


def assert_rejected(program: corpus.Program, verdict: Verdict) -> None:
    """The verdict is the one that the program's header expects, and says so in words."""
    assert not verdict.ok, f"accepted: {program.doc}"
    if program.status == "unscored":
        assert verdict.status == "unscored", verdict
    else:
        assert verdict.check in program.checks, verdict
        assert verdict.status == verify.CHECKS[verdict.check].status
    assert_understandable(verdict.reason)


def assert_understandable(reason: str) -> None:
    """A reason is some words long, says what was seen, and does not begin with our own traceback."""
    assert 20 <= len(reason) < 4000, reason
    assert len(reason.split()) >= 5, reason
    assert not re.match(r"(Traceback|\.\.\.\n)", reason), reason


@pytest.mark.parametrize(("program", "device"), parameters("cheats"))
def test_cheat_is_rejected(judges: Judges, program: corpus.Program, device: str) -> None:
    assert_rejected(program, audited(judges, program, device))


@pytest.mark.parametrize(("program", "device"), parameters("honest"))
def test_honest_candidate_passes(judges: Judges, program: corpus.Program, device: str) -> None:
    verdict = audited(judges, program, device)
    if not verdict.ok:
        judges.close()  # where the test is run again, it is on other draws
    assert verdict.ok, verdict
    assert verdict.status == "ok"
    assert verdict.case, "a pass names the case that came nearest to its tolerance"


@pytest.fixture(scope="module")
def evaluators() -> Iterator[dict[str, LocalEvaluator]]:
    """Evaluators by task. Their processes' threads sleep while they wait: how programs with threads that spin are timed, test_evaluator.py says."""
    made: dict[str, LocalEvaluator] = {}
    with pytest.MonkeyPatch.context() as patch:
        if os.environ.get("OMP_WAIT_POLICY") != "passive":  # as it is in a run of several processes
            patch.setenv("OMP_WAIT_POLICY", "passive")
            patch.setattr(fork_server, "_server", None)  # one is started with these settings
        yield made
        for evaluator in made.values():
            evaluator.close()


@pytest.mark.parametrize(("program", "device"), parameters("cheats", timing=True))
def test_cheat_is_caught_while_it_is_timed(evaluators: dict[str, LocalEvaluator], program: corpus.Program, device: str) -> None:
    if program.task not in evaluators:
        evaluators[program.task] = LocalEvaluator(corpus.task(program.task), device, Measuring(("eager",), SECONDS), LIMITS)
    [record] = evaluators[program.task].evaluate([Candidate(program.source, device)])
    assert record.verdict is not None
    assert record.status == record.verdict.status
    assert record.measurement is None
    assert_rejected(program, record.verdict)
