"""On a GPU a checked call copies what came out before it answers: what is written later is not in what is judged. Tried here on CPU tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

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
