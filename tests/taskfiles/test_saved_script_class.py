"""A model whose class is defined in the running script: every kind of program of it answers, can be copied, and refuses the other mode clearly."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import copy, sys, warnings
warnings.simplefilter("ignore")
import torch
from warpwright import targets
from warpwright.domains import graph
from warpwright.tasks import taskfile
from warpwright.tasks.modules import saved_module


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.n = torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)

    def forward(self, x):
        return torch.softmax(self.n(self.a(x)) * 2.0, -1)


net, x = Net().eval(), torch.randn(5, 4)
saved_module.write(net, [x], sys.argv[1])
task = taskfile.describe(sys.argv[1])
text = taskfile.load(task).source_text
texts = {name: targets.baselines(text, "cpu", [name])[name].text.replace("mode=None", 'backend="eager"') for name in ("eager", "compile")}
texts["graph"] = graph.space(task).candidate([]).source.text
for name, program in texts.items():
    new = taskfile.run_text(program, f"<{name}>", f"script_{name}").ModelNew()
    new.load_state_dict(net.state_dict())
    with torch.no_grad():
        for module in (new, copy.deepcopy(new), new.eval()):
            torch.testing.assert_close(module(x), net(x))
    try:
        new.train()
    except RuntimeError as error:
        print(name, "refuses" if "exported in eval mode" in str(error) else error)
"""


def test_a_class_of_the_running_script(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(script), str(tmp_path / "net.pt")], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["eager", "refuses", "compile", "refuses", "graph", "refuses"]
