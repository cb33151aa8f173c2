"""Tensors between processes: descriptors in JSON, bytes beside it.

Small tensors travel inside the descriptor, larger ones through a file in shared memory (CPU) or a CUDA IPC handle. Nothing that an
untrusted worker wrote is unpickled or mapped: files are read, with their size checked, into memory of our own, so that a worker that
truncates or rewrites its file afterwards changes nothing.
"""

from __future__ import annotations

import base64
import os
import pickle
import stat
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from warpwright.errors import WorkerProtocol
from warpwright.workers.tensors import cuda_ipc
from warpwright.workers.tensors.answer import DEEPEST, ITEM_BYTES, is_named_tuple, torch_results
from warpwright.workers.tensors.objects import Named, apart

INLINE_BYTES = 2048
PAGE = 4096
LONGEST_LEAD = 4096
"""A tensor that begins at element n of its storage begins at n modulo this in another process: what is before it does not travel."""
READ_CHUNK = 1 << 30  # read(2) and write(2) move at most 2 GiB - 4 KiB at once

Descriptor = dict[str, Any]


@cache
def _dtypes() -> Mapping[str, Any]:
    """Return torch's dtypes by name: of all that torch has, which takes 0.1 ms to look through, and is asked for with each tensor."""
    import torch

    return {str(value).removeprefix("torch."): value for value in vars(torch).values() if isinstance(value, torch.dtype)}


def extent(shape: Sequence[int], stride: Sequence[int]) -> int:
    """Return the elements from a tensor's first to its last in memory, gaps included."""
    return 0 if 0 in shape else 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))


def flat_bytes(tensor: Any) -> Any:
    """Return a tensor's memory, from its first element to its last and gaps included, as a flat uint8 tensor that shares it."""
    import torch

    if tensor.numel() == 0:
        return torch.empty(0, dtype=torch.uint8, device=tensor.device)
    elements = extent(tensor.shape, tensor.stride())
    return tensor.detach().as_strided((elements,), (1,), tensor.storage_offset()).view(torch.uint8)


