"""A writer for the tests to kill: the real loop and archive, toy programs. Run as `python fake_bench.py ARCHIVE LOG COUNT`.

It writes to LOG, one word and one candidate's key a line, when an evaluation begins and when its record is in the archive.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from random import Random
from typing import Any

from toy_space import TASK, Toy, program

from warpwright.archive import Archive
from warpwright.base import Action, Budget, Candidate, Record
from warpwright.loop import Course, optimize
from warpwright.space import Space, Traits


def numbered(space: Space[Any], rng: Random, batch: int) -> Any:
    """Propose program 0, 1, 2 ... for ever."""
    number = 0
    while True:
        yield [(Action("number", params=(("n", number + i),)),) for i in range(batch)]
        number += batch


def numbered_space() -> Space[frozenset[str]]:
    class Number:
        name, traits = "number", Traits("E")

        def sites(self, ir: frozenset[str]) -> Iterable[Action]:
            return []

        def apply(self, ir: frozenset[str], action: Action) -> frozenset[str]:
            return ir | {f"{action.params[0][1]}" + "-" * 500}

    return Space(frozenset(), (Number(),), program)


def main(path: str, log_path: str, count: int) -> None:
    log = os.open(log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def begin(candidate: Candidate) -> None:
        os.write(log, f"begin {candidate.key}\n".encode())
        time.sleep(0.002)

    def recorded(record: Record) -> None:
        os.write(log, f"recorded {record.candidate.key}\n".encode())

    with Archive(path) as archive:
        optimize(TASK, numbered_space(), Toy(before=begin), numbered, Budget(None, proposals=count), archive, Course(recorded, batch=3))
        archive.add_outcome(TASK, "cpu", "fake", {"count": count})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
