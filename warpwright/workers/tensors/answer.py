"""What a call returned, described in a few bytes at the end of the timed call: containers, numbers, and each tensor's form and address.

`describer` makes the worker's side, from functions that are taken before a candidate is imported; `read` is the parent's side and believes
nothing. Whatever of a candidate's code the description runs (a metaclass, a property) runs before the call has answered, inside the clock.
The bytes of the tensors are read by the parent out of the stopped process (`memory`).

    tensor   t, dimensions, dtype, address, bytes of storage from there on, shape, strides
    tuple ( list [ dict {   and the number of items;   numbers i f b;   None n;   anything else x and its name
    o and its name          an object of a class of its own (objects), followed by its items as a dict
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any

from warpwright.errors import WorkerProtocol
from warpwright.workers.tensors.objects import apart

ITEM_BYTES = {
    "float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1,
    "complex64": 8, "complex128": 16, "uint16": 2, "uint32": 4, "uint64": 8, "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1,
    "float8_e5m2fnuz": 1, "complex32": 4,
}  # fmt: skip
"""The dtypes that a description can name; the place in this table is the code."""

NAMES = tuple(ITEM_BYTES)
DEEPEST, MOST_DIMENSIONS = 64, 64
HEAD = struct.Struct("=BBQQ")


class TooDeep(Exception):
    """Containers within containers beyond measure."""


@dataclass(frozen=True)
class Place:
    """A tensor in a worker's memory."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    address: int
    held: int
    """Bytes of its storage, from the address on."""

    @property
    def bytes(self) -> int:
        """From the first element's first byte to the last one's last."""
        if 0 in self.shape:
            return 0
        return (1 + sum((size - 1) * step for size, step in zip(self.shape, self.stride, strict=True))) * ITEM_BYTES[self.dtype]

    def overlaps(self, address: int, size: int) -> bool:
        """Whether it shares memory with `size` bytes at `address`."""
        return self.bytes > 0 and size > 0 and self.address < address + size and address < self.address + self.bytes


# --- the worker's side --------------------------------------------------------------------------------------------------------------


def describer() -> Callable[[Any], bytes]:
    """Return the function that describes what a call returned. Some two microseconds a tensor."""
    import torch

    kind, base, pack = torch.Tensor, torch._C.TensorBase, struct.pack
    address, size, stride, offset, width = base.data_ptr, base.size, base.stride, base.storage_offset, base.element_size
    storage, held = base.untyped_storage, torch.UntypedStorage.nbytes
    codes = {getattr(torch, name): code for code, name in enumerate(NAMES) if hasattr(torch, name)}
    returned, take_apart = torch_results(), apart
    items, pairs = tuple.__iter__, dict.items
    dtype_of = base.dtype.__get__  # type: ignore[attr-defined]

    def tensor(value: Any) -> bytes:
        problem = unusual(value)
        if problem:
            return other(problem)
        shape, steps, code = size(value), stride(value), codes.get(dtype_of(value))
        if code is None:
            return other(f"a tensor of dtype {dtype_of(value)}")
        left = held(storage(value)) - offset(value) * width(value)
        return pack(f"=cBBQQ{2 * len(shape)}q", b"t", len(shape), code, address(value), max(left, 0), *shape, *steps)

    def other(text: str) -> bytes:
        data = text.encode()[:200]
        return b"x" + pack("=H", len(data)) + data

    def describe(value: Any) -> bytes:
        kind_seen = type(value)
        if kind_seen is kind:
            return tensor(value)
        if kind_seen is tuple or kind_seen in returned or is_named_tuple(kind_seen):
            parts = [describe(item) for item in items(value)]
            return b"(" + pack("=I", len(parts)) + b"".join(parts)
        if kind_seen is list:
            return b"[" + pack("=I", len(value)) + b"".join([describe(item) for item in value])
        if kind_seen is dict or kind_seen is OrderedDict:
            return dictionary(value)
        if value is None:
            return b"n"
        if kind_seen is bool:
            return b"b" + pack("=?", value)
        if kind_seen is int and -(1 << 63) <= value < 1 << 63:
            return b"i" + pack("=q", value)
        if kind_seen is float:
            return b"f" + pack("=d", value)
        taken = take_apart(value)
        if type(taken) is str:
            return other(taken)
        name = taken[0].encode()[:1000]
        return b"o" + pack("=H", len(name)) + name + dictionary(taken[1])

    def dictionary(value: Any) -> bytes:
        parts = []
        for key, item in pairs(value):
            if type(key) is not str:
                return other(f"a dictionary with a key of type {type(key).__name__}")
            name = key.encode()[:1000]
            parts.append(pack("=H", len(name)) + name + describe(item))
        return b"{" + pack("=I", len(parts)) + b"".join(parts)

    def described(value: Any) -> bytes:
        try:
            return describe(value)
        except RecursionError:  # a list that holds itself
            return other("containers within containers without end")

    return described


