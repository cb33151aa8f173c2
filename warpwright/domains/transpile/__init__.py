"""CUDA C++ -> fast C++ for the CPU: `compile_text` gives a `Program` (docs/transpile.md)."""

from warpwright.domains.transpile.errors import BadArgument, BadValue, LaunchFailed, Refusal
from warpwright.domains.transpile.launch import FLAGS, Finding, LoadedKernel
from warpwright.domains.transpile.program import TIERS, KernelInfo, Program, compile_text

__all__ = [
    "FLAGS", "TIERS", "BadArgument", "BadValue", "Finding", "KernelInfo", "LaunchFailed", "LoadedKernel", "Program", "Refusal", "compile_text",
]  # fmt: skip
