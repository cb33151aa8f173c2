"""Build C++ and CUDA text into shared libraries: `libraries` for the package itself, `standalone` for generated files.

`headers`: what many texts begin with is parsed once. `repeat`: a compiled function is called many times.
"""

from warpwright.native.errors import BuildError
from warpwright.native.libraries import FLAGS, build, build_cuda, cache_folder, compiler, kept_file, load, syntax_errors

__all__ = ["FLAGS", "BuildError", "build", "build_cuda", "cache_folder", "compiler", "kept_file", "load", "syntax_errors"]
