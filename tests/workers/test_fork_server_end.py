"""A process that ends while its fork server still loads torch does not leave it behind: whoever reads the output of the two would wait for both."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

CODE = """
import sys, time
from warpwright.workers import fork_server
sys.executable = sys.argv[1]
fork_server.start_fork_server()
time.sleep(1.0)
"""


def test_one_that_is_not_ready_is_ended(tmp_path: Path) -> None:
    loads_long = tmp_path / "python"
    loads_long.write_text("#!/bin/sh\nexec sleep 60\n")
    loads_long.chmod(0o755)
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", CODE, str(loads_long)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and not done.stderr
    assert time.monotonic() - began < 40
