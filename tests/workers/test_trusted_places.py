"""Packages are trusted wherever packages are installed: a user's and the system's, beside those of the environment; other files are not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LOOKS = "import sys\n\n\ndef look():\n    return sys._getframe(1)\n"

SEEN = """
import sys, torch
from warpwright.workers.inside.integrity import watch_events

events, _ = watch_events((sys.argv[1],))
import installed, stranger

installed.look()
before = events()["inspection"]
stranger.look()
print(before, events()["inspection"])
"""


def test_a_package_may_look_and_another_file_may_not(tmp_path: Path) -> None:
    places = [tmp_path / "user/site-packages", tmp_path / "elsewhere"]
    for place, name in zip(places, ("installed", "stranger"), strict=True):
        place.mkdir(parents=True)
        (place / f"{name}.py").write_text(LOOKS)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [Path(__file__).parents[2], *places]))}
    done = subprocess.run([sys.executable, "-c", SEEN, str(tmp_path)], capture_output=True, text=True, env=environment, timeout=300)
    assert done.stdout.strip() == "[] ['sys._getframe']", done.stderr
