"""Recording a CUDA graph in a process that does other things too. Generated programs carry the text below the mark."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

# --- generated programs hold what follows
import contextlib as _contextlib
import gc as _gc
import threading as _threading

import torch


@_contextlib.contextmanager
def _recording(graph, errors="thread_local", stream=None, **options):
    """Record what this thread launches on its device in the block. One thread of the process records at a time, and other threads may go on.

    The garbage collector rests meanwhile: a graph that it frees while another is recorded ends the recording with an error. Each device has a stream
    for it: torch has one for all, of the device that came first, and a graph recorded on it for another one is empty. Where the recording fails,
    torch leaves its stream the current one; here the one before is current again.
    """
    kept = vars(torch.cuda)
    with kept.setdefault("_recording_turn", _threading.RLock()):
        streams, device = kept.setdefault("_recording_streams", {}), torch.cuda.current_device()
        if stream is None and device not in streams:
            streams[device] = torch.cuda.Stream()
        stream = streams[device] if stream is None else stream
        collects = _gc.isenabled()
        _gc.disable()
        try:
            with torch.cuda.stream(stream), torch.cuda.graph(graph, stream=stream, capture_error_mode=errors, **options):
                yield
        finally:
            if collects:
                _gc.enable()


def _elsewhere(tensors):
    """Whether some lie on another GPU than this thread's: what is launched there is not recorded, and its streams are not those waited for."""
    places = {t.device.index for t in tensors if isinstance(t, torch.Tensor) and t.is_cuda}
    return bool(places) and places != {torch.cuda.current_device()}
