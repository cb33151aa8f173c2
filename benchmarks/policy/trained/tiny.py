"""The policy of configs/tiny.toml and its ablations: stages and searches at equal evaluations on kernels that were held out.

    python -m benchmarks.policy.trained.tiny --out OUT [--only tiny,"no exemplars"] [--seeds 0,1,2]

Everything is answered from what an H200 measured once (recording/plain_rows.py); nothing is measured here but the seconds of training.
Variants are compared with `tiny`: with the seeds of its published training where it is not among those that are trained.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.policy.trained import habits as habits_of
from benchmarks.search.compare import TRAITS
from warpwright.learn.policy import compare, config, rows
from warpwright.learn.policy.recorded import RecordedTask, tasks_of
from warpwright.learn.policy.train import DONE, split, train
from warpwright.policy.model import Policy

CONFIG = Path(__file__).parents[3] / "configs" / "tiny.toml"

PUBLISHED = Path(__file__).parents[2] / "results" / "policy_tiny" / "rows.jsonl"

VARIANTS: Mapping[str, tuple[str, ...]] = {
    "tiny": (),
    "no exemplars": ("contrastive.exemplars='none'",),
    "random exemplars": ("contrastive.exemplars='random'",),
    "no stage 2": ("self_supervised.rounds=0",),
    "raw reward": ("contrastive.reward='raw'",),
    "milestones": ("contrastive.reward='milestones'",),
    "divided by the group's deviation": ("contrastive.baseline='group'",),
}

FIRST_ANSWERS = 50
"""Answers to a held-out kernel, with no exemplar but the original, from which habits are told."""

LONG = ("ladder", "bandit")
"""Searches of the house that are shown beside those of the config; the ladder is told which rewrites are tried first, as in the cuda domain."""

Shares = Mapping[str, Mapping[str, Mapping[str, float]]]


def shares(out: Path, read: config.Config) -> dict[int, Shares]:
    """Return what each seed of a finished training came to."""
    return {seed: json.loads((out / f"seed_{seed}" / DONE).read_text())["shares"] for seed in read.seeds}


def stages(seeds: Mapping[int, Shares], read: config.Config, tasks: Sequence[RecordedTask]) -> Iterator[dict[str, Any]]:
    """Yield the table of stages and searches."""
    most = max(read.comparing.evaluations)
    whole = {}
    for seed, those in seeds.items():
        _, held = split(tasks, read, seed)
        lines = {name: compare.search_lines(name, held, read.comparing.runs, most, seed, TRAITS) for name in LONG}
        whole[seed] = {**those, **{name: compare.shares(one, held, read.comparing.evaluations) for name, one in lines.items()}}
    for row in compare.table(whole, read.comparing.evaluations, "supervised"):
        yield {"table": "stages", **{name: _cell(value) for name, value in row.items()}}
    for k in read.comparing.evaluations:
        row = {"table": "gains", "evaluations": k}
        for name in whole[read.seeds[0]]:
            if name not in ("contrastive",):
                row[f"over {name}"] = _cell(_gain(whole, "contrastive", name, k))
        yield row


def habits(out: Path, read: config.Config, tasks: Sequence[RecordedTask]) -> Iterator[dict[str, Any]]:
    """Yield, for each technique, in what share of first answers to held-out kernels it stands where it is to be had at all."""
    used: dict[str, dict[str, list[float]]] = {}
    for seed in read.seeds:
        _, held = split(tasks, read, seed)
        for stage in ("supervised", "contrastive"):
            policy = Policy.load(out / f"seed_{seed}" / stage)
            for task in held:
                recipes = habits_of.answers(policy, task, FIRST_ANSWERS, seed)
                for name in habits_of.offered(task):
                    used.setdefault(name, {}).setdefault(stage, []).append(habits_of.stands_in(name, recipes))
                    if stage == "supervised":
                        used[name].setdefault("winner", []).append(habits_of.stands_in(name, [habits_of.winner(task)]))
    for name, those in sorted(used.items(), key=lambda pair: -len(pair[1]["winner"])):
        shares_ = {what: f"{sum(values) / len(values):.2f}" for what, values in those.items()}
        yield {
            "table": "habits", "technique": name, "held-out kernels that have it": len(those["winner"]),
            "in answers after stage 1": shares_["supervised"], "after stage 3": shares_["contrastive"], "in the best recipe": shares_["winner"],
        }  # fmt: skip


def _gain(seeds: Mapping[int, Shares], name: str, over: str, k: int) -> list[float]:
    gains = [compare.mean_of(by[name], str(k)) - compare.mean_of(by[over], str(k)) for by in seeds.values()]
    return [math.exp(one) for one in compare.interval(gains)]


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return f"{value[0]:.2f} [{value[1]:.2f}, {value[2]:.2f}]"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def ablation(name: str, seeds: Mapping[int, Shares], base: Mapping[int, Shares], read: config.Config) -> dict[str, Any]:
    """Return the row of one variant."""
    row: dict[str, Any] = {"table": "ablations", "variant": name, "seeds": len(seeds)}
    for k in read.comparing.evaluations:
        row[f"best of {k}"] = _cell(math.exp(sum(compare.mean_of(by["contrastive"], str(k)) for by in seeds.values()) / len(seeds)))
    both = {seed: {"own": seeds[seed]["contrastive"], "base": base[seed]["contrastive"]} for seed in seeds}
    for k in (read.comparing.evaluations[0], read.comparing.evaluations[2]) if name != "tiny" else ():
        row[f"over the whole, best of {k}"] = _cell(_gain(both, "own", "base", k))
    return row


def published() -> dict[int, Shares]:
    """Return what each seed of the published training came to."""
    lines = map(json.loads, PUBLISHED.read_text().splitlines())
    return {line["seed"]: line["shares"] for line in lines if line.get("row") == "seed"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Train the variants, or go on where they were left, and write the rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default=",".join(VARIANTS), help="variants joined by commas")
    parser.add_argument("--seeds", default="", help="joined by commas; those of the config where none are given")
    parser.add_argument("--jobs", type=int, default=0, help="seeds at once; as the config says where it is 0")
    options = parser.parse_args(arguments)
    found: list[dict[str, Any]] = []
    names = options.only.split(",")
    base = published() if "tiny" not in names else {}
    for name in names:
        read = config.load(CONFIG, (*VARIANTS[name], *([f"seeds=[{options.seeds}]"] if options.seeds else [])))
        read = replace(read, jobs=options.jobs or read.jobs)
        out = options.out / name.replace(" ", "_").replace("'", "")
        report = train(read, out, lambda text: print(text, flush=True))
        seeds = shares(out, read)
        base = base or seeds
        found.append({"row": "training", "variant": name, "seconds": report["seconds"], "tasks": report["tasks"], "recipes": report["recipes"]})
        found.append(ablation(name, seeds, base, read))
        if name == "tiny":
            tasks = tasks_of(row for file in read.data.rows for row in rows.read(Path(read.folder) / file))
            found += stages(seeds, read, tasks)
            found += habits(out, read, tasks)
            found += [{"row": "seed", "seed": seed, "shares": those} for seed, those in seeds.items()]
        (options.out / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in found))
    for row in found:
        if "table" in row:
            print(json.dumps(row))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
