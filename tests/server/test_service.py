"""The service with stand-ins for lanes: who gets what, in which order, and what happens when things end badly."""

import threading
import time

import pytest

from warpwright.base import Record, from_json, to_json
from warpwright.errors import LaneDied
from warpwright.server import ServerError, Service

TASK = "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x + {}\n\n\n"
TASK += "def get_inputs():\n    return [torch.rand(4)]\n\n\ndef get_init_inputs():\n    return []\n"


class FakeLane:
    """Answers at once, but for programs that say otherwise: `wait` until told to go on, `die` the first times."""

    opened, asked, deaths = [], [], 0
    go = threading.Event()

    def __init__(self, task, settings, log):
        self.task, self.settings, self.used, self.alive = task, settings, time.monotonic(), True
        self.cancelled = threading.Event()
        FakeLane.opened.append(task.name)

    def ask(self, op, **fields):
        self.used = time.monotonic()
        if op == "open":
            return {"result": {"versions": {"v": "1"}, "baselines": []}}
        if op == "candidate":
            return {"result": {"candidate": {"source": fields["program"], "target": "cpu", "actions": [], "proposer": "client"}}}
        candidate = fields["candidate"]
        text = candidate["source"]["files"][0][1]
        FakeLane.asked.append(text)
        if "wait" in text:
            while not FakeLane.go.wait(0.01):
                if self.cancelled.is_set():
                    return {"error": {"kind": "cancelled", "message": "stopped", "hint": ""}}
                if not self.alive:
                    raise LaneDied("killed")
        if "die" in text and FakeLane.deaths > 0:
            FakeLane.deaths -= 1
            self.alive = False
            raise LaneDied("it died")
        record = from_json(Record, {"task": to_json(self.task), "candidate": candidate, "device": "cpu", "status": "wrong", "versions": {"v": "1"}})
        return {"result": {"record": to_json(record)}}

    def cancel(self):
        self.cancelled.set()

    def kill(self):
        self.alive = False

    def close(self):
        self.alive = False


@pytest.fixture
def service(tmp_path):
    FakeLane.opened, FakeLane.asked, FakeLane.deaths = [], [], 0
    FakeLane.go.clear()
    with Service(tmp_path / "server", lanes=2, open_lane=FakeLane) as service:
        yield service
        FakeLane.go.set()


@pytest.fixture
def tasks(tmp_path):
    found = []
    for number in range(3):
        found.append(tmp_path / f"task{number}.py")
        found[-1].write_text(TASK.format(number))
    return found


def submit(service, session, task, text, **options):
    """Put an evaluation; return the job and a function that waits for its answer."""
    from warpwright.server import protocol

    done, answers = threading.Event(), []

    def answered(answer):
        answers.append(answer)
        if "job" not in answer:
            done.set()

    fields = {"verb": "evaluate", "task": str(task), "candidate": {"files": [["a.py", text]]}, **options}
    job = service.handle(session, protocol.parse(fields), answered)

    def answer():
        assert done.wait(10)
        return answers[-1]

    return job, answer


def running(job):
    deadline = time.monotonic() + 5
    while job.state != "running" and time.monotonic() < deadline:
        time.sleep(0.005)
    assert job.state == "running"


def test_a_program_is_evaluated_once_for_a_session(service, tasks):
    session = service.session()
    assert session.evaluate(tasks[0], "a")["cached"] is False
    assert session.evaluate(tasks[0], "a")["cached"] is True
    assert session.evaluate(tasks[0], "a", again=True)["cached"] is False
    assert FakeLane.asked == ["a", "a"] and FakeLane.opened == ["task0"]


def test_no_session_sees_anothers_programs(service, tasks):
    one, other = service.session(), service.session()
    one.evaluate(tasks[0], "secret")
    assert other.evaluate(tasks[0], "secret")["cached"] is False
    assert len(other.status()["jobs"]) == 1 and other.best(tasks[0])["best"] is None
    assert other.archive.path != one.archive.path
    job = next(iter(one.jobs))
    with pytest.raises(Exception, match="job of this session"):
        other.cancel(job)


def test_the_most_urgent_goes_first(service, tasks):
    session = service.session()
    first, _ = submit(service, session, tasks[0], "wait")
    running(first)
    waits = [submit(service, session, tasks[0], name, priority=priority)[1] for name, priority in (("low", 0), ("high", 5), ("middle", 1))]
    FakeLane.go.set()
    assert all("result" in wait() for wait in waits)
    assert FakeLane.asked == ["wait", "high", "middle", "low"]


