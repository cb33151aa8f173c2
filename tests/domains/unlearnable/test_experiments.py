"""The experiments of `verify`: what each trains, and that those of every kind run on a small set."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from labelled_textures import CLASSES, data

from warpwright.cli.domains import unlearnable
from warpwright.domains.unlearnable.verification import experiments, nets
from warpwright.domains.unlearnable.verification.experiments import Bench
from warpwright.domains.unlearnable.verification.sets import TrainingSets
from warpwright.domains.unlearnable.verification.store import OutcomeStore
from warpwright.domains.unlearnable.verification.training.recipe import Outcome, Recipe
from warpwright.domains.unlearnable.verification.training.side_by_side import Progress
from warpwright.domains.unlearnable.verification.verify import Settings, runs, verify
from warpwright.errors import UsageError
from warpwright.reports import page_unlearnable


def bench(weights: Path | None = None) -> Bench:
    return Bench(TrainingSets(data(80)), Recipe(epochs=1, batch=16), weights=weights)


def test_the_command_names_what_there_is() -> None:
    assert set(unlearnable._NETS) == set(nets.NETS)
    assert set(unlearnable._EXPERIMENTS) == set(experiments.EXPERIMENTS) - {"plain", "controls", "keyless", "quick"}
    assert all(one.about and one.source for one in experiments.EXPERIMENTS.values())


def test_what_the_paper_s_experiments_train() -> None:
    kinds = {(kind.name, kind.on): kind for kind in experiments.kinds(bench(), ("plain", "adversarial", "architectures", "dat", "plain"))}
    assert {kind.recipe.net for kind in kinds.values()} == {"small", "resnet18", "vgg16", "wrn34-10", "densenet121"}
    radii = {name: kind.recipe.adversarial for (name, on), kind in kinds.items() if on == "protected" and name.startswith("adv") and "," not in name}
    assert [round(radius, 2) for radius in radii.values()] == [4, 8, 16, 63.75, 127.5, 191.25]
    assert kinds["adversarial l2 0.5", "protected"].recipe.norm == "l2" and kinds["DAT 5x5", "protected"].recipe.adversarial == 5
    assert ("adversarial linf 4/255, wrn34-10", "clean") in kinds and len(kinds) == 2 + 7 + 16 + 3


def test_a_fraction_is_protected_and_its_clean_part_is_clean() -> None:
    made = bench()
    kinds = {kind.name: kind for kind in experiments.kinds(made, ("fractions",))}
    sets = made.sets
    mixed, part = kinds["40% protected"].plan(1), kinds["40% protected, clean part"].plan(1)
    changed = (mixed.images != sets.clean).any((1, 2, 3))
    for label in range(len(CLASSES)):
        assert changed[sets.labels == label].mean() == pytest.approx(0.4, abs=0.04)
    assert (mixed.images[changed] == sets.protected[changed]).all() and (part.images == sets.clean[~changed]).all()
    assert (part.labels == sets.labels[~changed]).all()
    assert not np.array_equal(mixed.images, kinds["40% protected"].plan(2).images)


def test_fine_tuning_begins_with_the_weights_that_it_is_given(tmp_path: Path) -> None:
    given = nets.make("small", 3, 10)
    torch.save(given.state_dict(), tmp_path / "weights.pt")
    kinds = {(kind.name, kind.on): kind for kind in experiments.kinds(bench(tmp_path / "weights.pt"), ("fine-tuning",))}
    assert kinds["new last layer", "protected"].recipe.frozen and kinds["fine-tuned", "clean"].plan(0).weights == tmp_path / "weights.pt"
    with pytest.raises(UsageError, match="give --weights"):
        list(experiments.kinds(bench(), ("fine-tuning",)))


def test_the_best_epoch_is_told_where_stopping_early_would_have_paid() -> None:
    sets, settings = data(64), Settings(epochs=3, seeds=2, attacks="none")
    planned = list(runs(sets, settings))
    tests = {"clean": 20.0, "own": 90.0, "perm": 9.0}

    def notes(*curves: tuple[float, ...]) -> str:
        store = {run.key: Outcome(tests, 95.0, run.seed, tuple((90.0, one) for one in curves[run.seed])) for run in planned}
        return "\n".join(verify(sets, settings, store=store).notes())

    assert "after epoch 2" in notes((30.0, 50.0, 20.0), (30.0, 40.0, 20.0)) and "has 45.0 %" in notes((30.0, 50.0, 20.0), (30.0, 40.0, 20.0))
    assert "Stopped" not in notes((10.0, 23.0, 20.0), (10.0, 22.0, 20.0))


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(UsageError, match="fractions"):
        list(experiments.kinds(bench(), ("none",)))
    with pytest.raises(UsageError, match="COIN"):
        list(experiments.kinds(bench(), (), ("none",)))


def test_every_kind_of_training_ends_in_the_report_and_is_not_trained_twice(tmp_path: Path) -> None:
    sets = data(64)
    settings = Settings(epochs=1, seeds=1, batch=16, attacks="COIN, RSK+FF", experiments=("fractions", "dat", "self-supervised"), steps=1, lanes=2)
    store = OutcomeStore(tmp_path / "store.jsonl")
    watched: list[Progress] = []
    found = verify(sets, settings, store=store, parts=store.parts, watch=watched.append)
    planned = [run.key for run in runs(sets, settings)]
    assert set(store) == set(planned) and len(planned) == 2 + 2 + 8 + 3 + 2 + 4
    assert watched[-1].done == len(planned) and [row.on for row in found.rows].count("mixed") == 4
    again = verify(sets, settings, store=OutcomeStore(tmp_path / "store.jsonl"))
    assert again.rows == found.rows
    text = found.text()
    assert "40% protected" in text and "SimCLR-like, linear probe" in text and "RSK+FF" in text


def test_a_mixed_set_is_no_attack() -> None:
    sets = data(64)
    settings = Settings(epochs=1, seeds=1, attacks="none", experiments=("fractions",))
    planned = list(runs(sets, settings))
    store = {run.key: Outcome({"clean": 90.0 if run.on != "protected" else 20.0, "own": 90.0, "perm": 9.0}, 95.0, 0) for run in planned}
    found = verify(sets, settings, store=store)
    assert found.headline.worst == 20.0
    page = page_unlearnable.page(found, [])
    assert "40% protected</td>" in page and "its clean part alone" in page and "divided out" not in page


def test_settings_reach_the_recipe() -> None:
    settings = Settings(schedule="steps", clip=5.0, steps=10, flip=True, precision="float32", stepping="eager", batch=512)
    recipe = settings.recipe
    assert (recipe.schedule, recipe.clip, recipe.steps, recipe.flip, recipe.batch) == ("steps", 5.0, 10, True, 512)
    assert not recipe.reduced and replace(recipe, precision="auto", device="cuda").reduced
