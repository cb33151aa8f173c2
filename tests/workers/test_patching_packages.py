"""A package of the original's that replaces functions of torch at its import, as torch_geometric 2.8 does: what a program may do with it, and not."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from warpwright.base import Source
from warpwright.tasks import taskfile
from warpwright.verifier import building, verify
from warpwright.workers import fork_server
from warpwright.workers.limits import Limits
from warpwright.workers.sandbox import Worker

PACKAGE = """
import torch
_old_select = torch.select

def _wrapped(old):
    def index_select(input, dim, index):
        return old(input, dim, index)
    return index_select

def _new_select(input, dim, index):
    return _old_select(input, dim, index)

torch.select, torch.index_select = _new_select, _wrapped(torch.index_select)
"""
OTHER = "import torch\nold = torch.narrow\ndef narrow(*args):\n    return old(*args)\ntorch.narrow = narrow\n"
MODEL = """
import torch
import {package}

class {name}(torch.nn.Module):
    def forward(self, x):
        return torch.select(x, 0, 1) * 2
"""
INPUTS = "\ndef get_inputs():\n    return [torch.randn(3, 4)]\ndef get_init_inputs():\n    return []\n"
TASK = MODEL.format(package="puts_its_own", name="Model") + INPUTS
OWN = "\nold = torch.select\ntorch.select = lambda *args: old(*args)\n"
PROGRAMS = {
    "the original's import": ("", "ok"),
    "a function of its own": (OWN, "patched"),
    "a function of its own as a name of the package's": ("\nputs_its_own._old_select = lambda *args: 0\n", "patched"),
    "... as what the package's holds": ("\ntorch.index_select.__closure__[0].cell_contents = lambda *args: 0\n", "patched"),
    "another package": ("\nimport puts_another\n", "patched"),
    "torch's own function again": ("\ntorch.select = puts_its_own._old_select\n", "patched"),
}


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[verify.Judge]:
    """A judge of a task whose original imports the package, in processes of a fork server that has not imported it."""
    folder = tmp_path_factory.mktemp("packages")
    for name, text in (("puts_its_own.py", PACKAGE), ("puts_another.py", OTHER), ("task.py", TASK)):
        (folder / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]))
        patch.syspath_prepend(folder)
        server = fork_server.ForkServer()
        patch.setattr(fork_server, "_server", server)
        try:
            with verify.Judge(taskfile.describe(folder / "task.py")) as made:
                yield made
        finally:
            server.close()


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_the_original_replaces_may_be_replaced_so_and_nothing_else(judge: verify.Judge, name: str) -> None:
    text, expected = PROGRAMS[name]
    source = Source("python", (("candidate.py", MODEL.format(package="puts_its_own", name="ModelNew") + text),))
    with Worker("candidate", "cpu", Limits(reads=taskfile.reads(judge.task))) as worker:
        _, verdict = building.build(judge, worker, "candidate", source)
    assert (verdict.check if verdict else "ok") == expected, verdict


def test_a_program_that_imports_no_package_of_the_originals_waits_for_none(judge: verify.Judge) -> None:
    for text, expected in (("import torch\n", []), ("import torch\nimport puts_its_own\n", ["puts_its_own"])):
        assert building._packages(judge, Source("python", (("candidate.py", text),))) == expected
