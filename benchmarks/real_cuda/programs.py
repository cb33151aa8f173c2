"""What the programs of a folder of CUDA code consist of: read from CMakeLists.txt, a Makefile's dry run, or a script or README that calls nvcc.

Where none says: one a source with a main, with the sources whose headers it includes."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.hecbench import load
from benchmarks.real_cuda import generated

SOURCES = (".cu", ".cpp", ".cc", ".cxx", ".c")

SCOPE = {
    "graphics": r"^(GL|GLES\d|EGL|GLUT|GLFW|X11|OpenGL|vulkan|directx|d3d\w*|dxgi\w*)\b"
    r"|^(helper_gl|cudaEGL|cuda_gl_interop|rendercheck_gl|glut|d3dx12)\.h",
    "a library without a CPU meaning here": r"^(cufft\w*|npp\w*|nvjpeg\w*|cusolver\w*|cusparse\w*|cudnn\w*|nccl|nvsci\w*|cudla|nvmedia\w*|nvJitLink"
    r"|nvvm|mpi|cublasXt|FreeImage|cutensor\w*|cusolverdx\w*|nvml)(\.h|\.hpp)?$",
    "code made for a GPU at run time": r"^(nvPTXCompiler|cuda_drvapi_dynlink\w*)\.h",
}
"""Why a program is out of scope -> the headers that show it."""

CALLS = {
    "code made for a GPU at run time": r"\bcuLinkCreate\s*\(",
    "more than one process": r"\bcuda(Ipc\w+Handle|MemPoolExport\w+)\s*\(|\bcuMem(Ex|Im)port\w+\s*\(",
}
"""The same, by calls in the sources."""


@dataclass(frozen=True)
class Program:
    """How one program is built."""

    name: str
    folder: Path
    sources: tuple[Path, ...]
    folders: tuple[Path, ...]
    """Where its own headers are looked for."""
    defines: tuple[str, ...]
    modules: tuple[tuple[Path, str], ...] = ()
    """Kernels that it loads at run time: source, and the name of the file that is made of it."""
    toolkit: tuple[str, ...] = ()
    """Headers of the CUDA toolkit that its build copies into its folder: it looks for them there before it compiles kernels at run time."""
    libraries: tuple[str, ...] = ()
    """-l flags of its Makefile, but CUDA's."""

    @property
    def third(self) -> int:
        """Which third of the programs it belongs to, by its name alone: 0 is the one that is looked at last."""
        return int(hashlib.sha256(self.name.encode()).hexdigest(), 16) % 3

    @property
    def standard(self) -> str:
        """The C++ standard that its build file asks for; C++17 unless that is a later one."""
        files = (folder / name for folder in (self.folder, *self.folder.parents[:3]) for name in ("CMakeLists.txt", "Makefile", "makefile"))
        text = "\n".join(file.read_text(errors="replace") for file in files if file.is_file())
        return "c++20" if re.search(r"-std=(?:c|gnu)\+\+(?:20|2a|23)|\bcxx_std_2[03]\b|_STANDARD\s+2[03]\b", text) else "c++17"

    def closure(self) -> dict[Path, str]:
        """Return the texts of the sources and of the own headers that they include, and that those include."""
        texts: dict[Path, str] = {}
        todo = list(self.sources)
        while todo:
            path = todo.pop()
            texts[path] = path.read_text(errors="replace")
            for name in _INCLUDE.findall(texts[path]):
                found = next((f for f in ((folder / name).resolve() for folder in (path.parent, *self.folders)) if f.is_file()), None)
                todo += [found] if found is not None and found not in texts else []
        return texts

    def outside(self) -> str:
        """Return why a CPU cannot be asked to run it; empty where it can."""
        texts = self.closure()
        known = {one.partition("=")[0] for one in self.defines} | {name for text in texts.values() for name in _DEFINE.findall(text)}
        headers = {name for text in texts.values() for name in _INCLUDE.findall(live(text, known))}
        for why, pattern in SCOPE.items():
            if hit := next((one for one in sorted(headers) if re.search(pattern, one)), ""):
                return f"{why} ({hit})"
        bare = "\n".join(re.sub(r"//[^\n]*|/\*.*?\*/", "", texts[one], flags=re.S) for one in self.sources)
        return next((f"{why} ({hit[0].rstrip('( ')})" for why, pattern in CALLS.items() if (hit := re.search(pattern, bare))), "")


