"""What a device is: the facts that a record's numbers depend on."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

from warpwright.base import Scalar
from warpwright.errors import UsageError
from warpwright.timing import nvml

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_INSTRUCTION_SETS = ("amx_bf16", "avx512_bf16", "avx512f", "avx2", "sse4_2", "sve", "asimd")
"""The best first: names of flags in /proc/cpuinfo."""

_CUDA_FACTS = """
import json, sys, torch
p = torch.cuda.get_device_properties(sys.argv[1])
print(json.dumps({"name": p.name, "capability": f"{p.major}.{p.minor}", "multiprocessors": p.multi_processor_count, "memory_bytes": p.total_memory,
    "l2_bytes": p.L2_cache_size, "cuda": torch.version.cuda or "", "cudnn": torch.backends.cudnn.version() or 0}))
"""


def name(device: str) -> str:
    """Return a device's name. A GPU's is asked of its driver, in milliseconds: a process with torch and CUDA takes 4 s to say the same."""
    asked = nvml.name(device) if device.startswith("cuda") else ""
    return asked or str(device_facts(device)["name"])


@cache
def device_facts(device: str) -> dict[str, Scalar]:
    """Return name, size and software of a device such as cpu or cuda:0. CUDA is asked in a process of its own."""
    own = _cuda_facts(device) if device.startswith("cuda") else _cpu_facts()
    return {"device": device, **own, **_versions()}


def machine_name(device: str) -> str:
    """Return what tells one kind of machine from another, such as "NVIDIA H200" or "AMD EPYC 9R14, 2 cores, avx512f"."""
    if device.startswith("cuda"):
        return name(device)
    facts = device_facts(device)
    return f"{facts['name']}, {facts['cores']} cores, {facts['isa']}"


def _cpu_facts() -> dict[str, Scalar]:
    text = _read(Path("/proc/cpuinfo"))
    flags = set(re.findall(r"\w+", "".join(re.findall(r"^(?:flags|Features)\s*:(.*)$", text, re.M)[:1])))
    name = re.search(r"^model name\s*:\s*(.*)$", text, re.M)
    return {
        "name": name[1].strip() if name else platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "isa": next((isa for isa in _INSTRUCTION_SETS if isa in flags), platform.machine()),
        "llc_bytes": last_level_cache_bytes(),
    }


def last_level_cache_bytes(root: Path = Path("/sys/devices/system/cpu")) -> int:
    """Return the size of the largest data cache, all instances together; 32 MiB when the system does not say."""
    caches: dict[tuple[int, str], int] = {}
    for index in root.glob("cpu[0-9]*/cache/index[0-9]*"):
        size = re.fullmatch(r"(\d+)([KMG]?)", _read(index / "size").strip())
        if size and _read(index / "type").strip() != "Instruction":
            level = int(_read(index / "level").strip() or 0)
            caches[level, _read(index / "shared_cpu_list").strip()] = int(size[1]) * _UNITS.get(size[2], 1)
    last = max((level for level, _ in caches), default=0)
    return sum(size for (level, _), size in caches.items() if level == last) or 32 << 20


def _cuda_facts(device: str) -> dict[str, Scalar]:
    asked = subprocess.run([sys.executable, "-c", _CUDA_FACTS, device], capture_output=True, text=True)
    if asked.returncode:
        last = (asked.stderr.strip().splitlines() or ["no message"])[-1]
        raise UsageError(f"expected an NVIDIA GPU as {device}, saw: {last}", "use --target cpu, or see `warpwright doctor`")
    facts: dict[str, Scalar] = json.loads(asked.stdout)
    return {**facts, "driver": _driver()}


def _driver() -> str:
    text = _read(Path("/proc/driver/nvidia/version"))
    match = re.search(r"Kernel Module\D*([\d.]+)", text)
    return match[1] if match else ""


def _versions() -> dict[str, Scalar]:
    versions: dict[str, Scalar] = {"python": platform.python_version(), "system": platform.platform()}
    for package in ("torch", "triton", "numpy"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = ""
    return versions


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
