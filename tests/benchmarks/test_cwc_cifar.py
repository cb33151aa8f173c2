"""The acceptance on a real image set: its parts run on tiny images, a part that is done is not trained again, a failure costs no other part."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from benchmarks.cwc import cifar, cifar_rows, cifar_special
from benchmarks.cwc.cifar_parts import HOUR, PARTS, Suite
from warpwright import domains
from warpwright.base import Action


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """--dry sets one thread."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def run(out: Path, *arguments: str) -> list[dict[str, object]]:
    assert cifar.main(["--dry", "--out", str(out), *arguments]) == 0
    return [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()]


def test_parts_leave_rows_resume_and_survive_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = run(tmp_path, "--parts", "images,plain,fine-tuning")
    trained = {(row["preset"], row["on"]) for row in rows if row["table"] == "trainings"}
    assert trained == {("clean", "clean"), ("gentle", "protected"), ("paper", "protected")}
    [failure] = [row for row in rows if row["table"] == "failures"]
    assert failure["part"] == "fine-tuning" and "--weights" in str(failure["error"])
    assert {row["preset"] for row in rows if row["table"] == "images"} == {"gentle", "apart", "paper", "recoverable"}
    assert "| CIFAR-10 | paper | plain | protected | small |" in (tmp_path / "README.md").read_text()
    capsys.readouterr()
    again = run(tmp_path, "--parts", "plain")
    assert "3 trainings, 0 to do here" in capsys.readouterr().out
    assert [row for row in again if row["table"] == "trainings"] == [row for row in rows if row["table"] == "trainings"]
    run(tmp_path, "--parts", "plain", "--seconds", "-1")
    assert "no time left" in capsys.readouterr().out


def test_choices_are_trained_on_with_several_keys(tmp_path: Path) -> None:
    rows = run(tmp_path, "--parts", "chosen", "--choices", "pb(to=0.2); candidates(to=8)", "--keys", "2")
    trained = {row["preset"]: row["seeds"] for row in rows if row["table"] == "trainings"}
    assert trained == {"gentle, several keys": 2, "pb(to=0.2); candidates(to=8), several keys": 2}
    assert [cifar.parser().parse_args(["--out", "x", "--keys", text]).keys for text in ("2", "2,0")] == [(0, 1), (2, 0)]


def test_processes_divide_the_trainings(tmp_path: Path) -> None:
    run(tmp_path, "--parts", "plain", "--share", "0/2")
    rows = run(tmp_path, "--parts", "plain", "--share", "1/2")
    stores = [path.read_text().count('"key"') for path in sorted(tmp_path.glob("store-*.jsonl"))]
    assert stores == [2, 1] and len([row for row in rows if row["table"] == "trainings"]) == 3


def test_trainings_are_as_short_as_the_seconds_ask_for_and_begin_only_where_they_would_end(tmp_path: Path) -> None:
    cifar.main(["--dry", "--out", str(tmp_path), "--parts", "images", "--seconds", "-1"])
    packs = ["--train", str(tmp_path / "dry_train.pack"), "--test", str(tmp_path / "dry_test.pack"), "--devices", "cpu", "--out", str(tmp_path)]

    def planned(*arguments: str) -> tuple[int, float]:
        options = cifar.parser().parse_args([*packs, "--parts", "plain", *arguments])
        options.device = "cpu"
        suite = Suite(options)
        part = cifar._fitting(suite, "plain", left)
        return part.epochs, sum(suite.seconds(entry.kind.recipe, {}) for entry in part.entries(suite))

    left = 1e9
    whole, seconds = planned()
    assert whole == 18 and planned("--epochs", "plain=5")[0] == 5 and planned("--fit", "1e-9")[0] == cifar.FEWEST
    assert planned("--seeds", "plain=1")[1] == pytest.approx(seconds / 3)
    fewer, less = planned("--fit", str(0.6 * seconds))
    assert fewer == 10 and less <= 0.6 * seconds and planned("--fit", str(2 * seconds))[0] == 18
    left = 0.6 * seconds / cifar.MARGIN
    assert planned("--fit", str(2 * seconds))[0] == 10  # no more than there is time for
    with pytest.raises(SystemExit):
        cifar.parser().parse_args(["--out", "x", "--epochs", "none=3"])


def test_a_training_begins_only_where_it_would_end_at_the_pace_of_those_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {"small": 1.0, "vgg16": 1e6}  # seconds
    monkeypatch.setattr(Suite, "seconds", lambda self, recipe, rates: expected[recipe.net])
    rows = run(tmp_path, "--parts", "short,architectures", "--presets", "apart", "--whole", "--seconds", "100")
    trained = {(row["preset"], row["net"]) for row in rows if row["table"] == "trainings"}
    assert trained == {("clean", "small"), ("apart", "small")}
    expected |= {"small": 1e-6, "vgg16": 1.0}  # the first ones take a million times as long as expected: then the others will
    rows = run(tmp_path, "--parts", "short,architectures", "--whole", "--seconds", "1000")
    assert {row["net"] for row in rows if row["table"] == "trainings"} == {"small"}


def test_the_front_begins_with_planned_points_is_kept_point_by_point_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row for row in run(tmp_path, "--parts", "front") if row["table"] == "front"]
    assert {row["choice"] for row in rows} == {"gentle", "paper", *(first.replace(";", ",") for first in cifar_special.FIRST[:3])}
    assert (tmp_path / "front.svg").read_text().count("<circle") == 5
    told = capsys.readouterr().out
    assert [f"{count} points" in told for count in (1, 2, 3, 4, 5)] == [True] * 5
    again = [row for row in run(tmp_path, "--parts", "front") if row["table"] == "front"]
    assert again == rows  # from the archive: the budget of three proposals was spent on those that were known
    task = domains.describe(tmp_path / "search.front")
    space = domains.space(task, "training")
    for recipe in cifar_special.FIRST:
        space.replay([Action.parse(action) for action in recipe.split("; ")])


def test_what_a_page_tells_of_is_not_trained_again_and_fine_tuning_takes_the_weights_of_another_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, out = tmp_path / "page", tmp_path / "out"
    run(page, "--parts", "pretrained,plain", "--presets", "apart")
    capsys.readouterr()
    rows = run(out, "--parts", "plain,fine-tuning", "--presets", "apart", "--known", str(page), "--weights", str(page / "pretrained.pt"))
    assert "plain: 2 trainings, 0 to do here" in capsys.readouterr().out
    trained = {(row["training"], row["on"]) for row in rows if row["table"] == "trainings"}
    assert trained == {(training, on) for training in ("fine-tuned", "new last layer") for on in ("clean", "protected")}


@pytest.mark.slow
def test_every_part_of_the_hour_runs(tmp_path: Path) -> None:
    rows = run(tmp_path)
    assert not [row for row in rows if row["table"] == "failures"]
    assert {row["part"] for row in rows if row["table"] == "parts" and row["complete"]} == set(HOUR)
    assert (tmp_path / "front.svg").read_text().startswith("<svg")


def test_the_authors_figures_stand_beside_trainings_that_there_are() -> None:
    for figures in cifar_rows.AUTHORS.values():
        assert all(preset in ("clean", "paper") and 0 < figure < 100 for (preset, _), figure in figures.items())
    assert cifar_rows.AUTHORS["CIFAR-10"]["paper", "plain"] == 18.48 and set(HOUR) <= {*PARTS, "speed", "images", "front"}
