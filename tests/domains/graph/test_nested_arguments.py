"""Arguments that are nested otherwise than the verified ones take the original's forward: other keys, and keys in another order."""

from __future__ import annotations

import collections
import warnings
from typing import Any

import pytest
import torch

from tests.domains.graph import models
from warpwright.domains import graph

TEXT = """
import collections
import torch
from torch import nn

Pair = collections.namedtuple("Pair", "left right")

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(4, 4)

    def forward(self, d, pair, row):
        return self.one(d["x"]) - d["y"] * row[0], torch.cat(list(d.values())) + pair.left - pair.right * row[1]

def get_inputs():
    of = torch.rand
    return [{"x": of(1, 4), "y": of(1, 4)}, Pair(of(2, 4), of(2, 4)), [of(4), of(4)]]

def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    source = graph.space(models.task(tmp_path_factory.mktemp("nested"), TEXT), "cpu").candidate([]).source.text
    names: dict[str, Any] = {"__name__": "generated"}
    exec(source, names)
    return names


@pytest.mark.parametrize("way", ["as verified", "another order", "a class of dictionaries", "a tuple for a list", "other keys", "nested deeper"])
def test_what_is_nested_otherwise_takes_the_originals_forward(way: str, names: dict[str, Any]) -> None:
    model, new = names["Model"](), names["ModelNew"]()
    new.load_state_dict(model.state_dict())
    d, pair, row = names["get_inputs"]()
    other: Any = {
        "as verified": d, "another order": {"y": d["y"], "x": d["x"]}, "a class of dictionaries": collections.OrderedDict(y=d["y"], x=d["x"]),
        "a tuple for a list": d, "other keys": {"a": d["x"], "b": d["y"]}, "nested deeper": {"x": [d["x"]], "y": d["y"]},
    }[way]  # fmt: skip
    given = other, pair, tuple(row) if way == "a tuple for a list" else row
    names["_Watch"].told.clear()
    with torch.no_grad(), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert new(d, pair, row) and not told  # so that there is a last call
        if way in ("other keys", "nested deeper"):
            with pytest.raises((KeyError, TypeError)):
                new(*given)
        else:
            torch.testing.assert_close(new(*given), model(*given))
    assert [("other arguments" in str(one.message)) for one in told] == ([] if way == "as verified" else [True])
