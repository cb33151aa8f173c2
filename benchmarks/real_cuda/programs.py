"""What the programs of a folder of CUDA code consist of: read from CMakeLists.txt, from a Makefile's dry run, or else one a source with a main."""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from benchmarks.hecbench import load

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

    @property
    def third(self) -> int:
        """Which third of the programs it belongs to, by its name alone: 0 is the one that is looked at last."""
        return int(hashlib.sha256(self.name.encode()).hexdigest(), 16) % 3

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
    for file in sorted(root.rglob("CMakeLists.txt")):
        for program in _of_cmake(file, root):
            found.setdefault(program.name, program)
    known = {source for program in found.values() for source in program.sources}
    for file in sorted(root.rglob("[Mm]akefile")):
        for program in _of_make(file):
            if not known.issuperset(program.sources):
                found.setdefault(program.name, program)
    planned = {program.folder for program in found.values()}
    for source in sorted(root.rglob("*.cu")):  # where nothing says how it is built
        if not planned & set(source.parents) and _MAIN.search(source.read_text(errors="replace")):
            name = str(source.relative_to(root).with_suffix(""))
            found.setdefault(name, Program(name, source.parent, (source,), (source.parent,), ()))
    return [found[name] for name in sorted(found) if any(_MAIN.search(one.read_text(errors="replace")) for one in found[name].sources)]


def _of_cmake(file: Path, root: Path) -> list[Program]:
    """Return the executables of one CMakeLists.txt, with the libraries of the same file that they are linked with.

    Read are literal sources, `aux_source_directory`, include folders and definitions.
    """
    text = re.sub(r"#[^\n]*", "", file.read_text(errors="replace"))
    here = file.parent
    sets = {name: value.split() for name, value in re.findall(r"\bset\s*\(\s*(\w+)\s+([^()]*?)\)", text)}
    sets |= {name: value.split() for name, value in re.findall(r"\bfind_path\s*\(\s*(\w+)\s+\S+\s+(?:HINTS|PATHS)\s+([^()]*)\)", text)}
    for folder, name in re.findall(r"\baux_source_directory\s*\(\s*(\S+)\s+(\w+)\s*\)", text):
        sets[name] = [str(one) for one in sorted(_path(folder, here, root).glob("*")) if one.suffix in SOURCES]
    modules = tuple(
        (_path("".join(sets[source]).strip('"'), here, root), "".join(sets[output]).strip('"').rpartition("/")[2])
        for output, source in re.findall(r"-o\s+\$\{(\w+)\}\s+-(?:fatbin|ptx|cubin)\s+\$\{(\w+)\}", text)
        if output in sets and source in sets
    )
    common = _common(here, root)
    programs = []
    libraries = dict(re.findall(r"\badd_library\s*\(\s*([\w.+-]+)\s+([^()]*)\)", text))
    for name, rest in re.findall(r"(?i:\b(?:cuda_)?add_executable)\s*\(\s*([\w${}.+-]+)\s+([^()]*)\)", text):
        linked = [one for one in _told("target_link_libraries", name, text) if one in libraries]
        words = [one for part in (rest, *map(libraries.get, linked)) for word in (part or "").split() for one in sets.get(word.strip("${}"), [word])]
        sources = [path for word in words if word.endswith(SOURCES) and (path := _path(word, here, root)).is_file()]
        project = re.search(r"\bproject\s*\(\s*(\w+)", text)
        name = project[1] if "$" in name and project else name
        told = [word for one in (name, *linked) for word in _told("target_include_directories", one, text)]
        own = [one for word in told for one in sets.get(word.strip("${}"), [word])]
        defines = [word for one in (name, *linked) for word in _told("target_compile_definitions", one, text)]
        kept = tuple(one.removeprefix("-D") for one in defines if one not in ("PUBLIC", "PRIVATE", "INTERFACE") and "$" not in one)
        if sources:
            folders = (here, *common, *_paths(own, here, root))
            programs.append(Program(name, here, tuple(dict.fromkeys(sources)), folders, kept, modules, tuple(_TOOLKIT.findall(text))))
    return programs


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


def _of_make(file: Path) -> list[Program]:
    """Return what a Makefile links from CUDA sources, by its dry run (`make -n`); compilers are replaced by their names."""
    try:
        command = ["make", "-n", "-B", "-k", "-f", file.name, "NVCC=nvcc", "CC=nvcc", "all"]
        done = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, timeout=30, errors="replace")
    except subprocess.TimeoutExpired:
        return []
    programs = []
    for words in load.commands(done.stdout):
        if not load.COMPILERS.match(Path(words[0]).name) or "-o" not in words[:-1] or "-c" in words:
            continue
        units = load.compiled(words, file.parent)
        if any(unit.path.suffix == ".cu" for unit in units):
            name, folders = Path(words[words.index("-o") + 1]).stem, tuple(dict.fromkeys(f for u in units for f in u.folders))
            programs.append(Program(name, file.parent, tuple(u.path for u in units), folders, units[0].defines))
    return programs
