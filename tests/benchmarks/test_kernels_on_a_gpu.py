"""benchmarks/kernelbench/h200.sh, which nobody runs here: every command line that a part of it writes is one that its module takes."""

from __future__ import annotations

import argparse
import importlib
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from benchmarks.kernelbench import run as kernelbench
from benchmarks.kernelbench import whole
from warpwright.base import Budget
from warpwright.cli import command

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = "benchmarks/kernelbench/h200.sh"
PARTS = tuple(part for part in re.findall(r"^([a-z0-9_]+)\)", (ROOT / SCRIPT).read_text(), re.M) if part != "lanes")

PYTHON = """#!/bin/bash
[ "$1" != -c ] || exec {real} "$@"
printf '%s\\x1f' "${{CUDA_VISIBLE_DEVICES:-}}" "$@" >>{calls}
echo >>{calls}
"""


class Parsed(Exception):
    """The arguments were taken."""


def called(tmp_path: Path, *words: str, **more: str) -> list[list[str]]:
    """Return what a part would run: of each the GPU and the words after `python3 -u -m`."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "folder" / "KB").mkdir(parents=True, exist_ok=True)
    calls = tmp_path / "calls"
    python = tmp_path / "bin" / "python3"
    python.write_text(PYTHON.format(real=sys.executable, calls=calls))
    python.chmod(0o755)
    environment = {**os.environ, **more, "PATH": f"{python.parent}:{os.environ['PATH']}", "WORK": str(tmp_path / "work")}
    command = ["bash", SCRIPT, words[0], str(tmp_path / "folder"), str(tmp_path / "out"), *words[1:]]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0 and not ended.stderr, ended.stderr
    found = [line.split("\x1f")[:-1] for line in calls.read_text().splitlines()]
    assert all(line[1:3] == ["-u", "-m"] for line in found)
    return [[line[0], *line[3:]] for line in found]


def taken(monkeypatch: pytest.MonkeyPatch, module: str, arguments: list[str]) -> argparse.Namespace:
    """Return the arguments as the module's parser takes them; nothing else of the module runs."""
    parse = argparse.ArgumentParser.parse_args
    kept: list[argparse.Namespace] = []

    def parsed(self: argparse.ArgumentParser, *given: object) -> argparse.Namespace:
        kept.append(parse(self, *given))  # type: ignore[call-overload]
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parsed)
    monkeypatch.setattr(sys, "argv", [module, *arguments])
    with pytest.raises(Parsed):
        importlib.import_module(module).main()
    monkeypatch.undo()
    return kept[0]


def test_there_are_parts() -> None:
    known = "padded verdicts large warm tf32 misses wide hopper odd backward step plan cuda_l1 merger t3 modules sums streams all all_tf32"
    assert set(known.split()) == set(PARTS)


@pytest.mark.parametrize("dry", ["", "1"], ids=["GPU", "dry"])
@pytest.mark.parametrize("part", PARTS)
def test_each_command_of_a_part_is_one_that_its_module_takes(part: str, dry: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _, module, *arguments in called(tmp_path, part, DRY=dry):
        options = taken(monkeypatch, module, arguments)
        assert bool(getattr(options, "dry", dry)) == bool(dry), f"{module} is as dry as the part"
        if module == "benchmarks.kernelbench.whole":
            run = kernelbench._options(whole.verdicts(options)[3:])
            assert run.resume is (part != "warm") and run.gpus == (0 if dry else 1) and run.last <= (60 if part == "large" else 45)
        if getattr(options, "budget", None):
            Budget.parse(options.budget)
    with tarfile.open(tmp_path / "out" / "kernels.tgz") as kept:
        assert any(name.endswith("log.txt") for name in kept.getnames()), "what a part left behind is brought back"


def test_bench_takes_what_the_modules_benchmark_gives_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.kernels import modules

    seen: list[list[str]] = []
    def asked(line: list[str], seconds: float) -> list[dict[str, object]]:
        seen.append(line)
        return []

    monkeypatch.setattr(modules, "lines", asked)
    for _, _, *arguments in called(tmp_path, "modules"):
        monkeypatch.setattr(sys, "argv", ["modules", *arguments])
        modules.main()
    assert len(seen) == 2
    for line in seen:
        assert line[1:3] == ["-m", "warpwright.cli"]
        options = command.parser().parse_args(line[3:])
        assert Budget.parse(options.budget).proposals == 2


def test_parts_have_their_limits_from_the_command_line(tmp_path: Path) -> None:
    [(_, _, *arguments)] = called(tmp_path, "verdicts", "77")
    assert arguments[arguments.index("--verdicts") + 1] == "72"


def test_two_lanes_have_a_gpu_each_and_calls_end_within_ten_minutes(tmp_path: Path) -> None:
    found = called(tmp_path, "lanes", LANES="plan:40 t3:30|wide:45")
    assert sorted((gpu, module.rpartition(".")[2]) for gpu, module, *_ in found) == [("0", "first"), ("0", "launch_plan"), ("1", "attention")]
    text = (ROOT / SCRIPT).read_text()
    calls = re.findall(r'^    (first|second|third)\) LANES="(.*)" ;;', text, re.M)
    planned = [lane for _, lanes in calls for lane in lanes.split("|")]
    assert len(calls) == 3 and all(sum(int(one.partition(":")[2]) for one in lane.split()) <= 575 for lane in planned)
    assert {one.partition(":")[0] for lane in planned for one in lane.split()} == set(PARTS)


def test_what_another_machine_brought_back_is_there_at_the_beginning(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "verdicts").mkdir()
    (tmp_path / "verdicts" / "rows.jsonl").write_text("{}\n")
    with tarfile.open(tmp_path / "folder" / "kernels.tgz", "w:gz") as kept:
        kept.add(tmp_path / "verdicts", "verdicts")
    called(tmp_path, "plan")
    assert (tmp_path / "work" / "verdicts" / "rows.jsonl").read_text() == "{}\n"
