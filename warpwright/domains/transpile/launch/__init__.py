"""Build a translated program and launch its kernels from Python."""

from warpwright.domains.transpile.launch.findings import Finding
from warpwright.domains.transpile.launch.library import FLAGS, LoadedKernel, load

__all__ = ["FLAGS", "Finding", "LoadedKernel", "load"]
