"""Whatever a candidate does to its process, the verifier says what happened and goes on; nothing is left behind, nothing recorded is lost."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import corpus
import pytest
from survivors import GPU_SURVIVORS, SLOW_SURVIVORS, SURVIVORS, Survivor

from warpwright.archive import Archive
from warpwright.base import STATUSES, Candidate, Source, Task
from warpwright.space import Measuring
from warpwright.targets.local import LocalEvaluator
from warpwright.verifier import verify
from warpwright.workers.limits import Limits
from warpwright.workers.procfs import stat_fields

pytest.importorskip("torch")

LIMITS = Limits(build_seconds=10, call_seconds=20, memory_bytes=2 << 30, processes=96, log_bytes=1 << 16, file_bytes=64 << 20, disk_bytes=256 << 20)
SHORT = replace(LIMITS, build_seconds=2, call_seconds=1)
WAITS = {
    "hang_import", "hang_constructor", "hang_call", "hang_warm_up", "hang_holding_interpreter", "ignore_sigterm", "stop_itself", "kill_guard",
    "fork_bomb",
}  # fmt: skip
"""Those that do nothing until their time is up (once no process can be forked, a bomb sleeps): it is shorter for them."""

SMALL = replace(LIMITS, memory_bytes=1 << 30)
HUNGRY = {"memory_hog", "shared_mapping"}
"""Those that take memory until they are refused: there is less of it for them."""

REPEATS = {
    "exit_zero_import": "exit_zero", "segfault_import": "segfault", "hang_constructor": "hang_import", "hang_warm_up": "hang_call",
    "daemon_in_call": "daemon", "three_thousand_threads": "thread_bomb", "endless_text": "error_of_megabytes", "null_bytes": "syntax_error",
    "system_exit_import": "system_exit_call",
}  # fmt: skip
"""Those that do at another moment, or in another way, what one in the fast part does."""


def limits_of(name: str) -> Limits:
    """Return the limits that a hostile program gets."""
    return SHORT if name in WAITS else SMALL if name in HUNGRY else LIMITS


SLOWER = ("fork_bomb_import", "loud")
"""Of those that are run without the filter too, what takes long."""

RELU = corpus.task("relu")
HONEST, COMPILED = (corpus.read(corpus.HERE / "honest" / f"{name}.py").source for name in ("value_memo", "cpp_kernel"))
GONE_WITHIN = 5.0
AS_ROOT = os.getuid() == 0


@pytest.fixture(scope="module")
def judge() -> Iterator[verify.Judge]:
    with verify.Judge(RELU) as made:
        made.certify()
        yield made


def source_of(name: str, mark: str) -> Source:
    """Return a hostile program whose processes call themselves `mark`."""
    return text_of(SURVIVORS[name], mark)


def text_of(survivor: Survivor, mark: str) -> Source:
    """Return its program."""
    return Source("python", (("candidate.py", survivor.text(mark)),))


def marked(mark: str) -> list[int]:
    """Return the processes (and threads) of that name, zombies left out."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if path.joinpath("comm").read_text().strip() == mark and stat_fields(str(path))[0] not in "ZX":
                found.append(int(path.name))
        except OSError:
            continue
    return found


def assert_gone(mark: str) -> None:
    """No process of that name is left, at the latest after a few seconds."""
    deadline = time.monotonic() + GONE_WITHIN
    while marked(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert marked(mark) == []


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.slow] * (one in REPEATS)) for one in SURVIVORS])
def test_verdict_says_what_happened_and_nothing_is_left(judge: verify.Judge, name: str) -> None:
    survivor, mark = SURVIVORS[name], f"ww{os.getpid() % 10000}{abs(hash(name)) % 100000}"
    began = time.monotonic()
    build, verdict = verify.audit(RELU, source_of(name, mark), "cpu", limits_of(name), judge)
    assert verdict.status in survivor.status, verdict
    assert time.monotonic() - began < 60
    assert_gone(mark)
    assert len(build.log) <= 3 * LIMITS.log_bytes
    if verdict.status != "ok":
        assert len(verdict.reason.split()) >= 4
        assert len(verdict.reason) < 8000
        assert any(word in verdict.reason for word in survivor.words or (" ",)), verdict.reason
    assert judge.worker.alive
    assert not list(Path(judge.worker.folder).parent.glob("candidate-*")), "work folders of candidates are removed"


PAUSES = {
    "sleeps": "time.sleep(0.05)",
    "spins": "pass",
    "compiles": "mmap.mmap(-1, 1 << 20).write(bytes(1 << 20)); time.sleep(0.02)",
}
"""What goes on for three seconds: of these only the last asks for memory, as a compiler does."""