_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.M)

_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.M)
_CONDITION = re.compile(r"[ \t]*#[ \t]*(ifdef|ifndef|if|elif|else|endif)\b[ \t]*(defined\b)?[ \t]*\(?[ \t]*(\w*)[ \t]*\)?[ \t]*(.*)")


def live(text: str, known: Collection[str]) -> str:
    """Return the text without what stands under `#ifdef NAME` or `#if defined(NAME)` where nobody defines the name, as `ENABLE_CUDNN`.

    Names with an underscore in front and all other conditions count as true: compilers have names of their own.
    """
    kept: list[str] = []
    off: list[bool] = []
    for line in text.splitlines():
        match = _CONDITION.match(line)
        if match is None:
            if not any(off):
                kept.append(line)
            continue
        word, defined, name, rest = match.groups()
        if word in ("if", "ifdef", "ifndef"):
            alone = not rest.startswith(("&", "|", "=")) and re.match(r"[A-Za-z]", name) is not None
            off.append(alone and (word == "ifdef" or (word == "if" and defined is not None)) and name not in known)
        elif off and word == "endif":
            off.pop()
        elif off:
            off[-1] = False
    return "\n".join(kept)


_MAIN = re.compile(r"\bmain\s*\(")
_TOOLKIT = re.compile(r"\$\{CUDA_INCLUDE_DIR\}/(\w+\.h)\b")


def find(root: Path) -> list[Program]:
    """Return the programs of a folder, by name."""
    root = root.resolve()
    found: dict[str, Program] = {}
    generated.write(sorted(root.rglob("CMakeLists.txt")), root)
    for program in _of_cmakes(sorted(root.rglob("CMakeLists.txt")), root):
        found.setdefault(program.name, program)
    known = {source for program in found.values() for source in program.sources}
    for program in _of_makes(sorted(root.rglob("[Mm]akefile"))):
        if not known.issuperset(program.sources):
            found.setdefault(program.name, program)
    known = {source for program in found.values() for source in program.sources}
    for program in _of_scripts(root):
        if not known & set(program.sources):
            found.setdefault(program.name, program)
    planned = {program.folder for program in found.values()}
    loose: set[str] = set()
    for source in sorted(root.rglob("*.cu")):  # where nothing says how it is built
        if not planned & set(source.parents) and _MAIN.search(source.read_text(errors="replace")):
            name = str(source.relative_to(root).with_suffix(""))
            loose |= {name} - found.keys()
            found.setdefault(name, Program(name, source.parent, (source,), (source.parent,), ()))
    whole = [found[name] for name in sorted(found) if any(_MAIN.search(one.read_text(errors="replace")) for one in found[name].sources)]
    headers: dict[str, list[Path]] = {}
    for file in sorted(root.rglob("*")):
        if file.suffix in HEADERS and file.is_file():
            headers.setdefault(file.name, []).append(file.resolve())
    whole = [_with_headers(program, headers) for program in whole]
    return [_with_neighbours(program) if program.name in loose else program for program in whole]


HEADERS = (".h", ".hpp", ".hxx", ".cuh", ".hh", ".inl", ".inc", *SOURCES)


_SYSTEM = (Path("/usr/include"), Path("/usr/include/x86_64-linux-gnu"), Path("/usr/local/include"))


def _with_headers(program: Program, headers: Mapping[str, list[Path]]) -> Program:
    """Add the folders of headers that no folder of a program has and that the repository has in one place: the -I that its build file computes."""
    folders = list(program.folders)
    while True:
        texts = replace(program, folders=tuple(folders)).closure()
        names = [(path.parent, name) for path, text in texts.items() for name in _INCLUDE.findall(text)]
        missing = [name for own, name in names if not any((one / name).is_file() for one in (own, *folders, *_SYSTEM))]
        new = [folder for name in dict.fromkeys(missing) if (folder := _folder_of(name, headers)) and folder not in folders]
        if not new:
            return replace(program, folders=tuple(folders))
        folders += dict.fromkeys(new)


def _folder_of(name: str, headers: Mapping[str, list[Path]]) -> Path | None:
    """Return the one folder from which an include's path leads to a header; None where there are none or several."""
    parts = Path(name).parts
    found = {path.parents[len(parts) - 1] for path in headers.get(parts[-1] if parts else "", []) if path.parts[-len(parts) :] == parts}
    return found.pop() if len(found) == 1 else None


