"""Each claim of docs/trust.md names tests that exist, that are run, and that are able to fail."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import corpus
import pytest

from tests.verifier.test_cheats import KNOWN_GAPS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/trust.md").read_text()
CLAIMS = dict(re.findall(r"^(\d+)\. (.*?)(?=^\d+\. |^## )", PAGE, re.M | re.S))
NAMED = sorted(set(re.findall(r"`(?:python -m )?((?:tests/|benchmarks\.)[\w./*:]+)`", PAGE)))
SWITCHED_OFF = ("skip", "xfail")


def functions(path: Path) -> dict[str, ast.FunctionDef]:
    """Return the tests of a file by name."""
    found = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    return {node.name: node for node in found}


def is_switched_off(function: ast.FunctionDef) -> bool:
    """Whether a mark keeps it from failing wherever it is run."""
    marks = [ast.unparse(decorator).partition("(")[0] for decorator in function.decorator_list]
    return any(mark == f"pytest.mark.{name}" for mark in marks for name in SWITCHED_OFF)


def run_under(name: str) -> list[str]:
    """Return what is run under a name of the page."""
    if name.startswith("benchmarks."):
        return [name] if (ROOT / name.replace(".", "/")).with_suffix(".py").exists() else []
    file, _, test = name.partition("::")
    if "/test_" in file:
        found = functions(ROOT / file) if (ROOT / file).exists() else {}
        return [one for one, function in found.items() if test in ("", one) and not is_switched_off(function)]
    folder = file.split("/")[1]
    paths = set(ROOT.glob(f"{file}*.py" if file.endswith("/") else file))
    chosen = [program for program in corpus.programs(folder) if program.path in paths and "cuda" not in program.needs]
    return [program.name for program in chosen if program.name not in KNOWN_GAPS and (folder != "cheats" or program.checks or program.status)]


@pytest.mark.parametrize("name", NAMED)
def test_what_the_page_names_is_run_and_can_fail(name: str) -> None:
    assert run_under(name), f"docs/trust.md names {name}, of which nothing is run without a GPU that could fail"


def test_every_claim_names_a_test() -> None:
    assert list(CLAIMS) == [str(number) for number in range(1, len(CLAIMS) + 1)] and len(CLAIMS) >= 15
    assert not [number for number, text in CLAIMS.items() if "tests/" not in text]


def test_every_file_of_the_corpora_is_collected() -> None:
    for folder in ("cheats", "honest", "limits"):
        assert {program.path for program in corpus.programs(folder)} == set((ROOT / "tests" / folder).glob("*.py"))
        assert all((ROOT / f"tests/tasks/{program.task}.py").exists() for program in corpus.programs(folder))


def test_a_name_that_does_not_resolve_is_seen() -> None:
    unknown = ("tests/cheats/no_such.py", "tests/workers/test_freezer.py::test_no_such", "benchmarks.verifier.no_such", "tests/verifier/test_none.py")
    assert not any(run_under(name) for name in unknown)
    assert all(not run_under(f"tests/cheats/{name}.py") for name in KNOWN_GAPS)
