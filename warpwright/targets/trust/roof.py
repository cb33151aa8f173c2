"""What a task's times are held against: the bytes that every program has to move, at the peaks of the device. Peaks that look too low are doubted.

They are measured once per machine, and one that was busy then has peaks that are too low: a search ended at once, for the original seemed to move all
that the memory can give, and a fast program would be taken for one that does not do its work. So what comes near them has them measured again.
"""

from __future__ import annotations

from contextlib import suppress

from warpwright.errors import RooflineError
from warpwright.targets.trust.trusted import Trusted, Workbench
from warpwright.timing import rates, roofline

PEAKS_SHARE = 0.3
"""Of the time that is left, the most that is spent on measuring a device's peaks."""

NEAR = 0.8
"""Share of the measured bandwidth from which on the peaks are measured again. A search ends at 0.9 (`loop.running.NO_HEADROOM`)."""


def find(bench: Workbench, trusted: Trusted, work: rates.Work) -> None:
    """Give a task's programs the time below which nothing is believed, and the facts that it rests on."""
    trusted.work = work
    try:
        _take(trusted, roofline.peaks(bench.place, bench.folder, seconds=bench.share(PEAKS_SHARE), probe=trusted.probe))
    except RooflineError as error:
        trusted.floor, trusted.roof = 0.0, {"floor_note": f"the peaks of {bench.place} could not be measured: {error}"}


def doubt(bench: Workbench, trusted: Trusted) -> None:
    """Measure the peaks again where a baseline came near them, as it does on a machine that was busy when they were measured."""
    fastest = min(timing.median for name, timing in trusted.by_regime["single"].items() if name in trusted.eligible)
    if roofline.bandwidth_share(trusted.roof, fastest) >= NEAR:
        raised(bench, trusted)


def doubt_beside(bench: Workbench, trusted: Trusted, seconds: float) -> None:
    """The same where a candidate came near them, a call of which takes so long: its record would end the search."""
    if roofline.bandwidth_share(trusted.roof, seconds) >= NEAR:
        with bench.alone():
            raised(bench, trusted)


def raised(bench: Workbench, trusted: Trusted) -> bool:
    """Measure the peaks once more, if that was not done often before and there is time; return whether the floor is lower now."""
    before = trusted.floor
    if not before:
        return False
    bench.tell("the peaks of the device")
    with suppress(RooflineError):  # they stay as they are
        _take(trusted, roofline.peaks(bench.place, bench.folder, measure_again=True, seconds=bench.share(PEAKS_SHARE)))
    return trusted.floor < before


def _take(trusted: Trusted, peaks: rates.Peaks) -> None:
    trusted.floor, trusted.roof = roofline.floor_seconds(trusted.work, peaks), roofline.facts(trusted.work, peaks)