def _with_neighbours(program: Program) -> Program:
    """Add the sources beside the headers that a program includes, or in the src beside their include: `sum.cu` for `sum.cuh`, unless it is included
    itself or has a main."""
    sources = list(program.sources)
    while True:
        texts = replace(program, sources=tuple(sources)).closure()
        stems = {(path.parent, path.stem) for path in texts if path.suffix not in SOURCES}
        stems |= {(folder.parent / "src", stem) for folder, stem in stems if folder.name == "include"}
        beside = [folder / f"{stem}{suffix}" for folder, stem in sorted(stems) for suffix in SOURCES]
        new = [one for one in dict.fromkeys(beside) if one.is_file() and one not in texts and not _MAIN.search(one.read_text(errors="replace"))]
        if not new:
            return replace(program, sources=tuple(sources))
        sources += new


def _of_scripts(root: Path) -> list[Program]:
    """Return what scripts and READMEs call nvcc for, each named after its source with a main."""
    programs = []
    for file in sorted(one for pattern in ("*.sh", "README*") for one in root.rglob(pattern) if one.is_file()):
        lines = re.sub(r"\\\n", " ", file.read_text(errors="replace")).splitlines()
        calls = [found[0] for line in lines if (found := re.search(r"(?<![\w/.-])nvcc\s[^`]*", line))]
        for words in load.commands("\n".join(calls)):
            units = load.compiled(words, file.parent)
            main = next((unit.path for unit in units if _MAIN.search(unit.path.read_text(errors="replace"))), None)
            if main is not None and main.suffix == ".cu" and not {"-c", "-dc", "-ptx", "-cubin"} & set(words):
                programs.append(_linked(str(main.relative_to(root).with_suffix("")), file.parent, units, words))
    return programs


@dataclass(frozen=True)
class _Target:
    """What a target of a CMakeLists.txt has itself."""

    sources: tuple[Path, ...]
    folders: tuple[Path, ...]
    defines: tuple[str, ...]
    linked: tuple[str, ...]
    """Names of targets."""


def _of_cmakes(files: list[Path], root: Path) -> list[Program]:
    """Return the executables of CMakeLists.txt files, with the libraries that they are linked with, of whichever file.

    Read are literal sources, `aux_source_directory`, `file(GLOB)`, include folders and definitions.
    """
    texts = {file: re.sub(r"#[^\n]*", "", file.read_text(errors="replace")) for file in files}
    libraries: dict[str, _Target] = {}
    for file, text in texts.items():
        sets = _sets(text, file.parent, root)
        for name, rest in re.findall(r"\b(?i:(?:cuda_)?add_library)\s*\(\s*([\w.+:-]+)\s+([^()]*)\)", text):
            libraries.setdefault(name, _target(name, rest, sets, text, file.parent, root))
    return [program for file, text in texts.items() for program in _of_cmake(file, text, libraries, root)]


def _of_cmake(file: Path, text: str, libraries: dict[str, _Target], root: Path) -> list[Program]:
    """Return the executables of one CMakeLists.txt."""
    here = file.parent
    sets = _sets(text, here, root)
    modules = tuple(
        (_path("".join(sets[source]).strip('"'), here, root), "".join(sets[output]).strip('"').rpartition("/")[2])
        for output, source in re.findall(r"-o\s+\$\{(\w+)\}\s+-(?:fatbin|ptx|cubin)\s+\$\{(\w+)\}", text)
        if output in sets and source in sets
    )
    common = _common(here, root)
    programs = []
    for name, rest in re.findall(r"(?i:\b(?:cuda_)?add_executable)\s*\(\s*([\w${}.+-]+)\s+([^()]*)\)", text):
        project = re.search(r"\bproject\s*\(\s*(\w+)", text)
        name = project[1] if "$" in name and project else name
        parts = _with_libraries(_target(name, rest, sets, text, here, root), libraries)
        sources = tuple(dict.fromkeys(path for part in parts for path in part.sources))
        if sources:
            folders = tuple(dict.fromkeys([here, *common, *(folder for part in parts for folder in part.folders)]))
            defines = tuple(dict.fromkeys(define for part in parts for define in part.defines))
            programs.append(Program(name, here, sources, folders, defines, modules, tuple(_TOOLKIT.findall(text))))
    return programs


