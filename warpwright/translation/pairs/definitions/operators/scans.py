"""Scans along the last axis."""

from __future__ import annotations

from random import Random

from warpwright.translation.pairs.definitions.expr import Graph, Stage, graph
from warpwright.translation.pairs.definitions.functions import Interval
from warpwright.translation.pairs.definitions.operators.table import Body, Table, identity, positions, size, source

TABLE = Table()
operator = TABLE.operator


def _scan(name: str, how: str, body: Body = identity, interval: Interval = (-1, 1)) -> None:
    @operator("scan", name)
    def make(rng: Random) -> Graph:
        x = source("x0", size(rng, 8, 128), size(rng, 16, 32 if how == "prod" else 256), interval=interval)
        axes, at = positions(x.shape)
        return graph(name, "scan", (x,), (Stage("y", axes, body(x[at]), scan=how),))  # type: ignore[arg-type]


_scan("cumsum", "sum")
_scan("cumprod", "prod", interval=(0.7, 1.3))
_scan("cummax", "max")
_scan("cumulative_energy", "sum", body=lambda x: x * x)
