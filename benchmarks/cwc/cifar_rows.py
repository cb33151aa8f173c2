"""From finished trainings to rows, tables and the picture of the front, for benchmarks.cwc.cifar."""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import tables
from warpwright.domains.unlearnable.verification.store import OutcomeStore
from warpwright.domains.unlearnable.verification.training.recipe import Outcome

NOTES = "notes.jsonl"
"""What was written down as it happened; rows.jsonl is made from it and from the stores."""

CURRENT = ("loading", "speed", "images")
"""Tables of which only the last row of the same first cells counts."""

_CIFAR_10 = {
    ("clean", "plain"): 94.66,
    ("paper", "plain"): 18.48,
    ("paper", "universal filter"): 90.47,
    ("clean", "adversarial linf 4/255"): 89.51,
    ("paper", "adversarial linf 4/255"): 44.40,
    ("paper", "adversarial linf 8/255"): 32.85,
    ("paper", "adversarial linf 16/255"): 19.32,
    ("paper", "adversarial l2 0.25"): 39.05,
    ("paper", "adversarial l2 0.5"): 51.19,
    ("paper", "adversarial l2 0.75"): 51.14,
    ("clean", "adversarial linf 4/255, vgg16"): 87.51,
    ("paper", "adversarial linf 4/255, vgg16"): 42.98,
    ("clean", "adversarial linf 4/255, wrn34-10"): 91.21,
    ("paper", "adversarial linf 4/255, wrn34-10"): 53.02,
    ("clean", "adversarial linf 4/255, densenet121"): 83.27,
    ("paper", "adversarial linf 4/255, densenet121"): 45.95,
    ("paper", "DAT 3x3"): 39.05,
    ("paper", "DAT 5x5"): 46.21,
    ("paper", "DAT 7x7"): 38.48,
    ("paper", "20% protected"): 93.28,
    ("paper", "40% protected"): 91.34,
    ("paper", "60% protected"): 89.91,
    ("paper", "80% protected"): 85.61,
    ("paper", "greyscale"): 20.12,
    ("paper", "cutout"): 25.80,
    ("paper", "label smoothing 0.5"): 43.85,
    ("paper", "mixup"): 25.53,
    ("paper", "cutmix"): 26.93,
    ("paper", "orthogonal filters"): 50.72,
    ("paper", "fine-tuned"): 42.42,
    ("paper", "new last layer"): 48.22,
    ("paper", "RSK+FF"): 78.53,
    ("paper", "COIN"): 72.41,
}

_CIFAR_100 = {
    ("clean", "plain"): 76.27,
    ("paper", "plain"): 12.69,
    ("clean", "adversarial linf 4/255"): 64.50,
    ("paper", "adversarial linf 4/255"): 34.34,
    ("paper", "RSK+FF"): 53.33,
    ("paper", "COIN"): 47.41,
}

AUTHORS: dict[str, dict[tuple[str, str], float]] = {"CIFAR-10": _CIFAR_10, "CIFAR-100": _CIFAR_100}
"""Clean test accuracy, percent, of arXiv 2303.04278 (100 epochs); RSK+FF of arXiv 2411.01742; COIN of arXiv 2311.18403, the mean of four networks.
Their cutout and ours may differ in the square."""


def note(out: Path, table: str, row: dict[str, Any]) -> None:
    """Write one row down."""
    with (out / NOTES).open("a") as file:
        file.write(json.dumps({"table": table, **row}) + "\n")


def drop(out: Path, table: str) -> None:
    """Forget a table: what follows replaces it."""
    note(out, table, {"dropped": True})


def noted(out: Path, table: str) -> list[dict[str, Any]]:
    """Return the rows of a table since it was last dropped."""
    path, rows = out / NOTES, list[dict[str, Any]]()
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except ValueError:
            continue  # two processes, or a kill in the middle of a line
        if row.pop("table") == table:
            rows = [] if row.get("dropped") else [*rows, row]
    return rows


def rates(out: Path, lanes: int) -> dict[str, float]:
    """Return the multiply-adds a second of each network that was measured in graphs: with so many side by side, else alone."""
    rows = [row for row in noted(out, "speed") if row["stepping"] == "auto" and row["lanes"] in (1, lanes) and not row["adversary steps"]]
    rows = [row for row in rows if row["normalisation"] == "ours"] or rows
    return {row["net"]: row["multiply-adds/s"] for row in sorted(rows, key=lambda row: int(row["lanes"])) if "multiply-adds/s" in row}


_KEY = re.compile(
    r"(?P<preset>.+?): (?P<training>.+) on (?P<on>clean|protected|mixed|control), (?P<net>[\w-]+), (?P<epochs>\d+) epochs"
    r"(?:, (?P<steps>\d+) adversary steps)?, seed \d+"
)
"""How benchmarks.cwc.cifar_parts names a training."""

_TESTS = ("clean", "own", "perm")


