"""torch.utils.cpp_extension for a machine without a GPU: CUDA sources are translated (domains/transpile) and run on the CPU.

`domains/transpile/inline_cuda.py` makes a program that builds inline CUDA use this module in place of torch's, so that the same file is
verified and timed on a laptop: right or wrong there is right or wrong on a GPU too, as far as the translation is exact; how fast it is there
says nothing of a GPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warpwright.errors import UsageError

CUDA_HOME = None
"""As torch says it on a machine without the toolkit."""

Texts = str | Sequence[str] | None


def load_inline(
    name: str,
    cpp_sources: Texts = None,
    cuda_sources: Texts = None,
    functions: str | Sequence[str] | Mapping[str, str] | None = None,
    extra_include_paths: Sequence[str] | None = None,
    **options: Any,
) -> Any:
    """Build an extension as torch's function of this name does. Without CUDA sources it is torch's; compiler and linker flags are left aside."""
    from torch.utils import cpp_extension

    cuda = _texts(cuda_sources)
    if not any(cuda):
        return cpp_extension.load_inline(name, cpp_sources, None, functions=functions, extra_include_paths=extra_include_paths, **options)  # type: ignore[arg-type]
    names = [functions] if isinstance(functions, str) else list(functions or ())
    text = "\n".join([*_texts(cpp_sources), *cuda])
    return _compile(text, names, f"{name}.cu", [Path(path) for path in extra_include_paths or ()])


def load(name: str, sources: str | Sequence[str], extra_include_paths: Sequence[str] | None = None, **options: Any) -> Any:
    """Build an extension from files as torch's function of this name does."""
    paths = [Path(source) for source in ([sources] if isinstance(sources, str) else sources)]
    if not any(path.suffix == ".cu" for path in paths):
        from torch.utils import cpp_extension

        return cpp_extension.load(name, [str(path) for path in paths], extra_include_paths=extra_include_paths, **options)  # type: ignore[arg-type]
    missing = [str(path) for path in paths if not path.is_file()]
    if missing:
        raise UsageError(f"expected the source files {', '.join(missing)}, saw none there")
    folders = [*(Path(path) for path in extra_include_paths or ()), *(path.parent for path in paths)]
    ordered = sorted(paths, key=lambda path: path.suffix == ".cu")  # declarations first
    return _compile("\n".join(path.read_text() for path in ordered), (), f"{name}.cu", folders)


def library(text: str, name: str) -> Any:
    """Build a CUDA source with host entries of C linkage for the CPU and load it; `ww_last_error()` tells of launches that failed."""
    from warpwright import native
    from warpwright.domains.transpile.launch.library import built
    from warpwright.domains.transpile.program import compile_text

    program = compile_text(text + _LAST_ERROR, name, host=True)
    try:
        return native.load(built(program.source))
    except native.BuildError:
        program.check()  # raises with the place in the CUDA text, where that is what the compiler refuses
        raise


_LAST_ERROR = '\nextern "C" int ww_last_error() { return (int)cudaGetLastError(); }\n'


def _compile(text: str, names: Sequence[str], file_name: str, folders: Sequence[Path]) -> Any:
    from warpwright.domains.transpile import extension  # and torch with it: whoever only asks has_cuda() waits for neither

    return extension.compile_extension(text, names, file_name, folders=folders)


def _texts(sources: Texts) -> list[str]:
    return [sources] if isinstance(sources, str) else list(sources or ())
