"""A data set that `warpwright pairs` wrote, as items: buffers and launches are recorded in its rows."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpwright.translation.c_source import parameters
from warpwright.translation.items import Buffer, Item
from warpwright.translation.launch import Launch
from warpwright.translation.pairs.data_set import read_pairs


def load(path: Path) -> list[Item]:
    """Return the items of a data set: a parquet file or a folder of them. Raises UsageError where there are none."""
    return [item(row) for row in read_pairs(path)]


def item(row: Mapping[str, Any]) -> Item:
    """Return one row of a data set as an item."""
    arrays = {one["name"]: one for one in json.loads(row["buffers"])}
    sizes = {name: math.prod(one["shape"]) for name, one in arrays.items()}
    buffers = []
    for name, _ in parameters(row["c"], row["c_entry"]):
        one = arrays[name]
        buffers.append(Buffer(name, one["dtype"], sizes[name], one["role"], one.get("low", 0.0), one.get("high", 0.0), one.get("values", "uniform")))
    temporaries = {name: (one["dtype"], sizes[name]) for name, one in arrays.items() if one["role"] == "temporary"}
    launches = tuple(Launch.from_json(one) for one in json.loads(row["launches"]))
    name = f"{row['name']}#{row['index']}"
    return Item(name, "pairs", row["family"], row["cuda"], row["c"], row["c_entry"], tuple(buffers), temporaries, launches)
