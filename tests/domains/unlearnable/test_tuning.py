"""The operator's search space: legal actions, and candidates that give the definition's bytes."""

from __future__ import annotations

import types

import numpy as np
import pytest
import torch

from warpwright.base import Action
from warpwright.domains.unlearnable.cwc.backends import Tuning
from warpwright.domains.unlearnable.cwc.operator import PADS, SCALES, Operator, reference
from warpwright.domains.unlearnable.tuning import TECHNIQUES, Plan, Work, space, task_text
from warpwright.errors import NotApplicable

FUSE = Action("fuse")


def module(text: str) -> types.ModuleType:
    made = types.ModuleType("candidate")
    exec(compile(text, "candidate", "exec"), made.__dict__)
    return made


def test_actions_are_legal_and_print_and_parse_back() -> None:
    found = space(Work())
    assert found.actions(found.start) == [FUSE]
    fused = found.replay([FUSE])
    actions = found.actions(fused)
    assert {action.technique for action in actions} == {"rows", "vectors", "lanes"} and FUSE not in actions
    for action in actions:
        assert Action.parse(str(action)) == action and found.apply(fused, action) != fused
    assert found.replay([FUSE, Action("lanes", params=(("n", 16),))]) == Plan(Work(), Tuning(lanes=16))


@pytest.mark.parametrize("recipe", [[FUSE, FUSE], [Action("rows", params=(("n", 4),))], [FUSE, Action("rows", params=(("n", 3),))]])
def test_illegal_recipes_are_refused(recipe: list[Action]) -> None:
    with pytest.raises(NotApplicable):
        space(Work()).replay(recipe)


def test_no_more_accumulators_than_registers() -> None:
    wide = space(Work()).replay([FUSE, Action("rows", params=(("n", 8),))])
    assert "vectors(n=8)" not in {str(action) for action in space(Work()).actions(wide)}


@pytest.mark.compiler
@pytest.mark.parametrize(("pad", "scale"), [(pad, scale) for pad in PADS for scale in SCALES])
def test_every_candidate_gives_the_bytes_of_the_definition(pad: str, scale: str) -> None:
    work = Work(images=3, channels=2, side=13, k=3, classes=4, operator=Operator(pad, scale))
    found = space(work)
    original = module(task_text(work))
    torch.manual_seed(0)
    images, labels, weights = original.get_inputs()
    expected = reference(images.numpy(), labels.numpy(), weights.numpy().astype(np.int32), work.operator)
    assert (original.Model()(images, labels, weights).numpy() == expected).all()
    for recipe in ([], [FUSE], [FUSE, Action("rows", params=(("n", 1),)), Action("vectors", params=(("n", 1),))]):
        new = module(found.candidate(recipe).source.text).ModelNew()
        assert (new(images, labels, weights).numpy() == expected).all()
        if recipe:
            assert new.fits(images, labels, weights) and not new.fits(images, labels, -weights) and not new.fits(images.float(), labels, weights)


def test_techniques_have_distinct_names_and_legalities() -> None:
    assert [technique.name for technique in TECHNIQUES] == ["fuse", "rows", "vectors", "lanes"]
    assert {technique.traits.legality for technique in TECHNIQUES} == {"Q", "S"}
