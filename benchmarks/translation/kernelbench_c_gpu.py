"""KernelBench_c's torch extensions on a GPU, as nvcc builds them, against their translation on the CPU of the same machine.

    python -m benchmarks.translation.kernelbench_c_gpu --cuda KernelBench_c --torch EvalEngine/torch_functionals --scale 0.0005 --jobs 16

The functional PyTorch program of a file says what the file should compute; many files do not. A translation has to compute what the CUDA file
computes on a GPU, right or wrong, and that is compared here: the same model, parameters and inputs go through both. The GPU runs each three times, on
memory that holds zeros, a number, or NaN: a file whose runs differ reads uninitialised memory or has a race, and defines no answer.

A line for each file in OUT when it ends; a second call resumes. `status`: same (largest difference at most 1e-4 of the largest value, and the
same elements NaN or infinite), different, undefined (the runs on the GPU differ), gpu-refused (by nvcc or at launch), refused (by
the translator), timeout, crashed.
"""

from __future__ import annotations

import argparse
import collections
import copy
import json
import math
import os
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.translation import kernelbench_c as cpu

TOLERANCE = 1e-4  # of the largest value: float32 sums of some thousand terms in another order differ by 1e-6 to 1e-5 of it
FILLS = (0.0, -750.5, math.nan)  # what memory holds before each run on the GPU


