"""The documents say what is so: docs/cli.md against the command, links and paths against the tree."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import itertools
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from warpwright import cli, domains
from warpwright.base import STATUSES
from warpwright.reports import report
from warpwright.search import SEARCHES
from warpwright.verifier import checks

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
CONTRACT = (ROOT / "docs/cli.md").read_text()


def verbs(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the verbs under a parser."""
    found = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(found[0].choices) if found else {}


def options(parser: argparse.ArgumentParser) -> set[str]:
    """Return every option of a parser and of the verbs under it."""
    own = {name for action in parser._actions for name in action.option_strings if name.startswith("--")}
    return own.union(*(options(inner) for inner in verbs(parser).values()))


def test_the_page_lists_exactly_the_verbs() -> None:
    listed = re.findall(r"^    warpwright ([\w-]+)", CONTRACT, re.M)
    assert listed == list(verbs(cli.parser()))
    group = re.search(r"warpwright archive \{([\w,]+)\}", CONTRACT)
    assert group is not None and group[1].split(",") == list(verbs(verbs(cli.parser())["archive"]))


OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
BENCHMARK = re.compile(r"python -m (benchmarks\.[\w.]+)([^`#\n]*)")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_options_that_a_document_names_exist(path: Path) -> None:
    text = BENCHMARK.sub("", path.read_text())
    lines = [line for line in text.splitlines() if not re.search(r"\b(pip|pytest|mypy|docker|git)\b", line)]
    assert set(OPTION.findall("\n".join(lines))) <= options(cli.parser()) | {"--help"}


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if BENCHMARK.search(path.read_text())], ids=lambda path: path.name)
def test_benchmarks_that_a_document_runs_exist_and_so_do_their_options(path: Path) -> None:
    for module, words in BENCHMARK.findall(path.read_text()):
        file = ROOT / f"{module.rstrip('.').replace('.', '/')}.py"
        assert file.is_file(), module
        beside = "".join(one.read_text() for one in file.parent.glob("*.py"))  # where options are shared, the parser is
        assert not [name for name in OPTION.findall(words) if f'"{name}"' not in beside], (module, words)


COMMAND = re.compile(r"^    (?:\$ )?warpwright ([a-z].*)$", re.M)
"""A line of code; docs/cli.md begins with a synopsis instead."""


def commands(path: Path) -> list[list[str]]:
    """Return the words of each command line that a document shows; those with alternatives in brackets are none."""
    lines = COMMAND.findall(re.sub(r"\\\n\s*", " ", path.read_text()))
    return [shlex.split(line, comments=True) for line in lines if not re.search(r"[\[{]|\.\.\.", line.partition("#")[0])]


SHOWING = [path for path in DOCUMENTS if path.name != "cli.md" and commands(path)]


@pytest.mark.parametrize("path", SHOWING, ids=lambda path: path.name)
def test_commands_that_a_document_shows_are_understood(path: Path) -> None:
    for words in commands(path):
        try:
            cli.parser().parse_args(words)
        except SystemExit:
            pytest.fail(f"{path.name} shows `warpwright {shlex.join(words)}`, which the command line does not take")


def test_commands_are_found_in_the_documents() -> None:
    assert sum(len(commands(path)) for path in SHOWING) > 30


def test_the_readme_is_one_screen_and_its_first_commands_are_of_files_that_are_there() -> None:
    text = (ROOT / "README.md").read_text()
    first = [shlex.split(line) for line in re.findall(r"^\| .* \| `warpwright ([^`]+)` \|", text, re.M)]
    assert len(text.splitlines()) <= 45 and len(first) >= 7
    for words in first:
        if "--help" not in words:
            cli.parser().parse_args(words)
        for file in [word for word in words if "/" in word]:
            assert domains.describe(ROOT / file, {}).path == str(ROOT / file)


PROSE = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/tutorials").glob("*.md"), *(ROOT / "benchmarks/results").glob("*/README.md")]),
]
NO_PROSE = re.compile(r"^ *```.*?^ *```|^<!-- table: .*?<!-- end -->", re.M | re.S)
"""Code, and what a page's rows make of themselves."""


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.name if path.name != "README.md" else path.parent.name)
def test_lines_of_prose_are_at_most_120_columns_wide(path: Path) -> None:
    text = NO_PROSE.sub("", path.read_text())
    wide = [line for line in text.splitlines() if len(line) > 120 and not line.startswith(("|", "    "))]
    assert wide == [], f"{path.name}: break these lines at 120 columns, between words"


