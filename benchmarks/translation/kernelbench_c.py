"""KernelBench_c's torch extensions on the CPU, unmodified: translated, built, and compared with KernelBench's functional PyTorch programs.

    python -m benchmarks.translation.kernelbench_c --cuda HPCTransEval/KernelBench_c --torch EvalEngine/torch_functionals --out kernelbench_c.jsonl

Both folders hold level1/, level2/ ...; nothing of them is shipped with the project. Each file is done in a process of its own with a time limit, and
its line is in OUT when it ends: a second call resumes. A file counts as right when its error against float64 is at most ten times that of the
original in float32, plus 1e-5 of the result's scale, for two seeds; as close, when it passes only KernelBench's own check (1e-2). With --scale
(a share of the work, as `warpwright bench --scale`) a file runs at smaller sizes first; where it is not right there, since it was written for one
size perhaps, it runs as written, and that counts.
"""

from __future__ import annotations

import argparse
import collections
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

_TANH = (r"F\.gelu\(x\)", "F.gelu(x, approximate='tanh')")
AMENDED: dict[str, tuple[tuple[str, str], ...]] = {
    **{f"level2/{number}": (_TANH,) for number in (7, 19, 34, 53, 90, 93, 99)},
    "level1/50": ((r"torch\.prod\(x, dim=dim\)", "torch.stack([x.flatten(0, 1)[b : b + 50].prod(0) for b in range(len(x))])"),),
    "level1/100": ((r"predictions \* targets", "predictions.flatten() * targets"),),
    "level1/94": ((r'reduction="mean"\)', r"\g<0>.reshape(1)"),),
    "level1/96": ((r"smooth_l1_loss\(predictions, targets\)", r"\g<0>.reshape(1)"),),
    "level1/97": ((r"torch\.mean\(1 - cosine_sim\)", r"\g<0>.reshape(1)"),),
    "level2/8": ((r"dim=sum_dim\)", "dim=sum_dim).flatten()"),),
    "level2/23": ((r"dim=\[1, 2, 3, 4\]\)", r"\g<0>.unsqueeze(1)"),),
    "level2/65": ((r"F\.avg_pool2d\(x, pool_kernel_size\)", "F.max_pool2d(x, 1, pool_kernel_size) / 4"),),
    "level2/91": ((r"F\.softmax\(x, dim=1\)", "F.softmax(x, dim=1)[:, -1:].expand_as(x)"),),
    "level3/35": (
        (r"(for i in range\(len\(lstm_weights_ih\)\):)", r"\1\n        out = out[:, -1:].expand_as(out) if i else out"),
        (r"out\[:, -1, :\]", "out[:, -1:].expand_as(out).flatten(0, 1)[out.shape[1] - 1 :][: len(out)]"),
    ),
}
"""What a CUDA file computes instead of what the program beside says, as a change of that program: read in the CUDA text, tested with --amended."""


