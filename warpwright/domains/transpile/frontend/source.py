"""Read a CUDA source: macros expanded, own includes inlined, system includes set aside, every offset mapped to its file and line."""

from __future__ import annotations

import bisect
import functools
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from warpwright import native
from warpwright.domains.transpile.errors import Refusal
from warpwright.domains.transpile.frontend import ptx, scan, tensor_cores
from warpwright.domains.transpile.frontend.scan import Kernel, LaunchSite, Piece, Token
from warpwright.domains.transpile.frontend.text import clocks, groups, returns, shifts, system_macros, typenames

VERSIONS = ("CUDART_VERSION=12000", "CUDA_VERSION=12000")
RUNTIME_GUARDS = ("__DRIVER_TYPES_H__", "__CUDA_RUNTIME_H__", "__CUDA_RUNTIME_API_H__", "__VECTOR_TYPES_H__")
DRIVER_GUARD = "__cuda_cuda_h__"
_COMPILER = ("__CUDACC_VER_MAJOR__=12", "__CUDACC_VER_MINOR__=0", "__CUDACC_VER_BUILD__=0")
DEFINES = ("__CUDACC__=1", "__NVCC__=1", "__CUDA_ARCH__=800", *_COMPILER, *VERSIONS, *RUNTIME_GUARDS, DRIVER_GUARD)
"""What nvcc 12 for sm_80 defines, as far as sources ask for it, and the guards of the headers that it includes by itself."""

HOST_SOURCES = (".c", ".cc", ".cpp", ".cxx")
"""Sources that nvcc leaves to the host's compiler: they see of CUDA what they include."""
_DEVICE = re.compile(r"\b__(global|device)__\b|<<<")
_CUDA = re.compile(r"__global__|__device__|<<<|\bcuda[A-Z]\w+\s*\(|\b(cublas|curand)[A-Z]\w+\s*\(")
_WITHOUT_RUNTIME = re.compile(r"^(nvrtc|nvtx|nvToolsExt|nv/|helper_|math_constants|cuComplex)")
"""Headers of CUDA that do not bring the runtime's."""

PROVIDED = re.compile(
    r"^(cuda|cuda_runtime|cuda_runtime_api|device_launch_parameters|vector_types|vector_functions|math_functions|device_functions|math_constants"
    r"|cuda_fp16|cuComplex|cuda_bf16|cooperative_groups|cooperative_groups/reduce|mma|cuda_pipeline|cuda_profiler_api|device_types|driver_types|helper_cuda|cuda_gl_interop|sm_\w+"
    r"|cuda_device_runtime_api|crt/\w+|cuda_pipeline_primitives|cuda_texture_types|texture_fetch_functions|helper_functions|helper_math|cuda_awbarrier_primitives"
    r"|builtin_types|host_defines|host_config|device_atomic_functions|vector_functions|surface_types|texture_types|channel_descriptor|library_types|cuda_fp8|cuda_fp4"
    r"|cudaTypedefs|nv_decode|cooperative_groups/\w+)(\.h|\.hpp)?$"
)
"""CUDA headers whose content the runtime gives (or whose absence the C++ compiler reports)."""

_HELPER = re.compile(r"\bhelper_\w+\.h$")
"""The CUDA samples' own helpers: taken where they are there, whatever the runtime has of them."""

_TIMER = Path(__file__).parents[1] / "runtime" / "helper" / "helper_timer.h"
HELPERS = {"helper_timer.h": _TIMER, "helper_functions.h": _TIMER}
"""Headers of the CUDA samples that programs leave out -> ours."""

