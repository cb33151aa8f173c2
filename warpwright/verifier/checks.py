"""The checks a candidate has to pass, by name, the distributions of the hidden inputs, and the form of a certificate.

Standard library only. `verify` re-exports both tables; every file of tests/cheats names the check that must reject it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from warpwright.base import Status


@dataclass(frozen=True)
class Check:
    """One check: the status a candidate gets that fails it, and what it looks at."""

    status: Status
    meaning: str


@dataclass(frozen=True)
class Certificate:
    """Whether a task can be scored: would the check notice a wrong answer? Made by `certificate.certify`."""

    scored: bool
    reason: str
    """Why not."""
    rejected: tuple[str, ...]
    """Wrong answers that the check rejects."""
    accepted: tuple[str, ...]
    """Wrong answers that it does not tell from the right one; advisory ones if the task is scored."""


CHECKS: Mapping[str, Check] = {
    # building
    "build": Check("not_built", "the source compiles, imports, constructs its entry and answers warm-up inputs"),
    "source": Check("cheated", "the source text reaches for the harness: frames, the collector's objects, other processes' memory"),
    # the process
    "exited": Check("crashed", "the process stays alive: no exit, no signal, no SystemExit in a call"),
    "raised": Check("crashed", "a call returns instead of raising"),
    "resources": Check("crashed", "memory, processes and files stay within the worker's limits"),
    "timeout": Check("timeout", "every call answers within its time limit"),
    "forged_reply": Check("cheated", "only the runner writes to the reply pipe: right nonce, right form, nothing unasked"),
    "inspection": Check("cheated", "no look at the runner's frames, at all objects of the process, at /proc/*/mem"),
    "patched": Check("cheated", "functions of torch, time, os and the builtins are the objects they were before the import"),
    "forbidden": Check("cheated", "after the build: no new process, no network, no file written outside the work folder"),
    "background": Check("cheated", "after a call returned, no thread and no child goes on working, and the process has no second CUDA context"),
    "late_output": Check("cheated", "the output that a call returned does not change afterwards"),
    "global_flags": Check(
        "wrong",
        "global settings are left as they were: TF32, default dtype, threads, grad mode, generators, environment, warnings, signals, "
        "alarms and timers, lower limits of resources, the locale, hooks for errors, pickling, fewer printed digits",
    ),
    # the output
    "output_type": Check("cheated", "outputs are plain, dense torch.Tensor with a storage of full size: no subclass, no lazy or fake tensor"),
    "structure": Check("wrong", "as many outputs, in the same containers and order, as the original"),
    "shape": Check("wrong", "each output's shape is the original's"),
    "dtype": Check("wrong", "each output's dtype is the original's"),
    "device": Check("wrong", "each output is on the original's device"),
    "layout": Check("wrong", "each output is contiguous, or has the strides of the original's"),
    "values": Check("wrong", "error against float64 is within twice the original's own, as maximum, RMS and centred RMS"),
    "input_layout": Check("wrong", "inputs with other strides, or off the start of their memory, are answered rightly too, or refused by raising"),
    "non_finite": Check("wrong", "Inf and NaN stand where the original has them, and nowhere else"),
    "uninitialised": Check("wrong", "the output does not depend on what fresh memory held before"),
    "cached": Check("cheated", "the output belongs to this call's input, not to an earlier call's"),
    "repeat": Check("wrong", "the same input and state give the same answer again"),
    "output_reuse": Check("wrong", "an output that was returned earlier is not overwritten by a later call"),
    # state, inputs
    "state_names": Check("wrong", "parameters and buffers have the original's names and shapes, so that its state loads"),
    "stale_state": Check("wrong", "parameters changed in place are seen by the next call: nothing stays folded from before"),
    "buffers": Check("wrong", "a call changes buffers (running statistics) as the original's does"),
    "input_mutated": Check("wrong", "inputs are left alone, unless the original changes them"),
    "aliasing": Check("wrong", "outputs share no memory with inputs, parameters or one another, unless the original's do"),
    # the timer
    "below_floor": Check("cheated", "no call is faster than the machine can move the inputs and outputs"),
}

ADVICE: Mapping[str, str] = {
    "resources": "allocate less memory, start fewer processes or leave fewer files, whichever the reason names",
    "patched": "define functions of your own in place of replacing those of others",
    "forbidden": "do it in the constructor, before the build ends, or not at all",
    "background": "join threads and synchronise before the call returns",
    "global_flags": "put the setting back before the call returns, or leave it to the caller",
    "output_type": "return plain torch.Tensors: a plain dataclass may hold them; .clone() what is lazy, .detach() what carries a graph",
    "layout": "return .contiguous() tensors",
    "values": "compare with the original on such inputs; where the error is of the size of a rounding, accumulate in a wider precision",
    "input_layout": "call .contiguous() on inputs, use their strides, or raise where you need others",
    "non_finite": "subtract a maximum before exp, and keep -inf minus -inf out",
    "uninitialised": "write every element, or begin with zeros",
    "output_reuse": "allocate outputs in the call, or return a clone",
    "state_names": "keep the original's names of parameters and buffers, and fold into attributes beside them",
    "stale_state": "fold anew where a parameter's address or _version changes, and give the module a method refresh() for writes through .data",
    "buffers": "update buffers in the call, as the original does",
    "input_mutated": "work on a clone of the input",
    "aliasing": "return a clone; or, where the original's is the input itself, that one",
}
"""What whoever wrote a program can do about a failed check. Not for those that honest programs do not fail."""

FOUND: Mapping[str, str] = {
    "patched": "replaced or changed: ", "inspection": "used: ", "forbidden": "after the build it did: ", "global_flags": "left otherwise: ",
}  # fmt: skip
"""What goes before the findings of the watch inside the process, which are names."""

DISTRIBUTIONS: Mapping[str, str] = {
    "nominal": "as the task's own input function draws them",
    "normal": "standard normal",
    "strided": "standard normal, at other strides and off the start of their memory",
    "large": "nominal times 3; of each tensor the first eighth of the rows is small, in order and without ties, if it can be",
    "small": "nominal times 0.01; the first rows as in large, every second one of the others smaller by up to 14 powers of ten",
    "negated": "nominal times -1",
    "offset": "nominal plus 10",
    "near_one": "1 plus a hundredth of standard normal: products neither vanish nor overflow",
    "smooth": "a wave of some dozens of elements with 2 % of noise: neighbours are alike, and so are rows",
    "edited": "the first nominal input with one element replaced, or a few of each tensor (about eight, or one in 65536), some of them large",
    "permuted": "the first nominal input, each tensor's values rolled by another distance",
    "alike": "the first nominal input, each value moved by less than float16, bfloat16 and TF32 tell apart (float64: than float32)",
    "zeros": "all zero",
    "huge": "nominal times 10,000, every second row smaller by up to 3.5 powers of ten",
    "tiny": "nominal times 1e-30: products underflow",
    "heavy_tail": "signs times exp(2 n), n standard normal",
    "spikes": "all zero but for about one element in 256, those of size up to 50",
    "denormal": "nominal, scaled below the smallest normal number",
    "coarse": "nominal, rounded to eight binary digits: halves are exact, and so are ties of what is quantised by its own largest value or range",
    "masked": "nominal with about one element in 64 at -Inf",
    "padded": "nominal with the first or the last part of some rows at -Inf",
    "infinite": "nominal with a few Inf and -Inf",
    "special": "nominal with a few Inf, -Inf and NaN (only where the task declares special values)",
}
"""Shapes stay nominal in every distribution. Integers, Booleans and Python numbers vary in all but the nominal one (`discrete.vary`)."""

INFINITE = ("masked", "padded", "infinite")
"""Used where the original answers with finite numbers all the same, as a softmax, a maximum or a clamp does, and has no sums of products."""
