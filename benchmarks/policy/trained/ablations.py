"""What each part of the training of the policy that ships is worth: its stages, and its ablations, on programs held out and on KernelBench's.

    python -m benchmarks.policy.trained.ablations --out OUT [--seeds 0,1,2] [--only "whole,no exemplars"] [--tasks ROWS.jsonl.gz,ROWS --rate 4250]

The training is that of configs/graphs_larger.toml, which has no second stage: in its place stands what that would add. A policy is asked for its own
answers, one after the other, and as the search asks, where it is one of several that propose (docs/policy.md). `--tasks`: lines of graph_rows of
tasks that it was not trained on; those with words that it never read are left out, and they are asked for own answers alone. Shares are of the best
recorded, geometric means; a value is that of one task at one seed, and intervals of 95 % are over these. Everything is answered from recorded times.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.policy.recording import records
from benchmarks.policy.trained.large import MOVED, cell, drift, programs
from warpwright.learn.policy import compare, config
from warpwright.learn.policy import rows as rows_of
from warpwright.learn.policy.recorded import RecordedTask, tasks_of
from warpwright.learn.policy.train import DONE, STAGES, aloud, split, train
from warpwright.policy.model import Policy

CONFIG = Path(__file__).parents[3] / "configs" / "graphs_larger.toml"

VARIANTS: Mapping[str, tuple[str, ...]] = {
    "whole": (),
    "no exemplars": ("contrastive.exemplars='none'",),
    "random exemplars": ("contrastive.exemplars='random'",),
    "raw reward": ("contrastive.reward='raw'",),
    "with stage 2": ("self_supervised.rounds=1",),
}

EVALUATIONS = (1, 2, 4, 8, 16)

OWN = compare.How(spread=False, width=1, pooled=False, prior=False)

LEAST = 20
"""Programs of a task of `--tasks` at least."""

Values = dict[tuple[int, str], Mapping[str, float]]
"""Seed and task -> evaluations -> log share."""


def folder(out: Path, variant: str) -> Path:
    """Return where a variant is trained."""
    return out / variant.replace(" ", "_")


def searched(out: Path, seeds: Sequence[int]) -> dict[str, Values]:
    """Return stage -> what came of it on the programs that each seed held out, as the search asks."""
    found: dict[str, Values] = {}
    for seed in seeds:
        for stage, by in json.loads((out / f"seed_{seed}" / DONE).read_text())["shares"].items():
            found.setdefault(stage, {}).update({(seed, task): values for task, values in by.items()})
    return found


def answered(out: Path, seeds: Sequence[int], tasks: Callable[[int], Sequence[RecordedTask]], name: str) -> dict[str, Values]:
    """Return the same of the policies' own answers to some tasks of each seed. What an earlier call had asked is not asked again."""
    found: dict[str, Values] = {}
    for seed in seeds:
        done = out / f"seed_{seed}" / f"{name}.json"
        if not done.is_file():
            done.write_text(json.dumps({stage.name: _own(stage, tasks(seed), seed) for stage in trained(out, seed)}))
        for stage, by in json.loads(done.read_text()).items():
            found.setdefault(stage, {}).update({(seed, task): values for task, values in by.items()})
    return found


def trained(out: Path, seed: int) -> list[Path]:
    """Return the folders of a seed's stages."""
    return [stage for stage in (out / f"seed_{seed}" / one for one in STAGES) if stage.is_dir()]


def _own(stage: Path, tasks: Sequence[RecordedTask], seed: int) -> Mapping[str, Mapping[str, float]]:
    policy = Policy.load(stage)
    read = [task for task in tasks if not policy.unread(task.asking().program)]
    return compare.shares(compare.policy_lines(policy, read, 1, max(EVALUATIONS), seed, OWN), read, EVALUATIONS)


def recorded(files: Sequence[Path], rate: float) -> list[RecordedTask]:
    """Return the tasks of some lines of graph_rows that have programs enough, and whose original was as fast at the end."""
    lines = [line for line in records.lines_of(files) if abs(drift(line)) <= MOVED]
    return [task for task in tasks_of(row for line in lines for row in records.rows_of(line, rate)) if programs(task) >= LEAST]


def table(found: Mapping[str, Mapping[str, Values]], name: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each stage of each variant, beside the stage before it and the whole training's last."""
    whole = found["whole"]["contrastive"]
    for variant, stages in found.items():
        before: Values = {}
        for stage in (one for one in STAGES if one in stages):
            own = stages[stage]
            row: dict[str, Any] = {"table": name, "variant": variant, "stage": stage.replace("_", "-"), "values": len(own)}
            row |= {f"best of {k}": f"{math.exp(sum(one[str(k)] for one in own.values()) / len(own)):.3f}" for k in EVALUATIONS}
            for k in (1, 4, 16):
                row[f"over the stage before, {k}"] = _over(own, before, k)
            for k in (1, 4, 16):
                row[f"over the whole, {k}"] = _over(own, whole, k) if variant != "whole" and stage == STAGES[-1] else ""
            before = own
            yield row


def values(found: Mapping[str, Mapping[str, Mapping[str, Values]]]) -> Iterator[dict[str, Any]]:
    """Yield a row for each value."""
    for name, variants in found.items():
        for variant, stages in variants.items():
            for stage, own in stages.items():
                for (seed, task), shares in own.items():
                    logs = {k: round(value, 4) for k, value in shares.items()}
                    yield {"table": name, "variant": variant, "stage": stage, "seed": seed, "task": task, "log shares": logs}


def _over(own: Values, other: Values, k: int) -> str:
    both = [own[one][str(k)] - other[one][str(k)] for one in own if one in other]
    return cell(both) if len(both) > 1 else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Train what is not trained yet, and write the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default=",".join(VARIANTS), help="variants joined by commas; `whole` has to be there (%(default)s)")
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--tasks", default="", help="lines of graph_rows, joined by commas")
    parser.add_argument("--rate", type=float, default=0.0, help="GB/s that copying moves on their GPU")
    options = parser.parse_args(arguments)
    seeds = [int(seed) for seed in options.seeds.split(",")]
    tasks = recorded([Path(one) for one in options.tasks.split(",")], options.rate) if options.tasks else []
    found: dict[str, dict[str, dict[str, Values]]] = {"searched": {}, "held-out": {}, **({"kernelbench": {}} if tasks else {})}
    for variant in options.only.split(","):
        read = replace(config.load(CONFIG, (*VARIANTS[variant], f"seeds=[{options.seeds}]")), jobs=1)
        out = folder(options.out, variant)
        train(read, out, aloud)
        every = tasks_of(row for file in read.data.rows for row in rows_of.read(Path(read.folder) / file))
        found["searched"][variant] = searched(out, seeds)
        found["held-out"][variant] = answered(out, seeds, lambda seed, of=every, how=read: split(of, how, seed)[1], "held_out")  # type: ignore[misc]
        if tasks:
            found["kernelbench"][variant] = answered(out, seeds, lambda _: tasks, "kernelbench")
    rows = [row for name, those in found.items() for row in table(those, name)]
    rows.append({"row": "conditions", "seeds": seeds, "recorded tasks": len(tasks)})
    (options.out / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (options.out / "values.jsonl").write_text("".join(json.dumps(row) + "\n" for row in values(found)))
    for row in rows:
        print(json.dumps(row))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
