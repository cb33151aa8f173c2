"""Recording a CUDA graph in a process that does other things too. Generated programs carry the text below the mark."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

# --- generated programs hold what follows
import contextlib as _contextlib
import gc as _gc
import threading as _threading

import torch


@_contextlib.contextmanager
def _recording(graph, errors="thread_local", **options):
    """Record what this thread launches in the block. One thread of the process records at a time, and other threads may go on.

    The garbage collector rests meanwhile: a graph that it frees while another is recorded ends the recording with an error.
    """
    with vars(torch.cuda).setdefault("_recording_turn", _threading.RLock()):
        collects = _gc.isenabled()
        _gc.disable()
        try:
            with torch.cuda.graph(graph, capture_error_mode=errors, **options):
                yield
        finally:
            if collects:
                _gc.enable()
