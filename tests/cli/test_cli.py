"""The command line from end to end, with a stand-in for the workers: files, exit codes, and one JSON object on standard output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stand_in import StandIn as Usual

import warpwright
from warpwright import bench, cli, jobs
from warpwright import run as driver
from warpwright.archive import Archive
from warpwright.base import BASELINE, Candidate, Record, Source, Task
from warpwright.reports import doctor

ROOT = Path(__file__).parents[2]

TASK = """
import torch

class Model(torch.nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.linear = torch.nn.Linear(8, rows)

    def forward(self, x):
        return self.linear(x).sum(dim=1, keepdim=True)

def get_inputs():
    return [torch.randn(4, 8)]

def get_init_inputs():
    return [6]
"""

KEYS = {"task", "status", "check", "case", "reason", "verdict", "speedup", "baselines", "error", "error_original", "recipe", "artifact"}

Run = Callable[..., tuple[int, Any, str]]


class StandIn(Usual):
    """An evaluator without processes: eager takes 1 s, whatever has a recipe takes `seconds`."""

    device = "cpu"
    versions: Mapping[str, str] = {"torch": "stand-in"}
    seconds = 0.5
    status: Any = "ok"
    interrupt_at: int | None = None
    evaluated = 0

    def __init__(self, task: Task) -> None:
        self.task = task

    def baselines(self) -> Sequence[Candidate]:
        return [Candidate(Source("python", (("eager.py", "class ModelNew: ..."),)), "cpu", proposer=f"{BASELINE}eager")]

    def evaluate_baselines(self) -> Iterator[Record]:
        status = "unscored" if StandIn.status == "unscored" else "ok"
        yield self.record(self.baselines()[0], 1.0, status)

    def evaluate(self, candidates: Sequence[Candidate]) -> Iterator[Record]:
        for candidate in candidates:
            if StandIn.evaluated == StandIn.interrupt_at:
                raise KeyboardInterrupt
            StandIn.evaluated += 1
            print("noise from a library")  # must not reach standard output under --json
            yield self.record(candidate, StandIn.seconds / (1 + len(candidate.actions)), StandIn.status)


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(driver, "open_evaluator", lambda settings, task, *_: StandIn(task))
    monkeypatch.setattr(jobs, "map_jobs", lambda function, payloads, count, where: ((i, bench.run_job(job)) for i, job in enumerate(payloads)))
    for name, value in (("seconds", 0.5), ("status", "ok"), ("interrupt_at", None), ("evaluated", 0)):
        monkeypatch.setattr(StandIn, name, value)
    Path("task.py").write_text(TASK)


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run the command line; return its exit code, its JSON (one object, or the list of lines) and standard error."""

    def call(*arguments: str, lines: bool = False) -> tuple[int, Any, str]:
        capfd.readouterr()
        code = cli.main(arguments)
        out, err = capfd.readouterr()
        if "--json" not in arguments:
            return code, out, err
        said = [json.loads(line) for line in out.splitlines()]
        assert lines or len(said) == 1, out
        return code, said if lines else said[0], err

    return call


def test_optimize_writes_program_report_and_archive(run: Run) -> None:
    code, said, err = run("optimize", "task.py", "--budget", "30 proposals", "--json")
    assert code == cli.DONE and said.keys() >= KEYS
    assert (said["task"], said["status"], said["verdict"]) == ("task", "ok", "FASTER") and said["speedup"]["best"] > 1
    assert said["recipe"] and Path(said["artifact"]) == Path("warpwright-out/task/optimized.py")
    assert "class ModelNew(Model)" in Path(said["artifact"]).read_text()
    assert "<svg" in Path("warpwright-out/task/report.html").read_text()
    written = json.loads(Path("warpwright-out/task/report.json").read_text())
    assert {key: written[key] for key in KEYS} == {key: said[key] for key in KEYS} and len(written["records"]) >= 3
    assert "noise from a library" in err and "best so far" not in said["reason"]
    with Archive(".warpwright/archive.db", readonly=True) as archive:
        assert archive.best("task") is not None


START = """
import torch
from torch.utils.cpp_extension import load_inline

built = load_inline("k", "", "__global__ void k(float* x) { for (int j = 0; j < 9; ++j) x[threadIdx.x] += j; }", functions=[])


class ModelNew(torch.nn.Module):
    pass
"""


def test_the_translation_of_a_given_program_is_tuned(run: Run) -> None:
    Path("start.py").write_text(START)
    code, said, _ = run("optimize", "task.py", "--start", "start.py", "--target", "cpu", "--budget", "12 proposals", "--json")
    assert code == cli.DONE and said["recipe"][0] == "translate()" and len(said["recipe"]) >= 2
    assert "/* warpwright: " in Path(said["artifact"]).read_text()
    Path("plain.py").write_text("class ModelNew: pass")
    for start, target, word in (("plain.py", "cpu", "cpp_extension"), ("start.py", "cuda", "--target cpu"), ("no.py", "cpu", "no.py")):
        code, _, err = run("optimize", "task.py", "--start", start, "--target", target)
        assert code == cli.WRONG_USE and word in err, err


def test_a_second_run_measures_nothing_again(run: Run) -> None:
    first = run("optimize", "task.py", "--budget", "30 proposals", "--json")[1]
    evaluated = StandIn.evaluated
    second = run("optimize", "task.py", "--budget", "30 proposals", "--json")[1]
    assert StandIn.evaluated == evaluated and second["record"] == first["record"]


def test_the_steps_of_the_recipe_are_ablated(run: Run) -> None:
    run("optimize", "task.py", "--budget", "10 proposals", "--json")
    text = Path("warpwright-out/task/report.html").read_text()
    assert "not measured without it" not in text


def test_a_table_is_printed_without_json(run: Run) -> None:
    code, out, err = run("optimize", "task.py", "--budget", "10 proposals")
    assert code == cli.DONE and "FASTER" in out and "eager ms" in out
    assert "optimized.py" in err and "the best baseline" in err


def test_nothing_passed_is_exit_code_1(run: Run) -> None:
    StandIn.status = "unscored"
    code, said, _ = run("optimize", "task.py", "--json")
    assert code == cli.NOT_PASSED and (said["status"], said["artifact"]) == ("unscored", None)


def test_interruption_leaves_the_best_so_far(run: Run) -> None:
    StandIn.interrupt_at = 2
    code, said, _ = run("optimize", "task.py", "--json")
    assert code == cli.INTERRUPTED and said["status"] == "ok" and said["reason"] == "interrupted"
    assert Path(said["artifact"]).exists() and Path("warpwright-out/task/report.html").exists()


def test_interruption_before_anything_was_measured(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(driver, "open_evaluator", interrupted)
    code, said, _ = run("optimize", "task.py", "--json")
    assert code == cli.INTERRUPTED and said["artifact"] is None


@pytest.mark.parametrize(("verb", "kept"), [("doctor", ""), ("audit", "what was measured is in the archive")])
def test_an_interruption_says_what_is_kept(run: Run, monkeypatch: pytest.MonkeyPatch, verb: str, kept: str) -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    Path("candidate.py").write_text("class ModelNew: ...\n")
    monkeypatch.setattr(driver, "open_evaluator", interrupted)
    monkeypatch.setattr(doctor, "examine", interrupted)
    code, said, error = run(verb, *(["candidate.py", "--task", "task.py"] if verb == "audit" else []), "--json")
    assert code == cli.INTERRUPTED and said == {"error": "interrupted", "hint": kept} and ("archive" in error) == bool(kept)


@pytest.mark.parametrize(("status", "code"), [("ok", 0), ("wrong", 1), ("cheated", 1), ("crashed", 1), ("timeout", 1), ("unscored", 1)])
def test_audit_exits_0_only_for_a_pass(run: Run, status: str, code: int) -> None:
    Path("candidate.py").write_text("class ModelNew: ...\n")
    StandIn.status = status
    seen, said, _ = run("audit", "candidate.py", "--task", "task.py", "--json")
    assert seen == code and said["status"] == status and said.keys() >= KEYS
    assert (said["verdict"] is None) == (said["speedup"]["best"] is None) == (code == 1)


@pytest.mark.parametrize(("status", "kept"), [("ok", ["baseline:eager", "audit"]), ("wrong", ["audit"]), ("unscored", ["baseline:eager"])])
def test_audit_has_the_baselines_built_for_a_pass_only(run: Run, status: str, kept: list[str]) -> None:
    Path("candidate.py").write_text("class ModelNew: ...\n")
    StandIn.status = status
    run("audit", "candidate.py", "--task", "task.py", "--archive", "a.db", "--json")
    with Archive("a.db") as archive:
        assert [record.candidate.proposer for record in archive.records()] == kept


def test_bench_prints_one_object_a_line(run: Run) -> None:
    Path("folder").mkdir()
    for name in ("a_1", "a_2", "b"):
        Path("folder", f"{name}.py").write_text(TASK)
    code, said, err = run("bench", "folder", "--tasks", "a_*", "--budget", "5 proposals", "--json", lines=True)
    assert code == cli.DONE and [line["task"] for line in said] == ["a_1", "a_2"] and all(line.keys() >= KEYS for line in said)
    assert "[2/2]" in err
    evaluated = StandIn.evaluated
    again = run("bench", "folder", "--tasks", "a_*", "--budget", "5 proposals", "--json", "--resume", lines=True)
    assert again[0] == cli.DONE and StandIn.evaluated == evaluated and len(again[1]) == 2


def test_bench_goes_on_after_a_broken_task_and_says_so(run: Run) -> None:
    Path("broken.py").write_text("class Model(: pass\n")
    code, said, _ = run("bench", "broken.py", "task.py", "--budget", "3 proposals", "--json", lines=True)
    assert code == cli.NOT_PASSED and {line["status"] for line in said} == {"not_built", "ok"}


def best_record(run: Run) -> str:
    return str(run("optimize", "task.py", "--budget", "10 proposals", "--json")[1]["record"])


def test_reproduce_agrees_with_itself_and_not_with_another_time(run: Run) -> None:
    key = best_record(run)
    code, said, err = run("reproduce", key[:6], "--json")
    assert code == cli.DONE and said["agrees"] and "intervals overlap" in err and said["note"] == ""
    assert run("reproduce", "warpwright-out/task/report.json", "--json")[0] == cli.DONE
    StandIn.seconds = 5.0
    code, said, _ = run("reproduce", key, "--json")
    assert code == cli.NOT_PASSED and not said["agrees"]


def test_two_records_side_by_side(run: Run) -> None:
    key = best_record(run)
    others = [record_key(record) for record in run("archive", "list", "--json")[1]["records"]]
    other = next(one for one in others if one != key)
    code, out, _ = run("compare", other, key)
    assert code == cli.DONE and "speed-up" in out and "as fast as the first, through eager" in out
    code, said, _ = run("compare", other, "warpwright-out/task/report.json", "--json")
    assert code == cli.DONE and said["ratio"] > 1 and said["only_second"] and said["second"]["record"] == key
    assert run("compare", key, "ffff")[0] == cli.WRONG_USE


def test_wide_intervals_that_overlap_reproduce_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    made = StandIn.record

    def wide(self: StandIn, candidate: Candidate, seconds: float, status: Any) -> Record:
        record = made(self, candidate, seconds, status)
        assert record.measurement is not None
        return replace(record, measurement=replace(record.measurement, interval=(0.1, 9.0)))

    monkeypatch.setattr(StandIn, "record", wide)
    key = best_record(run)
    StandIn.seconds = 1.2
    code, said, err = run("reproduce", key, "--json")
    assert code == cli.NOT_PASSED and not said["agrees"] and "not decided" in err


def test_check_fails_on_a_regression_only(run: Run) -> None:
    best_record(run)
    assert run("archive", "export", "old.jsonl", "--json")[1]["records"] > 0
    code, said, _ = run("check", "--baseline", "old.jsonl", "--max-regress", "3%", "--json")
    assert code == cli.DONE and said["holds"] and [task["task"] for task in said["tasks"]] == ["task"]
    StandIn.seconds = 0.5 * 1.02
    assert run("check", "--baseline", "old.jsonl")[0] == cli.DONE
    StandIn.seconds = 0.5 * 1.05
    code, _, err = run("check", "--baseline", "old.jsonl", "--max-regress", "3%")
    assert code == cli.NOT_PASSED and "REGRESSED" in err


def test_an_edited_task_is_refused(run: Run) -> None:
    key = best_record(run)
    Path("task.py").write_text(TASK + "\n# edited\n")
    code, said, err = run("reproduce", key, "--json")
    assert code == cli.WRONG_USE and "edited" in said["error"] and "edited" in err


def test_report_from_the_archive(run: Run) -> None:
    key = best_record(run)
    code, said, _ = run("report", "--html", "--json")
    assert code == cli.DONE and key in Path(said["report"]).read_text() and [line["record"] for line in said["tasks"]] == [key]
    code, out, _ = run("report", "--markdown", "--out", "table.md")
    assert code == cli.DONE and "table.md" in out and "| task | ok |" in Path("table.md").read_text()


def test_archive_verbs(run: Run) -> None:
    key = best_record(run)
    code, said, _ = run("archive", "list", "--json")
    assert code == cli.DONE and key in {record_key(record) for record in said["records"]}
    code, out, _ = run("archive", "best")
    assert out.startswith(key) and "task" in out
    code, out, _ = run("archive", "lineage", key)
    assert code == cli.DONE and key in out
    code, out, err = run("archive", "list", "--status", "wrong")
    assert (code, out) == (cli.DONE, "") and err.strip() == ".warpwright/archive.db has no records of status wrong"


def record_key(data: Mapping[str, Any]) -> str:
    from warpwright.base import from_json

    return str(from_json(Record, data).key)


def test_doctor_names_everything(run: Run) -> None:
    code, said, _ = run("doctor", "--json")
    names = {check["name"] for check in said["checks"]}
    assert names >= {"python", "torch", "compiler", "openmp", "gpu", "triton", "nvcc", "shared memory", "isolation", "archive"}
    assert all(check["advice"] for check in said["checks"] if check["level"] != "OK")
    assert code == (cli.DONE if said["healthy"] else cli.NOT_PASSED)
    assert "python: CPython" in run("doctor")[1]


def test_an_archive_that_cannot_be_written_fails_the_doctor(run: Run) -> None:
    code, out, _ = run("doctor", "--archive", "/proc/nowhere/archive.db")
    assert code == cli.NOT_PASSED and "FAIL archive" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("optimize", "absent.py"), "absent.py"),
        (("optimize", "task.py", "--budget", "soon"), "budget"),
        (("optimize", "task.py", "--entry", "Other"), "Other"),
        (("audit", "absent.py", "--task", "task.py"), "absent.py"),
        (("audit", "task.py", "--task", "task.py"), "ModelNew"),
        (("bench", "absent"), "absent"),
        (("optimize", "task.py", "--out", "/proc/nowhere"), "/proc/nowhere"),
        (("bench", "task.py", "--out", "/proc/nowhere"), "/proc/nowhere"),
        (("reproduce", "0123"), "archive"),
        (("check", "--baseline", "task.py"), "export"),
        (("check", "--baseline", "task.py", "--max-regress", "much"), "percentage"),
        (("report",), "archive"),
        (("archive", "lineage", "0123"), "archive"),
    ],
)
def test_wrong_use_is_one_clear_line_and_exit_code_2(run: Run, arguments: tuple[str, ...], said: str) -> None:
    code, found, err = run(*arguments, "--json")
    assert code == cli.WRONG_USE and found.keys() == {"error", "hint"} and found["hint"]
    assert said in err and err.count("\n") == 1 and "Traceback" not in err