def test_a_deadline_ends_what_waits_and_what_runs(service, tasks):
    session = service.session()
    job, answer = submit(service, session, tasks[0], "wait", deadline=0.3)
    running(job)
    _, waiting = submit(service, session, tasks[0], "never", deadline=0.05)
    assert waiting()["error"]["kind"] == "deadline" and answer()["error"]["kind"] == "deadline"
    assert "never" not in FakeLane.asked


def test_a_deadline_that_passes_while_a_lane_is_opened_ends_the_job(tmp_path, tasks):
    class Slow(FakeLane):
        def __init__(self, *about):
            time.sleep(0.5)
            super().__init__(*about)

    began = time.process_time()
    with Service(tmp_path / "slow", open_lane=Slow) as service:
        _, answer = submit(service, service.session(), tasks[0], "late", deadline=0.1)
        assert answer()["error"]["kind"] == "deadline" and "late" not in FakeLane.asked
    assert time.process_time() - began < 0.4  # nobody waits busily


def test_cancel_ends_what_waits_and_what_runs(service, tasks):
    session = service.session()
    job, answer = submit(service, session, tasks[0], "wait")
    running(job)
    other, waiting = submit(service, session, tasks[0], "never")
    session.cancel(other.key)
    session.cancel(job.key)
    assert waiting()["error"]["kind"] == "cancelled" and answer()["error"]["kind"] == "cancelled"


def test_a_lane_that_dies_is_started_again_once(service, tasks):
    FakeLane.deaths = 1
    assert service.session().evaluate(tasks[0], "die")["status"] == "wrong"
    FakeLane.deaths = 2
    with pytest.raises(ServerError, match="it died") as caught:
        service.session().evaluate(tasks[0], "die")
    assert caught.value.kind == "lane"


def test_the_lane_that_was_idle_for_longest_makes_room(service, tasks):
    session = service.session()
    for task in (tasks[0], tasks[1], tasks[0], tasks[2], tasks[0]):
        session.evaluate(task, "a", again=True)
    assert FakeLane.opened == ["task0", "task1", "task2"]


def test_what_waits_of_a_client_that_left_is_dropped_but_what_it_keeps(service, tasks):
    session = service.session()
    job, answer = submit(service, session, tasks[0], "wait")
    running(job)
    dropped, gone = submit(service, session, tasks[0], "dropped")
    kept, stays = submit(service, session, tasks[0], "kept", keep=True)
    service.left([job, dropped, kept])
    assert gone()["error"]["kind"] == "gone"
    FakeLane.go.set()
    assert "result" in answer() and "result" in stays()
    assert {record.candidate.source.text for record in session.archive.records()} == {"wait", "kept"}


def test_a_session_outlives_the_service(tmp_path, tasks):
    FakeLane.go.set()
    with Service(tmp_path / "server", open_lane=FakeLane) as service:
        session = service.session()
        session.evaluate(tasks[0], "a")
    with Service(tmp_path / "server", open_lane=FakeLane) as service:
        assert service.session(session.key).evaluate(tasks[0], "a")["cached"] is True


def test_tasks_lie_in_the_folders_that_were_named(tmp_path, tasks):
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    with Service(tmp_path / "server", open_lane=FakeLane, tasks=[allowed]) as service, pytest.raises(ServerError, match="expected a task in"):
        service.session().evaluate(tasks[0], "a")


def test_a_fault_of_ours_is_an_answer_and_the_service_goes_on(tmp_path, monkeypatch, capfd):
    def fault(self, *_):
        raise ZeroDivisionError("of ours")

    task = tmp_path / "t.py"
    task.write_text(TASK.format(1))
    with Service(tmp_path / "own", open_lane=FakeLane) as service:
        client = service.session()
        with monkeypatch.context() as patch:
            patch.setattr(Service, "_known", fault)
            with pytest.raises(ServerError, match="a fault of the service: ZeroDivisionError: of ours") as caught:
                client.evaluate(task, "x = 1")
        assert caught.value.kind == "failed" and "ZeroDivisionError" in capfd.readouterr().err
        assert client.evaluate(task, "x = 2")["status"] == "wrong"
