"""Harbor folders: complete, and their reward is true whatever the agent left running."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from warpwright.adapters import export, harbor
from warpwright.adapters.harbor import Places
from warpwright.adapters.judge import Judge, Judged
from warpwright.errors import UsageError

REPOSITORY = Path(__file__).resolve().parents[2]
AGENT = 61234
"""A user that this machine does not have."""

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="another user's processes are started and ended, which root alone may")


def test_a_folder_has_what_harbor_reads(bench: Any, tmp_path: Path) -> None:
    export.write("harbor", bench.where, tmp_path)
    task = tomllib.loads((tmp_path / "task.toml").read_text())
    assert task["task"]["name"] == "warpwright/positive_sums" and task["artifacts"] == ["/app/program.py"]
    assert (task["agent"]["user"], task["verifier"]["user"], task["verifier"]["environment_mode"]) == ("agent", "root", "separate")
    assert "torch.relu(x)" in (tmp_path / "instruction.md").read_text() and "/app/program.py" in (tmp_path / "instruction.md").read_text()
    assert (tmp_path / "tests/task/positive_sums.py").read_text() == Path(bench.where.task).read_text()
    assert "class ModelNew" in (tmp_path / "solution/program.py").read_text() == (tmp_path / "environment/program.py").read_text()
    for script in ("tests/test.sh", "solution/solve.sh"):
        assert os.access(tmp_path / script, os.X_OK) and subprocess.run(["bash", "-n", tmp_path / script], timeout=20).returncode == 0
    told = (tmp_path / "environment/Dockerfile").read_text() + (tmp_path / "instruction.md").read_text()
    assert "/tests" not in told, "the agent's container holds neither the tests nor their place"


def test_a_cuda_task_takes_its_task_file_along(tmp_path: Path) -> None:
    cuda = REPOSITORY / "examples" / "cuda" / "row_sum.cu"
    described = {"task": {"name": "row_sum", "options": [["task_path", str(cuda.with_name("row_sum_task.py"))]]}, "baselines": ["eager"],
                 "program": {"language": "cuda", "statement": "s", "context": "c", "source": "x"}}  # fmt: skip
    files = harbor.files(harbor.Where(str(cuda), device="cuda"), described)
    assert {"tests/task/row_sum.cu", "tests/task/row_sum_task.py", "environment/program.cu"} <= files.keys()
    assert "gpus = 1" in files["task.toml"] and "/tests/task/row_sum.cu" in files["tests/judge.py"]


@pytest.mark.parametrize("kind", ["missing", "link", "folder", "pipe", "large"])
def test_what_is_no_file_of_the_agents_is_nothing(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    make: dict[str, Callable[[], Any]] = {
        "missing": lambda: None, "link": lambda: path.symlink_to("/etc/hostname"), "folder": path.mkdir, "pipe": lambda: os.mkfifo(path),
        "large": lambda: path.write_bytes(b"x" * (harbor.MOST_BYTES + 1)),
    }  # fmt: skip
    make[kind]()
    assert harbor._handed_in(path) == ""


class Scripted:
    """Stands in for the judge of a program."""

    def __init__(self, where: Any) -> None:
        pass

    def score(self, text: str) -> Judged:
        return Judged(1.5, True, "FASTER", "right", {})


def test_the_rewards_folder_is_new_and_its_owners_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = tmp_path / "logs" / "verifier"
    logs.mkdir(parents=True)
    logs.chmod(0o777)
    (logs / "reward.json").symlink_to(tmp_path / "elsewhere")
    monkeypatch.setattr(harbor, "Judge", Scripted)
    harbor.judge(harbor.Where("task.py"), Places(str(tmp_path / "program.py"), str(logs), agent="no such user"))
    assert json.loads((logs / "reward.json").read_text()) == {"reward": 1.5} and not (logs / "reward.json").is_symlink()
    assert logs.stat().st_mode & 0o077 == 0 and not (tmp_path / "elsewhere").exists()


@pytest.mark.skipif(os.getuid() == 0, reason="root may end everybody's processes")
def test_without_the_right_to_end_the_agents_processes_there_is_no_reward() -> None:
    with pytest.raises(UsageError, match="root"):
        harbor.end_processes("0")


FORGER = 'while true; do mkdir -p "$(dirname "$0")"; echo "{\\"reward\\": 1000.0}" > "$0"; sleep 0.01; done 2> /dev/null'

DAEMON = """import os
import time