def state_text(name: str, tensor: Any) -> list[Any]:
    """Return where a parameter or buffer lies, for a reply: name, dtype, shape, strides, address, bytes of storage from there on."""
    held = tensor.untyped_storage().nbytes() - tensor.storage_offset() * tensor.element_size()
    return [name, str(tensor.dtype).removeprefix("torch."), list(tensor.shape), list(tensor.stride()), tensor.data_ptr(), held]


@cache
def torch_results() -> frozenset[type]:
    """Return the named results of torch's own functions (sort, max), as they were when this was asked first."""
    import torch

    return frozenset(value for value in vars(torch.return_types).values() if isinstance(value, type))


NAMED_TUPLE = frozenset(
    ("__doc__", "__slots__", "_fields", "_field_defaults", "__new__", "_make", "_replace", "__repr__", "_asdict", "__getnewargs__",
     "__match_args__", "__module__", "__replace__", "__annotations__", "__orig_bases__", "__firstlineno__", "__static_attributes__"),
)  # fmt: skip


def is_named_tuple(kind: type) -> bool:
    """Whether a class is what collections.namedtuple makes and nothing more: another subclass could answer anything to whoever reads it."""
    if type(kind) is not type or type.mro(kind)[1:] != [tuple, object]:
        return False
    inside = type.__dict__["__dict__"].__get__(kind)
    fields = inside.get("_fields")
    if type(fields) is not tuple or not all(type(name) is str for name in fields):
        return False
    plain = all(type(inside.get(name)).__name__ == "_tuplegetter" for name in fields)
    return plain and inside.keys() <= NAMED_TUPLE | set(fields)


def unusual(tensor: Any) -> str:
    """Return "" for an ordinary tensor whose values lie in its memory, else what it is."""
    import torch

    kind = type(tensor)
    if kind is not torch.Tensor:
        return f"a {kind.__module__}.{kind.__qualname__}"
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
        return f"a tensor of layout {tensor.layout}{' that is quantised' * tensor.is_quantized}{' that is nested' * tensor.is_nested}"
    if tensor.device.type == "meta" or torch._C._functorch.is_functorch_wrapped_tensor(tensor) or tensor._is_zerotensor():
        return "a tensor without storage"
    if torch._C._is_cow_tensor(tensor):  # type: ignore[attr-defined]
        return "a copy-on-write clone, whose copy is still to be made"
    if tensor.is_neg() or tensor.is_conj():
        return "a tensor whose negation or conjugation is still to be done"
    return "a tensor that requires grad, under no_grad" if tensor.requires_grad else ""


def worked_out(value: Any, which: Container[int]) -> Any:
    """Return what a call returned with the conjugation or negation of these leaves done, where a mark says that it is still to be."""
    import torch
    from torch.utils._pytree import tree_map

    number = count()

    def leaf(item: Any) -> Any:
        return item.resolve_conj().resolve_neg() if next(number) in which and isinstance(item, torch.Tensor) else item

    return tree_map(leaf, value)


# --- the parent's side --------------------------------------------------------------------------------------------------------------


