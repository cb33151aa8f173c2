"""A second process of a baseline that is timed beside the first, in the same passes: the quicker of the two stands for the baseline.

    with_doubles   programs by name, those of second processes under names of their own
    folded         a measurement with one timing a baseline again
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from warpwright.base import Measurement, Scalar, Timing
from warpwright.timing import measure

MARK = " (second process)"
"""Ends the name of a second process among the programs of a run; no baseline's name does."""

ENOUGH = 1.25
"""A larger speed-up is no difference between processes: 66 ratios of two processes, on one core in each pass, lay between 0.93 and 1.17. Once it is
surely above that a second process is timed no further, if it is not the quicker one; nor once the program is surely slower than both, of which no
speed-up is claimed."""


def with_doubles(programs: Mapping[str, measure.Timeable], doubles: Mapping[str, measure.Timeable]) -> dict[str, measure.Timeable]:
    """Return the programs, and after them those of second processes, by the names of their baselines."""
    return {**programs, **{name + MARK: program for name, program in doubles.items() if name in programs}}


def folded(measurement: Measurement) -> Measurement:
    """Return a measurement in which each baseline has one timing: that of its quicker process, if both were timed until its end.

    The interval is left as it is: it is one of the speed-up over the quickest program of the run, whichever process that was.
    """
    if not any(name.endswith(MARK) for name in measurement.baselines):
        return measurement
    conditions, best = dict(measurement.conditions), measurement.best_baseline.removesuffix(MARK)
    eligible = str(conditions.get("eligible", "")).split(",")
    timings: dict[str, Timing] = {name: timing for name, timing in measurement.baselines.items() if not name.endswith(MARK)}
    for double in [name for name in measurement.baselines if name.endswith(MARK)]:
        name, timing, over = double.removesuffix(MARK), measurement.baselines[double], conditions.pop(f"speedup_over_{double}", None)
        if double not in eligible:  # enough was known of it early
            continue
        both = str(conditions.get("second_process", ""))
        conditions["second_process"] = ",".join(filter(None, [both, name]))
        if timing.median < timings[name].median:
            timings[name] = timing
        if over is not None and f"speedup_over_{name}" in conditions:
            if name == best:
                conditions["speedup_over_second_process"] = over
            conditions[f"speedup_over_{name}"] = _least(conditions[f"speedup_over_{name}"], over)
    conditions["eligible"] = ",".join(name for name in eligible if not name.endswith(MARK))
    return replace(measurement, baselines=timings, best_baseline=best, conditions=conditions)


def beside_a_second_process(measurement: Measurement) -> bool:
    """Whether the best baseline was timed in two processes."""
    return measurement.best_baseline in str(measurement.conditions.get("second_process", "")).split(",")


def _least(one: Scalar, other: Scalar) -> Scalar:
    return min(float(one), float(other))
