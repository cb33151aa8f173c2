"""Counters of NVIDIA's profiler ncu, where its driver permits them; never with more rights than a candidate has.

Counters are often for administrators alone (ERR_NVGPUCTRPERM). Then there are none, and the reason is said: nobody is asked for a password, and a
process of root becomes another user first.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from warpwright.base import Source
from warpwright.secrets import secrets

SECONDS = 120.0

NOBODY = 65534

METRICS: Mapping[str, str] = {
    "gpu__time_duration.sum": "time, ns",
    "dram__bytes.sum": "memory traffic, bytes",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "memory throughput, % of peak",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "multiprocessor throughput, % of peak",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "achieved occupancy, %",
    "l1tex__data_bank_conflicts_pipe_lsu.sum": "shared memory bank conflicts",
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct": "global loads coalesced, %",
}

_SCRIPT = """
import importlib.util, sys
import torch
spec = importlib.util.spec_from_file_location("program", sys.argv[1])
program = importlib.util.module_from_spec(spec)
spec.loader.exec_module(program)
torch.manual_seed(0)
moved = lambda value: value.cuda() if isinstance(value, torch.Tensor) else value
inputs = torch.utils._pytree.tree_map(moved, program.get_inputs())
made = program.{entry}(*program.get_init_inputs()).cuda()
with torch.no_grad():
    for _ in range(2):
        made(*inputs)
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    made(*inputs)
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()
"""


@dataclass(frozen=True)
class Counters:
    """What was counted of one call."""

    kernels: Mapping[str, Mapping[str, float]]
    """Kernel -> counter, in words with its unit -> value; of several launches of a kernel the last."""
    problem: str
    """Why nothing was counted; "" where something was."""


def count(source: Source) -> Counters:
    """Return the counters of one call of a program in KernelBench form with its own inputs, on the first GPU."""
    tool = shutil.which("ncu")
    if tool is None:
        return Counters({}, "NVIDIA's profiler ncu is not on the PATH")
    hidden = secrets()
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    with tempfile.TemporaryDirectory(prefix="warpwright-") as folder:
        os.chmod(folder, 0o755 if os.getuid() else 0o777)
        program, script = Path(folder, "program.py"), Path(folder, "call.py")
        program.write_text(source.text)
        script.write_text(_SCRIPT.format(entry=source.entry))
        command = [tool, "--csv", "--profile-from-start", "off", "--metrics", ",".join(METRICS), sys.executable, str(script), str(program)]
        whose = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=SECONDS, cwd=folder, env={**environment, "HOME": folder, "TMPDIR": folder},
                **whose,  # type: ignore[call-overload]
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            return Counters({}, f"ncu did not answer: {str(error)[:200]}")
    return read(done.stdout, done.stderr)


def read(output: str, complaints: str = "") -> Counters:
    """Return the counters in what ncu printed."""
    if "ERR_NVGPUCTRPERM" in output + complaints:
        return Counters({}, "the driver keeps counters for administrators (ERR_NVGPUCTRPERM)")
    rows = output[output.index('"ID"') :] if '"ID"' in output else ""
    by_kernel: dict[str, dict[str, float]] = {}
    for row in csv.DictReader(io.StringIO(rows)):
        name, value = row.get("Metric Name") or "", (row.get("Metric Value") or "").replace(",", "")
        if name in METRICS and value.replace(".", "", 1).isdigit():
            kernel = (row.get("Kernel Name") or "").partition("(")[0].strip()
            by_kernel.setdefault(kernel, {})[METRICS[name]] = float(value)
    if not by_kernel:
        errors = [line for line in (output + complaints).splitlines() if "==ERROR==" in line or "Error" in line]
        return Counters({}, f"ncu counted nothing: {errors[0].strip()[:200] if errors else 'it printed no table'}")
    return Counters(by_kernel, "")
