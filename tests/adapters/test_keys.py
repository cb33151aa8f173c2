"""Keys in the environment of a user never reach a program, whichever adapter hands it in."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import Bench, served

from warpwright.adapters import autoresearch, export, gepa, harbor, openevolve, shinka, trl
from warpwright.adapters.judge import Judge
from warpwright.adapters.mcp_server import Agents
from warpwright.server.lane import Lane

SECRET = "sk-never-to-be-seen-by-a-program"
NAMES = ("WARPWRIGHT_API_KEY", "OPENAI_API_KEY", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "MY_NOTES")

PROGRAM = '''import os

import torch

# program @NUMBER


def readable(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


found = [name for name, value in os.environ.items() if "@SECRET"[:20] in value]
pid = os.getppid()
while pid > 1:
    if b"@SECRET"[:20] in readable(f"/proc/{pid}/environ"):
        found.append(f"process {pid}")
    status = readable(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    pid = int(status[1]) if len(status) > 1 else 0
if found:
    raise RuntimeError(f"a key was seen in {found}")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x.clamp(min=0).sum(dim=1)
'''

numbers = itertools.count()


def program() -> str:
    """A right program, new each time, that cannot be built where it finds a key."""
    return PROGRAM.replace("@NUMBER", str(next(numbers))).replace("@SECRET", SECRET)


def test_the_program_would_find_a_key() -> None:
    ran = subprocess.run([sys.executable, "-c", program()], env={**os.environ, NAMES[0]: SECRET}, capture_output=True, text=True, timeout=120)
    assert ran.returncode != 0 and "a key was seen in" in ran.stderr and NAMES[0] in ran.stderr


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A server of a user with keys, whose lanes evaluate."""
    with pytest.MonkeyPatch.context() as patch:
        for name in NAMES:
            patch.setenv(name, SECRET)
        yield from served(tmp_path_factory.mktemp("keys"), Lane)


def by_judge(bench: Bench, folder: Path) -> bool:
    judged = Judge(bench.where).score(program())
    assert judged.correct, judged.feedback
    return judged.correct


def by_openevolve(bench: Bench, folder: Path) -> bool:
    pytest.importorskip("openevolve")
    path = folder / "p.py"
    path.write_text(program())
    made = openevolve.evaluator(bench.where)(str(path))
    return float(getattr(made, "metrics", made)["correct"]) == 1.0


def by_shinka(bench: Bench, folder: Path) -> bool:
    (folder / "p.py").write_text(program())
    shinka.main(bench.where, ["--program_path", str(folder / "p.py"), "--results_dir", str(folder / "results")])
    return '"correct": true' in (folder / "results/correct.json").read_text()


def by_gepa(bench: Bench, folder: Path) -> bool:
    return gepa.evaluator(bench.where)(program())[0] > 0


def by_trl(bench: Bench, folder: Path) -> bool:
    made = trl.environment(bench.where)()
    made.reset()
    made.evaluate(program())
    return made.get_reward() > 0 and trl.CompletionReward(bench.where)(completions=[f"```python\n{program()}```"])[0] > 0


def by_mcp(bench: Bench, folder: Path) -> bool:
    agents = Agents(bench.where, folder)
    run = agents.describe()["run"]
    return agents.evaluate(run, program())["status"] == "ok"


def by_autoresearch(bench: Bench, folder: Path) -> bool:
    export.write("autoresearch", bench.where, folder / "pack")
    autoresearch.begin(folder / "pack")
    (folder / "pack/candidate.py").write_text(program())
    return autoresearch.bench(bench.where, folder / "pack", "candidate.py", "a change").correct


def by_openenv(bench: Bench, folder: Path) -> bool:
    pytest.importorskip("openenv")
    from warpwright.adapters import openenv

    made = openenv.KernelEnvironment(bench.where, 2)
    made.reset()
    return float(made.step(openenv.ProgramAction(program=program())).reward or 0.0) > 0


def by_verifiers(bench: Bench, folder: Path) -> bool:
    pytest.importorskip("verifiers.v1")
    from warpwright.adapters.verifiers import KernelConfig, KernelTaskset

    [task] = KernelTaskset(KernelConfig(tasks=(bench.where,)))
    return asyncio.run(task.speedup(SimpleNamespace(last_reply=f"```python\n{program()}```", info={}))) > 0


def by_harbor(bench: Bench, folder: Path) -> bool:
    if os.getuid() != 0:
        pytest.skip("needs root, to end an agent's processes")
    (folder / "p.py").write_text(program())
    return harbor.judge(bench.where, harbor.Places(str(folder / "p.py"), str(folder / "logs"), agent="no such user")).correct


WAYS: tuple[Callable[[Bench, Path], bool], ...] = (
    by_judge, by_openevolve, by_shinka, by_gepa, by_trl, by_mcp, by_autoresearch, by_openenv, by_verifiers, by_harbor,
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_no_adapter_hands_a_key_to_a_program(guarded: Bench, tmp_path: Path, way: Callable[[Bench, Path], bool]) -> None:
    assert way(guarded, tmp_path)
