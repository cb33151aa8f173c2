"""Build a translated program and launch its kernels from Python."""

from warpwright.domains.transpile.launch.compiler_errors import errors
from warpwright.domains.transpile.launch.findings import Finding
from warpwright.domains.transpile.launch.library import FLAGS, LoadedKernel, built, load

__all__ = ["FLAGS", "Finding", "LoadedKernel", "built", "errors", "load"]
