"""The real server, started as a command, with real clients and a small task on the CPU."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from warpwright.server import Client, ServerError

TASK = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x).sum(dim=1)


def get_inputs():
    return [torch.randn(64, 256)]


def get_init_inputs():
    return []
"""

PROGRAM = """import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return {}
"""

RIGHT = PROGRAM.format("x.clamp(min=0).sum(dim=1)")
WRONG = PROGRAM.format("x.abs().sum(dim=1)")
HANGS = PROGRAM.format("__import__('time').sleep(1000)")
QUICK = {"baselines": ["eager"], "seconds": 1}


SERVE = [sys.executable, "-m", "warpwright.cli", "serve"]


class Server:
    """The command, in a folder of its own."""

    def __init__(self, folder, *options):
        self.folder = folder
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(Path.cwd()), os.environ.get("PYTHONPATH", "")]))}
        self.process = subprocess.Popen(
            [*SERVE, "--json", "--folder", str(folder), *options], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs, these tests perhaps, ignore it
        )  # fmt: skip
        self.told = json.loads(self.process.stdout.readline())

    def end(self, number=signal.SIGINT):
        self.process.send_signal(number)
        self.process.wait(60)
        self.process.stdout.close()


def holders(folder):
    """The processes that the server in `folder` has started, and it: they hold its log open, or descend from who does."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if any(str(folder) in os.readlink(link) for link in (entry / "fd").iterdir()):
                found.add(int(entry.name))
        except OSError:
            continue
    return found - {os.getpid()}


def folders_of(pids):
    """The folders that fork servers among these processes were given."""
    found = set()
    for pid in pids:
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        if "warpwright.workers.zygote" in words:
            found |= {Path(word) for word in words if "/warpwright-" in word and Path(word).is_absolute()}
    return found


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    """One task for all: the server keeps its lane warm."""
    path = tmp_path_factory.mktemp("task") / "task.py"
    path.write_text(TASK)
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    started = Server(tmp_path_factory.mktemp("serve") / "server")
    yield started
    started.end()
    assert started.process.returncode == 3  # interrupted, as any verb is


def raw(folder, *lines):
    """Send lines as they are; return the answers until the connection ends."""
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(60)
        one.connect(str(folder / "socket"))
        one.sendall(b"".join(lines))
        one.shutdown(socket.SHUT_WR)
        return [json.loads(line) for line in one.makefile("rb")]


def test_two_clients_at_once_and_neither_sees_the_other(server, task):
    answers = {}

    def work(name, text):
        with Client(server.folder) as client:
            answers[name] = client.evaluate(task, text, **QUICK), client.status()["jobs"], client.best(task)["files"]

    threads = [threading.Thread(target=work, args=pair) for pair in (("right", RIGHT), ("wrong", WRONG))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    right, jobs, best = answers["right"]
    assert right["status"] == "ok" and right["verdict"] in ("FASTER", "SAME", "SLOWER", "UNSURE") and len(jobs) == 1
    assert best == [["candidate.py", RIGHT]]
    wrong, jobs, best = answers["wrong"]
    assert (wrong["status"], wrong["check"]) == ("wrong", "values") and len(jobs) == 1 and best == []


def test_nonsense_gets_an_error_and_the_connection_goes_on(server):
    answers = raw(server.folder, b"no json\n", b"[1]\n", b'{"id": 4, "verb": "reboot"}\n', b'{"id": 5, "verb": "status"}\n')
    assert [answer.get("id") for answer in answers] == [None, None, 4, 5]
    assert all(answer["error"]["kind"] == "usage" for answer in answers[:3]) and "evaluate" in answers[2]["error"]["hint"]
    assert answers[3]["result"]["jobs"] == []


def test_a_line_without_end_is_cut_off(server):
    answers = raw(server.folder, b"[" * ((16 << 20) + 1))
    assert [answer["error"]["kind"] for answer in answers] == ["usage"]


def test_a_task_that_is_none_is_said_so(server, tmp_path):
    with Client(server.folder) as client, pytest.raises(ServerError, match="does not exist") as caught:
        client.evaluate(tmp_path / "nothing.py", RIGHT)
    assert caught.value.kind == "usage"


def test_a_candidate_that_hangs_meets_its_deadline_and_the_next_is_served(server, task):
    with Client(server.folder) as client:
        client.evaluate(task, WRONG, **QUICK)  # the lane is warm
        began = time.monotonic()
        with pytest.raises(ServerError) as caught:
            client.evaluate(task, HANGS, deadline=3, **QUICK)
        assert caught.value.kind == "deadline" and time.monotonic() - began < 60
        assert client.evaluate(task, WRONG, again=True, **QUICK)["status"] == "wrong"


def test_a_client_that_is_killed_leaves_nothing_in_the_queue(server, task):
    text = f"""