LIBRARY = re.compile(r"^(thrust/|cub/|cublas|cudnn|cufft|cusparse|cusolver|curand|nccl|cutlass|nvml|nvrtc|nvtx|nvToolsExt|cuda/[\w/]+$|nv/|npp)")
"""Headers of libraries; those of libcu++ have no suffix: `cuda/api.hpp` is somebody's own."""
GUARDS = {"cublas": "CUBLAS_API_H_", "curand": "CURAND_H_"}
"""Beginning of a library's header -> what helper_cuda.h asks for before it names that library's errors: those that the runtime has."""
GIVEN = {"thrust/": "THRUST_VERSION 200200", "cub/": "CUB_VERSION 200200"}
"""Beginning of a library's header -> the macro that says which it is, and its value: that of CUDA 12.2's."""
TARGETS = (
    "NV_IS_HOST 0", "NV_IS_DEVICE 1", "NV_NO_TARGET 0", "NV_ANY_TARGET 1",
    *(f"NV_PROVIDES_SM_{arch} {int(arch <= 80)}" for arch in (35, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90)),
    "WW_WITHOUT_PARENTHESES(...) __VA_ARGS__", "WW_TARGET_1(THEN, ...) WW_WITHOUT_PARENTHESES THEN",
    "WW_TARGET_0(THEN, ELSE, ...) WW_WITHOUT_PARENTHESES ELSE", "WW_TARGET(CONDITION, ...) WW_TARGET_##CONDITION(__VA_ARGS__, ())",
    "NV_IF_TARGET(CONDITION, ...) WW_TARGET(CONDITION, __VA_ARGS__)", "NV_IF_ELSE_TARGET(CONDITION, ...) WW_TARGET(CONDITION, __VA_ARGS__)",
)  # fmt: skip
"""The macros of <nv/target>: all code is device code of sm_80, as `__CUDA_ARCH__` says."""
BYTE_ORDER_MARK = "\ufeff"
"""What editors put in front of a file; a compiler skips it there, and nowhere else."""
TORCH = re.compile(r"^(torch/|ATen/|c10/|pybind11/|Python\.h)")

