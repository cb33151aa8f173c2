"""Settings of the process that a program may not leave changed, and those that it may."""

from __future__ import annotations

import ctypes
import decimal
import logging
import math
import os
import platform
import random
import resource
import signal
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from warpwright.workers.inside.construction import generators_kept  # noqa: E402
from warpwright.workers.inside.integrity import HARNESS, _holders, watch_constants, watch_generators  # noqa: E402
from warpwright.workers.inside.outputs import views_of  # noqa: E402
from warpwright.workers.inside.settings import _Mallinfo, watch_settings  # noqa: E402

SIGEV_THREAD, SIGEV_THREAD_ID = 2, 4
TIMER_CREATE, TIMER_DELETE = (222, 226) if platform.machine() == "x86_64" else (107, 111)
"""Numbers of system calls: the C library keeps a signal of its own from its callers."""


@contextmanager
def everything_kept() -> Iterator[None]:
    limit, disabled, blocked = sys.getrecursionlimit(), logging.root.manager.disable, signal.pthread_sigmask(signal.SIG_BLOCK, [])
    try:
        with warnings.catch_warnings(), decimal.localcontext(), torch.autograd.set_detect_anomaly(False):
            yield
    finally:
        sys.setrecursionlimit(limit)
        logging.disable(disabled)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("recursion limit", lambda: sys.setrecursionlimit(400)),
        ("warnings as errors", lambda: warnings.simplefilter("error")),
        ("blocked signals", lambda: signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})),
        ("logging disabled", lambda: logging.disable(logging.CRITICAL)),
        ("decimal numbers", lambda: setattr(decimal.getcontext(), "prec", 3)),
        ("alarms and timers", lambda: signal.setitimer(signal.ITIMER_VIRTUAL, 3600)),
        ("anomaly detection", lambda: torch.autograd.set_detect_anomaly(True)),
        ("", lambda: sys.setrecursionlimit(9000)),
        ("", lambda: warnings.filterwarnings("ignore")),
        ("", lambda: warnings.filterwarnings("error", "one message alone")),
        ("", lambda: logging.disable(logging.INFO)),
    ],
)
def test_what_hurts_others_is_told_and_what_does_not_is_left(name: str, change: Callable[[], object]) -> None:
    with everything_kept():
        changed = watch_settings()
        change()
        assert [line.partition(":")[0] for line in changed()] == [name] * bool(name)


def test_a_timer_of_native_code_is_a_setting() -> None:
    if not os.path.exists("/proc/self/timers"):
        pytest.skip("this kernel does not tell of them")
    changed, library, timer = watch_settings(), ctypes.CDLL(None), ctypes.c_void_p()
    assert library.timer_create(0, None, ctypes.byref(timer)) == 0
    try:
        assert [line.partition(":")[0] for line in changed()] == ["alarms and timers"]
    finally:
        library.timer_delete(timer)
    assert not changed()


class Event(ctypes.Structure):
    """`struct sigevent` as the kernel reads it."""

    _fields_ = (("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("notify", ctypes.c_int), ("thread", ctypes.c_int), ("rest", ctypes.c_int * 11))


@pytest.mark.parametrize(("number", "main", "told"), [(14, True, True), (32, True, True), (32, False, True), (14, False, True)])
def test_a_timer_that_tells_a_thread_is_a_setting(number: int, main: bool, told: bool) -> None:
    if not os.path.exists("/proc/self/timers"):
        pytest.skip("this kernel does not tell of them")
    waiting, over = threading.Event(), threading.Event()
    other = threading.Thread(target=lambda: (waiting.set(), over.wait()))
    other.start()
    waiting.wait()
    changed, timer, thread_id = watch_settings(), ctypes.c_int(), os.getpid() if main else other.native_id
    event = Event(None, number, SIGEV_THREAD_ID, thread_id)
    try:
        assert ctypes.CDLL(None).syscall(TIMER_CREATE, 0, ctypes.byref(event), ctypes.byref(timer)) == 0
        assert [line.partition(":")[0] for line in changed()] == ["alarms and timers"] * told
    finally:
        ctypes.CDLL(None).syscall(TIMER_DELETE, timer)
        over.set()
        other.join()


class Calling(ctypes.Structure):
    """`struct sigevent` as the C library reads it where a function is to be called."""

    _fields_ = (
        ("value", ctypes.c_void_p), ("signal", ctypes.c_int), ("notify", ctypes.c_int), ("function", ctypes.c_void_p), ("rest", ctypes.c_int * 10)
    )  # fmt: skip


def test_a_timer_that_calls_a_function_from_the_library_s_thread_is_no_setting() -> None:
    if not os.path.exists("/proc/self/timers"):
        pytest.skip("this kernel does not tell of them")
    library, timer = ctypes.CDLL(None), ctypes.c_void_p()
    changed, function = watch_settings(), ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda value: None)
    event = Calling(None, 0, SIGEV_THREAD, ctypes.cast(function, ctypes.c_void_p))
    assert library.timer_create(0, ctypes.byref(event), ctypes.byref(timer)) == 0
    try:
        assert Path("/proc/self/timers").read_text().count("signal: 32/") == 1 and not changed()
    finally:
        library.timer_delete(timer)


def test_a_limit_is_a_setting_where_it_is_lower() -> None:
    changed, (soft, hard) = watch_settings(), resource.getrlimit(resource.RLIMIT_CPU)
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (3600, hard))
        assert [line.partition(":")[0] for line in changed()] == ["limits of resources"]
        lowered = watch_settings()
        resource.setrlimit(resource.RLIMIT_CPU, (7200, hard))
        assert not lowered()
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))
    assert not changed()