from warpwright.server import Client
client = Client({str(server.folder)!r})
print(client.session, flush=True)
first = client.submit(verb="evaluate", task={str(task)!r}, candidate={{"files": [["a.py", {HANGS!r}]]}}, deadline=4, baselines=["eager"], seconds=1)
second = client.submit(verb="evaluate", task={str(task)!r}, candidate={{"files": [["a.py", {WRONG!r}]]}}, baselines=["eager"], seconds=1)
second.queued()
print("queued", flush=True)
second.result()
"""
    victim = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True)
    session = victim.stdout.readline().strip()
    assert victim.stdout.readline() == "queued\n"
    victim.kill()
    victim.wait(60)
    victim.stdout.close()
    with Client(server.folder, session=session) as client:
        deadline = time.monotonic() + 30
        while any(job["state"] != "done" for job in client.status()["jobs"]) and time.monotonic() < deadline:
            time.sleep(0.05)
        status = client.status()
        assert [job["state"] for job in status["jobs"]] == ["done", "done"] and status["waiting"] == 0
        assert client.evaluate(task, WRONG, **QUICK)["cached"] is False  # it was dropped, not evaluated


def test_a_server_that_is_killed_leaves_nothing_and_starts_again(tmp_path, task):
    server = Server(tmp_path / "server")
    client = Client(server.folder)
    assert client.evaluate(task, WRONG, **QUICK)["status"] == "wrong"
    hanging = client.submit(verb="evaluate", task=str(task), candidate={"files": [["a.py", HANGS]]}, **QUICK)
    hanging.queued(10)
    time.sleep(0.5)
    started = holders(server.folder) - {server.process.pid}
    folders = folders_of(started)
    assert len(folders) == 2 and all(folder.is_dir() for folder in folders)
    server.end(signal.SIGKILL)
    with pytest.raises(ServerError) as caught:
        hanging.result(60)
    assert caught.value.kind == "gone"
    deadline = time.monotonic() + 60
    while (holders(server.folder) or any(folder.exists() for folder in folders)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert holders(server.folder) == set() and not any(folder.exists() for folder in folders)
    again = Server(tmp_path / "server")
    with Client(again.folder, session=client.session) as same:
        answer = same.evaluate(task, WRONG, **QUICK)
        assert (answer["status"], answer["cached"]) == ("wrong", True)
    with pytest.raises(ServerError, match="session"):
        Client(again.folder, session="guessed")
    again.end()


def test_tcp_wants_the_token(tmp_path, task):
    server = Server(tmp_path / "server", "--port", "0", "--tasks", str(tmp_path))
    try:
        address = tuple(server.told["address"])
        assert address[0] == "127.0.0.1"
        with pytest.raises(ServerError, match="token") as caught:
            Client(address, token="0" * 64)
        assert caught.value.kind == "denied"
        token = (server.folder / "token").read_text().strip()
        assert (server.folder / "token").stat().st_mode & 0o077 == 0 and server.folder.stat().st_mode & 0o077 == 0
        with Client(address, token=token) as client:
            assert client.status()["jobs"] == []
            with pytest.raises(ServerError, match="expected a task in"):
                client.evaluate("/etc/hostname", RIGHT)
        second = subprocess.run(
            [*SERVE, "--folder", str(server.folder)], capture_output=True, text=True, timeout=60
        )
        assert second.returncode == 2 and "no other server" in second.stderr
    finally:
        server.end()
