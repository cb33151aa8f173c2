"""The binary interface of an MPI library that no shim is shipped for, as its own header tells it to a program that its compiler wrapper builds.

The handles, statuses and constants of the shims (shim/abi.hpp) are written anew from the numbers that it prints; the rest of their text is the same.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from warpwright.domains.mpi import core
from warpwright.errors import UsageError

_LONGEST_S = 60
_NUMBERS = {
    "proc_null": "PROC_NULL", "any_source": "ANY_SOURCE", "undefined": "UNDEFINED", "error_truncate": "ERR_TRUNCATE", "error_other": "ERR_OTHER",
    "error_in_status": "ERR_IN_STATUS", "error_pending": "ERR_PENDING", "order_c": "ORDER_C", "distribute_block": "DISTRIBUTE_BLOCK",
    "distribute_cyclic": "DISTRIBUTE_CYCLIC", "distribute_none": "DISTRIBUTE_NONE", "default_argument": "DISTRIBUTE_DFLT_DARG", "cartesian": "CART",
    "graph": "GRAPH", "distributed_graph": "DIST_GRAPH",
}  # fmt: skip
_COMBINERS = {
    "named": "NAMED", "duplicate": "DUP", "contiguous": "CONTIGUOUS", "vector": "VECTOR", "hvector": "HVECTOR", "indexed": "INDEXED",
    "hindexed": "HINDEXED", "indexed_block": "INDEXED_BLOCK", "hindexed_block": "HINDEXED_BLOCK", "structure": "STRUCT", "subarray": "SUBARRAY",
    "darray": "DARRAY", "f90_real": "F90_REAL", "f90_complex": "F90_COMPLEX", "f90_integer": "F90_INTEGER", "resized": "RESIZED",
}  # fmt: skip
_HANDLES = {
    "packed": ("Datatype", "PACKED"), "null_request": ("Request", "REQUEST_NULL"),
    "world": ("Comm", "COMM_WORLD"), "self": ("Comm", "COMM_SELF"), "null_comm": ("Comm", "COMM_NULL"),
}  # fmt: skip
_PLACES = {"status_ignore": "STATUS_IGNORE", "statuses_ignore": "STATUSES_IGNORE", "in_place": "IN_PLACE", "bottom": "BOTTOM"}
_FIELDS = {"source": "SOURCE", "tag": "TAG", "error": "ERROR"}
_SIZES = ("Datatype", "Request", "Comm", "Group", "Message", "Aint", "Count", "Status")


def _program() -> str:
    lines = [f'    printf("\\"{name}\\": %lld,\\n", (long long)(MPI_{macro}));' for name, macro in _NUMBERS.items()]
    lines += [f'    printf("\\"{name}\\": %lld,\\n", (long long)(MPI_COMBINER_{macro}));' for name, macro in _COMBINERS.items()]
    lines += [f'    printf("\\"sizeof {name}\\": %d,\\n", (int)sizeof(MPI_{name}));' for name in _SIZES]
    lines += [f'    printf("\\"{name}\\": %d,\\n", (int)offsetof(MPI_Status, MPI_{field}));' for name, field in _FIELDS.items()]
    lines += [f'    printf("\\"{name}\\": %d,\\n", dlsym(RTLD_NEXT, "MPI_{name}") != 0);' for name in core.OPTIONAL]
    lines += [f'    {{ MPI_{kind} handle = MPI_{name}; show("{ours}", &handle, sizeof handle); }}' for ours, (kind, name) in _HANDLES.items()]
    lines.append('    { const void* place = MPI_UNWEIGHTED; if (!dlsym(RTLD_DEFAULT, "MPI_UNWEIGHTED")) show("unweighted", &place, sizeof place); }')
    lines += [f'    {{ const void* place = MPI_{name}; show("{ours}", &place, sizeof place); }}' for ours, name in _PLACES.items()]
    return _PROGRAM.replace("@BODY@", "\n".join(lines))


_PROGRAM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static void show(const char* name, const void* value, size_t size) { /* a number, or the name of the object that lies at it */
    long long number = 0;
    Dl_info about;
    memcpy(&number, value, size);
    const int object = size == sizeof(void*) && number && dladdr((void*)number, &about) && about.dli_saddr == (void*)number && about.dli_sname;
    printf(object ? "\"%s\": \"%s\",\n" : "\"%s\": %lld,\n", name, object ? (long long)about.dli_sname : number);
}

int main(void) {
    Dl_info about;
    int (*version)(int*, int*) = (int (*)(int*, int*))dlsym(RTLD_NEXT, "MPI_Abi_get_version");
    int major = -1, minor = -1, initialised;
    MPI_Initialized(&initialised); /* a linker may leave out a library that nothing is called of */
    printf("{\n\"alignment\": %d,\n", (int)_Alignof(MPI_Status));
@BODY@
    if (version && version(&major, &minor)) major = -1;
    printf("\"standard\": %d,\n\"library\": \"%s\"}\n", major > 0, dladdr(dlsym(RTLD_NEXT, "MPI_Send"), &about) ? about.dli_fname : "");
    return 0;
}
"""


