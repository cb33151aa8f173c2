"""The evaluator with real processes on the CPU: what passes, what fails in which way, and what survives the death of a trusted process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warpwright import api
from warpwright.archive import Archive
from warpwright.base import BASELINE, Budget, Candidate, Record, Source, is_baseline
from warpwright.deadline import Deadline
from warpwright.loop import optimize
from warpwright.reports import report
from warpwright.space import Measuring, Space, silent
from warpwright.targets import local as local_target
from warpwright.targets.local import ORIGINAL, LocalEvaluator
from warpwright.targets.trust import aside, planning, second_process
from warpwright.targets.trust import trusted as trusted_target
from warpwright.targets.trust.building import add_baselines
from warpwright.tasks import taskfile
from warpwright.timing.device_lock import DeviceLock
from warpwright.workers import device_yield
from warpwright.workers.limits import Limits
from warpwright.workers.procfs import state_of
from warpwright.workers.sandbox import Worker

TASK = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(256))

    def forward(self, x):
        for _ in range(12):
            x = torch.sin(x)
        return x * self.weight

def get_inputs():
    return [torch.randn(64, 256)]

def get_init_inputs():
    return []
"""

HEADER = """
import os, sys, time, torch

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(256))
    def forward(self, x):
"""

SAME = "        for _ in range(12):\n            x = torch.sin(x)\n        return x * self.weight\n"


def program(body: str, header: str = HEADER) -> Candidate:
    return Candidate(Source("python", (("optimized.py", header + body),)), "cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("evaluator")
    (made / "task.py").write_text(TASK)
    return made


def local(folder: Path, task: str = "task.py", **options: Any) -> LocalEvaluator:
    """Return an evaluator whose device lock is its own: other tests do not keep it waiting. The machine's peaks are measured once."""
    lock = DeviceLock("cpu", folder / "locks")
    return LocalEvaluator(taskfile.describe(folder / task), "cpu", Measuring((ORIGINAL,), 0.3), lock=lock, **options)


@pytest.fixture(scope="module")
def evaluator(folder: Path) -> Iterator[LocalEvaluator]:
    with local(folder, limits=Limits(build_seconds=60.0, call_seconds=5.0)) as made:
        yield made


def evaluate(evaluator: LocalEvaluator, body: str, header: str = HEADER) -> Record:
    [record] = evaluator.evaluate([program(body, header)])
    return record


def too_few(record: Record) -> bool:
    """Whether the time was over before there were pairs to speak of: two, on a machine with a load of 20, whose ratio says nothing."""
    return record.measurement is not None and "too little was seen" in str(record.measurement.conditions.get("note", ""))


def test_the_original_is_a_baseline(evaluator: LocalEvaluator) -> None:
    [record] = evaluator.evaluate_baselines()
    assert record.candidate.proposer == BASELINE + "eager" and is_baseline(record)
    assert "no bubblewrap: " in record.sandbox and not record.sandbox.endswith(": "), "how it was fenced in, as every candidate's record says"
    assert record.status == "ok" and record.measurement is not None
    assert record.measurement.best_baseline == "eager" and record.measurement.speedup == 1.0
    assert record.versions == evaluator.versions and record.when and record.seconds > 0


def test_what_passes_is_measured(evaluator: LocalEvaluator) -> None:
    record = evaluate(evaluator, SAME)
    assert record.status == "ok", record.detail
    assert record.verdict is not None and record.verdict.ok and record.build is not None and record.build.ok
    assert record.measurement is not None and set(record.measurement.baselines) == {"eager"}
    assert too_few(record) or 0.1 < record.measurement.speedup < 10.0  # it is the same program; how noisy the machine is, is not the question here
    assert record.measurement.candidate.samples and record.seconds > 0


SLOWER = "        time.sleep(0.02)\n" + SAME


def test_what_is_slower_is_measured_too(evaluator: LocalEvaluator) -> None:
    record = evaluate(evaluator, SLOWER)
    assert record.status == "ok" and record.measurement is not None
    assert record.measurement.verdict in ("SLOWER", "UNSURE") and (too_few(record) or record.measurement.speedup < 0.5)


@pytest.mark.slow
def test_what_is_slower_is_called_so(evaluator: LocalEvaluator) -> None:
    """On a machine with nothing else to do; test_measure.py has the rule."""
    record = evaluate(evaluator, SLOWER)
    assert record.measurement is not None and record.measurement.verdict == "SLOWER"


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ("        return x * self.weight\n", "wrong", "RMS"),
        ("        return x[:-1]\n", "wrong", "shape"),
        ("        raise ValueError('a mistake')\n", "not_built", "a mistake"),
        ("        os._exit(0)\n", "crashed", "exit code 0"),
        ("        os.kill(os.getpid(), 9)\n", "crashed", "SIGKILL"),
    ],
)
def test_what_fails_says_how(evaluator: LocalEvaluator, body: str, status: str, said: str) -> None:
    record = evaluate(evaluator, body)
    assert (record.status, record.measurement) == (status, None), record.detail
    assert said in record.detail and record.versions == evaluator.versions


