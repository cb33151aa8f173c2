"""What lies in a stopped worker's memory: the parent puts the inputs there and takes the outputs; the worker executes nothing for it."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from itertools import count
from typing import Any, TypeVar

from warpwright.errors import WorkerDied, WorkerProtocol
from warpwright.workers.tensors import answer, exchange, memory
from warpwright.workers.tensors.answer import Place
from warpwright.workers.tensors.turns import Turn

Moved = TypeVar("Moved")


class WorkerMemory:
    """One worker's memory, as far as the parent knows its way about it.

    `died`: makes the error to raise when the process turns out to have ended. That is no forgery: whoever guards it may end it at any moment.
    """

    def __init__(self, pid: int, folder: str, died: Callable[[], WorkerDied]) -> None:
        self.pid, self.folder, self._died = pid, folder, died
        self.reachable = False
        """Whether the kernel lets this process read and write it; known after the first `hello`."""
        self.inputs: list[tuple[exchange.Descriptor, Place]] = []
        self._input_tree: Any = None
        self.outputs: Any = None
        self.kept: Any = None
        self.state: dict[str, Place] | None = None
        """Where parameters and buffers lay when the last call answered, or else when they were loaded."""

    def probe(self, where: Any) -> None:
        """See whether the memory can be read and written: `where` is an address and the eight bytes there, in hex, as the worker says."""
        if not (isinstance(where, list) and len(where) == 2 and isinstance(where[0], int) and isinstance(where[1], str)):
            raise WorkerProtocol(f"expected an address and what lies there, saw {where!r}")
        seen = self._move(memory.read, where[0], 8)
        self.reachable = seen is not None and seen.hex() == where[1] and self._move(memory.write, where[0], seen)

    def _move(self, how: Callable[..., Moved], *what: Any) -> Moved:
        """Read or write by one of `memory`'s functions. Raises WorkerDied if the process has ended."""
        try:
            return how(self.pid, *what)
        except ProcessLookupError:
            raise self._died() from None

    # -- in

    def fill(self, inputs: Any, places: Any) -> None:
        """Write shipped inputs to where the worker has made room for them."""
        wanted = list(exchange.descriptors(inputs))
        if not isinstance(places, list) or len(places) != len(wanted) or not all(type(address) is int and address >= 0 for address in places):
            raise WorkerProtocol(f"expected the addresses of {len(wanted)} inputs, saw {str(places)[:200]}")
        self.inputs, self._input_tree = [], inputs
        for item, address in zip(wanted, places, strict=True):
            size = exchange.bytes_of(item)
            place = Place(item["dtype"], tuple(item["shape"]), tuple(item["stride"]), address, size)
            if size and not self._write(item, place):
                raise WorkerProtocol(f"the worker has no memory for an input of {size} bytes where it says that it has")
            self.inputs.append((item, place))

    def fill_turn(self, turn: Turn, places: Any) -> None:
        """Write the inputs of every call of a turn to where the worker has made room for them."""
        tensors = turn.tensors
        if not isinstance(places, list) or len(places) != len(tensors) or not all(type(address) is int and address >= 0 for address in places):
            raise WorkerProtocol(f"expected the addresses of {len(tensors)} inputs, saw {str(places)[:200]}")
        self.inputs, self._input_tree = [], []
        for tensor, address in zip(tensors, places, strict=True):
            data = exchange.flat_bytes(tensor)
            if not self._move(memory.write_from, address, data.data_ptr(), data.numel()):
                raise WorkerProtocol(f"the worker has no memory for an input of {data.numel()} bytes where it says that it has")

    def _write(self, item: exchange.Descriptor, place: Place) -> bool:
        if "data" in item:
            return self._move(memory.write, place.address, base64.b64decode(item["data"]))
        return self._move(memory.write_from_file, place.address, item["file"], int(item.get("at", 0)), place.bytes)

    # -- out

    def take_answer(self, description: bytes) -> None:
        """Take in what the worker says it has returned, and where its state lies if it changes."""
        self.outputs = None
        if not description:
            return
        read = answer.read(description)
        both = read.get("tuple") if isinstance(read, dict) else None
        if not isinstance(both, list) or len(both) != 2:
            raise WorkerProtocol("expected a call's outputs and state, saw something else")
        self.outputs = both[0]
        if "dict" in both[1]:
            self.state = {name: item["tensor"] for name, item in both[1]["dict"].items() if isinstance(item, dict) and "tensor" in item}

    def take_state(self, texts: Any) -> None:
        """Take in where a state that was just loaded lies."""
        self.state = answer.read_state(texts) if texts is not None else None

    def keep(self) -> None:
        """Remember the last outputs, which the worker holds on to."""
        self.kept = self.outputs

    def export(self, what: str, at: int | None = None) -> dict[str, Any]:
        """Return outputs, kept outputs, inputs or state in the form of the runner's export, read out of the stopped process.

        `at`: of a turn of many calls, the outputs of that call.
        """
        numbers = count()
        if what == "inputs":
            places = iter([place for _, place in self.inputs])
            tree = _each(self._input_tree, lambda item: self._read(next(places), what, next(numbers)))
        elif what == "state":
            tree = {"dict": {name: {"tensor": self._read(place, what, next(numbers))} for name, place in (self.state or {}).items()}}
        else:
            chosen = self.kept if what == "kept" else self.outputs
            if at is not None:
                calls = chosen.get("list") if isinstance(chosen, dict) else None
                if not isinstance(calls, list) or at >= len(calls):
                    raise WorkerProtocol(f"expected the outputs of more than {at} calls in a turn")
                chosen = calls[at]
            tree = _each(chosen, lambda place: self._read(place, what, next(numbers)))
        return {"tree": tree, "aliases": self.aliases() if what == "outputs" and at is None else [], "folder": self.folder}

    def _read(self, place: Place, what: str, number: int) -> exchange.Descriptor:
        header = {"dtype": place.dtype, "shape": list(place.shape), "stride": list(place.stride), "device": "cpu"}
        if place.bytes <= exchange.INLINE_BYTES:
            data = self._move(memory.read, place.address, place.bytes) if place.bytes else b""
            if data is None:
                raise WorkerProtocol(f"{what}: no memory of the worker's lies where it says that a tensor does")
            return {**header, "data": base64.b64encode(data).decode()}
        path = os.path.join(self.folder, f"{what}-{number}")
        try:
            done = self._move(memory.read_to_file, place.address, place.bytes, path)
        except OSError as error:
            raise WorkerProtocol(f"{what} of {place.bytes} bytes cannot be taken out: {error}") from error
        if not done:
            raise WorkerProtocol(f"{what}: no memory of the worker's lies where it says that a tensor does")
        return {**header, "file": path}

    def aliases(self) -> list[list[str]]:
        """Return, for each output, what it shares memory with."""
        held = [(f"input {number}", (place.address, place.bytes)) for number, (_, place) in enumerate(self.inputs)]
        held += [(name, (place.address, place.bytes)) for name, place in (self.state or {}).items()]
        held += [(answer.KEPT, (place.address, place.bytes)) for place in answer.places(self.kept)]
        aliases: list[list[str]] = []
        outputs = answer.places(self.outputs)
        for number, output in enumerate(outputs):
            others = [(f"output {other}", (place.address, place.bytes)) for other, place in enumerate(outputs[:number])]
            aliases.append([name for name, span in [*held, *others] if output.overlaps(*span)])
        return aliases


def _each(tree: Any, tensor: Callable[[Any], Any]) -> Any:
    """Return an encoded value with every tensor replaced by what `tensor` makes of it."""
    if isinstance(tree, list):
        return [_each(item, tensor) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if "tensor" in tree and (isinstance(tree["tensor"], Place) or "shape" in tree["tensor"]):
        return {"tensor": tensor(tree["tensor"])}
    return {key: _each(item, tensor) for key, item in tree.items()}