def forge():
    for name in ("fork", "forkpty"):
        try:
            if getattr(os, name)() not in (0, (0, -1)):
                return
            os.setsid()
            if os.fork():
                os._exit(0)
        except Exception:
            return
        for _ in range(100000):
            try:
                with open(REWARD, "w") as file:
                    file.write('{"reward": 1000.0}')
            except OSError:
                pass
            time.sleep(0.002)
        os._exit(0)


REWARD = "@REWARD"
forge()
"""


def running() -> list[int]:
    return sorted(harbor._processes_of(AGENT))


def forgers(reward: Path) -> None:
    """Start three daemons of the agent's that write a reward of their own; return when they are at work."""
    for _ in range(3):
        subprocess.Popen(["/bin/bash", "-c", FORGER, str(reward)], user=AGENT, start_new_session=True)
    deadline = time.monotonic() + 30
    while not (reward.exists() and len(running()) >= 3) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert json.loads(reward.read_text() or "{}") in ({"reward": 1000.0}, {}), "the forgers are at work"


@needs_root
def test_daemons_of_the_agent_do_not_touch_the_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path("/tmp") / f"harbor-{os.getpid()}-{time.time_ns()}"  # where the agent's user may go
    try:
        (root / "logs" / "verifier").mkdir(parents=True)
        for folder in (root / "logs", root / "logs" / "verifier"):
            folder.chmod(0o777)
        root.chmod(0o755)
        reward = root / "logs" / "verifier" / "reward.json"
        forgers(reward)
        monkeypatch.setattr(harbor, "Judge", Scripted)
        harbor.judge(harbor.Where("task.py"), Places(str(root / "program.py"), str(reward.parent), agent=str(AGENT)))
        time.sleep(0.2)
        assert json.loads(reward.read_text()) == {"reward": 1.5} and running() == []
        assert json.loads((reward.parent / "details.json").read_text())["ended_processes"] >= 3
    finally:
        harbor.end_processes(str(AGENT))
        shutil.rmtree(root, ignore_errors=True)


@needs_root
@pytest.mark.slow
def test_daemons_of_the_agent_and_of_its_artefact_do_not_touch_the_reward(real: Any) -> None:
    root = Path("/tmp") / f"harbor-{os.getpid()}-{time.time_ns()}"  # where the agent's user may go
    try:
        for name in ("app", "logs", "logs/verifier", "tests"):
            (root / name).mkdir(parents=True)
            (root / name).chmod(0o777)
        root.chmod(0o755)
        places = Places(str(root / "app/program.py"), str(root / "logs/verifier"), str(root / "tests"), str(AGENT))
        path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
        described = Judge(real.where).describe()
        for name, text in harbor.files(replace(real.where, seconds=0.2), described, places, sys.executable, {"PYTHONPATH": path}).items():
            if name.startswith("tests/"):
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
        reward = root / "logs/verifier/reward.json"
        (root / "app/program.py").write_text(DAEMON.replace("@REWARD", str(reward)) + real.right)
        forgers(reward)
        done = subprocess.run(["bash", str(root / "tests/test.sh")], capture_output=True, text=True, timeout=280)
        assert done.returncode == 0, done.stderr[-3000:]
        given, details = (json.loads((root / "logs/verifier" / name).read_text()) for name in ("reward.json", "details.json"))
        assert running() == [] and details["ended_processes"] >= 3
        answer = details["answer"]
        true = answer["speedup"]["best"] if answer["status"] == "ok" else 0.0
        assert given == {"reward": true} and true < 1000, details
        time.sleep(0.3)
        assert json.loads(reward.read_text()) == given, "nobody writes it afterwards"
    finally:
        harbor.end_processes(str(AGENT))
        shutil.rmtree(root, ignore_errors=True)