class Shelf:
    """Where one process puts tensors for others to take: a folder, or memory without a name, and the CUDA tensors that have to stay alive."""

    def __init__(self, folder: str, host_only: bool = False, private: bool = False) -> None:
        """`private`: nothing has a name that another process could look for; only who may look into this process gets at it."""
        self.folder, self.private = folder, private
        self.host_only = host_only
        """CUDA tensors go through files too, because IPC does not work here."""
        self._alive: dict[str, list[Any]] = {}
        self._files: dict[str, int] = {}
        self._count = 0

    def put(self, tensor: Any, owner: str = "") -> Descriptor:
        """Return the descriptor of `tensor`. What was put for `owner` stays until `release(owner)`."""
        plain = tensor.detach().resolve_conj().resolve_neg()
        header = {"dtype": str(plain.dtype).removeprefix("torch."), "shape": list(plain.shape), "stride": list(plain.stride())}
        header["device"] = str(plain.device)
        if plain.storage_offset() % LONGEST_LEAD:
            header["lead"] = plain.storage_offset() % LONGEST_LEAD
        data = flat_bytes(plain)
        if data.is_cuda and not self.host_only and data.numel() > INLINE_BYTES:
            try:
                named = cuda_ipc.export(data)
            except cuda_ipc.IpcError:  # memory that no other process can open: managed, of a pool of the driver's, of expandable segments
                plain = data.clone()
                named = cuda_ipc.export(plain)
            self._alive.setdefault(owner, []).append(plain)
            return {**header, "cuda": named}
        host = data.cpu().numpy()
        if len(host) <= INLINE_BYTES:
            return {**header, "data": base64.b64encode(host.tobytes()).decode()}
        if self.private:
            return {**header, **self._put_privately(host.data, owner)}
        self._count += 1
        path = os.path.join(self.folder, f"{owner or 'tensor'}-{self._count}")
        _write(path, host.data)
        self._alive.setdefault(owner, []).append(path)
        return {**header, "file": path}

    def _put_privately(self, data: memoryview, owner: str) -> Descriptor:
        """Append to the owner's nameless file: one for all its tensors, because descriptors are few."""
        if owner not in self._files:
            self._files[owner] = os.memfd_create("tensors", os.MFD_CLOEXEC)
        handle = self._files[owner]
        at = -(-os.fstat(handle).st_size // PAGE) * PAGE
        os.truncate(handle, at + len(data))
        done = 0
        while done < len(data):
            done += os.pwrite(handle, data[done : done + READ_CHUNK], at + done)
        return {"file": f"/proc/{os.getpid()}/fd/{handle}", "at": at}

    def release(self, owner: str = "") -> None:
        """Forget what was put for `owner`."""
        if owner in self._files:
            os.close(self._files.pop(owner))
        for item in self._alive.pop(owner, []):
            if isinstance(item, str):
                Path(item).unlink(missing_ok=True)

    def release_all(self) -> None:
        """Forget everything."""
        for owner in [*self._alive, *self._files]:
            self.release(owner)


def _write(path: str, data: memoryview) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        done = 0
        while done < len(data):
            done += os.write(handle, data[done : done + READ_CHUNK])
    finally:
        os.close(handle)


def take(descriptor: Descriptor, device: str, into: Any = None, folder: str = "") -> Any:
    """Return the tensor of a descriptor, copied into memory of this process on `device`.

    `into`: a tensor of the same form whose memory is overwritten in place and which is returned, its version counter unchanged.
    `folder`: if given, the only folder that a file may come from.
    """
    import torch

    shape, stride, dtype = told(descriptor)
    if into is None:
        into = torch.empty_strided(shape, stride, dtype=dtype, device=device)
    _fill(descriptor, flat_bytes(into.data), folder)
    return into


def told_bytes(descriptor: Descriptor) -> int:
    """Return the bytes that a worker says a tensor takes, gaps included, as `bytes_of` does of a descriptor that is trusted."""
    shape, stride, dtype = told(descriptor)
    return extent(shape, stride) * int(dtype.itemsize)


def told(descriptor: Descriptor) -> tuple[tuple[int, ...], tuple[int, ...], Any]:
    """Return shape, strides and dtype of a descriptor; raise WorkerProtocol where it has none."""
    shape, stride = _sizes(descriptor, "shape"), _sizes(descriptor, "stride")
    dtype = _dtypes().get(str(descriptor.get("dtype")))
    if dtype is None or len(shape) != len(stride):
        raise WorkerProtocol(f"expected a tensor's descriptor, saw {str(descriptor)[:200]}")
    return shape, stride, dtype


def take_where_it_lay(descriptor: Descriptor, device: str, folder: str = "") -> Any:
    """Return the tensor of a descriptor as `take` does, on the host if it lay there: a model on a GPU may hand out a tensor that was never moved."""
    return take(descriptor, "cpu" if str(descriptor.get("device", "cpu")).partition(":")[0] == "cpu" else device, folder=folder)


def receive(descriptor: Descriptor, device: str, into: Any = None) -> Any:
    """Return the tensor of a trusted descriptor, or room for it where it comes without values: those the parent writes into this process's memory.

    `lead`: elements that lie before the first one, so that the tensor is a view with an offset.
    """
    import torch

    if into is None:
        shape, stride, lead = descriptor["shape"], descriptor["stride"], int(descriptor.get("lead", 0))
        block = torch.empty(lead + extent(shape, stride), dtype=_dtypes()[descriptor["dtype"]], device=device)
        into = block.as_strided(shape, stride, lead)
    has_values = any(kind in descriptor for kind in ("data", "file", "cuda"))
    return take(descriptor, device, into) if has_values else into


def _sizes(descriptor: Descriptor, name: str) -> tuple[int, ...]:
    sizes = descriptor.get(name)
    if not isinstance(sizes, list) or not all(type(size) is int and 0 <= size < 1 << 48 for size in sizes):
        raise WorkerProtocol(f"expected a list of sizes as {name!r}, saw {sizes!r}")
    return tuple(sizes)


def _fill(descriptor: Descriptor, target: Any, folder: str) -> None:
    import torch

    if "cuda" in descriptor:
        if target.is_cuda:
            return cuda_ipc.copy_into(descriptor["cuda"], target)
        staging = torch.empty(target.shape, dtype=torch.uint8, device=descriptor["device"])
        cuda_ipc.copy_into(descriptor["cuda"], staging)
        target.copy_(staging)
        return None
    host = target if target.device.type == "cpu" else torch.empty(target.shape, dtype=torch.uint8)
    if "data" in descriptor:
        data = base64.b64decode(descriptor["data"], validate=True)
        if len(data) != host.numel():
            raise WorkerProtocol(f"expected {host.numel()} bytes in a descriptor, saw {len(data)}")
        host.numpy()[:] = memoryview(data)
    else:
        at = descriptor.get("at")
        if at is not None and not (type(at) is int and at >= 0):
            raise WorkerProtocol(f"expected a place in a file, saw {at!r}")
        _read(str(descriptor.get("file")), host.numpy().data, folder, at)
    if host is not target:
        target.copy_(host)
    return None


def _read(path: str, target: memoryview, folder: str, offset: int | None = None) -> None:
    """Fill `target` from a file: all of it, which has to be of that size, or a piece at `offset`."""
    if folder and os.path.dirname(path) != folder:
        raise WorkerProtocol(f"expected a file in {folder}, saw {path!r}")
    try:
        named = 0 if path.startswith("/proc/") and not folder else os.O_NOFOLLOW
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | named | os.O_NONBLOCK)
    except OSError as error:
        raise WorkerProtocol(f"a tensor's file cannot be opened: {error}") from error
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or (offset is None and status.st_size != len(target)):
            raise WorkerProtocol(f"expected a file of {len(target)} bytes, saw {status.st_size}")
        done = 0
        while done < len(target):
            count = os.preadv(handle, [target[done : done + READ_CHUNK]], (offset or 0) + done)
            if count == 0:
                raise WorkerProtocol(f"a tensor's file ended after {done} of {len(target)} bytes")
            done += count
    finally:
        os.close(handle)


