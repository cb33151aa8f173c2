"""Every kind of returned program under every ordinary act of a user: the original's answer, or the original's error."""

from __future__ import annotations

import gc
import importlib.util
import sys
import warnings
import weakref
from pathlib import Path
from types import ModuleType
from typing import Any

import acts
import pytest
import torch

from warpwright import targets
from warpwright.base import Action, Candidate, Task
from warpwright.domains import graph
from warpwright.tasks import taskfile

KINDS = ("eager", "compile", "rewritten", "kernels", "plan", "compiled_graph", "scheduled", "pieces")
BUILT = ("kernels", "plan")
CUDA_KINDS = ("cuda_graph", "recorded", "recorded_original")

pytestmark = pytest.mark.usefixtures("quick_builds")


def rewritten(task: Task, target: str = "cpu", fuse: bool = False) -> Candidate:
    """Return a program with every scalar rewrite, folding and, if asked, kernels of its own."""
    space = graph.space(task, target)
    names = ["scalar_into_linear", "fold_batch_norm", "fold_parameters", *(["fuse_cpp"] if fuse else [])]
    ir, recipe = space.start, []
    for _ in range(20):
        legal = sorted((a for a in space.actions(ir) if a.technique in names), key=lambda a: names.index(a.technique))
        if not legal:
            break
        recipe.append(legal[0])
        ir = space.apply(ir, legal[0])
    assert {"fold_parameters"} <= {a.technique for a in recipe}, "the model has to have folded state"
    return space.candidate(recipe)


# A part with two operators is a piece of a model that looks at values; one with a single operator is not.
PART = '''class Gemm(nn.Linear):
    def forward(self, x):
        return torch.tanh(super().forward(x) * 0.5)


'''


def text_of(kind: str, task: Task) -> str:
    """Return the text of one kind of program; torch.compile stops before code generation, whose guards are all that acts can meet."""
    reference = taskfile.load(task)
    if kind in ("eager", "compile"):
        return targets.baselines(reference.source_text, "cpu", [kind])[kind].text.replace("mode=None", 'backend="eager"')
    if kind == "cuda_graph":
        return targets.baselines(reference.source_text, "cuda", [kind])[kind].text
    if kind in ("recorded", "recorded_original"):
        space = graph.space(task, "cuda")
        start = list(rewritten(task, "cuda").actions) if kind == "recorded" else []
        return space.candidate([*start, Action("cuda_graph")]).source.text
    if kind == "plan":
        return graph.space(task).candidate([*rewritten(task).actions, Action("plan")]).source.text
    if kind in ("compiled_graph", "scheduled"):
        space = graph.space(task)
        text = space.candidate([Action.parse('compile(mode="default")')]).source.text
        return text.replace("dynamic=False", 'dynamic=False, backend="eager"')
    return rewritten(task, fuse=kind == "kernels").source.text


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {}


def program(kind: str, folder: Path, texts: dict[str, str]) -> ModuleType:
    """Return a freshly imported file of one kind."""
    if kind not in texts:
        path = folder / "task.py"
        # a model that looks at values or addresses is not captured: what is left is to schedule the original's own forward
        looks = {"recorded_original": "assert x.data_ptr() % 2 == 0", "pieces": "x = -x if x.sum().item() > 1e6 else x"}
        look = {"scheduled": "torch.nonzero(x).tolist()", **looks}.get(kind)
        text = acts.MODEL if look is None else acts.MODEL.replace("        x = self.drop", f"        {look}\n        x = self.drop")
        path.write_text(text.replace("class Model(", f"{PART}class Model(").replace("nn.Linear(", "Gemm(") if kind == "pieces" else text)
        texts[kind] = text_of(kind, taskfile.describe(path, mode="eval"))
    file = folder / f"optimized_{kind}.py"
    file.write_text(texts[kind])
    name = f"optimized_{kind}_{abs(hash(str(folder)))}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def cell(kind: str, act: acts.Act, folder: Path, texts: dict[str, str], device: str = "cpu") -> str:
    """Return what is wrong with one act on one kind of program, or ""."""
    module = program(kind, folder, texts)
    torch.manual_seed(1)
    state = {name: tensor.clone() for name, tensor in module.Model(8).state_dict().items()}
    state["norm.running_mean"], state["norm.running_var"] = torch.randn(6), torch.rand(6) + 0.5
    x = torch.randn(5, 8, device=device)
    answers: list[Any] = []
    for entry in (module.Model, module.ModelNew):
        model = entry(8).to(device).eval()
        model.load_state_dict(state)
        answers.append(acts.seen(act, model, x))
    del sys.modules[module.__name__]
    return acts.difference(*answers)


CLEAR_ERRORS = {("compile", acts.symbolic_trace): "using FX to symbolically trace a dynamo-optimized function"}
"""Acts that the original answers and a program refuses in torch's own words."""


def marks_of(kind: str, act: acts.Act) -> list[pytest.MarkDecorator]:
    """Return a cell's marks. Of the whole matrix half the cells of each kind and of each act are in the fast part, as on a chess-board."""
    slow = (KINDS.index(kind) + acts.ACTS.index(act)) % 2
    return [pytest.mark.compiler] * (kind in BUILT) + [pytest.mark.slow] * slow


