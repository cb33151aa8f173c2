"""Trainings: the optimizer, the schedules, the networks, several side by side, and a killed run that goes on."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from warpwright.domains.unlearnable.verification import nets
from warpwright.domains.unlearnable.verification.store import OutcomeStore
from warpwright.domains.unlearnable.verification.training import augmentation, cost, regularisers, side_by_side, trainer
from warpwright.domains.unlearnable.verification.training.recipe import Outcome, Plan, Recipe
from warpwright.domains.unlearnable.verification.training.sgd import Sgd, schedule
from warpwright.domains.unlearnable.verification.training.side_by_side import Job, Progress
from warpwright.domains.unlearnable.verification.training.trainer import Training, train
from warpwright.errors import UsageError

RECIPE = Recipe(epochs=3, batch=16, peak_rate=0.05, crop=1, flip=True)


def plan(recipe: Recipe = RECIPE, n: int = 48) -> Plan:
    """Two classes, one bright and one dark."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 2
    images = rng.integers(0, 120, (n, 3, 12, 12), dtype=np.uint8) + (labels * 120).astype(np.uint8).reshape(-1, 1, 1, 1)
    return Plan(images, labels, {"clean": (images[:20], labels[:20])}, 2, recipe)


@pytest.mark.parametrize("clip", [0.0, 0.05])
def test_the_optimizer_is_torch_s(clip: float) -> None:
    torch.manual_seed(0)
    ours, theirs = torch.nn.Linear(5, 3), torch.nn.Linear(5, 3)
    theirs.load_state_dict(ours.state_dict())
    sgd = Sgd(list(ours.parameters()), 1e-2, clip)
    known = torch.optim.SGD(theirs.parameters(), 0.1, momentum=0.9, nesterov=True, weight_decay=1e-2)
    for _ in range(4):
        x = torch.randn(8, 5)
        sgd.step(torch.autograd.grad(ours(x).square().mean(), list(ours.parameters())), torch.tensor(0.1), torch.tensor(0.9))
        known.zero_grad()
        theirs(x).square().mean().backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(theirs.parameters(), clip)
        known.step()
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(ours.parameters(), theirs.parameters(), strict=True))


def test_schedules() -> None:
    rates, momenta = schedule(replace(RECIPE, epochs=10), 7)
    assert len(rates) == len(momenta) == 70 and float(rates.max()) == pytest.approx(0.05, rel=1e-3) and float(rates[-1]) < 1e-3
    assert float(momenta.min()) == pytest.approx(0.85, rel=1e-3) and float(momenta[0]) == pytest.approx(0.95, rel=1e-3)
    rates, _ = schedule(replace(RECIPE, epochs=100, schedule="steps"), 2)
    assert [round(float(rates[2 * epoch]), 6) for epoch in (0, 39, 40, 79, 80, 99)] == [0.05, 0.05, 0.005, 0.005, 0.0005, 0.0005]
    with pytest.raises(UsageError, match="no schedule"):
        schedule(replace(RECIPE, schedule="none"), 1)  # type: ignore[arg-type]


def test_crops_show_the_image_or_its_mirror_and_zeros_around_it() -> None:
    x = torch.arange(1, 37, dtype=torch.uint8).view(1, 1, 6, 6).expand(64, 1, 6, 6)
    out = augmentation.crop_and_flip(x, 2, True, torch.Generator().manual_seed(0))
    assert out.shape == x.shape and out.dtype == torch.uint8 and len({tuple(one.flatten().tolist()) for one in out}) > 20
    plain = torch.nn.functional.pad(x[:1], (2, 2, 2, 2))
    windows = {tuple(one[..., i : i + 6, j : j + 6].flatten().tolist()) for one in (plain, plain.flip(3)) for i in range(5) for j in range(5)}
    assert {tuple(one.flatten().tolist()) for one in out} <= windows
    assert augmentation.crop_and_flip(x, 0, False, torch.Generator()) is x
    assert augmentation.crop_and_flip(x[..., 1:5, 1:5], 0, False, torch.Generator().manual_seed(0), (6, 6)).shape == x.shape


