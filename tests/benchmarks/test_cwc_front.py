"""From what a run brought back to rows, the front and its picture."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

from benchmarks import tables
from benchmarks.cwc import cifar_rows, collect, front
from benchmarks.cwc.front import Point
from warpwright.domains.unlearnable.verification.store import OutcomeStore
from warpwright.domains.unlearnable.verification.training.recipe import Outcome


def single(preset: str, seed: int) -> str:
    """Return how a plain training is called."""
    return f"{preset.strip(chr(39))}: plain on protected, resnet18, 3 epochs, seed {seed}"


def run_of(folder: Path, name: str, accuracies: dict[str, float], train: float = 98.0) -> Path:
    """Return the archive of a run that trained once on each preset's images, a seed each."""
    out = folder / name / "c10"
    out.mkdir(parents=True)
    store = OutcomeStore(out / "store-0of1.jsonl")
    for seed, (preset, accuracy) in enumerate(accuracies.items()):
        key = single(preset, seed)
        store[key] = Outcome({"clean": accuracy, "own": 99.0, "perm": 5.0}, train, seed)
    cifar_rows.note(out, "parts", {"part": name, "complete": True})
    (out / "verify.txt").write_text("    61 s  12 of 12 trainings  jpeg on clean, seed 0: 70.1 %\nverify: code 0, 81.5 s\n")
    archive = folder / f"{name}.tgz"
    with tarfile.open(archive, "w:gz") as made:
        made.add(out, "c10")
    return archive


def test_runs_become_rows_and_the_front_is_drawn(tmp_path: Path) -> None:
    images = tmp_path / "images"
    (images / "c10").mkdir(parents=True)
    for preset, noise in (("apart", 28.6), ("gentle", 28.5), ("paper", 18.2)):
        cifar_rows.note(images / "c10", "images", {"preset": preset, "of the mean error": noise, "images/s, one thread": 1})
    archive = run_of(tmp_path, "cwc-third", {"apart": 15.0, "apart'": 17.0, "gentle": 25.0, "paper": 26.0})
    results = tmp_path / "results"
    results.mkdir()
    (results / "rows.jsonl").write_text(json.dumps({"table": "kept", "a": 1}) + "\n")
    (results / "README.md").write_text("<!-- table: trainings -->\n<!-- end -->\n")
    later = run_of(tmp_path, "cwc-fourth", {"apart": 15.0, "apart'": 17.0})  # a run that went on from the first, and did nothing
    added = ["verify", "verified", "parts"]
    for archives in ([archive], [archive], [archive, later], [later, archive]):  # a later time adds what it alone has: one part
        added += ["parts"] if later in archives and added.count("parts") == 1 else []
        assert collect.main([str(results), *map(str, archives), "--images", str(images)]) == 0
        rows = [json.loads(line) for line in (results / "rows.jsonl").read_text().splitlines()]
        assert [row["table"] for row in rows] == ["trainings"] * 3 + ["singles"] * 4 + [*added, "images", "images", "images", "kept"]
    assert "| CIFAR-10 | apart | plain | protected | resnet18 | 3 |  | 16.00 | 2.00 | 2 |" in (results / "README.md").read_text()
    assert not any("images/s, one thread" in row for row in rows)
    picture = (results / "front.svg").read_text()
    assert picture.count("<circle") == 3 and "apart: 16.0 % (2) at 28.6 dB" in picture
    [line] = [part for part in picture.split("<") if part.startswith("polyline")]
    assert len(line.split('points="')[1].split()) == 1  # apart beats both in both


def test_a_later_run_joins_what_the_page_tells_of_without_the_earlier_stores(tmp_path: Path) -> None:
    results = tmp_path / "results"
    first = run_of(tmp_path, "cwc-first", {"apart": 15.0, "gentle": 25.0})
    collect.main([str(results), str(first)])
    first.unlink()
    rows = [json.loads(line) for line in (results / "rows.jsonl").read_text().splitlines()]
    for row in rows:  # as pages were before single trainings said these two
        if row["table"] == "singles":
            del row["train %"], row["s"]
    (results / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    collect.main([str(results)])
    assert [json.loads(line) for line in (results / "rows.jsonl").read_text().splitlines()] == rows
    # apart's two trainings again, and of gentle a second seed
    second = run_of(tmp_path, "cwc-second", {"apart'": 19.0, "apart": 17.0, "gentle'": 27.0}, train=60.0)
    for _ in range(2):  # once more changes nothing
        collect.main([str(results), str(second)])
    [apart, gentle] = [row for row in map(json.loads, (results / "rows.jsonl").read_text().splitlines()) if row["table"] == "trainings"]
    assert (apart["clean test %"], apart["seeds"], apart["train %"], gentle["clean test %"]) == ("18.00", 2, "60.0", "26.00")
    assert gentle["train %"] == "79.0"


def test_every_row_of_the_pages_is_what_its_single_trainings_say() -> None:
    for folder in ("cwc_apart_h200", "cwc_cifar_h200"):
        rows = tables.rows_of(tables.RESULTS / folder)
        for name in collect.SETS.values():
            own = [row for row in rows if row.get("set") == name]
            made = cifar_rows.trainings(cifar_rows.told(own).values(), name)
            listed = [{key: value for key, value in row.items() if key != "table"} for row in own if row["table"] == "trainings"]
            assert sorted(made, key=str) == sorted(listed, key=str)


def test_what_no_other_of_as_many_epochs_beats_is_on_the_front() -> None:
    def point(name: str, epochs: int, accuracy: float, psnr: float) -> Point:
        return Point(name, epochs, accuracy, 0.0, 1, psnr)

    found = [point("a", 3, 15, 28), point("b", 3, 20, 30), point("c", 3, 21, 29), point("d", 12, 22, 27), point("twin", 3, 15, 28)]
    assert [one.name for one in front.unbeaten(found)] == ["d", "a", "twin", "b"]


def test_points_want_measured_images_and_the_first_row_counts() -> None:
    row = {"table": "trainings", "set": "CIFAR-10", "training": "plain", "on": "protected", "net": "resnet18", "epochs": 3, "spread": "0", "seeds": 1}
    seen = (("k(to=2), several keys", 1), ("k(to=2), several keys", 2), ("pb(to=0.1)", 3), ("pb(to=0.4); candidates(to=64), several keys", 4))
    rows = [{**row, "preset": preset, "clean test %": accuracy} for preset, accuracy in seen]
    images = [{"table": "images", "preset": preset, "of the mean error": 30} for preset in ("k(to=2)", "apart")]
    found = front.points([*rows, *images])
    assert found == [Point("k(to=2), several keys", 3, 1.0, 0.0, 1, 30.0), Point("apart, several keys", 3, 4.0, 0.0, 1, 30.0)]
