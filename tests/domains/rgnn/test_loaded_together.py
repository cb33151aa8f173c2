"""Kernels whose results are judged together are used where each is there and what they compute together is right."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from warpwright.domains.rgnn.emit.own.kernel import Launch, loaded_together

CPU = torch.device("cpu")


@dataclass(frozen=True)
class Given:
    """A kernel with a launch, or without one."""

    launch: Launch | None

    def launcher(self, device: torch.device) -> Launch | None:
        return self.launch


def launch(*_: Any) -> None:
    """Launch nothing."""


def loaded(right: bool, *launches: Launch | None) -> Any:
    kernels: Any = [Given(one) for one in launches]
    return loaded_together(kernels, CPU, lambda *found: found, lambda found, device: right, "sums are made by torch")


def test_kernels_that_are_right_together_are_made_into_one() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert loaded(True, launch, launch) == (launch, launch)


def test_one_that_fails_leaves_all_out() -> None:
    assert loaded(True, launch, None) is None


def test_wrong_results_leave_all_out_and_are_told() -> None:
    with pytest.warns(UserWarning, match="^sums are made by torch: the CUDA kernels' results are wrong here$"):
        assert loaded(False, launch, launch) is None