def test_a_kernel_for_each_image_is_a_convolution() -> None:
    x, kernels = torch.randn(3, 2, 9, 8), torch.randn(3, 3, 3)
    found = augmentation.convolve_each(x, kernels)
    turned = augmentation.convolve_each(torch.nn.functional.pad(x, (1, 1, 1, 1)), kernels, transposed=True)
    for i in range(3):
        weight = kernels[i].expand(2, 1, 3, 3)
        assert torch.allclose(found[i], torch.nn.functional.conv2d(x[i : i + 1], weight, groups=2)[0], atol=1e-5)
        expected = torch.nn.functional.conv_transpose2d(x[i : i + 1], weight, padding=1, groups=2)[0]
        assert torch.allclose(turned[i], expected, atol=1e-5)


WEIGHTS = {"small": 114_210, "resnet18": 11_173_962, "vgg16": 14_724_042, "wrn34-10": 46_160_474, "densenet121": 6_956_298}
"""As published for the small-image forms (WRN-34-10: 46.2 M, DenseNet-121: 7.0 M), and of torch's own layers."""


@pytest.mark.parametrize("name", nets.NETS)
def test_networks_have_their_size_and_serve_small_images(name: str) -> None:
    with torch.device("meta"):
        net = nets.make(name, 3, 10).eval()
        assert net(torch.empty(2, 3, 8, 8)).shape == net(torch.empty(2, 3, 32, 32)).shape == (2, 10)
    assert sum(parameter.numel() for parameter in net.parameters()) == WEIGHTS[name]
    assert nets.last_layer(net).out_features == 10


def test_the_cost_of_networks_and_adversaries() -> None:
    assert cost.multiply_adds("resnet18", 3, 10, 32) == pytest.approx(0.556e9, rel=0.01)
    assert 5e9 < cost.multiply_adds("wrn34-10", 3, 10, 32) < 8e9
    assert cost.passes(RECIPE) == 3 and cost.passes(replace(RECIPE, adversarial=4.0, steps=10)) == 23
    assert cost.work(replace(RECIPE, net="none"), 10, 3, 2, 32) == 3 * 10 * 3


@pytest.mark.parametrize(
    "change",
    [
        {"adversarial": 4.0, "steps": 2},
        {"adversarial": 127.5, "norm": "l2", "steps": 2},
        {"adversarial": 3.0, "norm": "filter"},
        {"objective": "contrast"},
        {"precision": "bfloat16"},
        {"schedule": "steps", "clip": 1.0},
        {"smoothing": 0.5, "mixing": "mixup"},
        {"mixing": "cutmix", "orthogonal": 1e-3},
    ],
    ids=str,
)
def test_every_way_to_train_learns_two_easy_classes(change: dict[str, object]) -> None:
    outcome = train(plan(replace(RECIPE, epochs=6, **change)), 0)  # type: ignore[arg-type]
    assert outcome.test["clean"] >= 80 and outcome.seconds > 0 and outcome.how == "eager"


def test_mixed_images_are_shares_of_an_image_and_the_next() -> None:
    x = torch.rand(4, 3, 8, 10)
    for seed in range(20):
        mixed, share = regularisers.mix("mixup", x, torch.Generator().manual_seed(seed))
        assert torch.allclose(mixed, share * x + (1 - share) * x[[3, 0, 1, 2]]) and 0 <= float(share) <= 1
        mixed, share = regularisers.mix("cutmix", x, torch.Generator().manual_seed(seed))
        own = (mixed == x).all(1)
        assert torch.allclose(own.float().mean((1, 2)), share.expand(4)) and bool(((mixed == x) | (mixed == x[[3, 0, 1, 2]])).all())
    with pytest.raises(UsageError, match="cutmix"):
        regularisers.mix("none of them", x, torch.Generator())