def test_cuda_without_a_gpu_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpwright.reports.doctor.gpu_present", lambda: False)
    code, found, _ = run("optimize", "task.py", "--target", "cuda", "--json")
    assert code == cli.WRONG_USE and "GPU" in found["error"]


def test_the_command_is_installed_as_a_module(tmp_path: Path) -> None:
    how = {"capture_output": True, "text": True, "cwd": tmp_path, "env": {**os.environ, "PYTHONPATH": str(ROOT)}, "timeout": 100}
    done = subprocess.run([sys.executable, "-m", "warpwright.cli", "--version"], **how)  # type: ignore[call-overload]
    assert (done.returncode, done.stdout.strip()) == (0, f"warpwright {warpwright.__version__}")
    done = subprocess.run([sys.executable, "-m", "warpwright.cli", "optimise"], **how)  # type: ignore[call-overload]
    assert done.returncode == cli.WRONG_USE and "usage" in done.stderr


def test_optimize_from_python_gives_a_module_with_the_same_signature(tmp_path: Path) -> None:
    import torch

    module = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU()).eval()
    x = torch.randn(3, 8)
    result = warpwright.optimize(module, (x,), budget="5 proposals", target="cpu", out=tmp_path / "out", archive=tmp_path / "archive.db")
    faster = result.module
    assert isinstance(faster, torch.nn.Module) and not faster.training
    with torch.no_grad():
        torch.testing.assert_close(faster(x), module(x))
    assert (tmp_path / "out" / "report.html").exists()
