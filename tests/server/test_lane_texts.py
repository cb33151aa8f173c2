"""What a lane makes of a text in the task's own language, before anything is evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from warpwright.run import Settings
from warpwright.server.lane_process import Lane

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def lane(request: pytest.FixtureRequest) -> Iterator[Lane]:
    settings = Settings(baselines=("eager",))
    made = Lane(settings.describe(EXAMPLES / request.param), settings)
    yield made
    made.reset()


@pytest.mark.parametrize("lane", ["cuda/row_sum.cu"], indirect=True)
def test_a_cuda_text_stands_in_place_of_the_given_one(lane: Lane) -> None:
    pytest.importorskip("clang")
    given = (EXAMPLES / "cuda/row_sum.cu").read_text()
    program = lane.describe()["program"]
    assert program["language"] == "cuda" and program["source"] == given.strip() and "def reference" in program["context"]
    made = lane.candidate({"text": given.replace("255) / 256, 256", "127) / 128, 128")})["candidate"]
    assert made["proposer"] == "client" and made["actions"][0]["technique"] == "write" and "/ 128, 128" in made["source"]["files"][0][1]
    record = lane.candidate({"text": given.replace("void row_sum(", "void sums(")})["record"]
    assert record["status"] == "not_built" and "expected the host function row_sum" in record["detail"] and record["versions"]


@pytest.mark.parametrize("lane", ["softmax_task.py"], indirect=True)
def test_a_python_text_is_the_program(lane: Lane) -> None:
    program = lane.describe()["program"]
    assert program["language"] == "python" and program["source"].endswith("class ModelNew(Model):\n    pass\n")
    assert "class ModelNew" in program["statement"] and "def get_inputs" in program["context"]
    made = lane.candidate({"text": "class ModelNew: ..."})["candidate"]
    assert made["source"]["files"] == (("candidate.py", "class ModelNew: ..."),) and made["actions"] == ()