def main() -> int:
    """Do what is left to do, `--jobs` files at once, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuda", type=Path, required=True)
    parser.add_argument("--torch", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("kernelbench_c_gpu.jsonl"))
    parser.add_argument("--only", default="", help="regular expression: level2/10, ... ; those are done first when --rest is given")
    parser.add_argument("--rest", action="store_true")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seconds", type=float, default=240.0, help="limit for one file")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(attempt(Path(options.one), options.torch, options.scale)))
        return 0
    deadline = time.time() + 60 * options.minutes
    lines = {line["name"]: line for line in map(json.loads, options.out.read_text().splitlines())} if options.out.exists() else {}

    def do(file: Path) -> None:
        name = f"{file.parent.name}/{file.stem}"
        left = deadline - time.time()
        if name in lines or left < 0:
            return
        line = {"name": name, **_in_process(file, options, min(options.seconds, left))}
        if line["status"] == "timeout" and left < options.seconds:
            return  # it was not its limit: another call may do it
        lines[name] = line
        with options.out.open("a") as out:
            out.write(json.dumps(line) + "\n")
        print(name, line["status"], line.get("cause", "")[:200], flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(do, _files(options.cuda, options.only, options.rest)))
    print(f"{len(lines)} files: {dict(collections.Counter(line['status'] for line in lines.values()))}")
    return 0


def _files(folder: Path, only: str, rest: bool) -> list[Path]:
    files = cpu.with_kernels(folder)
    named = [file for file in files if re.fullmatch(only or ".*", cpu.key(file))]
    return named + [file for file in files if rest and file not in named]


def _in_process(file: Path, options: argparse.Namespace, seconds: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.translation.kernelbench_c_gpu", "--cuda", str(options.cuda), "--torch", str(options.torch)]
    command += ["--scale", str(options.scale), "--one", str(file)]
    environment = {"TORCH_CUDA_ARCH_LIST": "9.0", "MAX_JOBS": "1", "OMP_NUM_THREADS": "1"} | dict(os.environ)
    environment["PYTHONPATH"] = os.pathsep.join([str(cpu.ROOT), environment.get("PYTHONPATH", "")])
    return cpu.line_of(command, seconds, environment)


def attempt(file: Path, functionals: Path, scale: float) -> dict[str, Any]:
    """Build one file with nvcc and translate it; run both on the same model and inputs, and compare."""
    import torch

    from warpwright.domains.transpile import extension
    from warpwright.errors import WarpwrightError

    torch.backends.cudnn.allow_tf32 = False  # of torch's own convolutions around the kernels: 3e-4 otherwise
    began = time.time()
    try:
        translated = extension.compile_extension(file.read_text(errors="replace"), (), file.name)
    except WarpwrightError as error:
        return {"status": "refused", "cause": str(error).splitlines()[0][:400], "seconds": time.time() - began}
    text = cpu.functional_text(functionals, file)
    names: dict[str, Any] = {"__name__": "functional", "math": math}  # two programs forget to import it
    exec(compile(_scaled(text, scale), file.stem, "exec"), names)
    try:
        built = _build(file)
    except Exception as error:
        return {"status": "gpu-refused", "cause": _short(error), "seconds": time.time() - began}
    worst, sizes = 0.0, []
    for seed in (0, 1):
        torch.manual_seed(seed)
        model, inputs = names["Model"](*names["get_init_inputs"]()), names["get_inputs"]()
        try:
            gpu = [_on_gpu(model, inputs, built.forward, value) for value in FILLS]
        except Exception as error:
            return {"status": "gpu-refused", "cause": _short(error), "seconds": time.time() - began}
        again = max(difference(one, gpu[0]) for one in gpu[1:])
        if again > TOLERANCE:
            cause = f"runs on the GPU differ by {again:.2g} of the largest value"
            return {"status": "undefined", "cause": cause, "seconds": time.time() - began}
        try:
            with torch.no_grad():
                mine = copy.deepcopy(model)(*copy.deepcopy(inputs), fn=translated.forward)
        except Exception as error:
            return {"status": "different", "cause": f"runs on a GPU only: {_short(error)}", "seconds": time.time() - began}
        worst = max(worst, difference(mine, gpu[0]))
        sizes.append(float(gpu[0].double().nan_to_num(0, 0, 0).abs().max()))
    return {"status": "same" if worst <= TOLERANCE else "different", "cause": f"{worst:.2g} of the largest value", "difference": worst,
            "largest": sizes, "scale": scale, "seconds": time.time() - began}


def _scaled(text: str, scale: float) -> str:
    """Return the program at a share of its work, or as it is where it cannot be scaled: it asks a tensor for a number, or lacks an import."""
    from warpwright.errors import TaskError
    from warpwright.tasks.scaling import scale_text

    if "import math" not in text:
        text = "import math\n" + text
    try:
        return scale_text(text, scale).text if scale < 1 else text
    except TaskError:
        return text


def _build(file: Path) -> Any:
    from torch.utils.cpp_extension import load

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / f"{file.parent.name}_{re.sub('[^A-Za-z0-9_]', '_', file.stem)}.cu"
        text = file.read_text(errors="replace")
        source.write_text(re.sub(r"(AT_DISPATCH_\w+\(\s*\w+)\.type\(\)", r"\1.scalar_type()", text))  # torch took away the older form
        return load(source.stem, [str(source)], build_directory=folder)


def _on_gpu(model: Any, inputs: list[Any], function: Any, value: float) -> Any:
    """Run a copy of the model on the GPU, on memory full of `value`, and return its output as a CPU tensor."""
    import torch

    filled = [torch.full((1 << power,), value, device="cuda") for power in range(7, 27) for _ in range(32 if power < 20 else 4)]
    del filled  # the allocator keeps the memory, and hands it out as it is: for inputs, whose neighbours it becomes, and for what torch.empty makes
    model = _moved(copy.deepcopy(model))
    inputs = [_moved(x) for x in inputs]
    torch.set_default_device("cuda")
    try:
        with torch.no_grad():
            result = model(*inputs, fn=function)
        torch.cuda.synchronize()
        return result.cpu()
    finally:
        torch.set_default_device("cpu")


def _moved(value: Any) -> Any:
    return cpu.moved(value, lambda one: one.cuda())


def difference(one: Any, other: Any) -> float:
    """Return the largest difference as a share of `other`'s largest finite value; inf where shapes, or the places of what is not finite, differ."""
    if one.shape != other.shape:
        return math.inf
    one, other = one.double(), other.double()
    here = other.isfinite()
    kinds = [x.nan_to_num(0.0)[~here] for x in (one, other)]
    if not bool((one.isfinite() == here).all()) or not bool((kinds[0] == kinds[1]).all()):
        return math.inf
    if not bool(here.any()):
        return 0.0
    return float((one - other)[here].abs().max()) / max(float(other[here].abs().max()), 1e-30)


def _short(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if " error" in line] or str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0][:300]}"


if __name__ == "__main__":
    sys.exit(main())