def _sets(text: str, here: Path, root: Path) -> dict[str, list[str]]:
    """Return the variables of a CMakeLists.txt and their words."""
    sets = {name: value.split() for name, value in re.findall(r"\bset\s*\(\s*(\w+)\s+([^()]*?)\)", text)}
    sets |= {name: value.split() for name, value in re.findall(r"\bfind_path\s*\(\s*(\w+)\s+\S+\s+(?:HINTS|PATHS)\s+([^()]*)\)", text)}
    for folder, name in re.findall(r"\baux_source_directory\s*\(\s*(\S+)\s+(\w+)\s*\)", text):
        sets[name] = [str(one) for one in sorted(_path(folder, here, root).glob("*")) if one.suffix in SOURCES]
    for kind, name, patterns in re.findall(r"\bfile\s*\(\s*(GLOB|GLOB_RECURSE)\s+(\w+)\s+([^()]*)\)", text):
        found = (one for pattern in patterns.split() for one in _globbed(_path(pattern, here, root), kind == "GLOB_RECURSE"))
        sets[name] = [str(one) for one in found if one.suffix in SOURCES]
    return sets


def _globbed(pattern: Path, deep: bool) -> list[Path]:
    folder = pattern.parent
    return sorted(folder.rglob(pattern.name) if deep else folder.glob(pattern.name)) if folder.is_dir() else []


def _target(name: str, rest: str, sets: dict[str, list[str]], text: str, here: Path, root: Path) -> _Target:
    """Return what a target has, by its own line and the commands about it."""
    words = [one for word in [*rest.split(), *_told("target_sources", name, text)] for one in sets.get(word.strip("\"${}"), [word])]
    sources = (path for word in words if word.endswith(SOURCES) and "$" not in _plain(word) and (path := _path(word, here, root)).is_file())
    folders = [one for word in _told("target_include_directories", name, text) for one in sets.get(word.strip("\"${}"), [word])]
    folders = [re.sub(r"^\$<BUILD_INTERFACE:(.*)>$", r"\1", one.strip('"')) for one in folders]
    defines = (one.removeprefix("-D") for one in _told("target_compile_definitions", name, text) if one not in ("PUBLIC", "PRIVATE", "INTERFACE"))
    return _Target(
        tuple(dict.fromkeys(sources)), _paths(folders, here, root), tuple(one for one in defines if "$" not in one),
        tuple(_told("target_link_libraries", name, text)),
    )  # fmt: skip


def _plain(word: str) -> str:
    return re.sub(r"\$\{(CMAKE_\w*SOURCE_DIR|PROJECT_SOURCE_DIR|CMAKE_CURRENT_LIST_DIR)\}", "", word)


def _with_libraries(target: _Target, libraries: dict[str, _Target]) -> list[_Target]:
    """Return a target and the libraries that it is linked with, and those they are linked with."""
    parts, todo, seen = [target], [*target.linked], set[str]()
    while todo:
        name = todo.pop(0)
        if name not in seen and (library := libraries.get(name) or libraries.get(name.rpartition("::")[2])):
            parts.append(library)
            todo += library.linked
        seen.add(name)
    return parts


def _told(command: str, target: str, text: str) -> list[str]:
    """Return the words of a command about a target."""
    return [word for line in re.findall(rf"\b{command}\s*\(\s*{re.escape(target)}\s+([^()]*)\)", text) for word in line.split()]


def _common(here: Path, root: Path) -> tuple[Path, ...]:
    """Return the include folders of a folder's CMakeLists.txt and of those above it, which it inherits."""
    found: tuple[Path, ...] = ()
    for folder in (here, *here.parents):
        file = folder / "CMakeLists.txt"
        if file.is_file():
            text = re.sub(r"#[^\n]*", "", file.read_text(errors="replace"))
            found += _paths(re.findall(r"\binclude_directories\s*\(([^()]*)\)", text), folder, root)
        if folder == root:
            break
    return found


def _path(word: str, here: Path, root: Path) -> Path:
    word = re.sub(r"\$\{(CMAKE_CURRENT_SOURCE_DIR|PROJECT_SOURCE_DIR|CMAKE_CURRENT_LIST_DIR)\}", str(here), word.strip('"'))
    return (here / re.sub(r"\$\{CMAKE_SOURCE_DIR\}", str(root), word)).resolve()