def read(data: bytes) -> Any:
    """Return a described value in the form of `exchange.encode`, with a `Place` for each tensor. Raises WorkerProtocol for anything else."""
    try:
        value, end = _read(data, 0, 0)
    except TooDeep:
        return {"tuple": [{"not_plain": f"containers more than {DEEPEST} deep"}, {"value": None}]}
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise WorkerProtocol(f"the description of an answer is cut off or garbled: {error}") from error
    if end != len(data):
        raise WorkerProtocol("the description of an answer is longer than what it describes")
    return value


def _read(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    if depth > DEEPEST:
        raise TooDeep
    kind, at = data[at : at + 1], at + 1
    if kind == b"t":
        return _read_tensor(data, at)
    if kind in (b"(", b"[", b"{"):
        return _read_container(kind, data, at, depth)
    if kind == b"n":
        return {"value": None}, at
    if kind == b"b":
        return {"value": data[at] != 0}, at + 1
    if kind == b"i":
        return {"value": struct.unpack_from("=q", data, at)[0]}, at + 8
    if kind == b"f":
        return {"float": struct.unpack_from("=d", data, at)[0].hex()}, at + 8
    if kind == b"o":
        (size,) = struct.unpack_from("=H", data, at)
        items, after = _read(data, at + 2 + size, depth + 1)
        return {"object": {"kind": data[at + 2 : at + 2 + size].decode(), "items": items}}, after
    if kind == b"x":
        (size,) = struct.unpack_from("=H", data, at)
        return {"not_plain": data[at + 2 : at + 2 + size].decode(errors="replace")}, at + 2 + size
    raise WorkerProtocol(f"the description of an answer holds {kind!r}")


def _read_tensor(data: bytes, at: int) -> tuple[Any, int]:
    dimensions, code, address, held = HEAD.unpack_from(data, at)
    if dimensions > MOST_DIMENSIONS or code >= len(NAMES):
        raise WorkerProtocol(f"the description of an answer holds a tensor of {dimensions} dimensions and dtype {code}")
    sizes = struct.unpack_from(f"={2 * dimensions}q", data, at + HEAD.size)
    if any(size < 0 or size >= 1 << 48 for size in sizes):
        raise WorkerProtocol("the description of an answer holds a tensor of negative or absurd size")
    place = Place(NAMES[code], sizes[:dimensions], sizes[dimensions:], address, held)
    after = at + HEAD.size + 16 * dimensions
    if place.bytes > held:
        return {"not_plain": f"a tensor of {place.bytes} bytes in a storage of {held}"}, after
    return {"tensor": place}, after


def _read_container(kind: bytes, data: bytes, at: int, depth: int) -> tuple[Any, int]:
    (count,) = struct.unpack_from("=I", data, at)
    at += 4
    if kind == b"{":
        members: dict[str, Any] = {}
        for _ in range(count):
            (size,) = struct.unpack_from("=H", data, at)
            name = data[at + 2 : at + 2 + size].decode()
            members[name], at = _read(data, at + 2 + size, depth + 1)
        return {"dict": members}, at
    items = []
    for _ in range(count):
        item, at = _read(data, at, depth + 1)
        items.append(item)
    return {"tuple" if kind == b"(" else "list": items}, at


def read_state(texts: Any) -> dict[str, Place]:
    """Return what `state_text` wrote, by name. Raises WorkerProtocol for anything else."""
    places = {}
    try:
        for name, dtype, shape, stride, address, held in texts:
            sizes = [*shape, *stride, address, held]
            if dtype not in ITEM_BYTES or len(shape) != len(stride) or not all(type(size) is int and size >= 0 for size in sizes):
                raise WorkerProtocol(f"expected where a state's tensor lies, saw {name!r} of {dtype!r}")
            places[str(name)] = Place(dtype, tuple(shape), tuple(stride), address, held)
    except (TypeError, ValueError) as error:
        raise WorkerProtocol(f"expected where a state's tensors lie, saw {str(texts)[:200]}") from error
    return places


KEPT = "an output returned earlier"
"""What an output may share memory with, as its description names it."""


def places(tree: Any) -> list[Place]:
    """Return the tensors of a read value, in order."""
    if isinstance(tree, Place):
        return [tree]
    if isinstance(tree, dict):
        return [place for item in tree.values() for place in places(item)]
    return [place for item in tree for place in places(item)] if isinstance(tree, list) else []
