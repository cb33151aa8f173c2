"""Task files of every form load, and whatever is wrong with one is said in a sentence."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from warpwright.errors import TaskError
from warpwright.tasks import taskfile
from warpwright.tasks.reference import holder_of, seed_all

PLAIN = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, features, options=None):
        super().__init__()
        self.linear = nn.Linear(features, 3)
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x, labels, scale):
        y = self.norm(self.linear(x)) * scale
        return y, (y.sum(), labels + 1)

features = 4

def get_inputs():
    return [torch.rand(5, features), torch.randint(0, 9, (5,)), 2.5]

def get_init_inputs():
    return [features]
"""


def write(folder: Path, text: str, name: str = "task.py") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


def python(*arguments: str) -> None:
    """Run Python with this package importable, installed or not."""
    environment = {**os.environ, "PYTHONPATH": str(Path(taskfile.__file__).parents[2])}
    subprocess.run([sys.executable, "-W", "ignore", *arguments], check=True, env=environment, timeout=250)


def test_a_kernelbench_file_loads(tmp_path: Path) -> None:
    task = taskfile.describe(write(tmp_path, PLAIN))
    reference = taskfile.load(task)
    assert (task.name, task.option("loader"), task.option("entry"), reference.init_inputs) == ("task", "kernelbench", "Model", [4])
    torch.manual_seed(0)
    first = reference.make_model()
    torch.manual_seed(0)
    second = reference.make_model()
    assert all(torch.equal(a, b) for a, b in zip(first.state_dict().values(), second.state_dict().values(), strict=True))
    x, labels, scale = reference.make_inputs(1, "cpu")
    assert (x.dtype, labels.dtype, scale) == (torch.float32, torch.int64, 2.5)
    y, (total, shifted) = first(x, labels, scale)
    assert y.shape == (5, 3) and total.shape == () and torch.equal(shifted, labels + 1)


def test_inputs_depend_on_the_seed_alone(tmp_path: Path) -> None:
    reference = taskfile.load(taskfile.describe(write(tmp_path, PLAIN)))
    torch.manual_seed(7)
    before = torch.random.get_rng_state()
    a, b, other = (reference.make_inputs(seed, "cpu") for seed in (1, 1, 2))
    assert torch.equal(a[0], b[0]) and torch.equal(a[1], b[1]) and not torch.equal(a[0], other[0])
    assert torch.equal(before, torch.random.get_rng_state())


def test_the_meta_device_gives_shapes(tmp_path: Path) -> None:
    reference = taskfile.load(taskfile.describe(write(tmp_path, PLAIN)))
    inputs = reference.make_inputs(0, "meta")
    with torch.no_grad():
        y, _ = reference.make_meta_model()(*inputs)
    assert y.is_meta and y.shape == (5, 3) and inputs[1].dtype == torch.int64


def test_a_file_that_insists_on_the_cpu_is_moved(tmp_path: Path) -> None:
    text = PLAIN.replace("return [torch.rand(5, features)", "size = int(torch.full((1,), 5).item())\n    return [torch.rand(size, features)")
    reference = taskfile.load(taskfile.describe(write(tmp_path, text)))
    assert reference.make_inputs(0, "meta")[0].is_meta


def test_a_constructor_that_reads_values_has_a_meta_model(tmp_path: Path) -> None:
    text = PLAIN.replace("super().__init__()", "super().__init__()\n        self.rate = torch.linspace(0, 1, 3)[1].item()")
    reference = taskfile.load(taskfile.describe(write(tmp_path, text)))
    model = reference.make_meta_model()
    assert model.rate == 0.5 and model.linear.weight.is_meta


def test_modes(tmp_path: Path) -> None:
    path = write(tmp_path, PLAIN)
    training = {mode: taskfile.load(taskfile.describe(path, mode=mode)).make_model().training for mode in ("as_is", "train", "eval")}
    assert training == {"as_is": True, "train": True, "eval": False}


def test_level_folders_give_their_name(tmp_path: Path) -> None:
    assert taskfile.describe(write(tmp_path, PLAIN, "level1/7_Thing.py")).name == "level1_7_Thing"


FUNCTION = """
import torch
import warpwright
from warpwright import task

LENGTH = 6

def make():
    return torch.randn(2, LENGTH), torch.arange(2)

@warpwright.task(inputs=make)
def rows(x: torch.Tensor, index: torch.Tensor, *, shift: float = 1.0) -> torch.Tensor:
    return torch.softmax(x, -1)[index] + shift

@task(inputs=(torch.randn(3),), special_values=True)
def twice(x):
    return x * 2
"""


def test_function_tasks(tmp_path: Path) -> None:
    path = write(tmp_path, FUNCTION)
    with pytest.raises(TaskError, match="several functions as tasks: rows, twice"):
        taskfile.describe(path)
    task = taskfile.describe(path, entry="rows")
    reference = taskfile.load(task)
    assert (task.name, task.option("loader"), task.special_values) == ("task.rows", "function", False)
    assert "warpwright" not in reference.source_text
    x, index = reference.make_inputs(0, "cpu")
    torch.testing.assert_close(reference.make_model()(x, index), torch.softmax(x, -1) + 1)
    torch.testing.assert_close(reference.make_model()(x, index, shift=0.0), torch.softmax(x, -1))