IMPORT = re.compile(r"^ *(?:from (warpwright[\w.]*) import ([\w, ]+)|import (warpwright[\w.]*))", re.M)


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if IMPORT.search(path.read_text())], ids=lambda path: path.name)
def test_names_that_a_document_imports_exist(path: Path) -> None:
    for module, names, whole in IMPORT.findall(path.read_text()):
        try:
            found = importlib.import_module(module or whole)
        except ModuleNotFoundError as error:  # the module is ours and there; what it imports comes with an extra
            assert str(error.name).partition(".")[0] != "warpwright" and importlib.util.find_spec(module or whole) is not None
            continue
        missing = [name for name in re.findall(r"\w+", names) if not hasattr(found, name) and importlib.util.find_spec(f"{module}.{name}") is None]
        assert not missing, f"{path.name}: {module} has no {', '.join(missing)}"


def test_the_page_lists_exactly_the_keys_of_the_object() -> None:
    table = CONTRACT.partition("| key | value |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.M) == list(report.line("task", ()))


def test_the_page_lists_exactly_the_statuses() -> None:
    row = re.search(r"^\| `status` \| (.*) \|$", CONTRACT, re.M)
    assert row is not None and set(re.findall(r"`(\w+)`", row[1])) == set(STATUSES)


def test_the_page_lists_exactly_the_exit_codes() -> None:
    table = CONTRACT.partition("| code | meaning |")[2].partition("\n\n")[0]
    assert [int(code) for code in re.findall(r"^\| (\d) \|", table, re.M)] == [cli.DONE, cli.NOT_PASSED, cli.WRONG_USE, cli.INTERRUPTED]


def test_trust_lists_exactly_the_checks() -> None:
    table = (ROOT / "docs/trust.md").read_text().partition("| check | status | what has to hold |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*) \|$", table, re.M)
    assert rows == [(name, check.status, check.meaning) for name, check in checks.CHECKS.items()]


ARCHITECTURE = (ROOT / "docs/architecture.md").read_text()


def test_the_architecture_lists_the_rooms_in_the_order_that_imports_are_held_to() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [layer.split(" : ") for layer in reversed(next(one["layers"] for one in contracts if one.get("containers") == ["warpwright"]))]
    listed = re.findall(r"\w+(?=\.py|/)", ARCHITECTURE.partition("## Direction of imports")[2].partition("The first design")[0])
    assert sorted(listed) == sorted(name for layer in layers for name in layer)
    places = [[listed.index(name) for name in layer] for layer in layers]
    assert all(max(lower) < min(upper) for lower, upper in itertools.pairwise(places)), listed


def test_the_architecture_names_the_rooms_of_more_than_fifteen_files() -> None:
    full: dict[str, int] = {}
    for folder in [ROOT / "warpwright", *(path for path in (ROOT / "warpwright").rglob("*") if path.is_dir())]:
        count = len(list(folder.glob("*.py")))
        full |= {str(folder.relative_to(ROOT)): count} if count > 15 else {}
    said = ARCHITECTURE.partition("Where a room is larger")[2]
    assert {f"{name} ({count})" for name, count in full.items()} == {
        f"{name if name == 'warpwright' else 'warpwright/' + name} ({count})" for name, count in re.findall(r"`([\w/]+)/` \((\d+)\)", said)
    }


def test_the_architecture_names_every_module() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    modules = {path.name for path in (ROOT / "warpwright").glob("*.py")} - {"__init__.py"}
    assert not {name for name in modules if name not in text}
    assert not {name for name in re.findall(r"\b(\w+\.py)\b", text) if not list((ROOT / "warpwright").rglob(name))} - {"optimized.py"}


def test_every_module_is_in_a_layer_of_the_import_contract() -> None:
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    named = [name for layer in layers for name in re.findall(r"\w+", layer)]
    packages = {path.parent.name for path in (ROOT / "warpwright").glob("*/__init__.py")}
    modules = {path.stem for path in (ROOT / "warpwright").glob("*.py")} - {"__init__", "__main__"}
    assert sorted(named) == sorted(packages | modules)


def test_the_vocabulary_defines_each_word_once() -> None:
    words = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs/vocabulary.md").read_text(), re.M)[2:]
    each = [word.strip() for row in words for word in row.split(",")]
    assert len(each) == len(set(each)) > 30


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_paths_that_a_document_names_exist(path: Path) -> None:
    named = re.findall(r"`((?:docs|examples|tests|benchmarks|warpwright|\.ci)/[\w./-]*)`|\]\(([\w./-]+)\)", path.read_text())
    missing = [one or two for one, two in named if not (ROOT / (one or two)).exists() and not (path.parent / (one or two)).exists()]
    assert not missing


def test_searches_are_named_in_the_help() -> None:
    assert all(name in cli.parser()._subparsers._group_actions[0].choices["optimize"].format_help() for name in SEARCHES)  # type: ignore[union-attr]


def test_the_package_exports_what_its_docstring_shows() -> None:
    package = importlib.import_module("warpwright")
    assert sorted(package.__all__) == ["__version__", "accelerate", "backend", "optimize", "task"]
    assert all(hasattr(package, name) for name in package.__all__)