def test_hooks_on_saved_tensors_are_a_setting() -> None:
    changed = watch_settings()
    with torch.autograd.graph.saved_tensors_hooks(torch.Tensor.half, torch.Tensor.float):
        assert [line.partition(":")[0] for line in changed()] == ["hooks on saved tensors"]
    assert not changed()


def test_functions_of_a_worker_are_among_those_that_are_watched() -> None:
    import warpwright.workers.inside.runner  # noqa: F401

    assert {f"{HARNESS}inside.runner", f"{HARNESS}inside.runner.Runner", f"{HARNESS}tensors.answer"} <= {name for name, _ in _holders()}


class Looks:
    """A handler that says of itself what the default one would."""

    def __call__(self, *_: object) -> None: ...

    def __str__(self) -> str:
        return str(signal.SIG_DFL)

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def test_a_handler_is_seen_whatever_it_says_of_itself() -> None:
    changed = watch_settings()
    assert not changed()
    before = signal.signal(signal.SIGUSR2, Looks())
    try:
        [line] = changed()
        assert line.startswith("signal handlers: was ") and "SIGUSR2" in line.partition(", is ")[2]
    finally:
        signal.signal(signal.SIGUSR2, before)
    assert not changed()


def c_library() -> ctypes.CDLL:
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallinfo2"):
        pytest.skip("needs glibc 2.33 or later, whose malloc tells what it has mapped")
    return library


MMAP_MAX, SET_TIMERSLACK, GET_TIMERSLACK = -4, 29, 30


def test_that_large_blocks_are_mapped_no_more_is_seen() -> None:
    """Outputs beyond 32 MiB cost no page faults then."""
    library, changed = c_library(), watch_settings()
    try:
        library.mallopt(MMAP_MAX, 0)
        assert [one for one in changed() if one.startswith("large blocks of memory are mapped: was True")]
    finally:
        library.mallopt(MMAP_MAX, 65536)
    assert not changed()


def test_that_large_blocks_lie_free_is_no_change() -> None:
    """Blocks below 32 MiB that were freed side by side are one from which glibc takes what it would have mapped else."""
    library, changed = c_library(), watch_settings()
    library.mallinfo2.restype = _Mallinfo
    library.malloc.restype, library.malloc.argtypes, library.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
    library.mallopt(MMAP_MAX, 0)  # from the heap, wherever the threshold is now
    *blocks, behind = [library.malloc(30 << 20) for _ in range(5)]  # what is behind keeps them from going back to the system
    library.mallopt(MMAP_MAX, 65536)
    for block in blocks:
        library.free(block)
    try:
        assert library.mallinfo2().fordblks >= 4 * (30 << 20)
        assert not changed()
    finally:
        library.free(behind)


def test_that_timers_may_be_late_is_seen() -> None:
    library, changed = c_library(), watch_settings()
    before = library.prctl(GET_TIMERSLACK, 0, 0, 0, 0)
    try:
        library.prctl(SET_TIMERSLACK, 10**9, 0, 0, 0)
        assert [one for one in changed() if one.startswith("slack of timers")]
    finally:
        library.prctl(SET_TIMERSLACK, before, 0, 0, 0)
    assert not changed()


@pytest.mark.parametrize(
    ("where", "name", "value"), [(torch, "default_generator", torch.Generator()), (torch, "float", torch.bfloat16), (math, "pi", 3.0)]
)
def test_constants_that_others_compute_with_are_watched(monkeypatch: pytest.MonkeyPatch, where: object, name: str, value: object) -> None:
    changed = watch_constants()
    assert not changed()
    monkeypatch.setattr(where, name, value)
    assert changed() == [f"{where.__name__}.{name}"]  # type: ignore[attr-defined]


def test_pythons_generators_stay_watched_where_the_original_draws_from_torchs() -> None:
    with generators_kept("cpu"):
        changed = watch_generators()
        torch.rand(1)
        random.random()
        assert changed(True) == ["random generator random advanced"] and not changed()
        torch.rand(1)
        assert not changed(True)
        torch.rand(1)
        assert changed() == ["random generator torch advanced"]


def test_what_is_held_is_the_memory_and_not_the_object() -> None:
    outputs = [torch.rand(3), (torch.rand(2), {"a": torch.rand(1), "n": 3})]
    held, gone = views_of(outputs), weakref.ref(outputs[0])
    place = outputs[0].data_ptr()
    del outputs
    assert gone() is None and held[0].data_ptr() == place and held[1][1]["n"] == 3 and type(held[1]) is tuple
