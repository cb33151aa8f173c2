"""An input of few elements is drawn more often: what is seldom so of a value is met all the same."""

import random
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from warpwright.base import Case
from warpwright.verifier import verify
from warpwright.verifier.judge.original.answers import least_values
from warpwright.workers.tensors import exchange


def drawn(inputs: list[Any], other: list[Any] | None = None) -> list[int]:
    """Return the seeds of the nominal draws on which a program is called besides; `other`: what another draw of its inputs gave."""
    seeds: list[int] = []
    few = least_values(inputs, inputs if other is None else other)
    verification: Any = object.__new__(verify._Verification)
    verification.judge = SimpleNamespace(facts={"least_values": few}, sound=lambda case, which: case)
    verification.random = random.Random(7)
    verification.call = lambda case, which: seeds.append(case.seed)
    verification.more_values(Case("nominal", 1))
    return seeds


def test_few_values_mean_more_draws():
    many = torch.rand(64, 200)
    assert len(set(drawn([many, torch.rand(5)]))) == 52
    assert len(set(drawn([many, torch.rand(32)]))) == 8
    assert not drawn([many]) and not drawn([])


def test_so_do_whole_numbers_and_numbers_of_python_that_are_others_in_each_draw():
    many, labels = torch.rand(64, 200), torch.arange(5)
    assert not drawn([many, labels, 3, True, "mean", None])
    assert len(drawn([many, labels], [many, labels + 1])) == 52
    for one, other in ((3, 4), (0.5, 0.25), (True, False)):
        assert len(drawn([many, {"of": one}], [many, {"of": other}])) == verify.MOST_DRAWS


def test_more_draws_end_in_time(monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as patched:
        patched.setattr(verify, "DRAWS_SECONDS", -1.0)
        assert len(drawn([torch.rand(5)])) == 1
    monkeypatch.setattr(verify, "MOST_SECONDS", -1.0)
    assert len(drawn([torch.rand(5)])) == 1


def test_what_lay_on_the_host_is_judged_there():
    """A model on a GPU may hand out a tensor that was never moved: the judge's own answer lies on the host as well."""
    shelf = exchange.Shelf("/nowhere")
    here = shelf.put(torch.arange(3.0))
    assert exchange.take_where_it_lay(here, "meta").device.type == "cpu"
    assert exchange.take_where_it_lay({**here, "device": "meta"}, "cpu").tolist() == [0.0, 1.0, 2.0]
