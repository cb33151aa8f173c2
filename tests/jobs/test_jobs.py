"""Jobs in processes of their own, contained when they crash; and the device lock they take turns with."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from warpwright.errors import MissingExtra, UsageError, WorkerDied, WorkerError, WorkerTimeout
from warpwright.jobs import map_jobs
from warpwright.jobs.local import visible_gpus
from warpwright.timing.device_lock import DeviceLock, physical_name
from warpwright.workers.procfs import state_of


def wait_until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def test_results_come_with_their_positions() -> None:
    answers = dict(map_jobs("example_jobs:double", [{"value": i} for i in range(5)], 2))
    assert {position: answer["twice"] for position, answer in answers.items()} == {i: 2 * i for i in range(5)}
    assert len({answer["pid"] for answer in answers.values()}) == 5
    assert list(map_jobs("example_jobs:double", [], 2)) == []


def test_what_one_job_does_to_itself_is_its_own_affair() -> None:
    payloads: list[dict[str, Any]] = [{"how": "raise"}, {"how": "exit"}, {"how": "kill"}, {"how": "fine"}]
    answers = dict(map_jobs("example_jobs:fail", payloads, 2))
    assert isinstance(answers[0], WorkerError) and "a mistake in the job" in str(answers[0])
    assert isinstance(answers[1], WorkerDied) and "exit code 3" in str(answers[1]) and "last words" in str(answers[1])
    assert isinstance(answers[2], WorkerDied) and "SIGKILL" in str(answers[2])
    assert answers[3] is None


def test_a_result_that_is_no_plain_value() -> None:
    [(_, answer)] = map_jobs("example_jobs:unserialisable", [{}])
    assert isinstance(answer, WorkerError) and "JSON serializable" in str(answer)


def test_a_function_that_does_not_exist() -> None:
    [(_, answer)] = map_jobs("example_jobs:nothing", [{}])
    assert isinstance(answer, WorkerError) and "nothing" in str(answer)


def test_time_limit() -> None:
    began = time.monotonic()
    [(_, answer)] = map_jobs("example_jobs:fail", [{"how": "hang"}], timeout=1.0)
    assert isinstance(answer, WorkerTimeout) and time.monotonic() - began < 60


def test_gpus_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,6")
    assert visible_gpus() == ["4", "6"]
    seen = {answer["gpu"] for _, answer in map_jobs("example_jobs:double", [{"value": i} for i in range(6)], 2)}
    assert seen <= {"4", "6"}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert visible_gpus() == []
    assert physical_name("cuda") == "cuda-0"


INTERRUPTED = """
import sys
from warpwright.jobs import map_jobs
for _ in map_jobs("example_jobs:wait_for_interrupt", [{"folder": sys.argv[1], "n": n} for n in range(4)], 2):
    pass
