"""What the parts of a training are worth: stages beside the one before, variants beside the whole, by task and seed."""

from __future__ import annotations

import math
from pathlib import Path

from benchmarks.policy.trained import ablations
from warpwright.learn.policy import config


def values(*shares: float) -> ablations.Values:
    return {(seed, "t"): {str(k): math.log(share) for k in ablations.EVALUATIONS} for seed, share in enumerate(shares)}


def test_a_stage_stands_beside_the_one_before_and_a_variant_beside_the_whole() -> None:
    found = {
        "whole": {"supervised": values(0.2, 0.3), "contrastive": values(0.4, 0.6)},
        "raw reward": {"supervised": values(0.2, 0.3), "self_supervised": values(0.1, 0.1), "contrastive": values(0.2, 0.3)},
    }
    rows = list(ablations.table(found, "x"))
    assert [(row["variant"], row["stage"]) for row in rows] == [
        ("whole", "supervised"), ("whole", "contrastive"),
        ("raw reward", "supervised"), ("raw reward", "self-supervised"), ("raw reward", "contrastive"),
    ]  # fmt: skip
    assert rows[1]["over the stage before, 1"] == "2.000 [2.000, 2.000]" and rows[1]["over the whole, 1"] == ""
    assert rows[4]["over the whole, 4"] == "0.500 [0.500, 0.500]" and rows[3]["over the whole, 4"] == ""
    assert rows[0]["best of 1"] == f"{math.sqrt(0.06):.3f}" and rows[0]["values"] == 2
    assert len(list(ablations.values({"x": found}))) == 10


def test_each_variant_is_one_change_of_the_config_that_made_the_policy_that_ships(tmp_path: Path) -> None:
    whole = config.load(ablations.CONFIG, ()).as_json()
    for variant, changes in ablations.VARIANTS.items():
        changed = config.load(ablations.CONFIG, changes).as_json()
        parts = [(table, name) for table, those in whole.items() if isinstance(those, dict) for name in those]
        differs = [(table, name) for table, name in parts if changed[table][name] != whole[table][name]]
        assert len(differs) == (variant != "whole"), variant
    assert len({ablations.folder(tmp_path, variant) for variant in ablations.VARIANTS}) == len(ablations.VARIANTS)
