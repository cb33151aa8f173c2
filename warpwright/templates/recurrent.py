"""LSTM, GRU and plain recurrent networks by one persistent kernel, whose weights stay on chip (recurrent.cu). GPUs from sm_80 on."""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from warpwright.errors import WarpwrightError
from warpwright.templates import driver
from warpwright.templates.sources import text

# --- generated programs hold what follows

KINDS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
GATES = (4, 3, 1, 1)
CELL = "PqqPPPPPPPPPPq"
"""`struct Cell` of recurrent.cu, as the struct module writes it."""
MOST_CELLS = 16
REGISTERS = {256: (40, 48), 384: (20, 40), 512: (16, 24)}
"""Most threads of a block -> steps of four weights, times gates, that a thread keeps in registers (160 of 255, 80 of 168, 64 of 128); sums."""
BATCHES = 64
"""More sequences are a product of matrices a step, for which this kernel is not made."""


class Way(NamedTuple):
    """How a network is spread over a GPU: what is left to a search."""

    share: int = 1
    """1, 2 or 4: a cell takes all, half or a quarter of the blocks that it could have: fewer have more to do, fewer wait for one another."""
    sampled: bool = False
    """Does a thread wait for one of its words before it reads the others?"""
    warps: int = 8
    """8 or 12: most warps of a block; more have fewer registers each."""


PLAIN = Way()