def _paths(lines: list[str], here: Path, root: Path) -> tuple[Path, ...]:
    found = [_path(word, here, root) for line in lines for word in line.split()]
    return tuple(one for one in found if one.is_dir())


Made = dict[str, list[load.Unit]]
"""Path of an object or archive, or a library's -l flag -> the sources in it."""


def _of_makes(files: list[Path]) -> list[Program]:
    """Return what Makefiles link from CUDA sources, by their dry runs (`make -n`); compilers are replaced by their names.

    They are read twice, as a program may be linked with a library that a later one makes.
    """
    said = [(file, _dry_run(file, "all") or _dry_run(file)) for file in files]
    made: Made = {}
    for file, lines in said:
        _of_make(file, lines, made)
    return [program for file, lines in said for program in _of_make(file, lines, made)]


def _of_make(file: Path, said: str, made: Made) -> list[Program]:
    """Return what one Makefile links, and add to `made` what it makes besides."""
    programs, folders = [], [file.parent]
    for line in re.sub(r"\\\n", " ", said).splitlines():
        here = folders[-1]
        for words in load.commands(line):  # each line has a shell of its own: a cd ends with it
            if "directory" in words[:-1] and words[0].startswith("make"):
                folders = [*folders, Path(words[-1])] if "Entering" in words else folders[:-1] or [file.parent]
            elif Path(words[0]).name == "cd" and len(words) > 1:
                here = (here / words[1]).resolve()
            elif Path(words[0]).name == "ar" or load.COMPILERS.match(Path(words[0]).name):
                programs += _of_call(words, here, made)
    return programs


def _of_call(words: list[str], here: Path, made: Made) -> list[Program]:
    """Return the program that a compiler's or archiver's call links, and add to `made` what it makes besides."""
    tool = Path(words[0]).name
    parts = [word if word.startswith("-l") else str((here / word).resolve()) for word in words[1:]]
    units = [*load.compiled(words, here), *(unit for part in parts for unit in made.get(part, []))]
    into = words[words.index("-o") + 1] if "-o" in words[:-1] else ""
    if tool == "ar":
        into = next((word for word in words[1:] if word.endswith(".a")), "")
    if tool == "ar" or {"-c", "-dc", "-dlink", "-shared", "--shared"} & set(words):
        into = into or (units[0].path.with_suffix(".o").name if units else "")
        made[str((here / into).resolve())] = units
        if library := re.match(r"lib(\w+)\.(?:a|so)\b", Path(into).name):
            made[f"-l{library[1]}"] = units
    elif into and any(unit.path.suffix == ".cu" for unit in units):
        return [_linked(Path(into).stem, here, units, [word for word in words if word not in made])]
    return []


def _linked(name: str, here: Path, units: list[load.Unit], words: list[str]) -> Program:
    """Return the program of a line that links; names that were defined for some of its sources hold for all."""
    sources = tuple(dict.fromkeys(unit.path for unit in units))
    folders = tuple(dict.fromkeys(folder for unit in units for folder in unit.folders))
    defines = tuple(dict.fromkeys(define for unit in units for define in unit.defines))
    return Program(name, here, sources, folders, defines, libraries=tuple(dict.fromkeys(word for word in words if _LIBRARY.match(word))))


_LIBRARY = re.compile(r"-l(?!cu|nv|pthread$|dl$|rt$|m$|stdc\+\+$)\w+$")
"""Of a line that links: CUDA's libraries are part of what is translated, and some are linked always."""


def _dry_run(file: Path, *targets: str) -> str:
    """Return the commands of a Makefile; nothing where it does not know a target or takes too long.

    A Makefile that calls make (which a dry run does for real) is not followed, as the others are read themselves: one called itself without end.
    """
    command = ["make", "-n", "-B", "-k", "-w", "-f", file.name, "NVCC=nvcc", "CC=nvcc", "MAKE=:", *targets]
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, cwd=file.parent, text=True, errors="replace", start_new_session=True, **streams)  # type: ignore[call-overload]
    try:
        said, wrong = process.communicate(timeout=15)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return ""
    return "" if re.search(r"No rule to make target [`']all'", wrong) and targets else said