def copied(tensor: Any) -> Any:
    """Return a copy of a dense tensor in memory of its own: the same strides, gaps and place in its block."""
    import torch

    plain = tensor.detach().resolve_conj().resolve_neg()
    lead = plain.storage_offset() % LONGEST_LEAD
    block = torch.empty(lead + extent(plain.shape, plain.stride()), dtype=plain.dtype, device=plain.device)
    copy = block.as_strided(plain.shape, plain.stride(), lead)
    flat_bytes(copy).copy_(flat_bytes(plain))
    return copy


def descriptors(tree: Any) -> Iterator[Descriptor]:
    """Yield the tensors' descriptors of an encoded value, in order."""
    if isinstance(tree, list):
        for item in tree:
            yield from descriptors(item)
    elif isinstance(tree, dict):
        for key, item in tree.items():
            if key == "tensor" and isinstance(item, dict) and "shape" in item:
                yield item
            elif isinstance(item, dict | list):
                yield from descriptors(item)


def foreign(tree: Any) -> str:
    """Return what an encoded value holds that is neither a plain tensor nor a number, or "". What is garbled is for `decode` to refuse.

    It is not believed to be well formed: containers may be within one another without end.
    """
    waiting = [(tree, 0)]
    while waiting:
        item, depth = waiting.pop()
        if depth > DEEPEST:
            return f"containers {DEEPEST} deep"
        kind, body = next(iter(item.items())) if isinstance(item, dict) and len(item) == 1 else ("", None)
        if kind == "object" and isinstance(body, dict):
            kind, body = "list", [body.get("items")]
        if kind == "dict" and isinstance(body, dict):
            kind, body = "list", list(body.values())
        if kind in ("list", "tuple") and isinstance(body, list):
            waiting += [(inner, depth + 1) for inner in body]
        elif kind == "tensor" and isinstance(body, dict) and "not_plain" in body:
            return str(body["not_plain"])[:200]
        elif kind in ("not_plain", "other"):
            return str(body if kind == "not_plain" else f"a {body}")[:200]
        elif kind == "value" and not _is_number(body):
            return f"a {type(body).__name__} ({str(body)[:50]!r})"
    return ""


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, bool) or (isinstance(value, int) and -(1 << 63) <= value < 1 << 63)


