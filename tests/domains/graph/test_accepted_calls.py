"""Calls like one that was looked at before are compared with it all at once; whatever differs is looked at as a first call is."""

from __future__ import annotations

import copy
import gc
import sys
import types
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest
import torch
from torch import nn

from tests.domains.graph.techniques.exactness import captured
from warpwright.domains.graph.lower import Original, lower

TEXT = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.norm, self.two = nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Linear(8, 8, bias=False)
        self.two.weight, self.number = self.one.weight, 3

    def forward(self, x):
        return self.two(torch.relu(self.norm(self.one(x))))

def get_inputs():
    return [torch.rand(4, 8)]

def get_init_inputs():
    return []
"""


def program() -> tuple[dict[str, Any], nn.Module]:
    original: dict[str, Any] = {}
    exec(TEXT, original)
    ir = captured(original["Model"]().eval(), torch.rand(4, 8))
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(lower(ir, (), Original("t", TEXT, mode="eval")).source.text, "optimized.py", "exec"), names)
    return names, names["ModelNew"]()


class Tagged(torch.Tensor):
    """A tensor of a class of one's own."""


def odd_strides(x: torch.Tensor) -> torch.Tensor:
    return x.t().contiguous().t()


def to_double(model: nn.Module) -> None:
    model.norm.double()  # type: ignore[operator, union-attr]


def replaced(model: nn.Module) -> None:
    model.one.weight = nn.Parameter(torch.rand(8, 8))  # type: ignore[union-attr]


def strided(model: nn.Module) -> None:
    model.one.bias.data = torch.rand(16)[::2]  # type: ignore[union-attr]


def subclass(model: nn.Module) -> None:
    model.one.bias.data = torch.rand(8).as_subclass(Tagged)  # type: ignore[union-attr]