def test_orthonormal_filters_are_not_alike() -> None:
    net = torch.nn.Sequential(torch.nn.Conv2d(2, 5, 3), torch.nn.Conv2d(1, 30, 3), torch.nn.Linear(4, 4))
    assert float(regularisers.alikeness(net).detach()) > 1
    for layer in (net[0], net[1]):
        torch.nn.init.orthogonal_(layer.weight)  # type: ignore[arg-type]
    assert float(regularisers.alikeness(net).detach()) == pytest.approx(0, abs=1e-8)
    net[0].weight.data[1] = net[0].weight.data[0]  # type: ignore[index, union-attr]
    assert float(regularisers.alikeness(net).detach()) == pytest.approx(2, abs=1e-5)


def test_only_the_last_layer_of_a_frozen_net_changes() -> None:
    training = Training(plan(replace(RECIPE, frozen=True)), 0)
    before = {name: value.clone() for name, value in training.net.state_dict().items()}
    while not training.finished:
        training.advance(2)
    changed = {name for name, value in training.net.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {"14.weight", "14.bias"}


def test_weights_of_another_training_are_taken_over_but_for_the_last_layer(tmp_path: Path) -> None:
    file = tmp_path / "weights.pt"
    given = nets.make("small", 3, 7)
    torch.save(given.state_dict(), file)
    net = nets.make("small", 3, 2)
    nets.load_weights(net, file)
    assert torch.equal(net.state_dict()["0.weight"], given.state_dict()["0.weight"]) and nets.last_layer(net).out_features == 2
    with pytest.raises(UsageError, match="weights of this net"):
        nets.load_weights(nets.make("vgg16", 3, 2), file)
    file.write_bytes(b"no weights")
    with pytest.raises(UsageError, match="state dictionary"):
        nets.load_weights(net, file)


def test_side_by_side_is_the_same_as_one_after_the_other() -> None:
    jobs = [Job(f"job {seed}", plan, seed, 1.0 + seed) for seed in range(3)]
    seen: list[Progress] = []
    found = {job.key: outcome for job, outcome in side_by_side.outcomes(jobs, 2, show=seen.append)}
    assert found == {job.key: train(plan(), job.seed) for job in jobs}
    assert seen[-1].done == 3 and seen[-1].left == pytest.approx(0, abs=1e-6)
    assert "job 0 1/3" in seen[0].text and "left" in seen[0].text


def test_the_next_plan_is_made_while_others_train_and_never_two_at_once() -> None:
    making, most, order = 0, 0, list[tuple[str, bool]]()
    main = threading.get_ident()

    def made(name: str) -> Plan:
        nonlocal making, most
        making, most = making + 1, max(most, making + 1)
        order.append((name, threading.get_ident() == main))
        time.sleep(0.01)
        making -= 1
        return plan()

    def broken() -> Plan:
        raise UsageError("expected images, saw none")

    jobs = [Job(str(seed), lambda seed=seed: made(str(seed)), seed) for seed in range(5)]  # type: ignore[misc]
    begun_only = ("2", False)  # by the other thread; when its turn comes there is no time left
    fits = lambda job: job.key != "2" or begun_only not in order  # noqa: E731
    found = {job.key: outcome for job, outcome in side_by_side.outcomes(jobs, 2, fits=fits)}
    assert set(found) == {"0", "1", "3", "4"} and most == 1
    assert order[:3] == [("0", True), ("1", True), begun_only] and {name for name, _ in order[3:]} == {"3", "4"}
    assert found["3"] == train(plan(), 3)
    with pytest.raises(UsageError, match="saw none"):
        list(side_by_side.outcomes([jobs[0], Job("broken", broken, 1)]))


def test_a_killed_run_goes_on_within_a_training_and_ends_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "CHECKPOINT_SECONDS", 0.0)
    jobs = [Job("one", plan, 5)]
    assert not list(side_by_side.outcomes(jobs, parts=tmp_path, until=time.monotonic()))  # one epoch, then the time is up
    assert len(list(tmp_path.glob("*.pt"))) == 1
    trained: list[int] = []
    step = Training.step
    monkeypatch.setattr(Training, "step", lambda self: (trained.append(1), step(self))[1])
    [(_, outcome)] = side_by_side.outcomes(jobs, parts=tmp_path)
    assert len(trained) == 2 * 3 and not list(tmp_path.glob("*.pt"))  # two epochs of three steps were left
    assert outcome == train(plan(), 5)


