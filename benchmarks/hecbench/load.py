"""What HeCBench's programs consist of, read from their Makefiles (`make -n`): sources, flags, how they are run, and which features they use."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

COMPILERS = re.compile(r"^(nvcc|nvc\+\+|g\+\+|gcc|cc|c\+\+|clang\+\+|clang|icpx|icx|icc|mpicxx|mpiCC)$")
SOURCES = (".cu", ".cpp", ".cc", ".cxx", ".c")
TEXTS = (*SOURCES, ".cuh", ".h", ".hpp", ".inl", ".hh")

NOT_CORE = {
    "CUDA library": r"#\s*include\s*[<\"](thrust/|cub/|cublas|cudnn|cufft|curand|cusparse|cusolver|cutlass|cute/|nccl|nvml|nvtx|npp|cuda/|nv/|cuco|cudss)",  # noqa: E501
    "other library": r"#\s*include\s*[<\"](mpi\.h|nvshmem|opencv|boost/|tbb/|hdf5|gsl/|gdal|openacc|png\.h|jpeglib|fftw|cblas|mkl|lapack|torch/|c10/|ATen/|Eigen)",  # noqa: E501
    "cooperative groups": r"\bcooperative_groups\b|cudaLaunchCooperativeKernel",
    "inline PTX": r"\basm\b\s*(volatile)?\s*\(|__asm__",
    "textures and surfaces": r"\btexture\s*<|\bcudaTextureObject_t|\btex[123]D|\bsurf\dD|\bcudaSurfaceObject_t",
    "tensor cores": r"\bwmma\b",
    "graphs": r"\bcudaGraph",
    "driver interface": r"\bcuModule\w+|\bcuLaunchKernel|\bnvrtc",
}
"""The rule: a program is of the core features when it has a kernel and no text of it (comments aside) matches one of these.

The project's notes count 406 such programs (305 with a twin) by a rule that was not kept; this one gives 393 and 304 on the snapshot of
2026-05-19."""


@dataclass(frozen=True)
class Unit:
    """One source that the Makefile compiles."""

    path: Path
    folders: tuple[Path, ...]
    defines: tuple[str, ...]
    plain: bool = False
    """C, not C++."""
    cuda: bool = False
    """CUDA by its name or by -x cu."""


@dataclass(frozen=True)
class Plan:
    """How one program is built and run."""

    name: str
    folder: Path
    units: tuple[Unit, ...]
    arguments: tuple[str, ...]
    """Of the first line that runs the program."""
    problem: str = ""
    libraries: tuple[str, ...] = ()
    """-l flags, but CUDA's."""


def plan(folder: Path, *overrides: str) -> Plan:
    """Read the plan of a program from what `make -n run` would do."""
    name = folder.name.rpartition("-")[0]
    done = subprocess.run(["make", "-n", "-B", "run", *overrides], cwd=folder, capture_output=True, text=True, timeout=60, errors="replace")
    if done.returncode:
        return Plan(name, folder, (), (), f"its Makefile has no usable run: {(done.stderr.strip().splitlines() or [''])[-1][:150]}")
    units: dict[Path, Unit] = {}
    arguments: tuple[str, ...] | None = None
    libraries: list[str] = []
    where = folder
    for words in commands(done.stdout):
        if words[0] == "cd" and len(words) > 1:
            where = (where / words[1]).resolve()
        elif COMPILERS.match(Path(words[0]).name):
            for unit in compiled(words, where):
                units.setdefault(unit.path, unit)
            libraries += [word for word in words if re.match(r"-l(?!cu|nv)\w+$", word) and word not in libraries]
        elif re.match(r"^\.?/?[\w./-]+$", words[0]) and (words[0].startswith("./") or "/bin/" in words[0]) and not words[0].endswith((".o", ".sh")):
            arguments = tuple(words[1:]) if arguments is None else arguments
    if not units:
        return Plan(name, folder, (), arguments or (), "its Makefile shows no sources")
    problem = "" if arguments is not None else "its Makefile does not run it"
    return Plan(name, folder, tuple(units.values()), arguments or (), problem, tuple(libraries))


