"""Build C++ and CUDA text into shared libraries: `libraries` for the package itself, `standalone` for generated files."""

from warpwright.native.errors import BuildError
from warpwright.native.libraries import FLAGS, build, build_cuda, cache_folder, compiler, load

__all__ = ["FLAGS", "BuildError", "build", "build_cuda", "cache_folder", "compiler", "load"]