def test_the_store_keeps_what_is_finished_and_skips_a_cut_line(tmp_path: Path) -> None:
    file = tmp_path / "store.jsonl"
    store = OutcomeStore(file, "a set")
    store["a"] = outcome = Outcome({"clean": 50.0}, 90.0, 1, ((90.0, 50.0),), 3.0, "graph")
    with file.open("a") as open_file:
        open_file.write('{"key": "b", "te')
    again = OutcomeStore(file, "a set")
    assert dict(again) == {"a": outcome} and again["a"].how == "graph"
    again["c"] = outcome
    assert set(OutcomeStore(file)) == {"a", "c"}
    with pytest.raises(UsageError, match="another --store"):
        OutcomeStore(file, "another set")
    with pytest.raises(UsageError, match="only grows"):
        del again["a"]


@pytest.mark.cuda
@pytest.mark.parametrize("change", [{}, {"adversarial": 4.0, "steps": 2}, {"objective": "contrast"}, {"schedule": "steps", "clip": 1.0}], ids=str)
def test_a_recorded_step_is_the_eager_step(change: dict[str, object]) -> None:
    """In float32 they differ by rounding; with crops or rates of their own they would differ by as much as the weights move."""

    def weights(stepping: str) -> tuple[torch.Tensor, torch.Tensor]:
        recipe = replace(RECIPE, device="cuda", precision="float32", stepping=stepping, epochs=6, **change)  # type: ignore[arg-type]
        training = Training(plan(recipe, 96), 0)
        start = torch.cat([one.detach().flatten().clone() for one in training.parameters])
        training.advance(5)
        torch.cuda.synchronize()
        return start, torch.cat([one.detach().flatten() for one in training.parameters])

    start, expected = weights("eager")
    _, found = weights("graph")
    assert float((found - expected).norm()) < 0.05 * float((expected - start).norm())


def test_an_epoch_is_judged_by_images_of_all_classes_where_a_test_set_comes_class_by_class() -> None:
    whole = plan()
    order = np.argsort(whole.labels.repeat(40), kind="stable")
    sorted_set = whole.images.repeat(40, 0)[order], whole.labels.repeat(40)[order]
    images, labels = trainer._evenly(sorted_set)
    assert len(images) == trainer._WATCHED and abs(labels.mean() - 0.5) < 0.01 and len(sorted_set[1]) > 3 * len(labels)
    assert len(trainer._evenly((sorted_set[0][:7], sorted_set[1][:7]))[1]) == 7
    training = Training(replace(plan(replace(RECIPE, epochs=1, peak_rate=0.0)), tests={"clean": sorted_set}), 0)
    training.advance(training.per_epoch)
    assert training.curve[0][1] == pytest.approx(training.outcome().test["clean"], abs=1.0)  # the first 500 are of one class


def test_wrong_recipes_are_refused() -> None:
    for change in ({"objective": "none"}, {"stepping": "none"}, {"stepping": "graph"}):
        with pytest.raises(UsageError):
            Training(plan(replace(RECIPE, **change)), 0)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no adversary"):
        train(plan(replace(RECIPE, adversarial=1.0, norm="none")), 0)
    with pytest.raises(UsageError, match="odd"):
        train(plan(replace(RECIPE, adversarial=4.0, norm="filter")), 0)
    with pytest.raises(UsageError, match="saw none"):
        Training(replace(plan(), images=plan().images[:0], labels=plan().labels[:0]), 0)