def told_by(mpicc: Path) -> dict[str, Any]:
    """Return the numbers of the library behind a compiler wrapper, and its file. Raises UsageError where the program does not build or run."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "abi.c"), Path(folder, "abi")
        source.write_text(_program())
        for command in ([str(mpicc), "-w", str(source), "-o", str(program), "-ldl"], [str(program)]):
            process = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_S)
            if process.returncode:
                complaint = (process.stderr or process.stdout).strip()[-600:]
                raise UsageError(f"expected {mpicc} to build a program that runs here, saw {complaint}", "use an MPI with shared libraries")
    told: dict[str, Any] = json.loads(process.stdout)
    return told


def header(told: dict[str, Any]) -> str:
    """Return shim/abi.hpp for these numbers. Raises UsageError for an interface that the shims cannot be built for."""
    handle, wide = told["sizeof Datatype"], 8
    same = all(told[f"sizeof {name}"] == handle for name in ("Request", "Comm", "Group", "Message"))
    fixed = all(isinstance(told[name], int) for name in _PLACES) and told["status_ignore"] == told["statuses_ignore"] and told["bottom"] == 0
    if handle not in (4, 8) or not same or not fixed or told["sizeof Aint"] != wide or told["sizeof Count"] != wide or not told["library"]:
        seen = {name: told[name] for name in (*(f"sizeof {one}" for one in _SIZES), *_PLACES, "library")}
        raise UsageError(f"expected handles of one width, 64-bit counts and MPI_BOTTOM of zero, saw {seen}", "this library cannot have a shim")
    handles = []
    for name, value in {**{name: told[name] for name in _HANDLES}, "unweighted": told.get("unweighted", "MPI_UNWEIGHTED")}.items():
        text = f'{{"{value}", 0}}' if isinstance(value, str) else f"{{nullptr, {value}}}"
        handles.append(f"constexpr Predefined {name}{text};")
    return "\n".join((
        "// Written by `warpwright mpi build-shim` from the library's own header.",
        "#pragma once\n#include <cstddef>\n#include <cstdint>",
        "struct Predefined {\n    const char* object;\n    std::intptr_t number;\n};",
        f"using Handle = {'int' if handle == 4 else 'void*'};",
        _status(told),
        f'#define MPI_SONAME "{Path(told["library"]).name}"',
        "namespace mpi_constant {",
        f"constexpr bool standard = {str(bool(told['standard'])).lower()};",
        *handles,
        *(f"constexpr int {name} = {told[name]};" for name in _NUMBERS),
        f"inline Status* const status_ignore = reinterpret_cast<Status*>({told['status_ignore']});",
        f"inline void* const in_place = reinterpret_cast<void*>({told['in_place']});",
        f"enum Combiner {{ {', '.join(f'{name} = {told[name]}' for name in _COMBINERS)} }};",
        "}",
        "using Address = std::intptr_t;\nusing Count = std::int64_t;\n",
    ))  # fmt: skip


def _status(told: dict[str, Any]) -> str:
    """Return MPI_Status with its three public fields where they lie."""
    lines, at = [], 0
    for name in sorted(_FIELDS, key=lambda field: int(told[field])):
        lines += [f"    char before_{name}[{told[name] - at}];"] if told[name] > at else []
        lines.append(f"    int {name};")
        at = told[name] + 4
    size = told["sizeof Status"]
    lines += [f"    char rest[{size - at}];"] if size > at else []
    return f"struct alignas({told['alignment']}) Status {{\n" + "\n".join(lines) + f"\n}};\nstatic_assert(sizeof(Status) == {size});"


def build_shim(mpicc: Path) -> tuple[Path, Path]:
    """Return the shim for the library behind a compiler wrapper, and that library; some seconds. Raises UsageError, BuildError."""
    path = shutil.which(mpicc)
    if path is None:
        raise UsageError(f"expected a compiler wrapper of an MPI library, saw no {mpicc}", "name it: --mpicc PATH")
    told = told_by(Path(path))
    defines = [define for function, define in core.OPTIONAL.items() if told[function]]
    return core.build("shim.cpp", defines, {"abi.hpp": header(told)}), Path(told["library"])