def test_what_does_not_even_parse(evaluator: LocalEvaluator) -> None:
    record = evaluate(evaluator, "", header="class ModelNew(:")
    assert record.status == "not_built" and "SyntaxError" in record.detail


def test_what_hangs_is_killed(folder: Path, evaluator: LocalEvaluator) -> None:
    body = "        self.calls = getattr(self, 'calls', 0) + 1\n        if self.calls > 4:\n            time.sleep(1000)\n" + SAME
    record = evaluate(evaluator, body)
    assert record.status == "timeout", record.detail


@pytest.mark.parametrize("which", ["judge", "baseline"])
def test_a_trusted_process_that_died_is_started_again(evaluator: LocalEvaluator, which: str) -> None:
    trusted = evaluator._ready()
    assert trusted.worker is not None
    pid = trusted.judge.worker.pid if which == "judge" else trusted.worker.pid
    os.kill(pid, signal.SIGKILL)
    record = evaluate(evaluator, SAME)
    assert record.status == "ok", record.detail


@pytest.fixture(scope="module")
def with_bad_baselines(folder: Path) -> tuple[dict[str, Record], Record]:
    """The records of three baselines, of which one ends its worker and one is wrong, and of a candidate that is timed beside them."""
    with local(folder) as evaluator:
        broken, wrong = program("        os._exit(1)\n"), program("        return torch.sin(x) * self.weight\n")
        evaluator._sources = {"broken": broken.source, "eager": evaluator.baselines()[0].source, "fast": wrong.source}
        records = {record.candidate.proposer: record for record in evaluator.evaluate_baselines()}
        return records, evaluate(evaluator, SAME)


def test_a_baseline_that_ends_its_worker_is_left_out(with_bad_baselines: tuple[dict[str, Record], Record]) -> None:
    records, record = with_bad_baselines
    assert records[BASELINE + "broken"].status == "crashed" and records[BASELINE + "broken"].measurement is None
    assert records[BASELINE + "eager"].status == "ok"
    assert record.status == "ok" and record.measurement is not None
    assert record.measurement.baselines["broken"].note.startswith("not built")
    assert record.measurement.best_baseline == "eager"


def test_a_baseline_that_is_wrong_is_timed_but_not_eligible(with_bad_baselines: tuple[dict[str, Record], Record]) -> None:
    records, record = with_bad_baselines
    assert [records[BASELINE + name].status for name in ("eager", "fast")] == ["ok", "wrong"]
    for one in [records[BASELINE + "eager"], records[BASELINE + "fast"], record]:
        assert one.measurement is not None and one.measurement.best_baseline == "eager"
        assert one.measurement.baselines["fast"].note.startswith("not eligible")
        assert one.measurement.baselines["fast"].samples


