"""An OpenEnv environment: reset gives the task, a step judges one program, state has the best one so far. `app` is its HTTP server."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from warpwright.adapters.judge import Judge, Where, instruction
from warpwright.errors import MissingExtra

try:
    from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app
except ImportError as error:
    raise MissingExtra("openenv-core", "openenv", "an environment of OpenEnv") from error


class ProgramAction(Action):
    """One program."""

    program: str
    """The whole text."""


class JudgedObservation(Observation):
    """The task, or what became of a program. `reward` is its speed-up over the best baseline, 0 where it did not pass."""

    text: str
    verdict: str = ""
    correct: bool = False


class KernelState(State):
    """How far an episode is."""

    best: float = 0.0
    program: str = ""
    """The best one."""


class KernelEnvironment(Environment[ProgramAction, JudgedObservation, KernelState]):
    """Episodes of one task, each `steps` programs long."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, where: Where, steps: int = 8) -> None:
        super().__init__()
        self._judge, self._steps = Judge(where), steps
        self._state = KernelState()

    def reset(self, seed: int | None = None, episode_id: str | None = None, **others: Any) -> JudgedObservation:
        """Begin an episode; it is the same for every seed."""
        self._state = KernelState(episode_id=episode_id or uuid.uuid4().hex, step_count=0)
        return JudgedObservation(text=instruction(self._judge.describe()))

    def step(self, action: ProgramAction, timeout_s: float | None = None, **others: Any) -> JudgedObservation:
        """Judge a program."""
        judged = self._judge.score(action.program)
        state = self._state
        better = judged.score > state.best
        best, program = (judged.score, action.program) if better else (state.best, state.program)
        self._state = KernelState(episode_id=state.episode_id, step_count=state.step_count + 1, best=best, program=program)
        done = self._state.step_count >= self._steps
        return JudgedObservation(text=judged.feedback, verdict=judged.verdict, correct=judged.correct, reward=judged.score, done=done)

    @property
    def state(self) -> KernelState:
        """How far the episode is."""
        return self._state


def app(where: Where, steps: int = 8, environments: int = 8) -> Any:
    """Return the environment's server, for `uvicorn`."""
    return create_fastapi_app(lambda: KernelEnvironment(where, steps), ProgramAction, JudgedObservation, max_concurrent_envs=environments)


MANIFEST = """spec_version: 1
name: {name}
type: space
runtime: fastapi
app: server.app:app
port: 8000
"""

APP = """# uvicorn server.app:app --port 8000
from warpwright.adapters import openenv
from warpwright.adapters.judge import Where

app = openenv.app({where!r})
"""


def files(where: Where, described: Mapping[str, Any]) -> dict[str, str]:
    """Return the folder of an OpenEnv environment."""
    name = described["task"]["name"]
    return {"openenv.yaml": MANIFEST.format(name=name), "server/__init__.py": "", "server/app.py": APP.format(where=where)}
