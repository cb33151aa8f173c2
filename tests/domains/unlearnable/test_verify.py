"""The instrument: what one pair tells, image quality, probes, counter-measures, trainings, and the words of the report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from labelled_textures import CLASSES, KEY, data, textures

from warpwright.domains.unlearnable.cwc import backends
from warpwright.domains.unlearnable.cwc.bank import UNIT, FilterBank, FilterSpec
from warpwright.domains.unlearnable.cwc.operator import PADS, Operator
from warpwright.domains.unlearnable.data.labelled import stack
from warpwright.domains.unlearnable.verification import countermeasures, estimate, nets, probe, quality
from warpwright.domains.unlearnable.verification.countermeasures import simple
from warpwright.domains.unlearnable.verification.countermeasures.coin import random_displacement
from warpwright.domains.unlearnable.verification.findings import Quality, learned, summarise
from warpwright.domains.unlearnable.verification.sets import load
from warpwright.domains.unlearnable.verification.training.adversaries import attack
from warpwright.domains.unlearnable.verification.training.recipe import Outcome, Plan, Recipe
from warpwright.domains.unlearnable.verification.training.trainer import train
from warpwright.domains.unlearnable.verification.verify import Settings, runs, verify
from warpwright.errors import UsageError
from warpwright.reports import page_unlearnable


@pytest.mark.parametrize(("k", "pb", "side"), [(3, 0.3, 32), (5, 0.15, 32), (9, 0.06, 40)])
@pytest.mark.parametrize("pad", PADS)
@pytest.mark.parametrize("scale", ["sum", "max"])
def test_one_pair_a_class_tells_the_whole_operator(k: int, pb: float, side: int, pad: str, scale: str) -> None:
    bank = FilterBank.from_key(KEY, CLASSES, FilterSpec(k, pb, "random" if scale == "max" else "centre"))
    clean, labels = textures(4, side), np.arange(4)
    protected = backends.cpp(clean, labels, bank, Operator(pad, scale))
    found = estimate.fit(list(zip(clean, protected, strict=True)), CLASSES)
    assert (found.operator, found.bank.spec.k, found.bank.spec.tap) == (Operator(pad, scale), k, bank.spec.tap)
    assert np.abs(found.bank.weights - bank.weights).max() / UNIT < 0.02 and found.residual < 0.4
    assert 0.8 * pb < found.bank.spec.pb < 1.1 * pb


def test_psnr_and_ssim_of_known_changes() -> None:
    images = textures(3, 32)
    assert (quality.psnr(images, images) == 99).all() and np.allclose(quality.ssim(images, images), 1)
    shifted = np.clip(images.astype(int) + 1, 0, 255).astype(np.uint8)
    assert np.allclose(quality.psnr(images, shifted), 20 * np.log10(255), atol=0.01)
    constant = np.full((1, 1, 20, 20), 100, np.uint8), np.full((1, 1, 20, 20), 120, np.uint8)
    expected = (2 * 100 * 120 + 6.5025) / (100**2 + 120**2 + 6.5025)  # without structure only the luminance term is left
    assert quality.ssim(*constant)[0] == pytest.approx(expected, abs=1e-9)
    noise = np.clip(images + np.random.default_rng(0).normal(0, 40, images.shape), 0, 255).astype(np.uint8)
    assert (quality.ssim(images, noise) < 0.8).all() and len(quality.ssim(images[:0], images[:0])) == 0


def test_probes_see_what_is_there_and_nothing_else() -> None:
    labels = np.arange(600) % 4
    images = textures(600)
    assert not probe.border_probe(images, labels).leaks and not probe.spectrum_probe(images, labels).leaks
    bank = FilterBank.from_key(KEY, CLASSES)
    assert probe.border_probe(backends.cpp(images, labels, bank, Operator("zero", "max")), labels).accuracy > 80
    assert probe.spectrum_probe(backends.cpp(images, labels, bank, Operator()), labels).leaks
    with pytest.raises(UsageError, match="at least 20"):
        probe.border_probe(images[:8], labels[:8])


@pytest.mark.parametrize("name", sorted(countermeasures.COUNTERMEASURES))
@pytest.mark.parametrize("channels", [1, 3])
def test_counter_measures_keep_shape_and_change_something(name: str, channels: int) -> None:
    measure = countermeasures.COUNTERMEASURES[name]
    images = textures(4, 12, channels)
    out = measure.prepare(images)
    assert out.shape == images.shape and out.dtype == np.uint8
    x = torch.from_numpy(images).float() / 255
    batch = x if measure.augment is None else measure.augment(x, torch.Generator().manual_seed(0))
    batch = batch if measure.before_crop is None else measure.before_crop(batch, torch.Generator().manual_seed(0))
    cut = 0 if measure.before_crop is None else 2
    assert batch.shape == (4, channels, 12 - cut, 12 - cut) and float(batch.min()) >= 0 and float(batch.max()) <= 1
    recipe = measure.recipe(Recipe())
    if recipe.adversarial:
        net = nets.make("small", channels, 4).eval()
        y = torch.arange(4)
        worse = attack(net, x, y, 4, recipe)
        loss = [torch.nn.functional.cross_entropy(net((images - 0.5) / 0.25), y).item() for images in (x, worse)]
        assert worse.shape == x.shape and (loss[1] > loss[0] or recipe.norm == "filter")
        distance = (worse - x).flatten(1)
        if recipe.norm == "linf":
            assert float(distance.abs().max()) <= 4 / 255 + 1e-6
        if recipe.norm == "l2":
            assert float(distance.norm(dim=1).max()) <= 0.5 + 1e-5
    changed = not np.array_equal(out, images) or batch.shape != x.shape or not torch.equal(batch, x) or bool(recipe.adversarial)
    assert changed or (name == "greyscale" and channels == 1)


def test_edge_crop_takes_the_border_away_and_displacement_of_nothing_is_the_identity() -> None:
    images = textures(2, 8)
    marked = images.copy()
    marked[:, :, 0], marked[:, :, -1], marked[..., 0], marked[..., -1] = 0, 0, 0, 0
    assert (simple.edge_crop(marked) == simple.edge_crop(images)).all()
    x = torch.from_numpy(images).float() / 255
    assert torch.allclose(random_displacement(x, torch.Generator().manual_seed(0), 0.0), x, atol=1e-5)


def test_images_of_many_shapes_come_to_one() -> None:
    pictures = [textures(1, 40)[0], textures(1, 20, 1)[0], textures(1, 16)[0]]
    assert stack(pictures, 16).shape == (3, 3, 16, 16) and (stack(pictures[2:], 16)[0] == pictures[2]).all()


def test_a_small_net_learns_and_any_module_may_be_given() -> None:
    sets = data()
    images, labels = sets.clean.at_side(32), sets.clean.labels
    tests = {"clean": (sets.test.at_side(32), sets.test.labels)}
    recipe = Recipe(epochs=6, batch=16, peak_rate=0.05, crop=0)
    plan = Plan(images, labels, tests, 4, recipe)
    outcome = train(plan, 0)
    assert outcome.test["clean"] > 80 and len(outcome.curve) == 6 and outcome.curve[-1][0] == outcome.train
    assert train(plan, 0) == outcome
    linear = lambda channels, classes: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(channels * 256, classes))  # noqa: E731
    assert train(replace(plan, make_net=linear), 0).test["clean"] > 50
    assert nets.make("resnet18", 3, 4)(torch.zeros(2, 3, 32, 32)).shape == (2, 4)
    with pytest.raises(UsageError, match="there is no net"):
        train(replace(plan, recipe=replace(recipe, net="none")), 0)


def test_the_plan_covers_controls_and_attacks_and_verify_resumes_from_its_store() -> None:
    sets = data(80)
    settings = Settings(epochs=1, seeds=2, attacks="quick", batch=16)
    planned = list(runs(sets, settings))
    assert len({run.key for run in planned}) == len(planned) == 2 * (4 + 2 + 2 * 3)
    assert len(list(runs(sets, replace(settings, attacks="full")))) == 2 * (4 + 2 + 2 * 13)
    store = {run.key: Outcome({"clean": 50.0, "own": 90.0, "perm": 20.0}, 80.0, run.seed, ((80.0, 50.0),)) for run in planned}
    missing = planned[1].key
    assert planned[1].name == "plain" and planned[1].on == "protected"
    del store[missing]
    shown: list[str] = []
    found = verify(sets, settings, lambda done, count, name: shown.append(f"{done}/{count}"), store)
    assert shown[-1] == f"{len(planned)}/{len(planned)}" and set(store[missing].test) == {"clean", "own", "perm"}
    assert found.fractions == dict.fromkeys(CLASSES, 1.0) and "k=3, reflect border, divided by the sum" in found.filters
    page = page_unlearnable.page(found, sets.samples())
    assert "spectrum estimate, no key" in page and "COIN" in page and page.count("<svg") == 0  # a curve needs two epochs


def outcomes(**accuracies: float) -> list[tuple[str, str, Outcome]]:
    sets = {"clean": ("plain", "clean"), "protected": ("plain", "protected"), "universal": ("universal filter", "control")}
    sets |= {"random": ("random filter per image", "control"), "jpeg": ("jpeg", "protected"), "blind": ("spectrum estimate, no key", "protected")}
    tests = lambda value: {"clean": value, "own": 98.0, "perm": 4.0}  # noqa: E731
    return [(*sets[name], Outcome(tests(value), 90.0, 0, ((40.0, 20.0), (90.0, value)))) for name, value in accuracies.items()]


SHARES = dict.fromkeys(CLASSES, 1.0)
GOOD = Quality(10, 30.0, 25.0, 0.95, 0.9)


def test_the_headline_is_the_worst_case() -> None:
    found = summarise(outcomes(clean=68.2, protected=11.1, universal=57.5, random=63.3, jpeg=55.8, blind=52.5), 10, GOOD, SHARES, "k=3", {})
    assert found.headline.text.startswith("with the best attack we ran (jpeg): 55.8 of 68.2 %") and found.headline.valid
    assert found.beyond_control == pytest.approx(46.4)
    assert any("no protection" in note for note in found.notes()) and "30.0 dB" in found.text()
    page = page_unlearnable.page(found, [])
    assert "<polyline" in page and "55.8" in page and "average spectra" in page and "Sets of which" not in page
    assert found.to_json()["headline"]["worst"] == 55.8


def test_no_protection_partial_protection_and_void_runs_are_said() -> None:
    found = summarise(outcomes(clean=91.0, protected=90.0), 10, GOOD, {**SHARES, "a": 0.8}, "k=3", {})
    assert found.headline.text.startswith("NO PROTECTION") and any("NOT ALL PROTECTED: 1 classes" in note for note in found.notes())
    rows = outcomes(clean=70.0, protected=11.0, jpeg=60.0)
    rows[2] = ("jpeg", "protected", replace(rows[2][2], train=20.0))
    found = summarise(rows, 10, GOOD, SHARES, "k=3", {})
    assert found.headline.worst == 11.0 and found.headline.attack == "plain training"  # a void attack proves nothing either way
    assert any("jpeg on protected (1 of 1)" in note for note in found.notes()) and "void" in found.text()
    assert learned(Outcome({}, 37.0, 0), 10) and not learned(Outcome({}, 36.9, 0), 10) and not learned(Outcome({}, 60.0, 0), 2)


def test_a_hard_domain_shift_is_not_called_protection() -> None:
    found = summarise(outcomes(clean=97.0, protected=30.0, universal=40.0, random=35.0), 10, GOOD, SHARES, "k=3", {})
    assert any("domain shift" in note for note in found.notes())


def test_matching_by_name(tmp_path: Path) -> None:
    images, labels = textures(40), np.arange(40) % 4
    for name, shift in (("clean", 0), ("protected", 3)):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "images.npy", np.clip(images.transpose(0, 2, 3, 1).astype(int) + shift, 0, 255).astype(np.uint8))
        np.save(tmp_path / name / "labels.npy", labels)
    found = load(tmp_path / "clean", tmp_path / "protected", "auto", None, 0.25, 32)
    assert found.clean.names == found.protected.names and (len(found.clean.names), len(found.test.names)) == (30, 10)
    assert not set(found.clean.names) & set(found.test.names)
    for name in ("images", "labels"):
        np.save(tmp_path / "protected" / f"{name}.npy", np.load(tmp_path / "protected" / f"{name}.npy")[:30])
    assert load(tmp_path / "clean", tmp_path / "protected", "auto", None, 0.25, 32).absent == 10
    np.save(tmp_path / "protected" / "labels.npy", labels[:30] + 10)
    with pytest.raises(UsageError, match="0 of 40 names"):
        load(tmp_path / "clean", tmp_path / "protected", "auto", None, 0.25, 32)
