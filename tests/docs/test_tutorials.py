"""The tutorials of docs/tutorials run as they stand: their Python blocks, in order, in one namespace, in an empty folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TUTORIALS = sorted((Path(__file__).parents[2] / "docs/tutorials").glob("*.md"))


def test_every_domain_has_a_tutorial() -> None:
    assert [path.stem for path in TUTORIALS] == ["graph", "transpile", "unlearnable"]


SLOW = "graph"  # ten seconds of timing for each of seven programs; tests/front and test_end_to_end.py run what it shows


@pytest.mark.compiler
@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem, marks=pytest.mark.slow if path.stem == SLOW else ()) for path in TUTORIALS])
def test_a_tutorial_runs_as_it_stands(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    if path.stem == "transpile":
        pytest.importorskip("clang")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", path.read_text(), re.M | re.S)
    assert len(blocks) >= 3
    namespace = {"__name__": f"tutorial_{path.stem}"}
    for number, block in enumerate(blocks, start=1):
        exec(compile(block, f"{path.name}, block {number}", "exec"), namespace)