def commands(text: str) -> list[list[str]]:
    """Return the words of each command of a dry run, without variables set in front, redirections and launchers."""
    found = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        for part in re.split(r"&&|;|\|", line):
            try:
                words = shlex.split(part, comments=True)
            except ValueError:
                continue
            while words and re.match(r"^\w+=", words[0]):
                words = words[1:]
            cut = next((i for i, w in enumerate(words) if w.startswith((">", "2>", "&"))), len(words))
            if words[:cut]:
                found.append(words[:cut])
    return found


def compiled(words: list[str], folder: Path) -> list[Unit]:
    """Return the sources of one compiler call, with its -I and -D."""
    folders: list[str] = []
    defines: list[str] = []
    sources: list[Path] = []
    at = 1
    while at < len(words):
        word = words[at]
        for flag, into in (("-I", folders), ("-D", defines)):
            if word.startswith(flag):
                value = word[2:] or (words[at + 1] if at + 1 < len(words) else "")
                at += not word[2:]
                into.append(value)
        if word.endswith(SOURCES) and (folder / word).is_file():
            sources.append((folder / word).resolve())
        at += 1
    inside = tuple((folder / one).resolve() for one in folders)
    plain = Path(words[0]).name in ("gcc", "cc", "nvcc", "clang", "icx", "icc") and not {"cu", "c++"} & set(words)
    around = folder, *inside
    return [
        Unit(path, (path.parent, *around), tuple(defines), plain and path.suffix == ".c", path.suffix == ".cu" or "cu" in words)
        for path in dict.fromkeys(sources)
    ]


def with_headers(unit: Unit) -> str:
    """Return the text of a source and of the own headers that it includes, and that they include."""
    texts: dict[Path, str] = {}
    todo = [unit.path]
    while todo:
        path = todo.pop()
        texts[path] = path.read_text(errors="replace")
        for name in re.findall(r'#[ \t]*include[ \t]*"([^"]+)"', texts[path]):
            found = next((f for f in ((folder / name).resolve() for folder in (path.parent, *unit.folders)) if f.is_file()), None)
            todo += [found] if found is not None and found not in texts else []
    return "\n".join(texts.values())


def features(plan: Plan) -> list[str]:
    """Return which entries of NOT_CORE a program uses; `no kernel` when it has none."""
    texts = [f.read_text(errors="replace") for f in sorted(plan.folder.rglob("*")) if f.suffix in TEXTS and f.is_file()]
    texts += [with_headers(unit) for unit in plan.units]
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", "\n".join(texts), flags=re.S)
    found = [name for name, pattern in NOT_CORE.items() if re.search(pattern, text)]
    return found + ([] if "__global__" in text else ["no kernel"])


COUNT = re.compile(
    r"repeat|iter|^n?_?reps?$|trial|n_?runs|num_?runs|n_?times|loop_?count|warm_?up|n_?steps|num_steps|time_?steps|^num_?ts$|^n_?ts$", re.I
)


def shortened(plan: Plan, count: int) -> tuple[str, ...]:
    """Return the arguments with each that is a mere count of repetitions, by the name of the variable that takes it, lowered to `count`."""
    text = "\n".join(unit.path.read_text(errors="replace") for unit in plan.units)
    arguments = list(plan.arguments)
    for match in re.finditer(r"(\w+)\s*=\s*[^;=]{0,60}?argv\s*\[\s*(\d+)\s*\]", text):
        at = int(match[2]) - 1
        if COUNT.search(match[1]) and at < len(arguments) and arguments[at].isdigit():
            arguments[at] = str(min(int(arguments[at]), count))
    return tuple(arguments)


def missing_data(plan: Plan) -> str:
    """Return an argument that names a file that is not there; empty when there is none."""
    for one in plan.arguments:
        value = one.rpartition("=")[2]
        looks = "/" in value or re.search(r"\.(txt|dat|data|bin|bmp|ppm|pgm|png|jpg|mtx|csv|avi|fa|fasta|json|graph|in|gz|obj)$", value)
        if looks and not value.startswith("-") and not (plan.folder / value).exists() and not re.search(r"out", value, re.I):
            return value
    return ""