@dataclass(frozen=True)
class Single:
    """One finished training."""

    key: str
    tests: dict[str, float]
    """Percent."""
    train: float
    seconds: float
    row: dict[str, Any]
    """Of the table `singles`."""

    @property
    def kind(self) -> tuple[Any, ...]:
        """Preset, training, set, network, epochs and the adversary's steps: what seeds, or keys, share."""
        facts = _KEY.fullmatch(self.key)
        if facts is None:
            raise ValueError(f"expected a training as benchmarks.cwc.cifar_parts names it, saw {self.key!r}")
        preset, _, number = facts["preset"].partition(" #")
        steps = int(facts["steps"]) if facts["steps"] else ""
        return (f"{preset}, several keys" if number else preset, facts["training"], facts["on"], facts["net"], int(facts["epochs"]), steps)


def finished(out: Path) -> dict[str, Single]:
    """Return the finished trainings of all stores by key."""
    outcomes: dict[str, Outcome] = {}
    for path in sorted(out.glob("store-*.jsonl")):
        outcomes |= dict(OutcomeStore(path))
    return {key: _single(key, outcome) for key, outcome in outcomes.items()}


def _single(key: str, outcome: Outcome) -> Single:
    """Return a training with the figures that its row shows, from which a page's other rows can be computed again."""
    seen = [accuracy for _, accuracy in outcome.curve]
    best = {"best epoch": 1 + int(np.argmax(seen)), "there %": f"{max(seen):.1f}", "last %": f"{seen[-1]:.1f}"} if seen else {}
    tests = {name: f"{outcome.test[name]:.2f}" if name in outcome.test else "" for name in _TESTS}
    more = {"train %": f"{outcome.train:.1f}", "s": f"{outcome.seconds:.0f}", "how": outcome.how}
    return _shown({"training": key, **tests, **best, **more})


def _shown(row: dict[str, Any]) -> Single:
    tests = {name: float(row[name]) for name in _TESTS if row.get(name)}
    return Single(row["training"], tests, float(row.get("train %", "nan")), float(row.get("s", "nan")), row)


def told(rows: Iterable[dict[str, Any]]) -> dict[str, Single]:
    """Return the finished trainings that the rows of a page tell of.

    Old rows of single trainings say nothing of the training accuracy and the seconds: they get what leaves the means of their kind as they were.
    """
    listed = list(rows)
    means = {_kind_of(row): (float(row["train %"]), float(row["s each"])) for row in listed if row["table"] == "trainings"}
    groups: dict[tuple[Any, ...], list[Single]] = {}
    for row in listed:
        if row["table"] == "singles":
            single = _shown({name: value for name, value in row.items() if name not in ("table", "set")})
            groups.setdefault(single.kind, []).append(single)
    return {single.key: single for kind, group in groups.items() for single in _with_means(group, means.get(kind, (0.0, 0.0)))}


def _with_means(group: list[Single], means: tuple[float, float]) -> list[Single]:
    """Return the trainings of one kind, those without training accuracy and seconds with such that the means of all are these."""
    known = [single for single in group if not math.isnan(single.seconds)]
    silent = max(len(group) - len(known), 1)
    sums = sum(single.train for single in known), sum(single.seconds for single in known)
    train, seconds = ((mean * len(group) - of_known) / silent for mean, of_known in zip(means, sums, strict=True))
    return [single if not math.isnan(single.seconds) else replace(single, train=train, seconds=seconds) for single in group]


def _kind_of(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("preset", "training", "on", "net", "epochs", "adversary steps"))


def trainings(found: Iterable[Single], name: str) -> list[dict[str, Any]]:
    """Return a row for each kind of training: mean and spread over seeds, and the authors' figure."""
    groups: dict[tuple[Any, ...], list[Single]] = {}
    for single in found:
        groups.setdefault(single.kind, []).append(single)
    rows = [_row(name, kind, group) for kind, group in groups.items()]
    return sorted(rows, key=lambda row: (row["training"] != "plain", row["net"] != "resnet18", row["training"], row["preset"], -row["epochs"]))


def singles(found: Iterable[Single]) -> list[dict[str, Any]]:
    """Return a row for each training: what it reached, and the best that its epochs showed on 500 test images."""
    return [single.row for single in sorted(found, key=lambda one: one.key)]


def _row(name: str, kind: tuple[Any, ...], group: list[Single]) -> dict[str, Any]:
    preset, training, on, net, epochs, steps = kind
    values = [single.tests["clean"] for single in group]
    said = AUTHORS.get(name, {}).get((preset, training)) if net in ("resnet18", training.rpartition(", ")[2]) else None
    of = {"set": name, "preset": preset, "training": training, "on": on, "net": net, "epochs": epochs, "adversary steps": steps}
    figures = {"clean test %": f"{_mean(values):.2f}", "spread": f"{max(values) - min(values):.2f}", "seeds": len(values)}
    tests = {test: _mean_test(group, test) for test in ("own", "perm")}
    train, seconds = _mean([single.train for single in group]), _mean([single.seconds for single in group])
    more = {"train %": f"{train:.1f}", "s each": f"{seconds:.0f}"}
    return {**of, **figures, "authors %": "" if said is None else f"{said:.2f}", **tests, **more}


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)  # whatever their order, so that a page made again is the same