def test_a_wrong_program_builds_no_baseline(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge alone finds it out; the first that passes stands still while the baselines are built, and the next finds them there."""
    seen: list[str] = []

    def watched(bench: Any, trusted: Any, seconds: float, rng: Any, meanwhile: Any) -> None:
        seen.extend(state_of(f"/proc/{worker.pid}") for worker in built if worker.alive)
        add_baselines(bench, trusted, seconds, rng, meanwhile)

    class Noted(Worker):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            built.append(self)

    built: list[Worker] = []
    monkeypatch.setattr(local_target, "Worker", Noted)
    monkeypatch.setattr(local_target, "add_baselines", watched)
    with local(folder) as evaluator:
        assert evaluate(evaluator, "        return x * self.weight\n").status == "wrong"
        assert evaluator._trusted is not None and evaluator._trusted.worker is None and not evaluator._trusted.timings
        judge = evaluator._trusted.judge
        assert evaluate(evaluator, SAME).status == "ok" and seen == ["T"]
        worker = evaluator._trusted.worker
        assert worker is not None and set(evaluator._trusted.timings) == {"eager"}
        assert evaluate(evaluator, SAME).status == "ok"
        assert evaluator._trusted.worker is worker and evaluator._trusted.judge is judge


def test_baselines_that_fail_beside_a_candidate_are_built_without_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may hold the memory that they need: it is ended, and evaluated anew once they are there."""
    alive: list[list[bool]] = []

    def short_of_memory(bench: Any, trusted: Any, seconds: float, rng: Any, meanwhile: Any) -> None:
        alive.append([worker.alive for worker in built])
        add_baselines(bench, trusted, seconds, rng, meanwhile)
        if any(alive[-1]):
            trusted.baselines["eager"].program = None

    class Noted(Worker):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            built.append(self)

    built: list[Worker] = []
    monkeypatch.setattr(local_target, "Worker", Noted)
    monkeypatch.setattr(local_target, "add_baselines", short_of_memory)
    with local(folder) as evaluator:
        record = evaluate(evaluator, SAME)
        assert alive == [[True], [False]] and len(built) == 2
    assert record.status == "ok" and record.measurement is not None and record.measurement.baselines["eager"].samples, record.detail


@pytest.mark.compiler
@pytest.mark.slow
def test_before_a_deadline_the_first_candidate_is_verified_while_the_compiler_works(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, whose work leaves the host's cores free."""
    monkeypatch.setattr(trusted_target.Workbench, "has_free_cores", property(lambda bench: True))
    begun: list[str] = []
    deadline = Deadline.of(400.0)
    measuring = Measuring((ORIGINAL, "compile"), 1.0, deadline=deadline, ahead=True, tell=begun.append)
    with LocalEvaluator(taskfile.describe(folder / "task.py"), "cpu", measuring, lock=DeviceLock("cpu", folder / "locks")) as evaluator:
        assert evaluator.works_ahead
        evaluator.prepare([program(SAME.replace("12", "11")), program(SAME)])
        records = {record.candidate.proposer: record for record in evaluator.evaluate_baselines()}
        assert len(list(evaluator.finished_baselines())) == 2
        wrong, right = evaluator.evaluate([program(SAME.replace("12", "11")), program(SAME)])
    assert {record.status for record in records.values()} == {"ok"}
    assert wrong.status == "wrong" and right.status == "ok" and set(right.measurement.baselines) == {"eager", "compile"}
    assert begun.index("verifying") < begun.index("baseline compile") < begun.index("timing the baselines")
    assert begun.count("building") == 2, "neither was built a second time"


def planned(folder: Path, seconds: float, tell: Callable[[str], None] = silent, **sources: Candidate) -> LocalEvaluator:
    """Return an evaluator within a plan, as `audit` has one, with these baselines beside the original."""
    measuring = Measuring((ORIGINAL,), 0.3, deadline=Deadline.of(seconds, firm=False), tell=tell)
    evaluator = LocalEvaluator(taskfile.describe(folder / "task.py"), "cpu", measuring, lock=DeviceLock("cpu", folder / "locks"))
    evaluator._sources = {"eager": evaluator.baselines()[0].source, **{name: one.source for name, one in sources.items()}}
    return evaluator


COMPILED = HEADER + "        # torch.compile(\n"
HANGING = HEADER.replace("    def forward", "        time.sleep(600)\n    def forward") + "        # torch.compile(\n"


def test_within_a_plan_a_wrong_program_is_answered_while_the_compiler_works(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU: what compiles has begun before the program was verified, and ends with the evaluator."""
    monkeypatch.setattr(trusted_target.Workbench, "has_free_cores", property(lambda bench: True))
    with planned(folder, 400.0, hanging=program(SAME, HANGING)) as evaluator:
        assert evaluate(evaluator, "        return x * self.weight\n").status == "wrong"
        trusted = evaluator._trusted
        assert trusted is not None and [one.wait(0.0) for one in trusted.compiling] == [False] and not trusted.ready
    assert not any(worker.alive for worker in trusted.aside)


def test_within_a_plan_what_compiles_is_verified_beside_the_rest(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU: what is compiled in time is timed, and the floor is worked out."""
    monkeypatch.setattr(trusted_target.Workbench, "has_free_cores", property(lambda bench: True))
    begun: list[str] = []
    with planned(folder, 4000.0, begun.append, quick=program(SAME, COMPILED)) as evaluator:
        record = evaluate(evaluator, SAME)
        assert evaluator._trusted is not None and len(evaluator._trusted.aside) == 1 and not api.left_out(evaluator.evaluate_baselines())
    assert record.status == "ok" and record.measurement is not None, record.detail
    assert set(record.measurement.baselines) == {"eager", "quick"} and record.measurement.conditions["work_bytes"]
    assert begun.index("verifying") < begun.index("verifying baseline quick") < begun.index("timing the baselines") < begun.index("timing")


def test_within_a_plan_the_process_of_a_compilation_comes_up_beside_the_judge(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, where the compiler's modules take 8 s to import. A process that nobody takes is ended."""
    monkeypatch.setattr(trusted_target.Workbench, "has_free_cores", property(lambda bench: True))
    monkeypatch.setattr(aside, "COMPILERS_MODULES", ("colorsys", "no_such_module"))
    loaded = HEADER.replace("import os", "import sys\nassert 'colorsys' in sys.modules\nimport os")
    with planned(folder, 4000.0, quick=program(SAME, loaded + "        # torch.compile(\n")) as evaluator:
        assert set(evaluator._compiling) == {"quick"}
        record = evaluate(evaluator, SAME)
        assert record.measurement is not None and record.measurement.baselines["quick"].samples, record.detail
    with planned(folder, 4000.0, quick=program(SAME, COMPILED)) as evaluator:
        process = evaluator._compiling["quick"]
        process.wait()
    assert not process.result().alive


@pytest.mark.slow
@pytest.mark.parametrize("free", [True, False])
def test_a_plan_that_is_over_still_gives_a_verdict_and_names_what_is_late(folder: Path, free: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a verdict needs is done all the same. What compiles may take as long as was spent before; here it takes for ever."""
    monkeypatch.setattr(trusted_target.Workbench, "has_free_cores", property(lambda bench: free))
    monkeypatch.setattr(planning, "COLD_SECONDS", 0.1)
    tuned = HANGING + "        # max-autotune\n"
    with planned(folder, 0.1, hanging=program(SAME, HANGING), tuned=program(SAME, tuned)) as evaluator:
        record = evaluate(evaluator, SAME)
        late = api.left_out(evaluator.evaluate_baselines())
    assert record.status == "ok" and record.measurement is not None, record.detail
    assert record.measurement.baselines["eager"].samples and record.measurement.conditions["left_out"] == "hanging, tuned"
    assert "not ready within" in late["hanging"] and "no time for the plain compilation" in late["tuned"]
    assert record.measurement.conditions["work_bytes"], "the floor is worked out in any case"


@pytest.mark.compiler
@pytest.mark.slow
def test_without_a_deadline_too_the_compiler_works_beside_the_other_baselines(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU. The candidate that has passed stands still meanwhile."""
    monkeypatch.setattr(trusted_target.Workbench, "has_free_cores", property(lambda bench: True))
    begun: list[str] = []
    names = (ORIGINAL, "compile")
    measuring = Measuring(names, 1.0, tell=begun.append)
    with LocalEvaluator(taskfile.describe(folder / "task.py"), "cpu", measuring, lock=DeviceLock("cpu", folder / "locks")) as evaluator:
        evaluator.prepare([program(SAME)])
        record = evaluate(evaluator, SAME)
        assert evaluator._trusted is not None and len(evaluator._trusted.aside) == 1
    assert record.status == "ok" and record.measurement is not None and set(record.measurement.baselines) == set(names)
    assert begun.count("building") == 1


@pytest.mark.slow
def test_without_a_deadline_what_tries_kernels_out_is_built_beside_the_compilation(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, where the one waited for the other. The compilation here waits until the other is built."""
    monkeypatch.setattr(trusted_target.Workbench, "has_free_cores", property(lambda bench: True))
    sign = folder / "tuned"
    waits = COMPILED.replace("    def forward", f"        while not os.path.exists({str(sign)!r}): time.sleep(0.02)\n    def forward")
    signs = COMPILED.replace("    def forward", f"        open({str(sign)!r}, 'w').close()\n    def forward") + "        # max-autotune\n"
    with local(folder) as evaluator:
        others = {"waits": program(SAME, waits).source, "signs": program(SAME, signs).source}
        evaluator._sources = {"eager": evaluator.baselines()[0].source, **others}
        record = evaluate(evaluator, SAME)
        assert evaluator._trusted is not None and len(evaluator._trusted.aside) == 1
    assert record.status == "ok" and record.measurement is not None, record.detail
    assert set(record.measurement.baselines) == {"eager", "waits", "signs"}


@pytest.mark.slow
def test_a_small_speed_up_is_found_beside_a_second_process_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU. The process is kept for the next candidate."""
    monkeypatch.setattr(second_process, "wanted", lambda bench, measurement: True)
    built: list[str] = []
    monkeypatch.setattr(second_process.verify, "build", lambda *args, of=second_process.verify.build: built.append(args[2]) or of(*args))
    with local(folder) as evaluator:
        one, other = evaluate(evaluator, SAME), evaluate(evaluator, SAME + "        # another text\n")
        assert evaluator._trusted is not None and set(evaluator._trusted.second) == {ORIGINAL}
    for record in (one, other):
        assert record.status == "ok" and record.measurement is not None, record.detail
        assert record.measurement.conditions["speedup_over_second_process"] > 0
    assert built == ["candidate", ORIGINAL, ORIGINAL, "candidate"], "a candidate, the baseline, its second process, a candidate"


def test_turns_follow_one_another_after_memory_was_given_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, where the baselines give it back before each candidate. Their second turn raised, and the candidate was to blame."""

    def given_back(trusted: trusted_target.Trusted) -> None:
        for worker in trusted.workers:
            worker.request("release_memory")

    monkeypatch.setattr(trusted_target.Trusted, "release_memory", given_back)
    measuring = Measuring((ORIGINAL,), 0.3, regime="stream")
    with LocalEvaluator(taskfile.describe(folder / "task.py"), "cpu", measuring, lock=DeviceLock("cpu", folder / "locks")) as evaluator:
        record = evaluate(evaluator, SAME)
    assert record.status == "ok" and record.measurement is not None, record.detail
    assert set(record.measurement.regimes) == {"single", "stream"}


@pytest.mark.parametrize("ready", [True, False], ids=["baselines are ready", "baselines are to be built"])
def test_a_program_gives_back_what_its_audit_held_before_it_is_timed(ready: bool) -> None:
    """The second one, which found the baselines built, kept its inputs twice and its outputs three times on a GPU while it was timed."""
    done: list[str] = []
    worker = SimpleNamespace(release_memory=lambda: done.append("released"), stopped=nullcontext)
    trusted = SimpleNamespace(ready=ready, complete=True)

    def built() -> SimpleNamespace:
        done.append("built")
        return trusted

    evaluator = SimpleNamespace(_trusted=trusted, _ready=built)
    assert LocalEvaluator._ready_beside(evaluator, worker)  # type: ignore[arg-type]
    assert done == (["released"] if ready else ["released", "built"])


def test_one_that_is_left_early_ends_what_it_began(folder: Path) -> None:
    measuring = Measuring((ORIGINAL,), 0.3, deadline=Deadline.of(60.0), ahead=True)
    with LocalEvaluator(taskfile.describe(folder / "task.py"), "cpu", measuring, lock=DeviceLock("cpu", folder / "locks")):
        pass
    left = [worker for worker in device_yield.living if worker.alive and worker.role == "judge"]  # those of this module's own evaluator may live
    assert len(left) <= 1


def test_the_compiler_is_not_loaded_before_its_cache_folder_is_known(evaluator: LocalEvaluator) -> None:
    """torch._inductor notes its cache folders when it is imported: imported in the fork server, every compilation ended with a PermissionError."""
    record = evaluate(evaluator, SAME, HEADER + "        assert not [name for name in sys.modules if name.startswith('torch._inductor')]\n")
    assert record.status == "ok", record.detail


def test_a_degenerate_task_gives_no_score(folder: Path) -> None:
    (folder / "zero.py").write_text(TASK.replace("return x * self.weight", "return torch.relu(x) * 0.0"))
    with local(folder, "zero.py") as evaluator:
        space: Space[None] = Space(None, (), lambda ir, actions: program(SAME))
        outcome = optimize(evaluator.task, space, evaluator, "ladder", Budget(None, proposals=2))
        assert outcome.best is None and "no score" in outcome.stopped
        [record] = evaluator.evaluate([program(SAME)])
        assert record.status == "unscored" and record.detail


def test_a_recorded_run_starts_no_process(folder: Path, evaluator: LocalEvaluator, tmp_path: Path) -> None:
    space: Space[None] = Space(None, (), lambda ir, actions: program(SAME))
    with Archive(tmp_path) as archive:
        first = optimize(evaluator.task, space, evaluator, "ladder", Budget(None, proposals=1), archive)
        assert first.best is not None
        with local(folder) as fresh:
            again = optimize(evaluator.task, space, fresh, "ladder", Budget(None, proposals=1), archive)
            assert again.records == first.records and fresh._trusted is None


ELSEWHERE = "import os\nif 'candidate' in os.getcwd():\n    open('/no/such/place')\n"
"""Before a task's text: a file that its own processes can read, and candidates cannot."""


def test_where_not_even_the_original_can_be_built_no_program_is_blamed(tmp_path: Path) -> None:
    (tmp_path / "closed.py").write_text(ELSEWHERE + TASK)
    with local(tmp_path, "closed.py") as evaluator:
        records = list(evaluator.evaluate([program(SAME, ELSEWHERE + HEADER), program(SAME, ELSEWHERE + "# other" + HEADER)]))
        for record in records:
            assert record.status == "unscored" and record.versions != evaluator.versions, "it is no answer for a later run"
            assert "the original itself cannot be built" in record.detail and "No such file" in record.detail and record.sandbox in record.detail
    [why] = report.rejected(records)
    assert why["status"] == "unscored" and why["count"] == 2


def test_a_trusted_process_that_dies_every_time(evaluator: LocalEvaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge is killed whenever it is about to be asked: no verdict, no crash of the run. The last of these tests: it leaves no processes."""
    attempts = []

    def doomed(trusted: object, candidate: Candidate) -> Record:
        attempts.append(1)
        assert evaluator._trusted is not None
        os.kill(evaluator._trusted.judge.worker.pid, signal.SIGKILL)
        return attempt(trusted, candidate)  # type: ignore[arg-type]

    attempt = evaluator._attempt
    monkeypatch.setattr(evaluator, "_attempt", doomed)
    record = evaluate(evaluator, SAME)
    assert record.status == "unscored" and "judge" in record.detail and len(attempts) == 2
