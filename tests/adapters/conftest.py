"""One server for all adapters, with a task that is cheap to judge: by stand-ins for lanes in the quick tests, by real ones in the slow ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from warpwright.adapters.judge import Where
from warpwright.base import Measurement, Record, Timing, Verdict, from_json, to_json
from warpwright.server import Service
from warpwright.server.lane import Lane
from warpwright.server.listener import Listener

TASK = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return (torch.relu(x) * 1.0).sum(dim=1)


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


class StandIn:
    """Answers as a lane does, at once: programs of absolute values are wrong, all others right and twice as fast."""

    used = 0.0
    alive = True

    def __init__(self, task: Any, settings: Any, log: Path) -> None:
        self.task, self.versions = task, {"stand-in": "1"}

    def ask(self, op: str, **fields: Any) -> dict[str, Any]:
        return {"result": getattr(self, op)(**fields)}

    def open(self) -> dict[str, Any]:
        return {"versions": self.versions, "baselines": ["eager"]}

    def describe(self) -> dict[str, Any]:
        program = {"language": "python", "statement": "Faster.", "context": TASK, "source": f"{TASK}\n\nclass ModelNew(Model):\n    pass\n"}
        return {**self.open(), "task": to_json(self.task), "actions": ["identity()"], "limited": "", "program": program}

    def candidate(self, program: dict[str, Any]) -> dict[str, Any]:
        text = program.get("text") or str(program.get("actions") or program["files"][0][1])
        actions = [{"technique": name.partition("(")[0], "at": "", "params": []} for name in program.get("actions", ())]
        source = {"language": "python", "files": [["candidate.py", text]], "entry": "ModelNew"}
        return {"candidate": {"source": source, "target": "cpu", "actions": actions, "proposer": "client"}}

    def evaluate(self, candidate: dict[str, Any]) -> dict[str, Any]:
        right = ".abs()" not in candidate["source"]["files"][0][1]
        data = {"task": to_json(self.task), "candidate": candidate, "device": "cpu", "status": "ok" if right else "wrong", "versions": self.versions}
        record: Record = from_json(Record, data)
        verdict = Verdict(right, record.status, "" if right else "out: error max 1e+02", case="nominal", check="" if right else "values")
        return {"record": {**to_json(record), "verdict": to_json(verdict), "measurement": to_json(self.measured()) if right else None}}

    def compare(self, first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
        return {"records": [self.evaluate(one)["record"] for one in (first, second)], "measurement": to_json(self.measured())}

    def ablate(self, record: dict[str, Any]) -> dict[str, Any]:
        actions = from_json(Record, record).candidate.actions
        without = self.evaluate({**record["candidate"], "actions": []})["record"]
        return {"steps": [{"action": str(action), "gain": 2.0, "dropped": [], "without": without} for action in actions]}

    def measured(self) -> Measurement:
        ours, eager = (Timing((seconds,), seconds, seconds, seconds) for seconds in (1e-3, 2e-3))
        return Measurement("time", "s", "lower", ours, {"eager": eager}, "eager", 2.0, (1.9, 2.1), "FASTER")

    def cancel(self) -> None:
        pass

    def kill(self) -> None:
        self.alive = False

    close = kill


@dataclass(frozen=True)
class Bench:
    """A server that runs, and programs for its task."""

    where: Where
    right: str = PROGRAM.format("x.clamp(min=0).sum(dim=1)")
    wrong: str = PROGRAM.format("x.abs().sum(dim=1)")


def served(folder: Path, lane: Any) -> Iterator[Bench]:
    """A server in this process, on a socket."""
    task = folder / "positive_sums.py"
    task.write_text(TASK)
    with Service(folder / "server", open_lane=lane) as service, Listener(service):
        key = service.session().key  # what one test has had evaluated, the next one finds
        yield Bench(Where(str(task), str(folder / "server"), session=key, seconds=0.2, baselines=("eager",)))


@pytest.fixture(scope="module", params=["stand-in", pytest.param("real", marks=pytest.mark.slow)])
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A server with either kind of lane."""
    yield from served(tmp_path_factory.mktemp("adapters"), StandIn if request.param == "stand-in" else Lane)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A server whose lanes evaluate."""
    yield from served(tmp_path_factory.mktemp("real"), Lane)
