"""The notebook of docs/tutorials runs from top to bottom, and shows its result as a page."""

from __future__ import annotations

from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs/tutorials/notebook.ipynb"


@pytest.mark.slow
@pytest.mark.compiler
@pytest.mark.timeout(900)
def test_the_notebook_runs_and_shows_its_result(tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs the extra `notebook`")
    nbclient = pytest.importorskip("nbclient", reason="needs the extra `notebook`")
    pytest.importorskip("ipykernel", reason="needs the extra `notebook`")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)  # what a machine printed is not committed
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    pages = [str(output["data"]["text/html"]) for output in shown if "text/html" in output.get("data", {})]
    assert any("<table>" in page and "Net" in page for page in pages), shown
    printed = "".join(str(output.get("text", "")) for output in shown)
    assert "largest difference" in printed and "It was verified in eval mode" in printed
    assert (tmp_path / "fast_net.py").is_file() and list(tmp_path.glob("fast_net*.pt"))
