"""An input of few elements is drawn more often: what is seldom so of a value is met all the same."""

import random
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from warpwright.base import Case
from warpwright.verifier import verify
from warpwright.verifier.judge.reference import least_values
from warpwright.workers.tensors import exchange


def drawn(*shapes: list[int], dtype: torch.dtype = torch.float32) -> list[int]:
    """Return the seeds of the nominal draws on which a program is called besides."""
    seeds: list[int] = []
    few = least_values([torch.empty(shape, dtype=dtype) for shape in shapes])
    verification: Any = object.__new__(verify._Verification)
    verification.judge = SimpleNamespace(facts={"least_values": few}, sound=lambda case, which: case)
    verification.random = random.Random(7)
    verification.call = lambda case, which: seeds.append(case.seed)
    verification.more_values(Case("nominal", 1))
    return seeds


def test_few_values_mean_more_draws():
    assert len(set(drawn([64, 200], [5]))) == verify.MOST_DRAWS
    assert len(set(drawn([64, 200], [32]))) == 8
    assert not drawn([64, 200]) and not drawn([5], dtype=torch.int64) and not drawn()


def test_more_draws_end_in_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(verify, "DRAWS_SECONDS", -1.0)
    assert len(drawn([5])) == 1


def test_what_lay_on_the_host_is_judged_there():
    """A model on a GPU may hand out a tensor that was never moved: the judge's own answer lies on the host as well."""
    shelf = exchange.Shelf("/nowhere")
    here = shelf.put(torch.arange(3.0))
    assert exchange.take_where_it_lay(here, "meta").device.type == "cpu"
    assert exchange.take_where_it_lay({**here, "device": "meta"}, "cpu").tolist() == [0.0, 1.0, 2.0]