def _mean_test(group: list[Single], test: str) -> str:
    return f"{_mean([single.tests[test] for single in group]):.1f}" if all(test in single.tests for single in group) else ""


TABLES = {
    "trainings": "Clean test accuracy (spread: largest minus smallest; own and perm: on test images with their own and another class's filter)",
    "singles": "Each training: tests in percent, and the epoch that was best on 500 clean test images, with that epoch's accuracy and the last one's",
    "loading": "Reading and packing the training images",
    "images": "How the images differ from the clean ones (every tenth)",
    "front": "The search: choices by their accuracy",
    "speed": "An epoch of each network, alone and side by side",
    "agreement": "A recorded step against steps sent one by one: how far the weights are apart after 1 or 8 steps, relative to how far they moved",
    "profile": "The kernels of a step of ResNet-18 that cost most, sent one by one",
    "pretrained": "Networks that fine-tuning begins with, trained on clean images of the set",
    "parts": "Parts as they were run",
    "failures": "Failures",
}


def write(out: Path, name: str, machine: str) -> None:
    """Write rows.jsonl, README.md and front.svg from what is known; other processes may do so at the same time."""
    found = {table: noted(out, table) for table in TABLES if table not in ("trainings", "singles")}
    for table in CURRENT:
        found[table] = list({tuple(list(row.values())[: 5 if table == "speed" else 1]): row for row in found[table]}.values())
    found["speed"] = [{**dict.fromkeys(_columns(found["speed"]), ""), **row} for row in found["speed"]]
    done = finished(out).values()
    found["trainings"], found["singles"] = trainings(done, name), [{"set": name, **row} for row in singles(done)]
    lines = [json.dumps({"table": table, **row}) for table in TABLES for row in found[table]]
    marks = [f"{about}:\n\n<!-- table: {table} -->\n<!-- end -->" for table, about in TABLES.items() if found[table]]
    picture = ["![clean test accuracy over PSNR](front.svg)"] if found["front"] else []
    head = [f"# CWC on {name}", f"- {machine}; `python -m benchmarks.cwc.cifar`; one key for all seeds"]
    with tempfile.TemporaryDirectory(dir=out) as own:
        made = {"rows.jsonl": "".join(f"{line}\n" for line in lines), "README.md": "\n\n".join([*head, *picture, *marks]) + "\n"}
        if picture:
            points = [(row["choice"], float(row["accuracy %"]), float(row["PSNR dB"]), row["on the front"]) for row in found["front"]]
            made["front.svg"] = plot(points)
        for file, text in made.items():
            (Path(own) / file).write_text(text)
        (Path(own) / "README.md").write_text(tables.written(Path(own)))
        for file in made:
            os.replace(Path(own) / file, out / file)


def _columns(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(column for row in rows for column in row))


def plot(points: list[tuple[str, float, float, str]]) -> str:
    """Return a picture of accuracy (up) over PSNR (right): the front is filled and joined, presets are named."""
    wide, high, left = 640, 400, 60
    accuracies, noise = [point[1] for point in points], [point[2] for point in points]
    low, top, near, far = 0.0, max(*accuracies, 1.0) * 1.05, min(noise) - 1, max(noise) + 1

    def x(value: float) -> float:
        return left + (wide - left - 20) * (value - near) / (far - near)

    def y(value: float) -> float:
        return (high - 40) * (1 - (value - low) / (top - low)) + 10

    parts = [f'<rect width="{wide}" height="{high}" fill="white"/>']
    for value in range(0, int(top) + 1, 10):
        parts.append(f'<line x1="{left}" x2="{wide - 20}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value}</text>')
    for value in range(int(near) + 1, int(far) + 1, 2):
        parts.append(f'<text x="{x(value):.1f}" y="{high - 14}" text-anchor="middle">{value}</text>')
    best = sorted(((psnr, accuracy) for _, accuracy, psnr, mark in points if mark))
    parts.append(f'<polyline fill="none" stroke="#0969da" points="{" ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in best)}"/>')
    for name, accuracy, psnr, mark in points:
        fill = "#0969da" if mark else "white"
        parts.append(f'<circle cx="{x(psnr):.1f}" cy="{y(accuracy):.1f}" r="4" fill="{fill}" stroke="#0969da"><title>{name}</title></circle>')
        if "(" not in name:
            parts.append(f'<text x="{x(psnr) + 7:.1f}" y="{y(accuracy) - 6:.1f}">{name}</text>')
    parts.append(f'<text x="{wide / 2}" y="{high - 1}" text-anchor="middle">PSNR, dB</text>')
    parts.append(f'<text x="14" y="{high / 2}" transform="rotate(-90 14 {high / 2})" text-anchor="middle">clean test accuracy, %</text>')
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" font-family="sans-serif" font-size="12">{"".join(parts)}</svg>\n'
