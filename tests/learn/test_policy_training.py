"""Training end to end, where the extra learn is installed: three stages, the same for a seed, resumed after kill -9, and better than without."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from drawn_rows import CONFIG, write_config

from warpwright import cli
from warpwright.learn.policy import config, stages
from warpwright.learn.policy.train import STAGES, train

pytest.importorskip("trl", reason="training a policy needs trl (extra learn)")

FEW = 5
"""Tasks, of which four are trained on: after four steps all have been asked for, and a training that was killed then is in its second round."""


def weights(folder: Path) -> bytes:
    return (folder / "seed_0" / "contrastive" / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole training, through the command."""
    folder = tmp_path_factory.mktemp("trained")
    assert cli.main(["train", "--config", str(write_config(folder, count=FEW)), "--out", str(folder / "out")]) == 0
    return folder


def test_the_report_and_the_log(trained: Path) -> None:
    report = json.loads((trained / "out" / "report.json").read_text())
    assert [row["proposer"] for row in report["table"]] == [*STAGES, "random", "greedy", "evolve"]
    lines = [json.loads(line) for line in (trained / "out" / "seed_0" / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "reward" in line] == [*range(1, 9)]
    assert [line["stage"] for line in lines if line.get("finished")] == list(STAGES)
    [sampled] = [line for line in lines if "sampled" in line]
    assert 0 < sampled["passed"] <= sampled["sampled"]


@pytest.mark.slow
def test_all_stages_are_asked_at_one_temperature(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    explored: list[float] = []
    monkeypatch.setattr(stages, "_fine_tune", lambda *_: None)
    monkeypatch.setattr(stages, "sampled", lambda policy, asked, *_: [explored.append(policy.notes.temperature), [()] * len(asked)][1])
    changes = ("contrastive.steps=0", "contrastive.asked_at=0.5", "contrastive.temperature=0.9", "comparing.runs=1", "comparing.searches=[]")
    train(config.load(write_config(tmp_path), changes), tmp_path / "out", print)
    found = {path.parent.name: json.loads(path.read_text())["temperature"] for path in (tmp_path / "out").glob("seed_*/*/policy.json")}
    assert found == dict.fromkeys(STAGES[:2], 0.5) and set(explored) == {0.9}


def test_a_finished_training_is_not_done_again(trained: Path) -> None:
    began = time.monotonic()
    train(config.load(trained / "small.toml"), trained / "out", print)
    assert time.monotonic() - began < 20


def test_a_folder_of_another_config_is_refused(trained: Path) -> None:
    changed = ["train", "--config", str(trained / "small.toml"), "--set", "contrastive.steps=7"]
    assert cli.main([*changed, "--out", str(trained / "out")]) == cli.WRONG_USE


def test_killed_and_resumed_it_ends_as_it_would_have(trained: Path, tmp_path: Path) -> None:
    path = write_config(tmp_path, count=FEW)
    command = [sys.executable, "-m", "warpwright", "train", "--config", str(path), "--out", str(tmp_path / "out")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    steps = tmp_path / "out" / "seed_0" / "contrastive.steps"
    limit = time.monotonic() + 200
    while not (steps / "checkpoint-4" / "whole").exists() and time.monotonic() < limit and process.poll() is None:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(10)
    assert (steps / "checkpoint-4" / "whole").exists() and not (steps.parent / "contrastive").exists()
    train(config.load(path), tmp_path / "out", print)
    assert weights(tmp_path / "out") == weights(trained / "out")
    logged = [json.loads(line) for line in (tmp_path / "out" / "seed_0" / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in logged if "reward" in line] == [*range(1, 9)]


@pytest.mark.slow
def test_reinforcement_learns_what_pays_on_tasks_held_out(tmp_path: Path) -> None:
    text = CONFIG.replace("steps = 8", "steps = 60").replace("groups = 2", "groups = 6").replace("seeds = [0]", "seeds = [0, 1, 2]")
    report = train(config.load(write_config(tmp_path, text)), tmp_path / "out", print)
    [row] = [row for row in report["table"] if row["proposer"] == "contrastive"]
    mean, low, _ = row["over supervised, best of 1"]
    assert low > 1.0 and mean > 1.5
