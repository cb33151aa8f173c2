"""One whole FSR run from the recorded conversation of the examples: a real kernel task, through the front door, on the CPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import scripted_endpoint

from warpwright import cli
from warpwright.archive import Archive
from warpwright.base import is_baseline
from warpwright.cli import programs
from warpwright.llm import opening
from warpwright.llm.endpoint import OpenAI

EXAMPLES = Path(__file__).parents[3] / "examples" / "cuda"


@pytest.mark.slow
@pytest.mark.compiler
def test_a_recorded_conversation_is_a_whole_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("WARPWRIGHT_API_KEY", "sk-never-to-be-seen")
    monkeypatch.chdir(tmp_path)
    talk = f"play:{EXAMPLES / 'row_sum_conversation.jsonl'}"
    monkeypatch.setattr(programs, "TIMING_SECONDS", 0.3)
    how = ["--target", "cpu", "--search", "fsr", "--model", talk, "--model-options", "candidates=2,depth=2,max_repair=1"]
    how += ["--budget", "20 proposals", "--baselines", "eager"]
    code = cli.main(["optimize", str(EXAMPLES / "row_sum.cu"), "--task", str(EXAMPLES / "row_sum_task.py"), *how, "--json"])
    line = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert code == cli.DONE and line["status"] == "ok", line
    with Archive(tmp_path / ".warpwright/archive.db", readonly=True) as archive:
        records = [record for record in archive.records() if not is_baseline(record)]
    assert [record.status for record in records[:3]] == ["not_built", "wrong", "ok"], [record.detail[-300:] for record in records]
    assert [record.status for record in records[3:5]] == ["ok", "wrong"] and records[4].verdict is not None
    log = tmp_path / ".warpwright/archive.chat.jsonl"
    rows = [json.loads(text) for text in log.read_text().splitlines()]
    asked = [row["messages"][-1]["content"] for row in rows]
    assert len(rows) == 6 and "candidate 1 of 2" in asked[0]
    assert 'gate "functional validation"' in asked[2] and "Status: wrong" in asked[2] and "failed at compilation" in asked[2]
    assert "This candidate is correct and the fastest so far" in asked[4] and "Time of a call" in asked[4]
    everything = log.read_text() + "".join(path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file())
    assert "sk-never-to-be-seen" not in everything


@pytest.mark.slow
@pytest.mark.compiler
def test_a_run_whose_endpoint_fails_in_every_way_goes_on_and_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Endpoint that hangs, drops the connection within an answer, answers with garbage and refuses; then the same command once more."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(programs, "TIMING_SECONDS", 0.3)
    answers = [json.loads(line)["answer"] for line in (EXAMPLES / "row_sum_conversation.jsonl").read_text().splitlines()]
    how = ["--target", "cpu", "--search", "fsr", "--model", "openai:http://nowhere/v1,small", "--budget", "20 proposals", "--baselines", "eager"]
    how += ["--model-options", "candidates=2,depth=2,max_repair=1"]
    command = ["optimize", str(EXAMPLES / "row_sum.cu"), "--task", str(EXAMPLES / "row_sum_task.py"), *how]

    def statuses() -> dict[str, str]:
        with Archive(tmp_path / ".warpwright/archive.db", readonly=True) as archive:
            return {record.key: record.status for record in archive.records() if not is_baseline(record)}

    with scripted_endpoint.opened() as endpoint:
        chat = OpenAI(f"http://127.0.0.1:{endpoint.server_port}/v1", "small", timeout=2.0, attempts=1, wait=0.01)
        monkeypatch.setattr(opening, "open_chat", lambda spec: chat)
        endpoint.script = [*answers[:2], "hangs", "drops", "garbage", "refuses"]
        cli.main(command)
        first = statuses()
        assert list(first.values()) == ["not_built", "wrong"] and endpoint.seen <= 2 + 4, "it ends soon, and what came before stays"
        endpoint.script, endpoint.seen = answers[2:], 0
        assert cli.main(command) == cli.DONE
    assert endpoint.seen == len(answers) - 2 == 4, "what was answered is not asked again"
    assert list(statuses().items())[:2] == list(first.items()) and list(statuses().values())[2:5] == ["ok", "ok", "wrong"]


LEAK = """
import os

import torch

SEEN = {name: value for name, value in os.environ.items() if "KEY" in name or "sk-" in value}


class ModelNew(torch.nn.Module):
    def forward(self, x):
        if SEEN:
            raise RuntimeError(f"seen: {SEEN}")
        return x.sum(1)
"""


@pytest.mark.slow
@pytest.mark.compiler
def test_keys_do_not_reach_a_candidate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from warpwright import domains
    from warpwright.base import Source
    from warpwright.verifier import verify

    monkeypatch.setenv("WARPWRIGHT_API_KEY", "sk-never-to-be-seen")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-to-be-seen")
    task = domains.describe(EXAMPLES / "row_sum.cu")
    build, verdict = verify.audit(task, Source("python", (("leak.py", LEAK),)))
    assert build.ok and verdict.ok, f"{build.log[-500:]} {verdict.reason}"


@pytest.mark.slow
@pytest.mark.compiler
def test_a_kernel_that_does_not_compute_its_reference_is_no_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (EXAMPLES / "row_sum.cu").read_text().replace("j < columns; ++j", "j < columns - 1; ++j")
    (tmp_path / "row_sum.cu").write_text(text)
    (tmp_path / "row_sum_task.py").write_text((EXAMPLES / "row_sum_task.py").read_text())
    how = ["--target", "cpu", "--budget", "2 proposals", "--out", str(tmp_path / "out"), "--archive", str(tmp_path / "a.db")]
    assert cli.main(["optimize", str(tmp_path / "row_sum.cu"), *how]) == cli.WRONG_USE
    assert "expected what the reference gives in float64" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.compiler
def test_a_record_is_explained_and_its_steps_are_measured_on_request(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    where = ["--archive", str(tmp_path / "a.db")]
    how = ["--target", "cpu", "--budget", "6 proposals", "--baselines", "eager", "--out", str(tmp_path / "out"), "--json"]
    assert cli.main(["optimize", str(EXAMPLES / "row_sum.cu"), *how, *where]) == cli.DONE
    with Archive(tmp_path / "a.db", readonly=True) as archive:
        passed = [one for one in archive.records() if one.status == "ok" and one.candidate.actions and not is_baseline(one)]
        record = max(passed, key=lambda one: len(one.candidate.actions))  # which recipes come first is the search's own affair
        before = len(archive.records())
    capfd.readouterr()
    assert cli.main(["explain", record.key, "--measure", "--json", *where]) == cli.DONE
    said = json.loads(capfd.readouterr().out)
    assert len(said["steps"]) == len(record.candidate.actions) and all(step["gain"] or step["note"] for step in said["steps"])
    assert not any("was not measured" in what for what in said["missing"]) and said["sandbox"]
    with Archive(tmp_path / "a.db", readonly=True) as archive:
        alone = len(record.candidate.actions) == 1  # its one step is measured by the text as given, of which there is a record
        assert len(archive.records()) > before or alone, "what was measured is kept"
    assert said["difference"] and said["times"] and said["roofline"]
