"""What stands around the package says what is so: the GitHub Action and the hook name verbs and options that exist; the action's script runs."""

from __future__ import annotations

import fnmatch
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from warpwright import cli
from warpwright.cli.usage import verbs

ROOT = Path(__file__).parents[2]
ACTION = (ROOT / ".github/actions/check/action.yml").read_text()
SAYING = (".md", ".py", ".yml", ".ipynb")
FILES = [ROOT / ".github/actions/check/action.yml", ROOT / ".pre-commit-hooks.yaml", ROOT / "docker/Dockerfile"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_verbs_and_options_exist(file: Path) -> None:
    known = verbs(cli.parser())
    calls = re.findall(r"^\s*(?:run: |entry: )?warpwright ([a-z-]+)([^\n]*)", file.read_text(), re.M)
    assert calls or file.name == "Dockerfile"
    for verb, rest in calls:
        assert verb in known and set(re.findall(r"--[a-z-]+", rest)) <= set(known[verb]._option_string_actions)


def test_the_hook_is_read_by_yaml() -> None:
    yaml = pytest.importorskip("yaml", reason="needs the package pyyaml")
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["id"] == "warpwright-check" and hook["pass_filenames"] is False
    assert yaml.safe_load(ACTION)["runs"]["using"] == "composite"


def test_every_place_that_names_torchs_versions_names_the_same() -> None:
    wanted = re.findall(r"torch>=[\d.]+,<[\d.]+", (ROOT / "pyproject.toml").read_text())[0]
    for file in ("docker/Dockerfile", "warpwright/reports/doctor.py"):
        found = re.findall(r"torch>=[\d.]+,<[\d.]+", (ROOT / file).read_text())
        assert found and set(found) == {wanted}


def test_the_image_is_given_what_an_installation_reads() -> None:
    image = (ROOT / "docker/Dockerfile").read_text()
    copied = [word for words in re.findall(r"^COPY (.+)$", image, re.M) for word in words.split()[:-1]]
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert copied and all((ROOT / path).exists() for path in copied)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = ["pyproject.toml", project["project"]["readme"], "warpwright/__init__.py"]
    needed += [str(path.relative_to(ROOT)) for path in (ROOT / "warpwright").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert [path for path in needed if not (ROOT / path).is_file() or any(_matches(path, pattern) for pattern in ignored)] == []
    assert re.findall(r'ENTRYPOINT \["([a-z]+)"\]', image)[0] in project["project"]["scripts"]
    assert re.findall(r'CMD \["([a-z]+)"\]', image)[0] in verbs(cli.parser())


def _matches(path: str, pattern: str) -> bool:
    """Does a line of .dockerignore leave out the file, or a folder that it lies in?"""
    places = [path, *map(str, Path(path).parents)]
    return any(fnmatch.fnmatch(place, pattern) or fnmatch.fnmatch(place, pattern.removeprefix("**/")) for place in places)


def test_every_extra_that_is_named_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    texts = [path for folder in ("docs", "warpwright", "tests", "docker", ".github") for path in (ROOT / folder).rglob("*") if path.suffix in SAYING]
    named = {}
    for path in [ROOT / "README.md", ROOT / "CHANGELOG.md", *texts]:
        words = re.findall(r"warpwright\[([a-z][a-z, -]*)\]|extra `([a-z-]+)`|how_to_install\(\"([a-z-]+)\"\)", path.read_text())
        named |= {name.strip(): path.name for found in words for group in found for name in group.split(",") if name}
    assert len(named) > 5 and {name: file for name, file in named.items() if name not in extras} == {}


@pytest.mark.parametrize("code", [0, 1])
def test_the_actions_script_ends_as_the_check_does(code: int, tmp_path: Path) -> None:
    script = "\n".join(line[8:] for line in ACTION.partition("run: |\n")[2].partition("      env:")[0].splitlines())
    (tmp_path / "warpwright").write_text(f'#!/bin/sh\necho "asked: $@"\nexit {code}\n')
    (tmp_path / "warpwright").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "BASELINE": "a b.jsonl", "MAX_REGRESS": "7%"}
    environment["GITHUB_STEP_SUMMARY"] = str(tmp_path / "s.md")
    done = subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=250)
    assert done.returncode == code, done.stderr
    assert "asked: check --baseline a b.jsonl --max-regress 7%" in (tmp_path / "s.md").read_text()
