"""What the shims choose for messages in host memory: by the user's word, by what was measured, by trials of the program's own objects."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from interpreters import HERE, environment, last_line, launcher, times

from warpwright.domains.mpi import model

pytestmark = pytest.mark.compiler


def learned(python: str, **more: str) -> dict[str, Any]:
    """Return what a program that sends some messages is told of them; whatever is chosen, their bytes are right and trials leave no trace."""
    command = [*launcher(python, 2), python, str(HERE / "learning.py")]
    told = last_line(subprocess.run(command, capture_output=True, text=True, timeout=150, env=environment(**more)))
    assert told["right"] and told["wildcard"], told
    return told


def test_a_program_s_own_objects_decide(python: str) -> None:
    """For Open MPI they need a measurement beside them."""
    told = learned(python)
    open_mpi = told["library"] == "Open"
    assert told["early"]["why"] == model.NOT_MEASURED and told["early"]["method"] == ("library" if open_mpi else "packed")
    here = told["late"]["here"]
    assert here["trials"] == 3 and here["uses"] == 20 and here["us"]["library"] > 0 < here["us"]["packed"]
    if abs(here["us"]["library"] / here["us"]["packed"] - 1.15) > 0.01:  # rounded
        assert told["late"]["method"] == ("packed" if here["us"]["library"] > 1.15 * here["us"]["packed"] and not open_mpi else "library")


def test_a_library_that_sends_other_bytes_is_not_taken(python: str) -> None:
    told = learned(python)
    differs = told["pairs"]["why"] == "the library sent other bytes than the type says"
    assert differs == (told["library"] == "Open") and told["pairs_right"] and (told["pairs"]["method"] == "packed" or not differs)


def test_trials_correct_what_was_measured(python: str) -> None:
    slow, fast = (learned(python, WARPWRIGHT_MPI_TIMES=times(*between, 1, 1)) for between in ((1, 1e6), (1e6, 1)))
    assert [told["early"]["method"] for told in (slow, fast)] == ["library", "packed"]
    assert [told["late"]["method"] for told in (slow, fast)] == ["library", "packed"]  # by a second, whatever the trials say
    turned = learned(python, WARPWRIGHT_MPI_TIMES=times(2e6, 1e6, 1e7, 1))  # trials show that the library is ten seconds faster than it was
    assert (turned["early"]["method"], turned["late"]["method"]) == ("packed", "library")


def test_what_is_the_library_s_is_still_counted_and_tried(python: str) -> None:
    told = learned(python, WARPWRIGHT_MPI_TIMES=times(1, 1e6, 1, 1), USES="300")
    assert told["late"]["method"] == "library" and (told["late"]["here"]["uses"], told["late"]["here"]["trials"]) == (300, 4)
    assert told["sends"] == {"served": 0, "forwarded": 300}


def test_what_the_user_sets_is_kept(python: str) -> None:
    told = learned(python, WARPWRIGHT_MPI_LEAST="1", WARPWRIGHT_MPI_TIMES=times(1, 1e6, 1, 1))
    assert told["late"]["method"] == "packed" and "here" not in told["late"]
    assert learned(python, WARPWRIGHT_MPI_BLOCK="8")["late"]["method"] == "library"