_APART = re.compile(r"<<(\s*)<([^;{}]*?)>>(\s*)>(\s*\()")
"""A launch that may have blanks in its brackets, as some formatters leave it, or in one of them; nvcc takes it."""
_SHIFTED = re.compile(r"\(\s*-\s*(\d{1,9})\s*<<\s*(\w+)\s*\)")
"""A negative number shifted, which is no constant of C++17; nvcc takes it for one."""
_SYMBOL = re.compile(r"(\bcuda(?:Memcpy(?:To|From)Symbol(?:Async)?|GetSymbolAddress)\s*\((?:[^(),;]*,)??\s*)\"(\w+)\"")
"""A symbol by its name in quotes, as CUDA took it until version 4; here it is the variable."""
_MARKER = re.compile(r'^# (\d+) "([^"]*)"[^\n]*$', re.M)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"][^\n]*$', re.M)
_BY_MACRO = re.compile(r"^[ \t]*#[ \t]*include[ \t]+([A-Za-z_]\w*(?:\([^\n]*\))?)[ \t]*(?://[^\n]*)?$", re.M)
_HAS_INCLUDE = re.compile(r'\b__has_include\s*\(\s*([<"])([^>"\n]+)[>"]\s*\)')
_NAMED = re.compile(r"\bww_include_(\d+)[ \t]*(<[^>\n]*>|\"[^\"\n]*\"|[^\n]*)")
_KEPT = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+ww_(include|aside)[ \t]+([<\"][^>\"\n]+[>\"])[^\n]*$", re.M)


@dataclass(frozen=True)
class Source:
    """A translation unit after the preprocessor."""

    name: str
    """Name of the file that was given."""
    text: str
    """Expanded text; line markers are gone."""
    starts: tuple[int, ...]
    """Offsets in `text` at which `places` begin, ascending."""
    places: tuple[tuple[str, int], ...]
    """File and line of the text at the same index of `starts`."""
    includes: tuple[str, ...]
    """System headers to include in the output, in order."""
    set_aside: tuple[tuple[str, int], ...] = ()
    """Library and framework headers that were met, with the line."""
    headers: tuple[str, ...] = ()
    """All headers that are not own ones, CUDA's and libraries' among them, with their brackets or quotes, where an #if's branch is taken."""
    spelled: Mapping[str, str] = field(default_factory=dict)
    """Instance of a template that was asked for -> the same without macros."""

    @functools.cached_property
    def has_cuda(self) -> bool:
        """Whether the text, or a header of its own, has kernels, device code, calls of the runtime or includes of CUDA's headers."""
        named = (header.strip('<>"') for header in self.headers)
        return any(PROVIDED.match(name) or LIBRARY.match(name) for name in named) or _CUDA.search(self.text) is not None

    @functools.cached_property
    def tokens(self) -> Sequence[Token]:
        """The tokens of the text, without blanks and comments."""
        return scan.tokens(self.text)

    @functools.cached_property
    def pieces(self) -> Sequence[Piece]:
        """The top-level declarations of the text."""
        return scan.pieces(self.tokens)

    @functools.cached_property
    def kernels(self) -> Sequence[Kernel]:
        """Every kernel that the text declares or defines, in order."""
        return [kernel for kernel in self._all_kernels if not kernel.friend]

    @functools.cached_property
    def friends(self) -> Sequence[Kernel]:
        """Every declaration of a kernel that a class makes its friend."""
        return [kernel for kernel in self._all_kernels if kernel.friend]

    @functools.cached_property
    def _all_kernels(self) -> Sequence[Kernel]:
        return scan.kernels(self.text, self.tokens)

    @functools.cached_property
    def launches(self) -> Sequence[LaunchSite]:
        """Every launch in the text, in order."""
        return scan.launches(self.text, self.tokens, self.kernels)

    def kernel_of(self, offset: int) -> Kernel | None:
        """Return the kernel in which an offset in `text` lies."""
        return next((k for k in self.kernels if k.start <= offset < k.end), None)

    def definition(self, name: str, start: int) -> tuple[int, int, str]:
        """Return where the definition of the function that starts at an offset begins and ends, and its text up to the body."""
        kernel = self.kernel_of(start)
        parameters = re.compile(rf"\b{re.escape(name)}\s*(?:<[^;{{}}()]*>\s*)?\(").search(self.text, start)  # `sum<int>(` of a specialisation
        assert parameters is not None
        begin, head_end = (start, scan.closing(self.text, parameters.end() - 1)) if kernel is None else (kernel.start, kernel.head_end)
        opening = self.text.index("{", head_end)
        rest = scan.tokens(self.text[opening:])
        return begin, opening + rest[scan.matching(rest, 0, "{", "}")].end, self.text[begin:opening].rstrip()

    @functools.cached_property
    def _ends(self) -> list[int]:
        """Offsets of the ends of lines."""
        return [match.start() for match in re.finditer("\n", self.text)]

    @functools.cached_property
    def _before(self) -> list[int]:
        """Ends of lines in front of each of `starts`."""
        return [bisect.bisect_left(self._ends, start) for start in self.starts]

    def place(self, offset: int) -> tuple[str, int]:
        """Return the file and line of an offset in `text`."""
        before = bisect.bisect_left(self._ends, offset)
        if not self.places:
            return self.name, 1 + before
        at = max(bisect.bisect_right(self.starts, offset) - 1, 0)
        file, line = self.places[at]
        return file, line + max(before - self._before[at], 0)

    def line(self, offset: int) -> int:
        """Return the line of an offset in `text`, in the file that it came from."""
        return self.place(offset)[1]


def read(
    text: str, name: str = "input.cu", defines: Sequence[str] = (), folders: Sequence[Path] = (), instances: Sequence[str] = ()
) -> Source:  # fmt: skip
    """Return the source after the preprocessor. `folders` are searched for files in quotes (and in <> when they are there).

    instances: of template kernels; macros in them are those of the text."""
    asked = "".join(f"\nww_instance_is({one})ww_end" for one in instances)
    includes_of, expanded = _included(text.removeprefix(BYTE_ORDER_MARK) + asked, name, defines, tuple(folders))
    spelled = dict(zip(instances, _INSTANCE.findall(expanded), strict=True))
    expanded = _INSTANCE.sub("", expanded)
    headers = [(match[1], match[2]) for match in _KEPT.finditer(expanded)]
    includes = [header[1:-1] for kind, header in headers if kind == "include"]
    _refuse_missing(expanded, name)
    written = ptx.translate(groups.desugar(_shared_addresses(_KEPT.sub("", expanded))))
    body, starts, places = _strip_markers(tensor_cores.with_functions(written, name))
    body = _APART.sub(r"<<<\1\2>>>\3\4", body)
    body = _SHIFTED.sub(_as_constant, body)
    body = _SYMBOL.sub(lambda match: f"{match[1]} {match[2]} " if _variable(match[2], body) else match[0], body)
    tokens = scan.tokens(body)
    each = (shifts.insertions(body, tokens), clocks.insertions(body), typenames.insertions(body, tokens), returns.insertions(tokens))
    inserted = sorted([one for found in each for one in found], key=lambda one: one[0])
    starts = [start + sum(len(word) for at, word in inserted if at < start) for start in starts] if inserted else starts
    met = tuple(dict.fromkeys(header for _, header in headers))
    text, includes = shifts.put_in(body, inserted), list(dict.fromkeys(includes))
    return Source(name, text, tuple(starts), tuple(places), tuple(includes), tuple(includes_of.aside), met, spelled)


def _as_constant(match: re.Match[str]) -> str:
    """Return `(-1 << n)` as an expression of the same value and type that C++17 takes for a constant."""
    in_a_string = match.string.count('"', match.string.rfind("\n", 0, match.start()) + 1, match.start()) % 2
    return match[0] if in_a_string else f"((int)(-{match[1]}u << {match[2]}))"


_INSTANCE = re.compile(r"\bww_instance_is\((.*?)\)ww_end", re.S)


def _included(text: str, name: str, defines: Sequence[str], folders: tuple[Path, ...]) -> tuple[_Includes, str]:
    """Return a text with its includes, after the preprocessor. An include whose header a macro names (`#include SETTINGS`) takes a round more: the
    preprocessor says which it is, and the next round has its text."""
    known: dict[tuple[str, int], str] = {}
    places: list[tuple[str, int]] = []
    host = name.endswith(HOST_SOURCES) and not _DEVICE.search(text)
    for _ in range(40):
        includes = _Includes(known, places, host)
        given = [*(VERSIONS if host else DEFINES), *defines]
        whole = includes.replaced(text, name, folders)
        expanded = _expand(whole, name, [*given, *system_macros.asked(whole, {one.partition("=")[0] for one in given})])
        fresh = {places[int(number)]: header.strip() for number, header in _NAMED.findall(expanded) if places[int(number)] not in known}
        for (file, line), header in fresh.items():
            if header[:1] not in ("<", '"'):
                why = f"expected a header's name for the macro {header}, saw none"
                raise Refusal(file, line, "front-end", why, "give it with --define NAME=VALUE")
        if not fresh:
            break
        known |= {place: header.replace(" ", "") for place, header in fresh.items()}
    return includes, _NAMED.sub("", expanded)


def _shared_addresses(text: str) -> str:
    """Give `s[~i]` its sign: addresses of shared memory have 32 bits on a GPU, so with an unsigned `i` it stands before `s`.

    Also of other arrays in such a source, since pointers do not say where they point: they mean the same up to 2^31 elements.
    """
    return re.sub(r"\[\s*~\s*(\w+)\s*\]", r"[(int)~\1]", text) if "__shared__" in text else text


def _variable(name: str, text: str) -> bool:
    return re.search(rf"__(constant|device)__[^;({{]*\b{name}\b", text) is not None


class _Includes:
    """The includes of one source. A header with guards is met again and again: what the file system says of it is asked once."""

    def __init__(self, known: Mapping[tuple[str, int], str], places: list[tuple[str, int]], host: bool) -> None:
        self.known = known
        """File and line of an include by a macro -> the header that it is."""
        self.places = places
        """File and line of each that was met; the index stands in the text."""
        self.host = host
        """Whether the source is one for the host's compiler."""
        self.aside: list[tuple[str, int]] = []
        """Library and framework headers that were met, with the line."""
        self.seen: set[Path] = set()
        """Files that are included once only."""
        self.around: list[Path] = []
        """The files whose text is being taken: one that is included by what it includes is not taken in itself, by its guard."""
        self.located = functools.cache(_located)
        self.system = functools.cache(_of_system)
        self.file = functools.cache(_file)

    def replaced(self, text: str, name: str, folders: tuple[Path, ...], depth: int = 0) -> str:
        """Replace each: an own file by its text between line markers, a system header by a pragma, which stays where an #if's branch is taken."""

        def one(match: re.Match[str]) -> str:
            header, line = match[2], text.count("\n", 0, match.start()) + 1
            spelled = f"<{header}>" if match[1] == "<" else f'"{header}"'
            path = None if match[1] == "<" and self.system(header) else self.located(header, folders)  # `<math.h>` beside one's own math.h
            ours = path is not None and path in HELPERS.values()
            if path is not None and not ours and _is_vendored(header, path):
                path = None
            if path is not None and (ours or not PROVIDED.match(header) or _HELPER.search(header)):
                resolved, own, once = self.file(path)
                if resolved in self.seen or (resolved in self.around and _is_guarded(own)):
                    return ""
                if once:
                    self.seen.add(resolved)
                if depth > 50:
                    raise Refusal(name, line, "front-end", f"includes nest more than 50 deep at {header!r}")
                self.around.append(resolved)
                inner = self.replaced(own, str(path), tuple(dict.fromkeys([path.parent, *folders])), depth + 1)
                self.around.pop()
                return f'# 1 "{path}"\n{inner}\n# {line + 1} "{name}"'
            if LIBRARY.match(header) or TORCH.match(header):
                self.aside.append((header, line))
                guards = [guard for library, guard in GUARDS.items() if header.startswith(library)]
            elif not PROVIDED.match(header.rpartition("/")[2] if header.startswith("/") else header):  # a toolkit's, by its whole path
                return f"#pragma ww_include {spelled}"
            else:
                guards = []
            guards += [given for library, given in GIVEN.items() if header.startswith(library)]
            if self.host and not TORCH.match(header) and not _WITHOUT_RUNTIME.match(header):
                guards += [DRIVER_GUARD] if header == "cuda.h" else RUNTIME_GUARDS
            aside = f"#pragma ww_aside {spelled}"
            targets = TARGETS if header.startswith(("nv/target", *GIVEN, "cuda/")) else ()
            guards += targets
            given = [f"#undef {guard.split(' ')[0].split('(')[0]}\n#define {guard}" for guard in guards]
            return "\n".join([aside, *given, f'# {line + 1} "{name}"']) if guards else aside

        def named(match: re.Match[str]) -> str:
            """Leave the macro to the preprocessor, or put in the header that it is known to be."""
            place = name, text.count("\n", 0, match.start()) + 1
            if place in self.known:
                return f"#include {self.known[place]}"
            if place not in self.places:
                self.places.append(place)
            return f"ww_include_{self.places.index(place)} {match[1]}"

        def there(match: re.Match[str]) -> str:
            """Answer `__has_include(<cub/cub.cuh>)`; of the system's headers the preprocessor knows itself, also in a macro."""
            header = match[2]
            return "1" if self.located(header, folders) or PROVIDED.match(header) or LIBRARY.match(header) else match[0]

        text = _HAS_INCLUDE.sub(there, text)
        return _PRAGMA_ONCE.sub("", _INCLUDE.sub(one, _BY_MACRO.sub(named, text)))


VENDORED = {"cub": "util_ptx.cuh", "thrust": "detail/config.h"}
"""Libraries of which the runtime has its own, since theirs is made for a GPU -> a file of theirs, of which a copy may lie beside a program."""


def _is_vendored(header: str, path: Path) -> bool:
    """Say whether a header is of a copy of CUB or Thrust."""
    library, slash, rest = header.partition("/")
    return bool(slash) and library in VENDORED and (path.parents[rest.count("/")] / VENDORED[library]).is_file()


_GUARD = re.compile(
    r"(?:\s|//[^\n]*\n|/\*.*?\*/)*#\s*if(?:ndef\s+(?P<name>\w+)|\s*!\s*defined\s*\(?\s*(?P<other>\w+)\s*\)?)[^\n]*\n"
    r"(?:\s|//[^\n]*\n|/\*.*?\*/)*#\s*define\s+(?:(?P=name)|(?P=other))\b",
    re.S,
)
"""A header that defines a name first of all, unless it is defined."""
_PRAGMA_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once[^\n]*$", re.M)


def _is_guarded(text: str) -> bool:
    """Say whether a header is nothing where it is included by what it includes: all of it is within its guard, which has no other branch."""
    found = _GUARD.match(text)
    if found is None:
        return False
    bare, depth = _COMMENTS.sub(" ", text[found.end() :]), 1
    for directive in _CONDITIONAL.finditer(bare):
        depth += {"if": 1, "en": -1}.get(directive[1][:2], 0)
        if depth == 0:
            return not bare[directive.end() :].strip()
        if depth == 1 and directive[1].startswith("el"):
            return False
    return False


_COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
_CONDITIONAL = re.compile(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b[^\n]*", re.M)


def _of_system(header: str) -> bool:
    """Say whether an include in angle brackets means a header of the compiler's, not one that lies beside the file by the same name."""
    return any((folder / header).is_file() for folder in _system_folders())


def _located(header: str, folders: tuple[Path, ...]) -> Path | None:
    """Return the file that an include means, if it is an own one."""
    return next((folder / header for folder in folders if (folder / header).is_file()), None) or HELPERS.get(header)


def _file(path: Path) -> tuple[Path, str, bool]:
    """Return a header's real path, its text, and whether it is included once only."""
    text = path.read_text(errors="replace").removeprefix(BYTE_ORDER_MARK)
    return path.resolve(), text, re.search(r"^\s*#\s*pragma\s+once", text, re.M) is not None


def _expand(text: str, name: str, defines: Sequence[str]) -> str:
    path, _ = native.compiler()
    with tempfile.TemporaryDirectory() as folder:
        unexpanded = Path(folder, "source.cu")
        unexpanded.write_text(f'# 1 "{name}"\n{text}')
        options = ["-E", "-C", "-std=c++17", "-x", "c++", *(f"-D{define}" for define in defines)]
        done = subprocess.run([path, *options, str(unexpanded)], capture_output=True, text=True, timeout=120, errors="replace")
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[-300:])
        error = re.match(r"([^:]+):(\d+):(?:\d+:)?\s*(?:fatal )?error:\s*(.*)", first)
        file, line, reason = (error[1], int(error[2]), error[3]) if error else (name, 1, first)
        raise Refusal(file, line, "front-end", f"the preprocessor does not accept it: {reason}", "give missing macros with --define NAME=VALUE")
    return done.stdout


def _refuse_missing(expanded: str, name: str) -> None:
    """Raise for a header that is neither beside the source nor the compiler's."""
    for match in _KEPT.finditer(expanded):
        kind, header = match[1], match[2][1:-1]
        if kind == "aside" or any((folder / header).is_file() for folder in _system_folders()):
            continue
        before = list(_MARKER.finditer(expanded, 0, match.start()))
        file, line = (before[-1][2], int(before[-1][1]) - 1 + expanded.count("\n", before[-1].end(), match.start())) if before else (name, 1)
        raise Refusal(file, line, "front-end", f"expected the header {header}, saw none", "give its folder with --include")


@functools.cache
def _system_folders() -> tuple[Path, ...]:
    """Return where the C++ compiler looks for headers."""
    path, _ = native.compiler()
    done = subprocess.run([path, "-E", "-v", "-x", "c++", os.devnull], capture_output=True, text=True, timeout=60, errors="replace")
    listed = done.stderr.partition("search starts here:\n#include <")[2].partition("End of search list")[0]
    return tuple(Path(line.strip()) for line in listed.splitlines()[1:] if line.strip())


def _strip_markers(text: str) -> tuple[str, list[int], list[tuple[str, int]]]:
    """Return the text without line markers, and what they said."""
    pieces: list[str] = []
    starts: list[int] = []
    places: list[tuple[str, int]] = []
    length, at, skipping = 0, 0, False
    for marker in _MARKER.finditer(text):
        if not skipping:
            length += _keep(pieces, text[at : marker.start()])
        at = marker.end() + 1
        skipping = marker[2].startswith("<") or marker[2].endswith("stdc-predef.h")
        starts.append(length)
        places.append((marker[2], int(marker[1])))
    if not skipping:
        length += _keep(pieces, text[at:])
    return "".join(pieces), starts, places


def _keep(pieces: list[str], piece: str) -> int:
    pieces.append(piece)
    return len(piece)