"""


def test_interrupted_jobs_may_write_what_they_have(tmp_path: Path) -> None:
    listening = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell's background jobs, these tests perhaps, ignore it
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path)]
    process = subprocess.Popen(command, env=environment(), stderr=subprocess.DEVNULL, preexec_fn=listening)
    wait_until(lambda: len(list(tmp_path.glob("started-*"))) == 2)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) != 0
    assert len(list(tmp_path.glob("wrote-*"))) == len(list(tmp_path.glob("started-*"))) == 2


def test_a_killed_parent_takes_its_jobs_along(tmp_path: Path) -> None:
    file = tmp_path / "pids"
    script = "import sys\nfrom warpwright.jobs import map_jobs\nlist(map_jobs('example_jobs:with_child', [{'file': sys.argv[1]}]))"
    parent = subprocess.Popen([sys.executable, "-c", script, str(file)], env=environment())
    wait_until(lambda: file.exists() and len(file.read_text().split()) == 2)
    parent.kill()
    parent.wait(60)
    wait_until(lambda: not any(running(int(pid)) for pid in file.read_text().split()))


def running(pid: int) -> bool:
    return state_of(f"/proc/{pid}") not in ("Z", "X", "")


def environment() -> dict[str, str]:
    here = Path(__file__).parents[1]
    return {**os.environ, "PYTHONPATH": f"{here.parent}{os.pathsep}{here / 'helpers'}"}


def test_wrong_use() -> None:
    with pytest.raises(UsageError, match="local, ray"):
        map_jobs("example_jobs:double", [], executor="cloud")
    with pytest.raises(UsageError, match="--jobs 1"):
        map_jobs("example_jobs:double", [], 0)


# --- the device lock --------------------------------------------------------------------------------------------------------------


def hold(folder: str, kind: str, name: str) -> None:
    """Hold the device until the test says that it may go."""

    def log(event: str) -> None:
        with open(Path(folder, "events"), "a") as file:
            file.write(f"{event} {name}\n")

    lock = DeviceLock("cpu", folder)
    Path(folder, f"asks {name}").touch()
    with lock.exclusive() if kind == "exclusive" else lock.shared():
        log("in")
        while not Path(folder, f"go {name}").exists():
            time.sleep(0.01)
        log("out")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str, str], Any]]:
    context = multiprocessing.get_context("spawn")
    started: list[Any] = []

    def begin(kind: str, name: str) -> Any:
        process = context.Process(target=hold, args=(str(tmp_path), kind, name))
        process.start()
        started.append(process)
        wait_until(lambda: (tmp_path / f"asks {name}").exists())
        return process

    yield begin
    for process in started:
        process.kill()
        process.join()


def events(folder: Path, count: int) -> list[str]:
    """Return the events, when there are so many."""

    def lines() -> list[str]:
        file = folder / "events"
        return file.read_text().splitlines() if file.exists() else []

    wait_until(lambda: len(lines()) >= count)
    return lines()


def release(folder: Path, *names: str) -> None:
    for name in names:
        (folder / f"go {name}").touch()


def test_builders_share_and_a_timer_is_alone(start: Any, tmp_path: Path) -> None:
    start("shared", "a")
    start("shared", "b")
    events(tmp_path, 2)
    start("exclusive", "timer")
    wait_until(lambda: wanted(tmp_path))
    assert sorted(events(tmp_path, 2)) == ["in a", "in b"]
    release(tmp_path, "a", "b", "timer")
    assert events(tmp_path, 6)[4:] == ["in timer", "out timer"]


def test_a_timer_is_not_starved_by_builders(start: Any, tmp_path: Path) -> None:
    start("shared", "early")
    events(tmp_path, 1)
    start("exclusive", "timer")
    wait_until(lambda: wanted(tmp_path))
    start("shared", "late")
    release(tmp_path, "early")
    assert events(tmp_path, 3) == ["in early", "out early", "in timer"]
    release(tmp_path, "timer")
    assert events(tmp_path, 5)[3:] == ["out timer", "in late"]


def wanted(folder: Path) -> bool:
    import fcntl

    with open(folder / "cpu.wanted", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_a_killed_holder_gives_the_device_back(start: Any, tmp_path: Path) -> None:
    holder = start("exclusive", "killed")
    events(tmp_path, 1)
    holder.kill()
    start("exclusive", "next")
    release(tmp_path, "next")
    assert events(tmp_path, 3) == ["in killed", "in next", "out next"]


def test_the_lock_is_the_physical_devices(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    assert physical_name("cuda:1") == "cuda-5" and physical_name("cuda") == "cuda-3" and physical_name("cpu") == "cpu"
    with DeviceLock("cuda:1", tmp_path).exclusive():
        assert (tmp_path / "cuda-5.lock").exists()


# --- Ray --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(find_spec("ray") is not None, reason="ray is installed")
def test_ray_is_an_extra() -> None:
    with pytest.raises(MissingExtra, match=r"pip install .*\[ray\]"):
        map_jobs("example_jobs:double", [], executor="ray")


@pytest.fixture(scope="module")
def cluster() -> Any:
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'warpwright[ray]'")
    from ray.cluster_utils import Cluster

    store = 80 << 20
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": store, "include_dashboard": False})
    made.add_node(num_cpus=1, object_store_memory=store)
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


def test_two_ray_nodes_do_the_same_jobs(cluster: Any) -> None:
    import ray

    assert len([node for node in ray.nodes() if node["Alive"]]) == 2
    answers = dict(map_jobs("example_jobs:double", [{"value": i} for i in range(4)], 2, "ray"))
    assert {position: answer["twice"] for position, answer in answers.items()} == {i: 2 * i for i in range(4)}
    payloads: list[dict[str, Any]] = [{"how": "raise"}, {"how": "exit"}, {"how": "kill"}, {"how": "fine"}]
    failed = dict(map_jobs("example_jobs:fail", payloads, 2, "ray"))
    assert [type(failed[i]) for i in range(4)] == [WorkerError, WorkerDied, WorkerDied, type(None)]
    assert len(set(dict(map_jobs("example_jobs:node", [{"seconds": 3.0}] * 4, 2, "ray")).values())) == 2