def forms_of(tree: Any) -> Any:
    """Return an encoded value without the values of its tensors: dtypes, shapes and strides are left, and where in its block a tensor begins."""
    if isinstance(tree, list):
        return [forms_of(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if "shape" in tree:
        return {key: tree[key] for key in ("dtype", "shape", "stride", "device", "lead") if key in tree}
    return {key: forms_of(item) for key, item in tree.items()}


def relay(tree: Any, folder: str) -> tuple[Any, list[str]]:
    """Return an encoded value whose files are copies in `folder`, and those copies: for a worker that may not look into the sender."""
    copies: list[str] = []

    def copied(item: Any) -> Any:
        if isinstance(item, list):
            return [copied(inner) for inner in item]
        if not isinstance(item, dict):
            return item
        if isinstance(item.get("file"), str) and "shape" in item:
            path = os.path.join(folder, f"relayed-{len(copies)}")
            _copy_piece(item["file"], int(item.get("at", 0)), bytes_of(item), path)
            copies.append(path)
            return {key: value for key, value in item.items() if key != "at"} | {"file": path}
        return {key: copied(inner) for key, inner in item.items()}

    return copied(tree), copies


def bytes_of(descriptor: Descriptor) -> int:
    """Return the bytes that a descriptor stands for, gaps included."""
    return extent(descriptor["shape"], descriptor["stride"]) * ITEM_BYTES[descriptor["dtype"]]


def _copy_piece(source: str, at: int, size: int, target: str) -> None:
    with open(source, "rb") as reader, open(target, "wb", opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW, 0o644)) as writer:
        done = 0
        while done < size:
            count = os.sendfile(writer.fileno(), reader.fileno(), at + done, size - done)
            if count == 0:
                raise WorkerProtocol(f"a tensor's file ended after {done} of {size} bytes")
            done += count


# --- trees of values: what a forward takes and returns ------------------------------------------------------------------------------


def encode(value: Any, tensor: Callable[[Any], Any], trusted: bool = False) -> Any:
    """Return `value` as JSON: containers, scalars, and whatever `tensor(leaf)` gives for a tensor.

    Other leaves are pickled if `trusted` (judge to worker), else named: {"other": type name}.
    """
    import torch

    if isinstance(value, torch.Tensor):
        return {"tensor": tensor(value)}
    if value is None or type(value) in (bool, int, str):
        return {"value": value}
    if type(value) is float:
        return {"float": value.hex()}
    if type(value) is list:
        return {"list": [encode(item, tensor, trusted) for item in value]}
    if type(value) is tuple or type(value) in torch_results() or is_named_tuple(type(value)):
        return {"tuple": [encode(item, tensor, trusted) for item in tuple.__iter__(value)]}
    if type(value) in (dict, OrderedDict) and all(type(key) is str for key in value):
        return {"dict": {key: encode(item, tensor, trusted) for key, item in value.items()}}
    if trusted:
        return {"pickle": base64.b64encode(pickle.dumps(value)).decode()}
    taken = apart(value)
    if isinstance(taken, str):
        return {"other": taken.removeprefix("a ")}
    return {"object": {"kind": taken[0], "items": encode(taken[1], tensor)}}


def tensors_in(value: Any) -> list[Any]:
    """Return the tensors of a program's outputs, also those that plain objects and dataclasses hold."""
    found: list[Any] = []
    encode(value, found.append)
    return found


def decode(data: Any, tensor: Callable[[Any], Any], trusted: bool = False) -> Any:
    """Return the value that `encode` wrote; `tensor(payload)` makes its tensors. Pickles are read only if `trusted`."""
    if not isinstance(data, dict) or len(data) != 1:
        raise WorkerProtocol(f"expected an encoded value, saw {str(data)[:200]}")
    kind, body = next(iter(data.items()))
    if kind == "tensor":
        return tensor(body)
    if kind == "value" and (body is None or type(body) in (bool, int, str)):
        return body
    if kind == "float" and isinstance(body, str):
        return float.fromhex(body)
    if kind in ("list", "tuple") and isinstance(body, list):
        items = [decode(item, tensor, trusted) for item in body]
        return items if kind == "list" else tuple(items)
    if kind == "dict" and isinstance(body, dict):
        return {key: decode(item, tensor, trusted) for key, item in body.items()}
    if kind == "object" and isinstance(body, dict) and body.keys() == {"kind", "items"} and isinstance(body["kind"], str):
        items = decode(body["items"], tensor)
        if isinstance(items, dict):
            return Named(body["kind"], items)
    if kind == "pickle" and trusted:
        return pickle.loads(base64.b64decode(body))
    raise WorkerProtocol(f"expected an encoded value, saw {str(data)[:200]}", "return tensors, numbers, lists, tuples or dictionaries of them")
