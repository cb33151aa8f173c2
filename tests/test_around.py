"""What stands around the package says what is so: the GitHub Action and the hook name verbs and options that exist; the action's script runs."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from warpwright import cli
from warpwright.cli.usage import verbs

ROOT = Path(__file__).parents[1]
ACTION = (ROOT / ".github/actions/check/action.yml").read_text()
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
    for file in ("docker/Dockerfile", "warpwright/doctor.py"):
        found = re.findall(r"torch>=[\d.]+,<[\d.]+", (ROOT / file).read_text())
        assert found and set(found) == {wanted}


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