def main() -> int:
    """Do what is left to do and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuda", type=Path, required=True)
    parser.add_argument("--torch", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("kernelbench_c.jsonl"))
    parser.add_argument("--levels", default="1,2,3")
    parser.add_argument("--only", help="one file, as level1/19_ReLU")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seconds", type=float, default=180.0, help="limit for one file")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--amended", action="store_true", help="only the files whose programs are amended, each with its amended program")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(attempt(Path(options.one), options.torch, options.scale, options.amended)))
        return 0
    done = {line["name"]: line for line in map(json.loads, options.out.read_text().splitlines())} if options.out.exists() else {}
    deadline = time.time() + 60 * options.minutes
    files = [file for file in with_kernels(options.cuda) if file.parent.name.removeprefix("level") in options.levels.split(",")]
    files = [file for file in files if options.only in (None, f"{file.parent.name}/{file.stem}")]
    files = [file for file in files if not options.amended or key(file) in AMENDED]
    for file in files:
        name = f"{file.parent.name}/{file.stem}"
        if name in done or time.time() > deadline:
            continue
        done[name] = {"name": name, **_either_size(file, options)}
        with options.out.open("a") as out:
            out.write(json.dumps(done[name]) + "\n")
        print(name, done[name]["status"], done[name].get("cause", "")[:200], flush=True)
    counts = collections.Counter(line["status"] for line in done.values())
    print(f"{len(done)} of {len(files)} files: {dict(counts)}")
    return 0


def _either_size(file: Path, options: argparse.Namespace) -> dict[str, Any]:
    line = _in_process(file, options, options.scale)
    if options.scale == 1.0 or line["status"] in ("right", "close", "refused"):
        return line
    return _in_process(file, options, 1.0) | {"scaled": {key: line[key] for key in ("status", "cause")}}


def _in_process(file: Path, options: argparse.Namespace, scale: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.translation.kernelbench_c", "--cuda", str(options.cuda), "--torch", str(options.torch)]
    command += ["--scale", str(scale), "--one", str(file)]
    command += ["--amended"] if options.amended else []
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return line_of(command, options.seconds, {**os.environ, "PYTHONPATH": paths})


def line_of(command: list[str], seconds: float, environment: dict[str, str]) -> dict[str, Any]:
    """Run what does one file in a process of its own, and return the line that it prints, or how it ended without one."""
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment)
    except subprocess.TimeoutExpired:
        return {"status": "timeout", "cause": f"longer than {seconds:g} s"}
    lines = ended.stdout.strip().splitlines()
    if ended.returncode or not lines:
        return {"status": "crashed", "cause": f"exit code {ended.returncode}: {ended.stderr.strip()[-300:]}"}
    return json.loads(lines[-1])


def with_kernels(folder: Path) -> list[Path]:
    """Return the files of all levels that have kernels."""
    return [file for file in sorted(folder.glob("level*/*.cu")) if "__global__" in file.read_text(errors="replace")]


def functional_text(functionals: Path, file: Path) -> str:
    """Return the PyTorch program beside a file, on the CPU where it names a GPU."""
    return re.sub(r"\.cuda\(\)", "", (functionals / file.parent.name / f"{file.stem}.py").read_text()).replace('"cuda"', '"cpu"')


def key(file: Path) -> str:
    """Return the level and number of a file: level2/10."""
    return f"{file.parent.name}/{file.stem.partition('_')[0]}"


def attempt(file: Path, functionals: Path, scale: float, amended: bool = False) -> dict[str, Any]:
    """Translate one file, run it beside the functional program (or that amended) at a share `scale` of its work, and compare."""
    import torch

    from warpwright.domains.transpile import extension
    from warpwright.errors import WarpwrightError
    from warpwright.tasks.scaling import scale_text

    began = time.time()
    try:
        built = extension.compile_extension(file.read_text(errors="replace"), (), file.name)
    except WarpwrightError as error:
        return {"status": "refused", "cause": str(error).splitlines()[0][:400], "seconds": time.time() - began}
    tiers = {kernel.name: kernel.tier for kernel in built.program.kernels.values()}
    names: dict[str, Any] = {"__name__": "functional", "math": math}  # one program forgets to import it
    errors, close = [], []
    try:
        text = functional_text(functionals, file)
        for pattern, words in AMENDED.get(key(file), ()) if amended else ():
            text, count = re.subn(pattern, words, text)
            if not count:
                raise ValueError(f"nothing to amend: {pattern}")
        exec(compile(scale_text(text, scale).text if scale < 1 else text, file.stem, "exec"), names)
        for seed in (0, 1):
            torch.manual_seed(seed)
            model = names["Model"](*names["get_init_inputs"]())
            inputs = names["get_inputs"]()
            with torch.no_grad():
                mine, original = model(*inputs, fn=built.forward), model(*inputs)
                torch.set_default_dtype(torch.float64)  # of what the program makes in between
                truth = _wide(model)(*_wide(inputs))
                torch.set_default_dtype(torch.float32)
            if mine.shape != original.shape:
                raise ValueError(f"sizes {tuple(mine.shape)}, original {tuple(original.shape)}")
            size = float(truth.abs().max())
            off, usual = (float((x.double() - truth).abs().max()) for x in (mine, original))
            if usual > 1e-2 * size:  # the program is chaotic, so that float64 says nothing: it is compared with the original in float32
                off, usual = float((mine - original).abs().max()), 0.0
            errors.append((off, usual, size))
            close.append(torch.allclose(original, mine, atol=1e-2, rtol=1e-2))
    except (WarpwrightError, RuntimeError, TypeError, ValueError) as error:
        cause = f"{type(error).__name__}: {str(error).splitlines()[0][:300]}"
        return {"status": "failed", "cause": cause, "tiers": tiers, "seconds": time.time() - began}
    right = all(off <= 10 * usual + 1e-5 * size for off, usual, size in errors)
    cause = "" if right else f"error {errors[0][0]:.3g}, original {errors[0][1]:.3g}, scale {errors[0][2]:.3g}"
    status = "right" if right else "close" if all(close) else "wrong"
    return {"status": status, "cause": cause, "errors": errors, "tiers": tiers, "scale": scale, "seconds": time.time() - began}


def _wide(value: Any) -> Any:
    """Return a value with the floats in it as float64."""
    return moved(value, lambda one: one.double() if not hasattr(one, "is_floating_point") or one.is_floating_point() else one)


def moved(value: Any, to: Callable[[Any], Any]) -> Any:
    """Return a value with its tensors and modules given by `to`: also tensors that a module keeps in lists and dicts, which `Module.to` passes by."""
    import torch

    if isinstance(value, torch.nn.Module):
        for module in value.modules():
            for name, kept in vars(module).items():
                if not name.startswith("_") and isinstance(kept, list | dict | torch.Tensor):
                    setattr(module, name, moved(kept, to))
        return to(value)
    if isinstance(value, torch.Tensor):
        return to(value)
    if isinstance(value, dict):
        return {name: moved(kept, to) for name, kept in value.items()}
    return type(value)(moved(one, to) for one in value) if type(value) in (list, tuple) else value


if __name__ == "__main__":
    sys.exit(main())