CHANGES: dict[str, tuple[Callable[[torch.Tensor], Any], Callable[[nn.Module], Any]]] = {
    "nothing": (lambda x: x, lambda m: None),
    "other values": (lambda x: x + 1, lambda m: [p.data.mul_(2) for p in m.parameters()]),
    "another shape": (lambda x: x[:2], lambda m: None),
    "one dimension more": (lambda x: x[None], lambda m: None),
    "another type": (lambda x: x.double(), lambda m: None),
    "other strides": (odd_strides, lambda m: None),
    "expanded": (lambda x: x[:1].expand(4, 8), lambda m: None),
    "negated memory": (torch._neg_view, lambda m: None),
    "another class": (lambda x: x.as_subclass(Tagged), lambda m: None),
    "a parameter": (nn.Parameter, lambda m: None),
    "a number": (lambda x: 3, lambda m: None),
    "a sparse one": (lambda x: x.to_sparse(), lambda m: None),
    "on no device": (lambda x: x.to("meta"), lambda m: None),
    "training": (lambda x: x, lambda m: m.train()),
    "a hook": (lambda x: x, lambda m: m.one.register_forward_hook(lambda *_: None)),
    "a part in double": (lambda x: x, to_double),
    "no longer tied": (lambda x: x, replaced),
    "a strided bias": (lambda x: x, strided),
    "a bias of another class": (lambda x: x, subclass),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("gradients", [False, True])
def test_the_answer_is_that_of_a_first_look(change: str, gradients: bool) -> None:
    names, model = program()
    model.eval()
    of_input, of_model = CHANGES[change]
    x = torch.rand(4, 8)
    with torch.no_grad():
        watch = names["_Watch"].of(model, names["VERIFIED"])
        assert watch.misfit((x,)) is None and watch.as_accepted((x,))
    if gradients:  # are wanted now, as they were not
        with torch.enable_grad():
            assert (watch.misfit((x,)) or ("",))[0] == "grad"
    with torch.no_grad():
        watch.misfit((x,))
        of_model(model)
        given = (of_input(x),)
        fresh = names["_Watch"](model, names["VERIFIED"])
        at_once = names["_Watch"].usual(model, "_watch", given)
        assert (at_once is watch) is (fresh.misfit(given) is None) or change == "a parameter"
        assert (watch.misfit(given) or ("",))[0] == (fresh.misfit(given) or ("",))[0]


BUILT: dict[str, Callable[[nn.Module], Any]] = {
    "another eps": lambda m: setattr(m.norm, "eps", 0.5),
    "another number": lambda m: setattr(m, "number", 4),
    "an attribute more": lambda m: setattr(m.one, "more", 1),
    "another part": lambda m: setattr(m, "one", nn.Linear(8, 8)),
    "a part more": lambda m: m.add_module("three", nn.Linear(8, 8)),
    "a part in training": lambda m: m.norm.train(),
    "a global hook": lambda m: GLOBAL.append(nn.modules.module.register_module_forward_hook(lambda *_: None)),
    "an attribute less": lambda m: delattr(m, "number"),
    "a parameter less": lambda m: delattr(m.one, "bias"),
}
GLOBAL: list[Any] = []


@pytest.mark.parametrize("change", BUILT)
def test_a_call_is_accepted_at_once_only_by_the_model_as_it_was(change: str) -> None:
    names, model = program()
    model.eval()
    x, usual = torch.rand(4, 8), names["_Watch"].usual
    with torch.no_grad():
        assert usual(model, "_watch", (x,)) is None
        model(x)
        watch = usual(model, "_watch", (x,))
        assert watch is not None and watch is names["_Watch"].of(model, names["VERIFIED"])
        assert usual(copy.deepcopy(model), "_watch", (x,)) is None and usual(model, "_watch", (x, x)) is None and usual(model, "_watch", None) is None
        with torch.enable_grad():
            assert usual(model, "_watch", (x,)) is None
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert usual(model, "_watch", (x,)) is None
        assert usual(model, "_watch", (x + 1,)) is watch
        BUILT[change](model)
        try:
            assert usual(model, "_watch", (x,)) is None
        finally:
            while GLOBAL:
                GLOBAL.pop().remove()


def test_calls_alike_ask_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names, model = program()
    model.eval()
    with torch.no_grad():
        model(torch.rand(4, 8))
        for name in ("of", "misfit"):
            monkeypatch.setattr(names["_Watch"], name, lambda *_: pytest.fail("it was accepted at once"))
        model(torch.rand(4, 8))


def test_inference_mode_autocast_and_transforms_are_looked_at() -> None:
    names, model = program()
    model.eval()
    x = torch.rand(4, 8)
    watch = names["_Watch"].of(model, names["VERIFIED"])
    with torch.no_grad():
        assert watch.misfit((x,)) is None
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert watch.misfit((x,))[0] == "autocast"
        assert watch.misfit((x,)) is None and watch.as_accepted((x,))
        seen: list[Any] = []
        torch.vmap(lambda row: (seen.append(watch.misfit((row,))), row)[1])(torch.rand(3, 4, 8))  # type: ignore[func-returns-value]
        assert seen[0][0] == "transform"
    with torch.inference_mode():
        assert watch.misfit((x,)) is None and watch.misfit((torch.rand(4, 8),)) is None


def test_a_call_of_the_same_kind_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    names, model = program()
    model.eval()
    watch = names["_Watch"].of(model, names["VERIFIED"])
    with torch.no_grad():
        watch.misfit((torch.rand(4, 8),))
        monkeypatch.setattr(names["_Watch"], "reason", lambda *_: pytest.fail("it was accepted"))
        assert watch.misfit((torch.rand(4, 8),)) is None


def test_memory_of_replaced_parameters_is_given_back() -> None:
    _, model = program()
    model.eval()
    x = torch.rand(4, 8)
    with torch.no_grad():
        for _ in range(3):
            old = weakref.ref(model.one.bias.untyped_storage())  # type: ignore[union-attr, operator]
            model(x)
            model.load_state_dict({name: value.clone() for name, value in model.state_dict().items()}, assign=True)
            model.two.weight = model.one.weight  # type: ignore[union-attr]
            model(x)
            gc.collect()
            assert old() is None


def test_a_torch_without_the_comparison_looks_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    names, model = program()
    model.eval()
    for broken in (None, lambda *_, **__: (_ for _ in ()).throw(TypeError("another signature"))):
        names["_TensorGuards"] = broken
        watch = names["_Watch"](model, names["VERIFIED"])
        with torch.no_grad():
            assert watch.misfit((torch.rand(4, 8),)) is None and watch.accepted is None
            assert watch.misfit((torch.rand(3, 8),))[0] == "shape"


def test_hooks_of_a_library_that_records_nothing_now_are_no_hindrance(monkeypatch: pytest.MonkeyPatch) -> None:
    """As transformers leaves them on each layer once a call asked for hidden states."""
    library: Any = types.ModuleType("transformers.utils.output_capturing")
    library._active_collector = ContextVar("collector", default=None)
    monkeypatch.setitem(sys.modules, library.__name__, library)

    def recording(part: nn.Module, args: Any, output: torch.Tensor) -> None:
        if library._active_collector.get() is not None:
            library._active_collector.get().append(output)

    recording.__module__ = library.__name__
    names, model = program()
    model.eval().one.register_forward_hook(recording)  # type: ignore[union-attr, operator]
    watch = names["_Watch"].of(model, names["VERIFIED"])
    x = torch.rand(4, 8)
    with torch.no_grad():
        assert watch.misfit((x,)) is None and watch.as_accepted((x,))
        library._active_collector.set([])  # by a model around this one, which wants what its parts give
        assert watch.misfit((x,))[0] == "hook"
        library._active_collector.set(None)
        assert watch.misfit((x,)) is None
        model.one.register_forward_hook(lambda *_: None)  # type: ignore[union-attr, operator]
        assert watch.misfit((x,))[0] == "hook"


COMPLEX = TEXT.replace("return self.two(torch.relu(self.norm(self.one(x))))", "return x * x").replace(
    "torch.rand(4, 8)", "torch.rand(4, 8, dtype=torch.complex64)"
)


def test_a_conjugate_that_is_only_said_to_be_one_takes_the_originals_forward() -> None:
    """Its memory is what it is the conjugate of, which a copy of bytes would take."""
    original: dict[str, Any] = {}
    exec(COMPLEX, original)
    [x] = original["get_inputs"]()
    ir = captured(original["Model"]().eval(), x)
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(lower(ir, (), Original("t", COMPLEX, mode="eval")).source.text, "optimized.py", "exec"), names)
    model = names["ModelNew"]().eval()
    watch = names["_Watch"].of(model, names["VERIFIED"])
    with torch.no_grad():
        assert watch.misfit((x,)) is None and watch.misfit((x.conj(),))[0] == "type"


def test_a_parameter_that_is_only_said_to_be_negative_takes_the_originals_forward() -> None:
    names, model = program()
    model.eval()
    with torch.no_grad():
        x, bias = torch.rand(4, 8), model.one.bias  # type: ignore[union-attr]
        watch = names["_Watch"].of(model, names["VERIFIED"])
        assert watch.misfit((x,)) is None
        bias.data = torch._neg_view(bias.data)
        assert watch.misfit((x,))[0] == "state"