@pytest.mark.parametrize(
    ("names", "does", "status"),
    [("", "compiles", "timeout"), ("torch.compile", "compiles", "ok"), ("torch.compile", "sleeps", "timeout"), ("torch.compile", "spins", "timeout")],
)
def test_a_hang_in_the_warm_up_has_a_limit_of_its_own(judge: verify.Judge, names: str, does: str, status: str) -> None:
    """A program that may compile in its first call has the time of a build for it, as long as something is seen of a compiler."""
    text = HONEST.text.replace("def forward(self, x", f"done = False  # {names}\n\n    def forward(self, x", 1)
    head, _, body = text.partition("def forward(self, x")
    line, _, rest = body.partition("\n")
    pause = (
        "        if not ModelNew.done:\n            ModelNew.done = True\n            import mmap, time\n            end = time.monotonic() + 3\n"
        f"            while time.monotonic() < end:\n                {PAUSES[does]}\n"
    )
    text = f"{head}def forward(self, x{line}\n{pause}{rest}"
    limits = replace(LIMITS, build_seconds=30, warm_up_seconds=1)
    verdict = verify.audit(RELU, Source("python", (("candidate.py", text),)), "cpu", limits, judge)[1]
    assert verdict.status == status, verdict
    assert status == "ok" or "within 1 s" in verdict.reason


def test_next_candidate_is_verified_after_all_of_them(judge: verify.Judge) -> None:
    verdict = verify.audit(RELU, HONEST, "cpu", LIMITS, judge)[1]
    assert verdict.ok, verdict


@pytest.mark.parametrize("name", ["hang_call", "exit_zero", "daemon", "thread_bomb", *(pytest.param(one, marks=pytest.mark.slow) for one in SLOWER)])
def test_holds_without_own_user_and_filter(judge: verify.Judge, name: str) -> None:
    """What an unprivileged user of warpwright gets: rlimits, the guard's watch and its kill."""
    mark = f"wl{os.getpid() % 10000}{abs(hash(name)) % 100000}"
    limits = replace(limits_of(name), isolation="limits")
    verdict = verify.audit(RELU, source_of(name, mark), "cpu", limits, judge)[1]
    assert verdict.status in SURVIVORS[name].status, verdict
    assert_gone(mark)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW_SURVIVORS)
def test_the_same_of_those_that_take_long(judge: verify.Judge, name: str) -> None:
    mark = f"wt{os.getpid() % 10000}{abs(hash(name)) % 100000}"
    build, verdict = verify.audit(RELU, text_of(SLOW_SURVIVORS[name], mark), "cpu", replace(LIMITS, build_seconds=60), judge)
    assert verdict.status in SLOW_SURVIVORS[name].status, verdict
    assert len(build.log) <= 3 * LIMITS.log_bytes
    assert_gone(mark)


@pytest.mark.cuda
@pytest.mark.parametrize("name", GPU_SURVIVORS)
def test_the_same_on_a_gpu_and_the_next_is_served(name: str) -> None:
    mark = f"wg{os.getpid() % 10000}{abs(hash(name)) % 100000}"
    limits = replace(LIMITS, build_seconds=40, warm_up_seconds=8, call_seconds=8, memory_bytes=24 << 30, processes=256)
    with verify.Judge(RELU, "cuda:0") as judge:
        verdict = verify.audit(RELU, text_of(GPU_SURVIVORS[name], mark), "cuda:0", limits, judge)[1]
        assert verdict.status in GPU_SURVIVORS[name].status, verdict
        assert_gone(mark)
        assert verify.audit(RELU, HONEST, "cuda:0", limits, judge)[1].ok


SEARCHED = ("kill_itself", "exit_zero", "garbage_in_pipes", "syntax_error")
WAITED_FOR = ("hang_import", "fork_bomb_import", "memory_hog", "close_everything")
"""Those that end when their time is up, or their memory."""


def candidate(source: Source) -> Candidate:
    return Candidate(source, "cpu")


SAME_AGAIN = Source("python", (("candidate.py", HONEST.text + "\n# once more\n"),))


@pytest.mark.parametrize(
    ("names", "last"),
    [((*SEARCHED, "hang_call"), SAME_AGAIN), pytest.param(WAITED_FOR, COMPILED, marks=pytest.mark.slow)],
    ids=["at_once", "waited_for"],
)
def test_records_survive_and_the_search_goes_on(tmp_path: Path, names: tuple[str, ...], last: Source) -> None:
    """Hostile programs between two honest ones: one record each, all of them in the archive, which is sound."""
    mark = f"wr{os.getpid() % 10000}"
    honest = [candidate(HONEST), candidate(last)]
    candidates = [honest[0], *(candidate(source_of(name, mark)) for name in names), honest[1]]
    task: Task = RELU
    limits = replace(LIMITS, warm_up_seconds=4, call_seconds=4)  # the one that hangs does so in its first call
    with LocalEvaluator(task, "cpu", Measuring(("eager",), 0.3), limits) as evaluator, Archive(tmp_path / "records.db") as archive:
        for number, record in enumerate(evaluator.evaluate(candidates)):
            archive.add(record)
            assert record.status in STATUSES
            assert len(list(archive.records(task))) == number + 1
            if number not in (0, len(candidates) - 1):
                assert record.status in SURVIVORS[names[number - 1]].status, record.detail
                assert record.detail
    assert_gone(mark)
    with Archive(tmp_path / "records.db") as archive:
        found = {record.candidate.key: record for record in archive.records(task)}
        assert {item.key for item in candidates} == set(found)
        assert [found[item.key].status for item in honest] == ["ok", "ok"]
        assert archive.check() == "ok"
