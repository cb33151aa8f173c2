"""What `warpwright train` reads: a TOML file with a table for each stage."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from warpwright.errors import UsageError
from warpwright.policy.model import Shape
from warpwright.policy.prompt import Exemplars


@dataclass(frozen=True)
class Data:
    """What is learnt from."""

    rows: tuple[str, ...] = ()
    """Files of rows (.jsonl or .parquet), relative to the config's folder."""
    tasks: tuple[str, ...] = ()
    """Task files, relative to the config's folder, whose answers stage 3 has evaluated; all others are answered from the rows. Each needs rows."""
    device: str = "cpu"
    """Of those."""
    jobs: int = 1
    """Of those, how many are answered at once: with more than one by a resident service, which keeps each task's trusted processes."""
    executor: Literal["local", "ray"] = "local"
    """Where those are answered: on this machine, or by `jobs` evaluators on a Ray cluster, each an actor that has a GPU where there are some."""
    parts: int = 5
    """The tasks are dealt to this many parts; a seed holds out one of them, a different one for each of the first seeds."""
    deal: int = 0
    """Seed of the deal."""
    held_device: str = ""
    """A device as the rows name it: nothing measured there is trained on, and the tasks held out are compared there alone."""


@dataclass(frozen=True)
class Supervised:
    """Stage 1: fine-tuning on verified variants; and what stage 2 uses too."""

    epochs: float = 3.0
    rate: float = 2e-3
    batch: int = 16
    prompts: int = 2
    """Prompts, with different exemplars, for each verified variant."""


@dataclass(frozen=True)
class SelfSupervised:
    """Stage 2: sample, evaluate, keep what is correct, train again."""

    rounds: int = 1
    """0: the stage is left out."""
    samples: int = 8
    """Answers for each training task and round."""
    epochs: float = 1.0
    rate: float = 1e-3


@dataclass(frozen=True)
class Contrastive:
    """Stage 3: reinforcement learning (GRPO) with scored exemplars in the prompt."""

    steps: int = 100
    groups: int = 8
    """Prompts in a step."""
    group: int = 8
    """Answers to a prompt."""
    rate: float = 1e-3
    beta: float = 0.02
    """Weight of the divergence from the policy of stage 2."""
    clip: float = 0.2
    """Of the probability ratio."""
    temperature: float = 1.0
    """While it explores."""
    asked_at: float = 1.0
    """Temperature with which the trained policy is asked. What is never paid is pressed out like 1 / steps only; below 1 hardly any is left."""
    exemplars: Exemplars = "contrast"
    known: int = 6
    """Recipes that are known when a prompt is made: 0 to this many, drawn. None of them may be written again."""
    reward: Literal["log", "raw", "milestones"] = "log"
    most: float = 4.0
    """Rewards of the kind `log` are clipped to this many powers of two either way."""
    baseline: Literal["leave_one_out", "group"] = "leave_one_out"
    """`group`: divided by the group's deviation as well (GRPO as published)."""
    checkpoint: int = 25
    """Steps between checkpoints."""


@dataclass(frozen=True)
class Comparing:
    """The comparison on the tasks held out."""

    evaluations: tuple[int, ...] = (1, 2, 4, 8)
    runs: int = 20
    """Of each search on each task."""
    searches: tuple[str, ...] = ("random", "greedy", "evolve")


@dataclass(frozen=True)
class Config:
    """A whole training."""

    name: str
    folder: str = "."
    """The config's own folder."""
    seeds: tuple[int, ...] = (0,)
    threads: int = 1
    """Of a seed's training. Weights are the same again only for the same number."""
    jobs: int = 1
    """Seeds that are trained at once, each in a process of its own."""
    data: Data = field(default_factory=Data)
    model: Shape = field(default_factory=Shape)
    supervised: Supervised = field(default_factory=Supervised)
    self_supervised: SelfSupervised = field(default_factory=SelfSupervised)
    contrastive: Contrastive = field(default_factory=Contrastive)
    comparing: Comparing = field(default_factory=Comparing)

    def as_json(self) -> dict[str, Any]:
        """Return the settings that decide the result; where the file lies, and how much is done at once, do not."""
        settings = {name: value for name, value in asdict(self).items() if name not in ("folder", "jobs")}
        settings["data"].pop("jobs")
        settings["data"].pop("executor")
        return settings


def completed(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that an earlier version wrote, with what it had no names for yet as it was then."""
    tables: dict[str, Any] = {name: values for name, values in written.items() if isinstance(values, Mapping)}
    exploring = tables.get("contrastive", {})
    if "temperature" in exploring:  # with which policies were asked as well
        tables["contrastive"] = {"asked_at": exploring["temperature"], **exploring}
    defaults = Config(name="").as_json()
    known = {**defaults, **written}
    return known | {name: {**defaults.get(name, {}), **values} for name, values in tables.items()}


_TABLES: Mapping[str, type[Any]] = {
    "data": Data, "model": Shape, "supervised": Supervised, "self_supervised": SelfSupervised, "contrastive": Contrastive, "comparing": Comparing,
}  # fmt: skip


def load(path: Path, changes: tuple[str, ...] = ()) -> Config:
    """Return the config of a TOML file; `changes` such as contrastive.steps=10 come on top. Raise UsageError for what it does not know."""
    try:
        document = tomllib.loads(path.read_text())
        for change in changes:
            _set(document, change)
    except (OSError, ValueError) as error:
        raise UsageError(f"expected a config in {path}: {error}", "see configs/tiny.toml") from error
    tables = {name: _filled(kind, document.pop(name, {}), name) for name, kind in _TABLES.items()}
    plain = _known(Config, {"name": path.stem, **document}, "")
    return Config(**{**plain, **tables, "folder": str(path.parent)})


def _set(document: dict[str, Any], change: str) -> None:
    name, equals, value = change.partition("=")
    if not equals:
        raise UsageError(f"expected --set TABLE.NAME=VALUE, saw {change!r}", "as in --set contrastive.steps=10")
    *tables, last = name.strip().split(".")
    for table in tables:
        document = document.setdefault(table, {})
    document[last] = tomllib.loads(f"value = {value}")["value"]


def _filled(kind: type[Any], values: Mapping[str, Any], table: str) -> Any:
    return kind(**_known(kind, values, table))


def _known(kind: type[Any], values: Mapping[str, Any], table: str) -> dict[str, Any]:
    names = {one.name for one in fields(kind)}
    unknown = sorted(set(values) - names)
    if unknown:
        where = f"[{table}]" if table else "the top"
        raise UsageError(f"expected at {where} some of {', '.join(sorted(names))}, saw {unknown[0]!r}", "see configs/tiny.toml")
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