def test_a_tuple_of_inputs_is_made_anew(tmp_path: Path) -> None:
    task = taskfile.describe(write(tmp_path, FUNCTION), entry="twice")
    reference = taskfile.load(task)
    a, b = (reference.make_inputs(seed, "cpu")[0] for seed in (1, 2))
    assert task.special_values and a.shape == (3,) and not torch.equal(a, b)


def test_the_decorator_returns_the_function() -> None:
    @taskfile.task(inputs=(1,))
    def double(x: int) -> int:
        return 2 * x

    assert double(3) == 6
    with pytest.raises(TaskError, match="a function or a tuple, saw int"):
        taskfile.task(inputs=3)


def test_a_saved_module_loads_in_another_process(tmp_path: Path) -> None:
    write(tmp_path, PLAIN.replace("class Model", "class Own"), "own_module.py")
    path = tmp_path / "saved.pt"
    script = f"""
        import sys, torch
        sys.path.insert(0, {str(tmp_path)!r})
        from own_module import Own
        from warpwright.tasks.modules import saved_module
        module = Own(4)
        module.linear.weight.data.fill_(0.25)
        saved_module.write(module, [torch.arange(20.0).reshape(5, 4), torch.arange(5), 2.0], {str(path)!r})
    """
    python("-c", textwrap.dedent(script))
    task = taskfile.describe(path)
    reference = taskfile.load(task)
    model = reference.make_model()
    x, labels, scale = reference.make_inputs(3, "cpu")
    assert task.option("loader") == "module" and set(model.state_dict()) >= {"linear.weight", "norm.running_mean"}
    assert torch.all(model.linear.weight == 0.25) and model(x, labels, scale)[0].shape == (5, 3)
    assert x.shape == (5, 4) and set(x.flatten().tolist()) <= set(range(20)) and torch.equal(labels, torch.arange(5)) and scale == 2.0
    assert issubclass(reference.namespace.Model, torch.nn.Module) and reference.make_inputs(0, "meta")[0].is_meta


@pytest.mark.slow
def test_a_module_defined_in_the_running_script_is_saved_as_its_graph(tmp_path: Path) -> None:
    path = tmp_path / "saved.pt"
    script = f"""
        import torch
        from warpwright.tasks.modules import saved_module
        class Here(torch.nn.Module):
            def forward(self, x):
                return torch.relu(x) + 1
        saved_module.write(Here(), [torch.randn(4)], {str(path)!r})
    """
    file = write(tmp_path, script, "script.py")
    python(str(file))
    reference = taskfile.load(taskfile.describe(path))
    (x,) = reference.make_inputs(0, "cpu")
    torch.testing.assert_close(reference.make_model()(x), torch.relu(x) + 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("class Model", "class Network"), "no class Model and no function under @warpwright.task"),
        (("def get_inputs", "def make_inputs"), "has class Model but no get_inputs"),
        (("import torch.nn as nn", "import torch.nn as nn ]"), "line 3: syntax error"),
    ],
)
def test_what_describe_refuses(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        taskfile.describe(write(tmp_path, PLAIN.replace(*change)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("import torch.nn as nn", "import torch.nn as nn, no_such_package"), "No module named 'no_such_package'.*install the package"),
        (("return [features]", "return features"), "expected get_init_inputs.. to return a list, saw int"),
        (("features = 4", "features = 4 / 0"), "ZeroDivisionError: division by zero at line 15"),
    ],
)
def test_what_load_refuses(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        taskfile.load(taskfile.describe(write(tmp_path, PLAIN.replace(*change))))


def test_errors_of_get_inputs_and_of_the_constructor_name_the_line(tmp_path: Path) -> None:
    bad_inputs = taskfile.load(taskfile.describe(write(tmp_path, PLAIN.replace("2.5]", "absent]"))))
    with pytest.raises(TaskError, match=r"get_inputs\(\) raised NameError: name 'absent' is not defined at line 18: return"):
        bad_inputs.make_inputs(0, "cpu")
    bad_model = taskfile.load(taskfile.describe(write(tmp_path, PLAIN.replace("nn.Linear(features, 3)", "nn.Linear(features, -3)"))))
    with pytest.raises(TaskError, match=r"Model\(\.\.\.\) raised RuntimeError.*at line 8"):
        bad_model.make_model()


def test_missing_files_and_changed_files(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="does not exist"):
        taskfile.describe(tmp_path / "absent.py")
    with pytest.raises(TaskError, match="is a folder"):
        taskfile.describe(tmp_path)
    path = write(tmp_path, PLAIN)
    task = taskfile.describe(path)
    path.write_text(path.read_text() + "\n# edited\n")
    with pytest.raises(TaskError, match="has changed since"):
        taskfile.load(task)


class Layer:
    def __init__(self) -> None:
        self.keys = torch.ones(2)


class Cache:
    """As transformers have it: neither a container that is looked into nor a tensor."""

    def __init__(self) -> None:
        self.layers, self.size = [Layer()], 3


def test_an_object_that_holds_tensors_is_told_from_containers_and_settings() -> None:
    assert holder_of([torch.ones(2), {"past": Cache()}]) == "Cache"
    assert holder_of([torch.ones(2), {"a": (1, None)}, torch.float32, torch.device("cpu"), Path("x"), torch.nn.functional.relu]) == ""


def test_a_seed_on_the_cpu_gives_the_values_of_torchs_own() -> None:
    seed_all(3, "cpu")
    quick = torch.rand(4)
    torch.manual_seed(3)
    assert torch.equal(quick, torch.rand(4))
