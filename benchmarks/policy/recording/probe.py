"""What a probe sees of a program on a GPU: is it right, against float64, and how long is a call. No verdicts: those are the evaluator's.

A program is right where its error, on the task's own inputs and then, its state changed, on normal ones, is at most ALLOWED times the original's,
or that of TF32 operands where the flags permit them. A time is a median of batches of calls back to back, by CUDA events. Several processes share
the GPU: while programs are checked side by side, none is timed, and one that times is alone (`Turns`).
"""

from __future__ import annotations

import copy
import fcntl
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

from benchmarks.kernelbench.first import flat, rms, samples_of
from benchmarks.timing.events import batch

BATCH_SECONDS, BATCHES = 1.5e-3, 3

ALLOWED = 2.0
"""Error over the original's."""

CHANGED = 1.25
"""What the state's real numbers are multiplied by for the second inputs. (Before there was such a change the verifier refused, as stale, a CUDA graph
that was called right here.)"""

COPIED = 1 << 28
"""Elements of float32 that are copied to learn the rate of the memory: 1 GB."""


class Taken(Protocol):
    """The GPU among processes: what is held while one checks, and while one times."""

    def checking(self) -> AbstractContextManager[None]:
        """Share the GPU with others that check."""
        ...

    def timing(self) -> AbstractContextManager[None]:
        """Have the GPU alone."""
        ...


class Turns:
    """The GPU among processes: many may check at once, one times alone. The kernel lets go of what a process held that died."""

    def __init__(self, folder: Path) -> None:
        self.gate, self.room = folder / "gate", folder / "room"

    @contextmanager
    def checking(self) -> Iterator[None]:
        """Share the GPU with others that check."""
        yield from self._in(fcntl.LOCK_SH)

    @contextmanager
    def timing(self) -> Iterator[None]:
        """Have the GPU alone. Whoever comes later waits at the gate, so that those that check cannot keep it for ever."""
        yield from self._in(fcntl.LOCK_EX)

    def _in(self, how: int) -> Iterator[None]:
        with self.gate.open("w") as gate, self.room.open("w") as room:
            fcntl.flock(gate, fcntl.LOCK_EX)
            fcntl.flock(room, how)
            fcntl.flock(gate, fcntl.LOCK_UN)
            yield


class Truth:
    """What a task's results are in float64, on its own inputs and, its state changed, on normal ones, and how far the original errs."""

    def __init__(self, model: Any, inputs: Sequence[Any]) -> None:
        import torch

        from warpwright.verifier.judge.original import tf32

        torch.manual_seed(1)
        normal = [torch.randn_like(x) if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in inputs]
        self.state = copy.deepcopy(model.state_dict())
        changed = {name: x * CHANGED if x.is_floating_point() else x for name, x in self.state.items()}
        self.kinds: list[tuple[Sequence[Any], list[Any], float, dict[str, Any]]] = []
        wider = copy.deepcopy(model).double()
        for given, state in ((inputs, self.state), (normal, changed)):
            model.load_state_dict(state)
            wider.load_state_dict(state)
            seen = flat(model(*given))
            self.few = samples_of(model, list(given), seen)
            wide = [_double(x)[: self.few] if self.few and isinstance(x, torch.Tensor) else _double(x) for x in given]
            exact = flat(wider(*wide))
            errors = [rms(x[: self.few] if self.few else x, y) for x, y in zip(seen, exact, strict=True)]
            if seen[0].is_cuda:
                wider.load_state_dict(state)
                with tf32.RoundedOperands(tf32.permitted()) as rounding:
                    rounded = flat(wider(*wide)) if tf32.permitted() else []
                errors += [rms(x, y) for x, y in zip(rounded, exact, strict=True)] if rounding.count else []
            scale = max(float(x.nan_to_num(0.0, 0.0, 0.0).abs().max()) for x in exact)
            self.kinds.append((given, exact, max(*errors, 1e-8 * scale, 1e-30), state))
            self.moved = sum(x.nbytes for x in [*flat(list(given)), *seen, *model.parameters()])
        model.load_state_dict(self.state)

    def wrong(self, program: Any) -> str:
        """Return what is wrong with a program's results, or ""."""
        import torch

        for given, exact, own, state in self.kinds:
            program.load_state_dict(state)
            if hasattr(program, "fits") and not program.fits(list(given)):
                return "does not fit the guard"
            seen = [x[: self.few] if self.few else x for x in flat(program(*given))]
            if any(x.shape != y.shape or not torch.equal(x.isnan(), y.isnan()) for x, y in zip(seen, exact, strict=True)):
                return "shapes or NaN"
            ratio = max(rms(x, y) for x, y in zip(seen, exact, strict=True)) / own
            if ratio > ALLOWED:
                return f"error {ratio:.3g} of the original's"
        program.load_state_dict(self.state)
        return ""


def _double(x: Any) -> Any:
    import torch

    return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def seconds(call: Callable[[], object]) -> float:
    """Return the seconds of a call that was made before: the median of batches back to back."""
    import torch

    if not torch.cuda.is_available():
        times = []
        for _ in range(BATCHES):
            began = time.perf_counter()
            call()
            times.append(time.perf_counter() - began)
        return statistics.median(times)
    torch.cuda.synchronize()
    call()
    count = max(2, min(100, int(BATCH_SECONDS / max(batch(call, 2), 1e-6))))
    return statistics.median(batch(call, count) for _ in range(BATCHES))


def copy_rate() -> float:
    """Return the bytes a second that copying moves on the GPU."""
    import torch

    source = torch.empty(COPIED, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.nbytes / min(batch(lambda: target.copy_(source), 5) for _ in range(5))