class Tiles(NamedTuple):
    """Parameters of the kernel (their meaning and legal ranges are in recurrent.cu)."""

    kind: int
    hidden: int
    batch: int
    chained: bool
    units: int
    lanes: int
    held: int
    held_in: int
    together: int
    ahead: int
    sampled: bool

    def defines(self) -> list[str]:
        """Return the macros."""
        names = ("KIND", "HIDDEN", "BATCH", "CHAINED", "UNITS", "LANES", "HELD", "HELD_IN", "TOGETHER", "AHEAD", "SAMPLED")
        return [f"{name}={int(value)}" for name, value in zip(names, self, strict=True)]

    @property
    def depth(self) -> int:
        """Steps of four elements of a thread along a row of weights."""
        return -(-self.hidden // (4 * self.lanes))

    @property
    def places(self) -> int:
        """Blocks of a cell."""
        return -(-self.hidden // self.units)

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.units * self.lanes

    @property
    def shared(self) -> int:
        """Dynamic shared memory of a block, bytes: states, sums, and the weights that are not in registers."""
        rows, gates, sides = -(-self.batch // self.together) * self.together, GATES[self.kind], 1 + self.chained
        words = rows * self.depth * 4 * self.lanes * sides + 2 * gates * rows * self.units
        kept = self.depth - self.held + self.chained * (self.depth - self.held_in)
        return 16 * (-(-words // 4) + kept * gates * self.threads)


@functools.lru_cache
def plan(kind: int, hidden: int, batch: int, cells: int, chained: bool, multiprocessors: int, shared: int, way: Way = PLAIN) -> Tiles | None:
    """Return the parameters for `cells` cells at once on a GPU of so many multiprocessors with so many bytes of shared memory for a block.

    None where the weights do not fit on the chip.
    """
    blocks = multiprocessors // cells // way.share
    if not blocks or not 0 < batch <= BATCHES or hidden < 1:
        return None
    units = -(-hidden // blocks)
    wide = [lanes for lanes in (32, 16, 8) if units * lanes <= 32 * way.warps and (lanes == 8 or lanes * 4 <= hidden)]
    lanes = wide[0] if wide else 8
    units = max(units, 32 // lanes)  # whole warps
    units = -(-units // (32 // lanes)) * (32 // lanes)
    if units * lanes > 512:
        return None
    room, sums = next(counts for threads, counts in REGISTERS.items() if units * lanes <= threads)
    depth, gates = -(-hidden // (4 * lanes)), GATES[kind]
    held = min(depth, room // gates)
    held_in = min(depth, room // gates - held) if chained else 0
    values = min(sums, 200 - 4 * gates * (held + held_in))
    together = _together(batch, max(1, min(16, values // gates)), gates, lanes, depth)
    words = batch * hidden // (1 if hidden % 4 else 4)
    ahead = min(8, max(1, -(-words // (units * lanes))))
    tiles = Tiles(kind, hidden, batch, chained, units, lanes, held, held_in, together, ahead, way.sampled and ahead > 1)
    return tiles if tiles.shared <= shared else None


def _together(batch: int, most: int, gates: int, lanes: int, depth: int) -> int:
    """Return how many batch elements are summed at once: the fewest cycles of a warp by a rough count, 100 of them waiting."""

    def cycles(count: int) -> int:
        values, shuffles = gates * count, 0
        for _ in range(lanes.bit_length() - 1):
            values = values // 2 if values % 2 == 0 else values
            shuffles += values
        return -(-batch // count) * (100 + 2 * shuffles + 4 * gates * count * depth)

    return min(range(1, most + 1), key=cycles)


class Chip(NamedTuple):
    """What of a GPU decides how a network is spread over it."""

    multiprocessors: int
    shared: int
    arch: str


@functools.cache
def chip(device: int) -> Chip | None:
    """Return what is known of a GPU; None for one that is too old."""
    facts = torch.cuda.get_device_properties(device)
    if torch.version.hip is not None or facts.major < 8:
        return None
    optional = getattr(facts, "shared_memory_per_block_optin", 99 * 1024)
    return Chip(facts.multi_processor_count, optional, f"{facts.major}{facts.minor}{'a' if facts.major == 9 else ''}")


@functools.cache
def kernel(device: int, tiles: Tiles) -> Any:
    """Return the kernel, built and loaded once."""
    with torch.cuda.device(device):
        arch = (chip(device) or Chip(0, 0, "80")).arch
        code = driver.machine_code(text("recurrent.cu"), arch, tiles.defines())
        formats = (f"{struct.calcsize(CELL) * MOST_CELLS}s", "i", "q", "q")
        return driver.Kernel(code, "recurrent", formats, tiles.threads, tiles.shared, cooperative=True)


class Network(NamedTuple):
    """A call of a recurrent network of torch; `hx` and `params` are its lists of tensors."""

    kind: int
    hx: Sequence[torch.Tensor]
    params: Sequence[torch.Tensor]
    has_biases: bool
    layers: int
    bidirectional: bool
    batch_first: bool

    @property
    def directions(self) -> int:
        """1 or 2."""
        return 2 if self.bidirectional else 1

    def weights(self, cell: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        """Return W_in, W_hid, b_in and b_hid of a cell, counted layer by layer."""
        if self.has_biases:
            w_in, w_hid, b_in, b_hid = self.params[4 * cell : 4 * cell + 4]
            return w_in, w_hid, b_in, b_hid
        return self.params[2 * cell], self.params[2 * cell + 1], None, None


def _laid(x: torch.Tensor) -> torch.Tensor:
    """Return x contiguous, at an address that is a multiple of 16 bytes."""
    x = x.contiguous()
    return x.clone() if x.data_ptr() % 16 else x


def groups(net: Network, batch: int, of: Chip, way: Way = PLAIN) -> list[tuple[int, Tiles]] | None:
    """Return which layers go in one launch each: how many, and its parameters; None where a layer does not fit.

    Layers of one launch run one step behind each other, so as many go together as fit; in both directions a layer needs the whole one before.
    """
    hidden, layers, left = net.hx[0].shape[-1], net.layers, []
    if net.bidirectional:
        tiles = plan(net.kind, hidden, batch, 2, False, of.multiprocessors, of.shared, way)
        return None if tiles is None else [(1, tiles)] * layers
    while layers:
        for count in range(min(layers, MOST_CELLS), 0, -1):
            tiles = plan(net.kind, hidden, batch, count, count > 1, of.multiprocessors, of.shared, way)
            if tiles is not None:
                break
        else:
            return None
        left.append((count, tiles))
        layers -= count
    return left


def run(x: torch.Tensor, net: Network, launches: Sequence[tuple[int, Tiles]]) -> tuple[torch.Tensor, ...]:
    """Return what torch's function does: the outputs [batch, steps, ...] (or steps first), hn, and cn of an LSTM.

    The products of a launch's inputs are one product of all steps before it, but for layers that read the layer before in the same launch.
    """
    steps, batch = (x.shape[1], x.shape[0]) if net.batch_first else (x.shape[0], x.shape[1])
    hidden, wide = net.hx[0].shape[-1], net.hx[0].shape[-1] * net.directions
    first = [_laid(state) for state in net.hx]
    last = [torch.empty_like(state) for state in first]
    outs = [x.new_empty(steps, batch, wide) for _ in range(net.layers)]
    for out in outs:
        out.view(torch.int32).fill_(-1)
    at, turned = 0, x.transpose(0, 1) if net.batch_first else x
    for count, tiles in launches:
        cells, alive = [], []
        for cell in range(at * net.directions, (at + count) * net.directions):
            layer, direction = divmod(cell, net.directions)
            w_in, w_hid, b_in, b_hid = (None if w is None else _laid(w) for w in net.weights(cell))
            assert w_in is not None and w_hid is not None
            pre = None
            if layer == at:
                pre = torch.nn.functional.linear(turned.transpose(0, 1) if layer == 0 and net.batch_first else turned, w_in, b_in)
                pre = pre.transpose(0, 1) if layer == 0 and net.batch_first else pre
            alive += [w_in, w_hid, b_in, b_hid, pre]
            (h0, *c0), (hn, *cn) = ([given[cell].data_ptr() for given in some] for some in (first, last))
            products = (0, 0, 0) if pre is None else (pre.data_ptr(), pre.stride(0), pre.stride(1))
            below = outs[layer - 1].data_ptr() if pre is None else 0
            weights = map(_at, (w_in, b_in, w_hid, b_hid))
            ends = (outs[layer].data_ptr() + 4 * hidden * direction, hn, *(cn or [0]))
            cells.append(struct.pack(CELL, *products, *weights, h0, *(c0 or [0]), below, *ends, direction))
        launch(x, tiles, cells, steps, batch * wide, wide)
        del alive  # memory that is given back now goes to later work of this stream
        at, turned = at + count, outs[at + count - 1]
    return (outs[-1].transpose(0, 1) if net.batch_first else outs[-1], *last)


def _at(x: torch.Tensor | None) -> int:
    return 0 if x is None else x.data_ptr()


def launch(x: torch.Tensor, tiles: Tiles, cells: Sequence[bytes], steps: int, step: int, row: int) -> None:
    """Launch the kernel for some cells on the current stream of x's GPU."""
    stream = torch.cuda.current_stream(x.device).cuda_stream
    kernel(x.device.index, tiles)(len(cells) * tiles.places, stream, b"".join(cells), steps, step, row)


_refused: set[tuple[int, Tiles]] = set()


def network(
    name: str, x: torch.Tensor, hx: Sequence[torch.Tensor], params: Sequence[torch.Tensor], has_biases: bool, layers: int, dropout: float,
    train: bool, bidirectional: bool, batch_first: bool, way: Way = PLAIN,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """Return what torch's function of the name does, by the persistent kernel where that can be, else by torch."""

    def by_torch() -> tuple[torch.Tensor, ...]:
        state = tuple(hx) if name == "lstm" else hx[0]
        return tuple(getattr(torch, name)(x, state, list(params), has_biases, layers, dropout, train, bidirectional, batch_first))

    plain = all(t.dtype == torch.float32 and t.device == x.device for t in (x, *hx, *params))
    projected = len(hx) == 2 and hx[0].shape != hx[1].shape
    if not x.is_cuda or not plain or projected or x.dim() != 3 or not x.numel() or (train and dropout):
        return by_torch()
    of = chip(x.device.index)
    net = Network(KINDS.index(name), hx, params, has_biases, layers, bidirectional, batch_first)
    launches = groups(net, x.shape[0 if batch_first else 1], of, way) if of else None
    if not launches or any((x.device.index, tiles) in _refused for _, tiles in launches):
        return by_torch()
    with torch.cuda.device(x.device):
        try:
            return run(x, net, launches)
        except WarpwrightError as error:  # a GPU that is partly taken holds fewer blocks than it has room for, and a machine may have no compiler
            import warnings

            warnings.warn(f"{name} runs as torch's, which is slower: {error}", RuntimeWarning, stacklevel=2)
            _refused.update((x.device.index, tiles) for _, tiles in launches)
            return by_torch()
