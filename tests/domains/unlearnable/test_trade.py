"""The method's choices as a search: filters, protected images, the task, and a whole small run of the loop that replays from the archive."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from labelled_textures import CLASSES, KEY, images, textures

from warpwright import cli, domains, targets
from warpwright.archive import Archive
from warpwright.base import Action, Budget, Record
from warpwright.domains.unlearnable.cwc import backends
from warpwright.domains.unlearnable.cwc.bank import UNIT, FilterBank
from warpwright.domains.unlearnable.cwc.operator import Operator
from warpwright.domains.unlearnable.data import images as image_files
from warpwright.domains.unlearnable.data import packs
from warpwright.domains.unlearnable.data.images import Format, Picture
from warpwright.domains.unlearnable.data.packs import Packed
from warpwright.domains.unlearnable.front import choices, pareto
from warpwright.domains.unlearnable.front.choices import Choices
from warpwright.domains.unlearnable.verification import nets, quality
from warpwright.errors import NotApplicable, TaskError, UsageError
from warpwright.loop import optimize
from warpwright.space import Measuring
from warpwright.targets import trainings


def action(name: str, value: object) -> Action:
    return Action(name, params=(("to", value),))  # type: ignore[arg-type]


@pytest.fixture
def task_file(tmp_path: Path) -> Path:
    """A search on 120 images."""
    made, labels = images(120)
    encoded = [
        Packed(f"{CLASSES[label]}/{i}", int(label), image_files.encode(Picture(image), Format()))
        for i, (image, label) in enumerate(zip(made, labels, strict=True))
    ]
    packs.write(tmp_path / "train.pack", CLASSES, encoded[:80])
    packs.write(tmp_path / "test.pack", CLASSES, encoded[80:])
    fields = {"train": "train.pack", "test": "test.pack", "epochs": 8, "batch": 16, "crop": 0, "flip": False, "seeds": 2, "peak_rate": 0.05}
    (tmp_path / "small.front").write_text(json.dumps(fields))
    return tmp_path / "small.front"


def test_the_defaults_are_gentle_s_bytes_and_texts_parse_back() -> None:
    made, labels = images(8)
    bank = Choices().bank(KEY, CLASSES)
    assert (bank.weights == FilterBank.from_key(KEY, CLASSES).weights).all()
    assert (Choices().protect(made, labels, bank) == backends.protect(made, labels, bank, Operator())).all()
    for one in (Choices(), Choices(5, 0.1, "random", "zero", "max", 0.5, True, 0.05)):
        assert choices.parse(one.text) == one
    for wrong in ("", "CHOICES = 3", "import os", "CHOICES = {'k': 99}", "CHOICES = {'colour': 1}", "CHOICES = {}\nx = 1", "CHOICES = f()"):
        with pytest.raises(UsageError):
            choices.parse(wrong)


def test_smoothing_keeps_the_tap_and_evens_out_the_rest() -> None:
    weights = choices.draw(KEY, "cat", Choices(k=5, pb=0.2).bank(KEY, ["cat"]).spec)
    smooth = choices.smoothed(weights, 1.0)
    assert smooth.max() == UNIT and int(np.argmax(smooth)) == int(np.argmax(weights)) == 12
    inner = weights[0:3, 0:3].mean()
    assert smooth[1, 1] == pytest.approx(inner, abs=0.51)
    assert (choices.smoothed(weights, 0.0) == weights).all()
    half = choices.smoothed(weights, 0.5)
    assert np.abs(half - (weights + smooth) / 2).max() <= 1


def test_filters_are_apart_and_an_added_class_changes_none_before_it() -> None:
    near, far = (Choices(distance=least).bank(KEY, [f"class {i}" for i in range(6)]) for least in (0.0, 0.06))
    pairs = [(a, b) for a in range(6) for b in range(a)]
    assert min(choices.distance(far.weights[a], far.weights[b]) for a, b in pairs) >= 0.06
    assert min(choices.distance(near.weights[a], near.weights[b]) for a, b in pairs) < 0.06
    fewer = Choices(distance=0.06).bank(KEY, [f"class {i}" for i in range(4)])
    assert (fewer.weights == far.weights[:4]).all()
    with pytest.raises(UsageError, match="distance"):
        Choices(pb=0.05, distance=0.5).bank(KEY, CLASSES)


def test_only_the_luminance_is_filtered_where_that_is_chosen() -> None:
    made, labels = textures(6), np.arange(6) % 4
    chosen = Choices(luminance=True)
    bank = chosen.bank(KEY, CLASSES)
    out = chosen.protect(made, labels, bank)
    change = out.astype(int) - made
    inside = (out > 0) & (out < 255)
    assert (change != 0).any()
    for channel in range(1, 3):
        both = inside[:, 0] & inside[:, channel]
        assert (change[:, 0][both] == change[:, channel][both]).all()
    expected = backends.protect(choices.luma(made), labels, bank, Operator())
    assert np.abs(choices.luma(out).astype(int) - expected)[inside.all(1, keepdims=True)].max() <= 1
    grey = made[:, :1]
    assert (chosen.protect(grey, labels, bank) == Choices().protect(grey, labels, bank)).all()


def test_the_perceptual_distance_sees_changes_in_order() -> None:
    net, clean = nets.make("small", 3, 4), textures(20)
    noise = np.random.default_rng(0).normal(0, 1, clean.shape)
    found = [quality.perceptual(net, clean, np.clip(clean + size * noise, 0, 255).astype(np.uint8)) for size in (0.0, 4.0, 40.0)]
    assert found[0] == 0 and 0 < found[1] < found[2]


def test_actions_are_legal_and_a_filter_too_heavy_is_not(task_file: Path) -> None:
    task = domains.describe(task_file)
    space = domains.space(task, "training")
    assert space.start == Choices() and {one.technique for one in space.actions(space.start)} == set(Choices.__dataclass_fields__)
    for one in space.actions(space.start):
        assert Action.parse(str(one)) == one and space.apply(space.start, one) != space.start
    with pytest.raises(NotApplicable):
        space.replay([action("k", 7), action("pb", 0.5)])  # sums above 16 would not stay exact
    with pytest.raises(NotApplicable):
        space.replay([action("k", 3)])
    with pytest.raises(UsageError, match="training:cpu"):
        domains.space(task, "cpu")


def test_other_data_is_another_task(task_file: Path) -> None:
    task = domains.describe(task_file)
    other = [Packed(f"x{i}", i % 4, image_files.encode(Picture(one), Format())) for i, one in enumerate(textures(12))]
    (task_file.parent / "train.pack").unlink()
    packs.write(task_file.parent / "train.pack", CLASSES, other)
    assert domains.describe(task_file).key != task.key
    wrong_values = ({"epochs": 0}, {"epochs": "3"}, {"weight": 2.0}, {"quality": "none"}, {"colour": 1})
    for fields in ({"train": "none.pack"}, {"test": "small.front"}, *wrong_values):
        given = json.loads(task_file.read_text()) | fields
        wrong = task_file.with_name("wrong.front")
        wrong.write_text(json.dumps(given))
        with pytest.raises(TaskError):
            domains.describe(wrong)


def test_a_search_finds_points_and_the_archive_answers_the_second_time(task_file: Path, tmp_path: Path) -> None:
    task = domains.describe(task_file)
    recipes = [(action("pb", 0.05),), (action("pb", 0.5), action("k", 5)), (action("distance", 0.15), action("pb", 0.05))]

    def propose(space: object, rng: object, batch: int):  # type: ignore[no-untyped-def]
        yield recipes

    def run() -> tuple[Record, ...]:
        with targets.evaluator(task, "training:cpu", Measuring()) as evaluator, Archive(tmp_path) as archive:
            return optimize(task, domains.space(task, "training"), evaluator, propose, Budget(None, 3), archive).records  # type: ignore[arg-type]

    records = run()
    assert [record.status for record in records] == ["ok", "ok", "ok", "ok", "not_built"], [record.detail for record in records]
    assert "distance" in records[-1].detail
    found = {one.name: one for one in pareto.points(records)}
    assert set(found) == {"gentle", "paper", "pb(to=0.05)", "pb(to=0.5), k(to=5)"}
    assert found["pb(to=0.05)"].psnr > found["gentle"].psnr > found["pb(to=0.5), k(to=5)"].psnr
    assert found["pb(to=0.05)"].perceptual < found["pb(to=0.5), k(to=5)"].perceptual
    measured = records[2].measurement
    assert measured is not None and measured.unit == "cost" and set(measured.baselines) == {"gentle", "paper"}
    assert measured.conditions["clean_accuracy"] > 60 and len(measured.candidate.samples) == 2  # type: ignore[operator]
    again = run()
    assert [record.when for record in again] == [record.when for record in records]
    replayed = domains.space(records[2].task, "training").candidate(records[2].candidate.actions)
    assert replayed.key == records[2].candidate.key


def test_the_command_searches_and_writes_what_it_chose(
    task_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["optimize", str(task_file), "--target", "training:cpu", "--search", "random", "--budget", "2 proposals", "--json"]
    assert cli.main(arguments) == cli.DONE
    told = capfd.readouterr()
    assert "baseline gentle: cost " in told.err and " ms" not in told.err
    line = json.loads(told.out.splitlines()[-1])
    assert line["status"] == "ok" and line["ours_ms"] is None and line["baselines"] == {}
    text = Path(line["artifact"]).read_text()
    assert "accuracy" in text.splitlines()[3] and isinstance(choices.parse(text), Choices)
    assert "cost" in Path("warpwright-out/small/report.html").read_text()
    assert cli.main(["optimize", str(task_file), "--target", "cpu", "--budget", "1 proposals", "--json"]) != cli.DONE
    assert "training:cpu" in capfd.readouterr().err


def test_the_front_holds_what_no_other_point_beats_in_both() -> None:
    def point(name: str, accuracy: float, psnr: float) -> pareto.Point:
        return pareto.Point(name, accuracy, 0.0, psnr, psnr / 40, 1 / psnr, name)

    a, b, c, d = point("a", 10, 20), point("b", 14, 30), point("c", 20, 29), point("d", 60, 40)
    assert pareto.front([d, c, b, a]) == [a, b, d] == pareto.front([a, b, c, d], "perceptual")
    assert pareto.beats(b, c) and not pareto.beats(b, c, 10) and not pareto.beats(a, b) and not pareto.beats(b, b)
    assert pareto.front([b, replace(b, name="twin", psnr=28)]) == [b]


def test_better_and_worse_need_two_seeds_and_intervals_that_part() -> None:
    assert trainings.compared([2.0], [1.0])[0] == pytest.approx(2) and trainings.compared([2.0], [1.0])[1] == 0
    ratio, low, high = trainings.compared([2.0, 2.02, 1.98], [1.0, 1.01, 0.99])
    assert ratio == pytest.approx(2, rel=0.01) and 1.9 < low < ratio < high < 2.1
    assert trainings.compared([1.0, 2.0], [1.5, 1.4])[1] < 1 < trainings.compared([1.0, 2.0], [1.5, 1.4])[2]
