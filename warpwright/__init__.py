"""warpwright makes GPU and CPU code fast, and proves it.

    import warpwright

    result = warpwright.optimize(module, (x,), budget="60s")     # result.module: the same signature and state, verified and timed
    print(result.verdict, result.speedup, result.reason)

    @warpwright.task(inputs=lambda: (torch.randn(8, 8),))
    def f(x): ...
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from warpwright.tasks.mark import task

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import torch

    from warpwright.base import Precision, Record
    from warpwright.front import Result
    from warpwright.front.module import Mode

__version__ = "0.1.0"

__all__ = ["__version__", "accelerate", "backend", "optimize", "task"]


def optimize(
    module: torch.nn.Module | Callable[..., Any], args: Sequence[Any] | torch.Tensor = (), kwargs: Mapping[str, Any] | None = None, *,
    budget: str = "60s", search: str = "ladder", target: str | None = None, precision: Precision = "strict",
    mode: Mode | None = None, baselines: Sequence[str] = (), seed: int = 0, out: str | Path | None = None,
    archive: str | Path = ".warpwright/archive.db", again: bool = False, calibrate: bool = False, backward: bool = False,
    shapes: Sequence[Mapping[str, Sequence[Any]]] = (), examples: Sequence[Any] = (), progress: bool = True,
    callback: Callable[[Record], None] | None = None,
) -> Result:  # fmt: skip
    """Make `module(*args, **kwargs)` faster within `budget`; return the result, whose `module` is verified against the original.

    The module of the result has the signature and the state of the original, and is `module` itself where nothing was proven faster. It is verified
    for the shapes of the example arguments, in `mode`, and without gradients (or, with `backward`, for training); a call of another kind takes the
    original's forward, with one warning.

    Args:
        module: a module or a function.
        args: example arguments; fresh ones are drawn from their values.
        kwargs: example arguments given by name.
        budget: wall time ("60s", "5m") to the written result, or "40 proposals", or both.
        search: greedy, beam, evolve, random or ladder.
        target: cpu or cuda; cuda where there is a GPU.
        precision: strict allows twice the original's own error against float64; tf32 and bf16 allow that of these types.
        mode: eval, train, or as_is for the training flags as they are; eval, and train with `backward`.
        baselines: names of the programs to be faster than; all that the device has.
        seed: of the search's random numbers.
        out: folder for optimized.py, report.html and report.json (warpwright-out/NAME).
        archive: the file that remembers what was measured.
        again: measure although the archive has the answer of an earlier run.
        calibrate: verify with drawn, well-scaled parameters: for a network that was never trained, whose outputs hardly depend on its inputs.
        backward: make a training step faster, forward and backward together: the gradients are verified as the results are.
        shapes: sizes of the arguments by name, such as [{"x": [1, 128]}, {"x": [[8, 64], 128]}] with a range: verified and timed in each, with
            `backward` as training steps.
        examples: more example arguments, of the same shapes, for a model that branches on values: with them it takes its other branches.
        progress: show what is being done, on standard error.
        callback: is given each record as soon as there is one.
    """
    began = time.monotonic()  # what is imported next is part of the budget
    from warpwright import front

    return front.optimize(
        module, args, kwargs, budget=budget, search=search, target=target, precision=precision, mode=mode, baselines=baselines, seed=seed, out=out,
        archive=archive, again=again, calibrate=calibrate, backward=backward, shapes=shapes, examples=examples, progress=progress,
        callback=callback, began=began,
    )  # fmt: skip


def accelerate(target: Any = None, /, **options: Any) -> Any:
    """Decorate a function or a class of modules: it is optimized at its first call of each kind. `options` are those of `optimize`."""
    from warpwright import front

    return front.accelerate(target, **options)


def backend(graph_module: torch.fx.GraphModule, example_inputs: Sequence[Any], **options: Any) -> Any:
    """A backend of torch.compile: `torch.compile(model, backend="warpwright")`, or `backend=warpwright.backend`."""
    from warpwright import front

    return front.backend(graph_module, example_inputs, **options)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Load `warpwright.sass`, by which its decorator is written, when it is first asked for: most runs need no machine code."""
        if name != "sass":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        return importlib.import_module(f"{__name__}.sass")
