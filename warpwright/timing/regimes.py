"""Two ways of calling a program, and the one verdict that both allow.

    single   one call at a time: the device idle and its caches cold before each
    stream   many calls in one span of the clock, each on inputs of its own

A task declares which of the two it is judged in. A program is FASTER only where it is not SLOWER in the other, nor stands below LEAST of the best
baseline there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from warpwright.base import Comparison, Measurement, Regime
from warpwright.errors import UsageError

REGIMES = ("single", "stream")

LEAST = 0.98
"""Of the best baseline's speed: what no program that is recommended falls below in any regime, if another one does not."""
OTHER_SHARE = 0.3
"""Of the time of the declared regime: what the other one is timed for."""


def declared(regime: str = "", device: str = "cpu") -> str:
    """Return the regime that a task is judged in; raise UsageError for one that does not exist.

    Unless it says otherwise that is a stream on a GPU, whose single call is mostly a wait, and single calls on a CPU.
    """
    if regime and regime not in REGIMES:
        raise UsageError(f"expected the regime {' or '.join(REGIMES)}, saw {regime!r}")
    return regime or ("stream" if device.startswith("cuda") else "single")


def always_both(regime: str, device: str) -> bool:
    """Whether every program is timed in both regimes. Else, on a CPU, only one that is FASTER is timed in the other, which may speak against it."""
    return bool(regime) or device.startswith("cuda")


def joined(measured: Mapping[str, Measurement], chosen: str, left_out: Mapping[str, str] | None = None) -> Measurement:
    """Return the measurement of the regime `chosen` with all of `measured` in it, and the verdict that they allow together.

    `left_out`: why a regime of a task cannot be timed. Where that is the chosen one, the other takes its part.
    """
    regime = chosen if chosen in measured else next(iter(measured))
    own = measured[regime]
    verdict, note = _allowed(regime, measured)
    conditions = {**own.conditions, "regime": regime}
    if regime == "stream":
        conditions["cache"] = "as the calls before left it"
    conditions |= {f"{name}_left_out": why for name, why in (left_out or {}).items()}
    if note:
        conditions["note"] = "; ".join(filter(None, [str(conditions.get("note", "")), note]))
    return replace(own, verdict=verdict, conditions=conditions, regimes={name: _regime(one) for name, one in measured.items()})


def _allowed(regime: str, measured: Mapping[str, Measurement]) -> tuple[Comparison, str]:
    """Return the verdict, and why it is not that of its regime alone."""
    verdict = measured[regime].verdict
    slower = [name for name, one in measured.items() if name != regime and _gives_away(one)]
    if verdict == "FASTER" and slower:
        return "UNSURE", f"faster in {regime}, but slower in {slower[0]}"
    return verdict, ""


def _gives_away(measured: Measurement) -> bool:
    """Is it slower, or seems so without a decision?"""
    return measured.verdict == "SLOWER" or (measured.verdict == "UNSURE" and measured.speedup < LEAST)


def _regime(measured: Measurement) -> Regime:
    medians = {name: timing.median for name, timing in measured.baselines.items() if timing.samples}
    note = measured.conditions.get("note", "")
    return Regime(measured.candidate.median, medians, measured.best_baseline, measured.speedup, measured.interval, measured.verdict, str(note))
