"""On a GPU a checked call copies what came out before it answers: what is written later is not in what is judged. Tried here on CPU tensors."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from warpwright.base import Case
from warpwright.verifier.aftermath import LATE_CALLS, launched_late
from warpwright.verifier.judge_client import Comparison
from warpwright.verifier.timed import TimedProgram
from warpwright.verifier.verify import LAST, _Verification
from warpwright.workers.inside.runner import Program, Runner
from warpwright.workers.tensors import exchange


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


@pytest.mark.parametrize(("fact", "held"), [("", 1), ("mutated_inputs", 0), ("stateful", 0), ("random", 0)])
def test_a_timed_program_is_asked_for_it_too(fact: str, held: int) -> None:
    """In a call more than those that are timed, where such a call can be made on what lies there."""
    facts = {"mutated_inputs": [], "mutated_state": [], "stateful": False, "random": False} | ({fact: [True]} if fact else {})
    asked: list[Any] = []
    judge = SimpleNamespace(facts=facts, compare=lambda *_: Comparison("values", "it was late"))
    worker = SimpleNamespace(
        device="cuda:0", role="candidate", reads=False, exchange="", waits=[],
        go=lambda **options: asked.append(options), request=lambda *_, **__: {"tree": {}},
    )  # fmt: skip
    program = TimedProgram(judge, worker, "candidate")  # type: ignore[arg-type]
    found = program._held_call(Case("nominal", 1))
    assert asked == [{"hold": True}] * held and found.check == ("values" if held else "")


def test_a_kernel_launched_when_the_call_is_over_is_waited_for(tmp_path: Path) -> None:
    """The device is looked at for a while; simulated by a first wait that takes long."""
    subject, waits = runner(tmp_path, torch.zeros(1)), iter([2e-3])

    def wait() -> None:
        end = time.perf_counter() + next(waits, 5e-5)
        while time.perf_counter() < end:
            pass

    subject.synchronize = wait  # type: ignore[method-assign]
    assert subject._longest_wait() >= 2e-3


def test_one_long_wait_is_chance_and_eight_running_are_work() -> None:
    worker = SimpleNamespace(waits=[50e-6] * (LATE_CALLS - 1))
    assert not launched_late(worker)  # type: ignore[arg-type]
    worker.waits += [0.0] + [50e-6] * (LATE_CALLS - 1)
    assert not launched_late(worker)  # type: ignore[arg-type]
    worker.waits.append(30e-6)
    assert "for 30 us and more" in launched_late(worker)  # type: ignore[arg-type]
