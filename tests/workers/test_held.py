"""On a GPU a checked call copies what came out before it answers: what is written later is not in what is judged. Tried here on CPU tensors."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from warpwright.base import Case
from warpwright.verifier.aftermath import launched_late
from warpwright.verifier.judge_client import Comparison, Shipment
from warpwright.verifier.timed import TimedProgram
from warpwright.verifier.verify import LAST, _Verification
from warpwright.workers.inside import waiting
from warpwright.workers.inside.construction import Program
from warpwright.workers.inside.runner import Runner
from warpwright.workers.tensors import exchange


@pytest.fixture(autouse=True)
def gradients() -> Iterator[None]:
    """A runner switches them off in its process, which is this one here."""
    with torch.enable_grad():
        yield


def runner(folder: Path, outputs: Any) -> Runner:
    made = Runner({"device": "cpu", "folder": str(folder), "exchange": str(folder), "isolation": []})
    made.program = Program(lambda: outputs, None, False)
    return made


def taken(reply: dict[str, Any]) -> list[Any]:
    return [exchange.take(item, "cpu") for item in exchange.descriptors(reply["tree"])]


def test_what_is_written_after_the_answer_is_not_handed_over(tmp_path: Path) -> None:
    block = torch.arange(40.0)
    outputs = (block[3:23].view(4, 5)[:, ::2], [torch.zeros(2000)])
    subject = runner(tmp_path, outputs)
    subject.call(True)
    block.fill_(7.0)
    outputs[1][0].fill_(7.0)
    first = subject.export()
    assert torch.equal(taken(first)[0], torch.arange(3.0, 23.0).view(4, 5)[:, ::2])
    assert not taken(first)[1].any()
    [strided, _] = list(exchange.descriptors(first["tree"]))
    assert (strided["stride"], strided["lead"]) == ([5, 2], 3)
    assert all((tensor == 7).all() for tensor in taken(subject.export())), "the next export shows the outputs as they are then"


def test_a_call_that_is_not_held_hands_over_what_is_there(tmp_path: Path) -> None:
    output = torch.zeros(3)
    subject = runner(tmp_path, output)
    subject.call()
    output.fill_(7.0)
    assert taken(subject.export())[0].tolist() == [7.0] * 3


def test_what_is_no_tensor_is_left_to_the_export(tmp_path: Path) -> None:
    subject = runner(tmp_path, (torch.zeros(3), "text", torch.zeros(2).to_sparse()))
    subject.call(True)
    assert exchange.foreign(subject.export()["tree"]) == "a tensor of layout torch.sparse_coo"


def test_the_verifier_asks_for_it() -> None:
    """What a checked call answers with is held; a call that is only timed, or only made, is not."""
    asked: list[Any] = []
    worker = SimpleNamespace(go=lambda **options: asked.append(options))
    judge = SimpleNamespace(warm_up=None)
    _Verification(judge, worker, "candidate").once(SimpleNamespace(inputs=None), LAST)  # type: ignore[arg-type]
    assert asked == [{"hold": True}]


@pytest.mark.parametrize(("fact", "held"), [("", 1), ("mutated_inputs", 0), ("stateful", 0), ("random", 1)])
def test_a_timed_program_is_asked_for_it_too(fact: str, held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a call more than those that are timed, where such a call can be made on what lies there; where random numbers are drawn, made ready anew."""
    facts = {"mutated_inputs": [], "mutated_state": [], "stateful": False, "random": False} | ({fact: [True]} if fact else {})
    asked: list[Any] = []
    made_ready: list[Any] = []
    judge = SimpleNamespace(facts=facts, compare=lambda *_: Comparison("shape", "it was late"))
    worker = SimpleNamespace(
        device="cuda:0", role="candidate", reads=False, exchange="", waits=[],
        go=lambda **options: asked.append(options), request=lambda *_, **__: {"tree": {}},
        lay_out=lambda *_, **options: made_ready.append(options) or {},
    )  # fmt: skip
    monkeypatch.setitem(TimedProgram._turns, "cuda:0", (worker, Shipment(Case("nominal", 1), None, draws=5)))
    program = TimedProgram(judge, worker, "candidate")  # type: ignore[arg-type]
    found = program._held_call(Case("nominal", 1))
    assert asked == [{"hold": True}] * held and found.check == ("shape" if held else "")
    assert made_ready == ([{"draws": 5}] if fact == "random" else [])


def test_a_kernel_launched_when_the_call_is_over_is_waited_for(tmp_path: Path) -> None:
    """The device is looked at for a while; simulated by a first wait that takes long. On a busy machine the thread may be put aside, and again."""
    subject, found = runner(tmp_path, torch.zeros(1)), -1.0
    for _ in range(200):
        waits = iter([5e-4])
        subject.synchronize = lambda waits=waits: spin(next(waits, 2e-5))  # type: ignore[method-assign, misc]
        found = waiting.longest(subject.synchronize)
        if found > 0:
            break
    assert found >= 5e-4
    assert all(waiting.longest(subject.synchronize) < 5e-4 for _ in range(3)), "an idle device is not waited for so long, or nothing is said"


def spin(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


@pytest.mark.parametrize(
    ("own", "idle", "seen"),
    [
        ([0.0], [0.0], False),  # nothing to suspect
        ([5e-5] * 9, [0.0] * 8, True),
        ([5e-5, 0.0] * 5, [0.0] * 8, False),  # chance
        ([5e-5] * 8 + [-1.0], [0.0] * 8, False),  # put aside once
        ([8e-3] * 9, [7e-3] * 8, False),  # the GPU is shared: it is slow after nothing, too
        ([8e-3] * 9, [0.0] * 7 + [7e-3], False),
    ],
)
def test_what_is_late_is_told_from_a_load(own: list[float], idle: list[float], seen: bool) -> None:
    worker, waits = SimpleNamespace(waits=own[:1]), {True: iter(own[1:]), False: iter(idle)}
    found = launched_late(worker, lambda program: worker.waits.append(next(waits[program])))  # type: ignore[arg-type]
    assert bool(found) == seen and (not seen or "for 50 us and more" in found)