CELLS = [pytest.param(kind, act, id=f"{kind}-{act.__name__}", marks=marks_of(kind, act)) for kind in KINDS for act in acts.ACTS]


@pytest.mark.parametrize(("kind", "act"), CELLS)
def test_an_act_gives_the_originals_answer(kind, act, tmp_path, texts):
    torch._dynamo.reset()
    wrong = cell(kind, act, tmp_path, texts)
    assert CLEAR_ERRORS[kind, act] in wrong if (kind, act) in CLEAR_ERRORS else wrong == ""


@pytest.mark.parametrize("kind", ["rewritten", "compiled_graph", "scheduled", *(pytest.param(kind, marks=pytest.mark.compiler) for kind in BUILT)])
def test_an_ordinary_call_is_a_fast_one(kind, tmp_path, texts):
    module = program(kind, tmp_path, texts)
    model = module.ModelNew(8).eval()
    x = torch.randn(5, 8)
    with torch.no_grad():
        assert model.fits([x])
    frozen = model.requires_grad_(False)
    assert frozen.fits([x]), "a model that wants no gradients is fast in grad mode too"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frozen(x), frozen(x=x)


@pytest.mark.parametrize(
    ("call", "kind", "remedy"),
    [
        (lambda model, x: model(x), "grad", "no_grad"),
        (lambda model, x: model.train()(x.detach()), "mode", r"call \.eval"),
        (lambda model, x: model.requires_grad_(False)(x[:2]), "shape", "optimize it for this shape"),
        (lambda model, x: model.requires_grad_(False).double()(x.double()), "dtype", "convert it"),
        (lambda model, x: model.requires_grad_(False).to("meta")(x.to("meta")), "device", "move it"),
    ],
    ids=["grad", "mode", "shape", "dtype", "device"],
)
def test_a_call_of_another_kind_is_told_once_with_the_remedy(call, kind, remedy, tmp_path, texts):
    module = program("rewritten", tmp_path, texts)
    model, x = module.ModelNew(8).eval(), torch.randn(5, 8)
    with pytest.warns(RuntimeWarning, match=remedy) as caught:
        for _ in range(3):
            call(model, x)
    assert len(caught) == 1
    assert module._Watch.told == {kind}


@pytest.mark.parametrize("kind", ["eager", "rewritten", *(pytest.param(kind, marks=pytest.mark.compiler) for kind in BUILT)])
def test_a_program_is_freed_with_its_last_name(kind, tmp_path, texts):
    module = program(kind, tmp_path, texts)
    model = module.ModelNew(8).eval()
    with torch.no_grad():
        model(torch.randn(5, 8))
    gone = weakref.ref(model)
    gc.disable()  # no cycle: a GPU's memory is not to wait for the collector
    try:
        del model
        assert gone() is None
    finally:
        gc.enable()


def test_what_was_folded_in_inference_mode_holds_outside_of_it(tmp_path, texts):
    module = program("rewritten", tmp_path, texts)
    model = module.ModelNew(8).eval()
    with torch.inference_mode():
        model(torch.randn(5, 8))
    assert not any(tensor.is_inference() for tensor in model.folded())


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA GPU")
@pytest.mark.parametrize("kind", CUDA_KINDS)
def test_a_graph_that_is_freed_does_not_disturb_the_recording_of_another(kind, tmp_path, texts):
    module = program(kind, tmp_path, texts)
    x = torch.randn(5, 8, device="cuda")
    thresholds = gc.get_threshold()
    with torch.no_grad():
        model = module.ModelNew(8).cuda().eval()
        model(x)
        cycle = [model]
        cycle.append(cycle)
        del model, cycle
        other = module.ModelNew(8).cuda().eval()
        gc.set_threshold(1)
        try:
            assert torch.allclose(other(x), module.Model.forward(other, x), atol=1e-5)
        finally:
            gc.set_threshold(*thresholds)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA GPU")
@pytest.mark.parametrize("kind", CUDA_KINDS)
def test_a_call_within_the_callers_graph_is_part_of_it(kind, tmp_path, texts):
    module = program(kind, tmp_path, texts)
    model, x = module.ModelNew(8).cuda().eval(), torch.randn(5, 8, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad():
        model(x)
        with torch.cuda.graph(graph):
            seen = model(x)
        x.copy_(torch.randn(5, 8))
        graph.replay()
        assert torch.allclose(seen, module.Model.forward(model, x), atol=1e-5)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA GPU")
@pytest.mark.parametrize("act", acts.ACTS, ids=lambda act: act.__name__)
@pytest.mark.parametrize("kind", CUDA_KINDS)
def test_an_act_gives_the_originals_answer_on_cuda(kind, act, tmp_path, texts):
    if act is acts.data_loader_workers:
        pytest.skip("CUDA cannot be used in a forked process")
    seen = cell(kind, act, tmp_path, texts, "cuda")
    if kind == "recorded" and act is acts.write_through_data and seen:
        pytest.xfail("a write through .data to folded state is not seen on a GPU: the file's header asks for refresh()")
    assert seen == ""
