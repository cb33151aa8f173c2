"""The JSON files of HPCTransEval as items. The sizes of parameters are recovered by a recording run; launches by `wiring`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpwright.errors import UsageError
from warpwright.translation.c_source import parameters, stored_to
from warpwright.translation.items import Buffer, Item
from warpwright.translation.wiring.probe import c_sizes

ENTRY = "default_function_kernel"
FILES = ("IndependentOperator", "ComputationGraph", "ModelBuildingBlock")
SLACK_ELEMENTS = 4096
"""Room for accesses past the end while sizes are being recovered."""


def load(path: Path, only: str = "", limit: int | None = None, tell: Any = lambda _: None) -> list[Item]:
    """Return the items of an HPCTransEval folder (with IndependentOperator.json, ...) or of one of its files. Raises UsageError."""
    files = [path] if path.is_file() else [path / f"{name}.json" for name in FILES if (path / f"{name}.json").exists()]
    if not files and (path / "HPCTransEval").is_dir():
        return load(path / "HPCTransEval", only, limit, tell)
    if not files:
        raise UsageError(f"expected a folder with {FILES[0]}.json, saw {path}", "give the folder HPCTransEval of the HPCTransCompile repository")
    items: list[Item] = []
    for file in files:
        for number, row in enumerate(_rows(file)):
            name = _name(row, number)
            if only and not re.search(only, f"{file.stem}/{name}"):
                continue
            tell(f"reading {file.stem}/{name}")
            items.append(item(row, name, file.stem))
            if limit is not None and len(items) >= limit:
                return items
    return items


def _rows(file: Path) -> list[Mapping[str, Any]]:
    try:
        rows = json.loads(file.read_text())
        wanted = {"op_name", "c_code", "cuda_code", "input_shape", "output_shape"}
        if isinstance(rows, list) and all(wanted <= set(row) for row in rows):
            return rows
    except ValueError as error:
        raise UsageError(f"expected JSON in {file}, saw {error}", "take the file as it is in the repository") from error
    raise UsageError(f"expected a list of objects with {', '.join(sorted(wanted))} in {file}", "take the file as it is in the repository")


def _name(row: Mapping[str, Any], number: int) -> str:
    return f"{row['op_name']}#{number}" if row["op_name"] == "topology_expansion" else str(row["op_name"])


def item(row: Mapping[str, Any], name: str, family: str) -> Item:
    """Return one object of a file as an item; where it cannot be used, the item says why."""
    c, cuda = str(row["c_code"]), str(row["cuda_code"])
    base = Item(name, "hpctranseval", family, cuda, c, ENTRY)
    try:
        listed = parameters(c, ENTRY)
    except UsageError as error:
        return _without(base, str(error))
    shapes = [tuple(int(e) for e in shape) for shape in (*row["input_shape"], *row["output_shape"])]
    counts = sorted({math.prod(shape) for shape in shapes})
    sizes = c_sizes(c, ENTRY, listed, 4 * max(counts) + SLACK_ELEMENTS)
    extents = {} if isinstance(sizes, str) else dict(sizes)
    if isinstance(sizes, str):
        sizes = {name: max(counts) for name, _ in listed}
    stored = stored_to(c, [name for name, _ in listed])
    bound = _smallest_index_bound(row)
    buffers = []
    for parameter, dtype in listed:
        own = sorted(math.prod(map(int, shape)) for shape in row["output_shape" if parameter in stored else "input_shape"])
        size = next((count for count in own if count >= sizes[parameter]), sizes[parameter])
        indexes = parameter not in stored and (dtype.startswith("int") or _is_index(c, parameter))
        role, high = ("output" if parameter in stored else "input"), float(bound if indexes else 0)
        buffers.append(Buffer(parameter, dtype, max(1, size), role, 0.0, high, "index" if indexes else "uniform"))  # type: ignore[arg-type]
    return Item(name, "hpctranseval", family, cuda, c, ENTRY, tuple(buffers), extents=extents)


def _without(base: Item, why: str) -> Item:
    return Item(base.name, base.suite, base.family, base.cuda, base.c, base.entry, unwired=why, unscored=why)


def _is_index(c: str, name: str) -> bool:
    """Whether values of the parameter are used as indices: the text casts them to integers."""
    return bool(re.search(rf"\(int(32_t)?\)\s*{re.escape(name)}\[", c))


def _smallest_index_bound(row: Mapping[str, Any]) -> int:
    """Return an upper bound of indices that is valid in every dimension of the first input with more than one."""
    shapes = [shape for shape in row["input_shape"] if len(shape) > 1] or [[1]]
    return max(1, min(int(e) for e in shapes[0]))
