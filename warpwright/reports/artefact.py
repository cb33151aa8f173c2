"""Record -> the file that people ship: the program, with a header that says what was proven, where its state lies, and a self-test."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from warpwright.base import BASELINE, Record, Regime, is_baseline
from warpwright.domains.graph.template import GUARDED, TAIL, step_tail
from warpwright.tasks.modules.saved_module import LOADED
from warpwright.timing.regimes import LEAST

SELF_TEST = 'if __name__ == "__main__":'

def text(record: Record) -> str:
    """Return the file of a record's program. A module that was saved beside it is loaded from there, wherever the two are moved to."""
    program = _beside(record.candidate.source.text, Path(record.task.path))
    if SELF_TEST not in program and _has_inputs(program):
        tail = step_tail() if record.task.option("backward") else TAIL
        tail = tail.replace(GUARDED, "").replace("@DEVICE", record.candidate.target)
        program = f"{program.rstrip()}\n\n{tail}"
    return f"{header(record)}\n{program}"


def header(record: Record) -> str:
    """Return what was proven, when, where and under which conditions, as comments."""
    if record.measurement is not None and record.measurement.unit != "s":
        return _untimed(record)
    measured, versions = record.measurement, record.versions
    kept = is_baseline(record)
    lines = [f"warpwright {versions.get('warpwright', '')}: {record.task.name}, {record.when}"]
    lines += [f"device: {versions.get('machine') or record.device}; torch {versions.get('torch', '')}, Python {versions.get('python', '')}"]
    if measured is not None and kept:
        lines += [f"nothing was proven faster than {record.candidate.proposer.removeprefix(BASELINE)}, which this file runs"]
        lines += [f"    {name}: {_in(regime)}" for name, regime in sorted(measured.regimes.items()) if regime.speedup < LEAST]
    elif measured is not None:
        lines += [f"{measured.verdict}: {_times(measured.speedup, measured.interval)} of {measured.best_baseline}, the best of its baselines"]
        lines += [f"    {name}: {_in(regime)}" for name, regime in sorted(measured.regimes.items())]
    lines += [f"    {name}: {_in(shape)}" for name, shape in measured.shapes.items()] if measured is not None else []
    left_out = measured.conditions.get("left_out") if measured is not None else None
    lines += [f"not measured, for lack of time: {left_out}"] if left_out else []
    whose = "the declared" if measured is not None and measured.shapes else "the example's"
    lines += [f"verified: on hidden inputs of {whose} shapes and types, error at most twice the original's against float64"]
    lines += ["    with drawn, well-scaled parameters (--calibrate) in place of the model's own"] if record.task.option("calibrate") else []
    gradients = "with the gradients of VERIFIED" if record.task.option("backward") else "without gradients"
    lines += [f"calls: in the training mode and for the shapes of VERIFIED, {gradients}; any other takes the original's forward"]
    lines += [f"recipe: {'; '.join(map(str, record.candidate.actions)) or 'none'}", f"record: {record.key} (warpwright reproduce {record.key})"]
    lines += ["licence: the model's own; what warpwright adds to it may be used without any condition"]
    return "".join(f"# {line}\n" for line in lines)


def _untimed(record: Record) -> str:
    """The header of a program that was judged by something else than its time."""
    measured, versions = record.measurement, record.versions
    assert measured is not None
    gain = f"{measured.verdict}: {measured.metric}, {_times(measured.speedup, measured.interval)} of {measured.best_baseline}"
    told = ", ".join(f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}" for name, value in measured.conditions.items())
    lines = [f"warpwright {versions.get('warpwright', '')}: {record.task.name}, {record.when}", f"device: {record.device}", gain, told]
    lines += [f"recipe: {'; '.join(map(str, record.candidate.actions)) or 'none'}", f"record: {record.key} (warpwright reproduce {record.key})"]
    return "".join(f"# {line}\n" for line in lines)


def _times(value: float, interval: Sequence[float]) -> str:
    return f"{value:.2f}x [{interval[0]:.2f}, {interval[1]:.2f}]"


def _in(regime: Regime) -> str:
    return f"{regime.candidate * 1e3:.4g} ms a call, {_times(regime.speedup, regime.interval)} of {regime.best_baseline}, {regime.verdict}"


def _beside(program: str, saved: Path) -> str:
    """Return a program that loads its saved module from its own folder, not from the place where it was optimized."""
    absolute = LOADED.format(place=repr(str(saved)))
    if absolute not in program:
        return program
    place = f"__import__('os').path.join(__import__('os').path.dirname(__import__('os').path.abspath(__file__)), {saved.name!r})"
    return program.replace(absolute, LOADED.format(place=place))


def _has_inputs(program: str) -> bool:
    """Does the program make its own inputs, so that it can be compared with the original?"""
    names = {node.name for node in ast.parse(program).body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return {"Model", "get_inputs", "get_init_inputs"} <= names and re.search(r"^class ModelNew\b", program, re.M) is not None
