"""Results of a class of their own: read from the object's own storage, and refused where a class could answer otherwise than it was verified."""

from __future__ import annotations

import argparse
import sys
from collections import OrderedDict
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from warpwright.workers.tensors import answer, exchange  # noqa: E402
from warpwright.workers.tensors.objects import Named, constant, kinds_of, state_of, taker  # noqa: E402


@dataclass
class Plain:
    sample: Any
    loss: Any = None


@dataclass(frozen=True, slots=True)
class Slotted:
    sample: Any
    loss: Any = 1.0


@dataclass
class Computed:
    sample: Any

    @property
    def late(self) -> Any:
        return self.sample + 1


@dataclass
class Items(OrderedDict):  # type: ignore[type-arg]
    """As transformers' ModelOutput: items that are attributes as well."""

    logits: Any = None

    def __post_init__(self) -> None:
        OrderedDict.__setitem__(self, "logits", self.logits)


def plain_tensor(shipped: Any) -> Any:
    return shipped


def test_fields_are_taken_from_the_object() -> None:
    take = taker()
    assert take(Plain(1, 2)) == ("Plain", {"sample": 1, "loss": 2})
    assert take(Slotted(3)) == ("Slotted", {"sample": 3, "loss": 1.0})
    assert take(Items(4)) == ("Items", {"logits": 4})


def test_a_class_that_computes_is_refused() -> None:
    take = taker()
    assert "Computed" in str(take(Computed(1))) and not isinstance(take(Computed(1)), tuple)

    class Overridden(dict):  # type: ignore[type-arg]
        def __getitem__(self, key: Any) -> Any:
            return 0

    assert isinstance(take(Overridden(a=1)), str)

    class Meta(type):
        pass

    assert isinstance(take(Meta("Made", (), {})()), str)


def test_items_and_attributes_have_to_be_the_same() -> None:
    item = Items(4)
    item.logits = 5
    assert "attributes" in str(taker()(item))


def test_a_field_that_is_not_set_is_refused() -> None:
    item = Plain(1)
    del item.sample
    assert "not set" in str(taker()(item))


@pytest.mark.parametrize("value", [Plain(1, 2.5), Items(3), [Plain(1, Slotted(2)), {"value": 1, "other": 2, "not_plain": 3, "tensor": 4}]])
def test_both_descriptions_tell_the_same(value: Any) -> None:
    described = exchange.decode(answer.read(answer.describer()(value)), plain_tensor)
    encoded = exchange.decode(exchange.encode(value, plain_tensor), plain_tensor)
    assert described == encoded and list(kinds_of(described)) == list(kinds_of(encoded)) == list(kinds_of(value))


def test_names_of_keys_mean_nothing() -> None:
    tree = exchange.encode(dict.fromkeys(("value", "other", "not_plain", "tensor", "data", "object"), 1), plain_tensor)
    assert exchange.foreign(tree) == ""
    assert "set" in exchange.foreign(exchange.encode({"value": {1, 2}}, plain_tensor))


def test_a_named_result_says_its_class() -> None:
    assert list(kinds_of((1, Named("Output", {"a": 2})))) == [("out[1]", "Output")]
    assert list(kinds_of(OrderedDict(a=1))) == []


PACKAGE = """from collections import OrderedDict
from dataclasses import dataclass


class Meta(type):
    def __call__(cls, *args):
        return super().__call__(*args)


class Output(OrderedDict, metaclass=Meta):
    def __post_init__(self):
        OrderedDict.__setitem__(self, "logits", self.logits)


@dataclass
class Logits(Output):
    logits: object = None


class Slotted:
    __slots__ = ("keys", "__dict__")


class Reduced:
    def __reduce__(self):
        return Reduced, ()
"""


def test_a_metaclass_of_an_installed_package_is_no_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As transformers' ModelOutput has one since 5.24."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "outputs_with_a_metaclass.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(folder))
    package: Any = import_module("outputs_with_a_metaclass")
    try:
        take = taker()
        assert take(package.Logits(4)) == ("Logits", {"logits": 4})

        class Forged(package.Logits):  # type: ignore[misc, name-defined]
            def __getitem__(self, key: Any) -> Any:
                return 0

        assert isinstance(take(Forged(4)), str)
        assert isinstance(take(package.Slotted()), str) and isinstance(take(package.Reduced()), str)
    finally:
        sys.modules.pop("outputs_with_a_metaclass")


def test_a_plain_object_is_what_it_holds() -> None:
    held = argparse.Namespace(keys=torch.ones(2), dtype=torch.float32, device=torch.device("cpu"), kind=Plain, ready=True, states={0: 1})
    name = f"Namespace(dtype=torch.float32, device=cpu, kind={Plain.__module__}.Plain, states=by number)"
    assert taker()(held) == (name, {"keys": held.keys, "ready": True, "states": {"0": 1}})
    assert list(kinds_of((held, 1))) == [("out[0]", name)]
    assert state_of(held) == {"keys": held.keys, "ready": True, "states": {"0": 1}} and state_of(1) is state_of(held.keys) is None


def test_a_class_that_says_to_be_another_is_not_taken_for_it() -> None:
    other = type("Plain", (), {"__module__": Plain.__module__})
    assert taker()(argparse.Namespace(kind=other)) == ("Namespace", {"kind": other})
    assert "type" in exchange.foreign(answer.read(answer.describer()(argparse.Namespace(kind=other))))


class Changing(type):
    """Says the truth to those who look, and another thing to who writes it down."""

    asked = 0

    @property
    def __module__(cls) -> str:  # type: ignore[override]
        Changing.asked += 1
        return __name__ if Changing.asked < 2 else "torch"


def test_a_class_is_known_by_what_type_says_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a class was taken for torch.Size that had said first where it is found."""
    other = Changing("Size", (), {})
    monkeypatch.setattr(sys.modules[__name__], "Size", other, raising=False)
    assert constant(other, torch) == f"{__name__}.Size" and not Changing.asked
    assert constant(torch.nn.Linear, torch) == "torch.nn.modules.linear.Linear" and constant(int, torch) == "builtins.int"


def test_a_plain_object_of_a_script_is_refused() -> None:
    class Mine(argparse.Namespace):
        pass

    assert isinstance(taker()(Mine(keys=1)), str)


def test_both_descriptions_of_a_plain_object_tell_the_same() -> None:
    value = [argparse.Namespace(keys=2, layers=[argparse.Namespace(dtype=torch.float32, length=3)])]
    described = exchange.decode(answer.read(answer.describer()(value)), plain_tensor)
    assert described == exchange.decode(exchange.encode(value, plain_tensor), plain_tensor)
    assert list(kinds_of(described)) == list(kinds_of(value)) and len(list(kinds_of(value))) == 2


def test_tensors_of_results_are_found_in_objects() -> None:
    a, b, c, d = (torch.rand(2) for _ in range(4))
    found = exchange.tensors_in([torch.distributions.Normal(a, b + 1.0), {"x": (c, 1)}, Plain(d, [None])])
    assert found[0] is a or torch.equal(found[0], a)
    assert len(found) == 4 and found[2] is c and found[3] is d
