"""The cells of benchmarks.rgnn.scaling as one process of several runs them: a layer on a graph that fits one card, and on one that does not."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist

from benchmarks.rgnn.forward_training import layer_of, of_one_tensor
from benchmarks.rgnn.noted import Row
from benchmarks.rgnn.profiled import on_device
from warpwright.domains.rgnn import index as indices
from warpwright.domains.rgnn import synth
from warpwright.domains.rgnn.nn.rgat import RGATConv
from warpwright.domains.rgnn.nn.rgcn import RGCNConv
from warpwright.domains.rgnn.partition import Part, Parted, sum_gradients

WIDTH, CALLS, REPEATS = 64, 8, 3
SLOW = 400.0
"""Milliseconds beyond which a call is not repeated."""
PROGRAMS = {"rows first": False, "two runs": True}
"""Whether a layer runs twice, to overlap messages."""
BEYOND_NODES, BEYOND_EDGES, BEYOND_RELATIONS, BEYOND_LOCAL = 50_000_000, 250_000_000, 64, 0.9
"""Nodes and edges of one process, at most."""
TRIED = 0.04
"""Of that, what is tried first: memory is linear."""
SAMPLED = 1000
"""Own nodes whose results are computed anew in float64 where no card has the graph."""
ROWS = 1 << 20
"""Rows of which values are made, or dot products taken, at a time."""
MESSAGE = 1 << 26
"""float32 numbers in the message that says how fast messages are."""


class Share:
    """One process' layer, rows and step."""

    def __init__(self, layer: torch.nn.Module, part: Part, x: torch.Tensor, weights: torch.Tensor, overlap: bool = False) -> None:
        """Take the process' own rows, and the gradients of its results."""
        self.part, self.layer, self.x, self.weights = part, Parted(layer, part, overlap), x.requires_grad_(), weights

    def forward(self) -> torch.Tensor:
        """Return the result."""
        with torch.no_grad():
            out: torch.Tensor = self.layer(self.x)
        return out

    def step(self, add_up: bool = True) -> torch.Tensor:
        """Run forward and backward, add the gradients up, and return the result."""
        self.x.grad = None
        self.layer.zero_grad(set_to_none=True)
        out: torch.Tensor = self.layer(self.x)
        out.backward(self.weights)
        if add_up:
            sum_gradients(self.layer, self.part)
        return out.detach()

    def messages(self, add_up: bool = True) -> None:
        """Send what a step sends, and nothing else."""
        far = self.x.new_empty(sum(self.part.received), self.x.shape[1])
        self.part.exchange(self.x.detach())[1].wait()
        self.part.exchange(far, back=True)[1].wait()
        if add_up:
            sum_gradients(self.layer, self.part)


def silent(part: Part, x: torch.Tensor, back: bool = False, memory: torch.Tensor | None = None) -> tuple[torch.Tensor, Any, torch.Tensor]:
    """Stand in for `Part.exchange`: the same gathers and memory, nothing sent."""
    rows, of = (x, part.sent) if back else (x.index_select(0, part.rows_sent), part.received)
    memory = x.new_zeros(sum(of), *x.shape[1:]) if memory is None else memory.zero_()
    return memory, SimpleNamespace(wait=lambda: None), rows


def through_the_host(device: torch.device, share: float) -> None:
    """Let processes run on one card, each with a share of its memory: what they tell one another goes through the host's memory."""
    if device.type == "cuda":
        torch.cuda.set_per_process_memory_fraction(share, device)
    exchange, add_up = dist.all_to_all_single, dist.all_reduce

    def staged_exchange(out: torch.Tensor, rows: torch.Tensor, *args: Any, async_op: bool = False, **kwargs: Any) -> Any:
        arrived = torch.empty(out.shape, dtype=out.dtype)
        exchange(arrived, rows.cpu(), *args, **kwargs)
        out.copy_(arrived)
        return SimpleNamespace(wait=lambda: None) if async_op else None

    def staged_sum(x: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        total = x.cpu()
        add_up(total, *args, **kwargs)
        x.copy_(total)

    dist.all_to_all_single, dist.all_reduce = staged_exchange, staged_sum  # type: ignore[assignment]


class Meter:
    """Times and memory of this process' device."""

    def __init__(self, device: torch.device, share: float = 1.0) -> None:
        """`share`: the part of the card that this process may take."""
        self.device, self.on_gpu, self.share = device, device.type == "cuda", share
        self.calls, self.repeats = (CALLS, REPEATS) if self.on_gpu and share == 1.0 else (1, 1)

    def wait(self) -> None:
        """Wait for the device."""
        if self.on_gpu:
            torch.cuda.synchronize(self.device)

    def clean(self) -> None:
        """Free what is cached, and let the peak begin anew."""
        gc.collect()
        if self.on_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(self.device)

    def peak_gb(self) -> float:
        """Return the most that was in use since `clean`."""
        return torch.cuda.max_memory_allocated(self.device) / 1e9 if self.on_gpu else 0.0

    def ms(self, function: Callable[[], Any], alone: bool = False) -> float:
        """Return the median over repeats of the time of a call among several, back to back; of the slowest process unless `alone`.

        A call that takes longer than `SLOW` is made once.
        """

        def timed(calls: int) -> float:
            if not alone:
                dist.barrier()
            self.wait()
            begun = time.perf_counter()
            for _ in range(calls):
                function()
            self.wait()
            return (time.perf_counter() - begun) / calls * 1e3

        function()
        first = timed(1)
        if (first if alone else self.most(first)) > SLOW:
            times = [first]
        else:
            times = [timed(self.calls) for _ in range(self.repeats)]
        return statistics.median(times) if alone else self.most(*times)

    def most(self, *numbers: float) -> float:
        """Return the median of numbers, each the largest of all processes."""
        shared = torch.tensor(numbers, device=self.device, dtype=torch.float64)
        dist.all_reduce(shared, op=dist.ReduceOp.MAX)
        return statistics.median(shared.tolist())

    def total(self, number: float) -> float:
        """Return the sum over all processes."""
        shared = torch.tensor([number], device=self.device, dtype=torch.float64)
        dist.all_reduce(shared)
        return shared.item()


def checked(meter: Meter) -> Iterator[Row]:
    """Give the row of the machine: do sums and exchanges give what they should, and how fast are they?"""
    rank, ranks, device = dist.get_rank(), dist.get_world_size(), meter.device
    ones = torch.ones(1 << 20, device=device)
    dist.all_reduce(ones)
    mine = torch.arange(ranks * 8, device=device, dtype=torch.int64) + 1000 * rank
    seen = torch.empty_like(mine)
    dist.all_to_all_single(seen, mine)
    wanted = torch.cat([torch.arange(8, device=device) + 8 * rank + 1000 * other for other in range(ranks)])
    right = bool((ones == ranks).all()) and torch.equal(seen, wanted)
    row: Row = {"right": meter.most(float(not right)) == 0.0}
    if meter.on_gpu and meter.share == 1.0:
        row["names"] = [torch.cuda.get_device_name(card) for card in range(torch.cuda.device_count())]
        row["peers"] = ranks > 1 and torch.cuda.can_device_access_peer(0, 1)
        row |= {"torch": torch.__version__, "nccl": list(torch.cuda.nccl.version())}
        rows = torch.zeros(MESSAGE // ranks * ranks, device=device)
        memory = torch.empty_like(rows)
        each_way = rows.numel() * 4 * (ranks - 1) / ranks
        row["gb_per_second_each_way"] = each_way / meter.ms(lambda: dist.all_to_all_single(memory, rows)) / 1e6
        row["sum_of_a_megabyte_ms"] = meter.ms(lambda: dist.all_reduce(ones[: 1 << 18]))
    yield row


def shared_out(name: str, model: str, width: int, meter: Meter, scale: float) -> Iterator[Row]:
    """Give the rows of one layer on one graph, which every process draws whole: on one card, and shared out."""
    device = meter.device
    meter.clean()
    graph = synth.synthetic(name, scale, device)
    layer = layer_of(model, graph, width, device)
    random = torch.Generator(device=device).manual_seed(1)
    x, weights = (torch.randn(graph.count, width, device=device, generator=random) for _ in range(2))
    common = {"nodes": graph.count, "edges": graph.edge_type.numel()}
    one, wanted = alone(layer, graph, x, weights, meter)
    yield common | {"gpus": 1, "program": "one GPU"} | one
    indices.forget([graph.edge_index, graph.edge_type])
    part = Part(graph.edge_index, graph.edge_type, graph.nodes)
    places = torch.cat([torch.arange(graph.count, device=device)[part.own(kind)] for kind in range(len(graph.nodes))])
    x, weights = x[places], weights[places]
    wanted = [rows[places] for rows in wanted]
    del graph
    meter.clean()
    programs = PROGRAMS if wanted else {"rows first": False}  # two runs take more memory
    for program, overlap in programs.items():
        indices.forget([part.whole.edge_index, part.whole.edge_type])  # of the program before
        share = Share(layer, part, x, weights, overlap)
        yield common | {"program": program, **measured(share, meter, wanted)}


def alone(
    layer: torch.nn.Module, graph: synth.Synthetic, x: torch.Tensor, weights: torch.Tensor, meter: Meter
) -> tuple[Row, list[torch.Tensor]]:
    """Return times of the layer with the whole graph on this card, its result and the gradient of x; nothing of these where a card is too small."""
    of_tensor: Any = of_one_tensor(layer, graph, lacking=True) if hasattr(layer, "node_types") else None
    run = of_tensor or (lambda rows: layer(rows, graph.edge_index, graph.edge_type))
    leaf = x.clone().requires_grad_()

    def step() -> torch.Tensor:
        leaf.grad = None
        layer.zero_grad(set_to_none=True)
        out: torch.Tensor = run(leaf)
        out.backward(weights)
        return out.detach()

    def forward() -> None:
        with torch.no_grad():
            run(leaf)

    try:
        out = step()
        assert leaf.grad is not None
        wanted = [out, leaf.grad.clone()]
        meter.clean()
        row: Row = {"forward_ms": meter.ms(forward, alone=True), "step_ms": meter.ms(step, alone=True)}
        row["peak_gb"] = meter.peak_gb()
    except torch.OutOfMemoryError as problem:
        wanted, row = [], {"note": f"out of memory: {str(problem)[:300]}"}
    if meter.most(float(not wanted)):
        wanted = []
    return row, wanted


def measured(share: Share, meter: Meter, wanted: Sequence[torch.Tensor]) -> Row:
    """Return a row of a layer that is shared out: its times, and a card's memory in steps after the first, the most of all."""
    out = share.step()
    assert share.x.grad is not None
    row: Row = {}
    if wanted:
        parts = zip((out, share.x.grad), wanted, strict=True)
        row["error"] = meter.most(max(float((a - b).norm() / b.norm().clamp(min=1e-30)) for a, b in parts))
    del out
    meter.clean()
    row["forward_ms"] = meter.ms(share.forward)
    row["step_ms"] = meter.ms(share.step)
    row["peak_gb"] = meter.most(meter.peak_gb())
    row["sent_gb_each_way"] = meter.total(sum(share.part.sent) * share.x.shape[1] * 4 / 1e9)
    if row["step_ms"] > SLOW or meter.share < 1.0:
        return row
    messages = meter.ms(share.messages)
    with mock.patch.object(Part, "exchange", silent):
        row["silent_ms"] = meter.ms(lambda: share.step(add_up=False))
        gathers = meter.ms(lambda: share.messages(add_up=False))
    row["messages_ms"] = messages - gathers
    row["hidden"] = 1 - (row["step_ms"] - row["silent_ms"]) / max(row["messages_ms"], 1e-9)
    return row | beside(share, meter)


def beside(share: Share, meter: Meter) -> Row:
    """Return what a profile of this process' step says: the time that messages take on the card, and how much of it other kernels run beside them."""
    if not meter.on_gpu:
        return {}
    first = dist.get_rank() == 0
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) if first else nullcontext() as profile:
        share.step()
        meter.wait()
    if profile is None:
        return {}
    events = on_device(profile.events() or ())
    messages, others = ([(e.time_range.start, e.time_range.end) for e in events if ("nccl" in e.name.lower()) is nccl] for nccl in (True, False))
    return {"profiled_messages_us": total(joined(messages)), "profiled_hidden_us": total(common_to(joined(messages), joined(others)))}


Spans = list[tuple[float, float]]


def joined(spans: Spans) -> Spans:
    """Return spans of time without overlaps."""
    result: Spans = []
    for start, end in sorted(spans):
        if result and start <= result[-1][1]:
            result[-1] = result[-1][0], max(end, result[-1][1])
        else:
            result.append((start, end))
    return result


def common_to(first: Spans, second: Spans) -> Spans:
    """Return where spans of both are."""
    both = [(max(a, c), min(b, d)) for a, b in first for c, d in second]
    return [(start, end) for start, end in both if start < end]


def total(spans: Spans) -> float:
    """Return the length of spans."""
    return sum(end - start for start, end in spans)


def beyond(model: str, part_of_card: float, meter: Meter, scale: float) -> Iterator[Row]:
    """Give the rows of RGCN or RGAT on a graph that no card holds: each process draws edges into its own nodes, which take `part_of_card` of it."""
    row: Row = {"program": "rows first"}
    if meter.on_gpu:
        free, peak = tried(model, meter, scale * TRIED)
        fits = min(1.0, part_of_card * free / (peak / TRIED))
        scale *= -meter.most(-fits)
        row |= {"card_gb": free / 1e9, "tried_gb": peak / 1e9}
    meter.clean()
    begun, drawing = time.perf_counter(), Drawing(model, meter.device, scale)
    share, check = drawing.share()
    row |= {"nodes": drawing.nodes, "edges": drawing.edges, "drawn_seconds": time.perf_counter() - begun}
    begun = time.perf_counter()
    out = share.step()
    meter.wait()
    row["first_step_seconds"] = time.perf_counter() - begun
    row["error"] = meter.most(check(out))
    if model == "rgcn":
        row["gradient_error"] = identity(share, out, meter)
    del out, check
    if meter.share == 1.0:
        row["forward_ms"], row["step_ms"] = meter.ms(share.forward), meter.ms(share.step)
    row["peak_gb"] = meter.most(meter.peak_gb())
    yield row | {"sent_gb_each_way": meter.total(sum(share.part.sent) * WIDTH * 4 / 1e9)}
    del share
    meter.clean()
    if dist.get_rank() == 0:
        yield {"gpus": 1, "program": "one GPU", "nodes": drawing.nodes, "edges": drawing.edges} | drawing.alone(meter)
    meter.clean()
    dist.barrier()


def tried(model: str, meter: Meter, scale: float) -> tuple[int, int]:
    """Return a card's free bytes, with NCCL's own memory taken, and the most that two steps and what is before them took."""
    meter.clean()
    before = torch.cuda.memory_allocated(meter.device)
    share = Drawing(model, meter.device, scale).share()[0]
    share.step()
    share.step()
    peak = torch.cuda.max_memory_allocated(meter.device) - before
    del share
    meter.clean()
    free, whole = torch.cuda.mem_get_info(meter.device)
    return free if meter.share == 1.0 else int(whole * meter.share) - before, peak


class Drawing:
    """A random graph of which each process draws the edges into its own nodes; nine tenths of them begin there too, as after a partitioner."""

    def __init__(self, model: str, device: torch.device, scale: float) -> None:
        self.device, self.rank, self.ranks = device, dist.get_rank(), dist.get_world_size()
        self.own, self.into_each = int(BEYOND_NODES * scale), int(BEYOND_EDGES * scale)
        self.nodes, self.edges = self.own * self.ranks, self.into_each * self.ranks
        torch.manual_seed(0)
        self.layer = {"rgcn": RGCNConv, "rgat": RGATConv}[model](WIDTH, WIDTH, BEYOND_RELATIONS).to(device)

    def drawn(self, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the edges into a process' nodes, and their types."""
        random, count = torch.Generator(device=self.device).manual_seed(rank), self.into_each
        edges = torch.empty(2, count, dtype=torch.int64, device=self.device)
        edges.random_(0, self.own, generator=random)
        edges += rank * self.own
        far = torch.rand(count, device=self.device, generator=random) >= BEYOND_LOCAL
        edges[0] = torch.where(far, torch.randint(self.nodes, (count,), device=self.device, generator=random), edges[0])
        return edges, torch.randint(BEYOND_RELATIONS, (count,), device=self.device, generator=random)

    def share(self) -> tuple[Share, Callable[[torch.Tensor], float]]:
        """Return this process' share, and what says how far results are from those of some nodes in float64."""
        edges, kinds = self.drawn(self.rank)
        check = self.sample(edges, kinds)
        part = Part(edges, kinds, [self.nodes])
        del edges, kinds
        if self.device.type == "cuda":
            torch.cuda.empty_cache()  # of pieces that the edges left, which rows do not fit in
        own = part.own(0)
        x, weights = (values(own.start, own.stop, seed, self.device) for seed in (0, 1))
        return Share(self.layer, part, x, weights), check

    def sample(self, edges: torch.Tensor, kinds: torch.Tensor) -> Callable[[torch.Tensor], float]:
        """Return what compares results of `SAMPLED` own nodes with a mean and a product written out, of values that any process knows."""
        first = self.rank * self.own
        nodes = torch.unique(torch.randint(self.own, (SAMPLED,), device=self.device)) + first
        number = torch.full((self.own,), -1, dtype=torch.int32, device=self.device)
        number[nodes - first] = torch.arange(nodes.numel(), dtype=torch.int32, device=self.device)
        place = number[edges[1] - first]
        into = place >= 0
        source, kind, place = edges[0][into], kinds[into], place[into].long()
        del number, into

        def check(out: torch.Tensor) -> float:
            written_out = averaged if isinstance(self.layer, RGCNConv) else attended
            wanted = written_out(self.layer, values_of(source, 0).double(), values_of(nodes, 0).double(), place, kind)
            return float((out[nodes - first].double() - wanted).norm() / wanted.norm())

        return check

    def alone(self, meter: Meter) -> Row:
        """Return times of the whole graph on one card, or that it ran out of memory."""
        try:
            drawn = [self.drawn(rank) for rank in range(self.ranks)]
            edges, kinds = torch.cat([e for e, _ in drawn], 1), torch.cat([k for _, k in drawn])
            del drawn
            x, weights = (values(0, self.nodes, seed, self.device) for seed in (0, 1))
            x.requires_grad_()

            def step() -> None:
                x.grad = None
                self.layer.zero_grad(set_to_none=True)
                self.layer(x, edges, kinds).backward(weights)

            return {"step_ms": meter.ms(step, alone=True), "peak_gb": meter.peak_gb()}
        except torch.OutOfMemoryError as problem:
            return {"note": f"out of memory: {str(problem)[:300]}"}


def averaged(layer: Any, rows: torch.Tensor, targets: torch.Tensor, place: torch.Tensor, kind: torch.Tensor) -> torch.Tensor:
    """Return RGCN of targets in float64: the mean over each relation's edges, of which rows, places of targets and relations are given."""
    weight, root, bias = (p.detach().double() for p in (layer.weight, layer.root, layer.bias))
    pairs, pair = torch.unique(place * BEYOND_RELATIONS + kind, return_inverse=True)
    mean = rows.new_zeros(pairs.numel(), WIDTH).index_add_(0, pair, rows) / torch.bincount(pair, minlength=pairs.numel())[:, None]
    result: torch.Tensor = targets @ root + bias
    for relation in range(BEYOND_RELATIONS):
        chosen = pairs % BEYOND_RELATIONS == relation
        result.index_add_(0, pairs[chosen] // BEYOND_RELATIONS, mean[chosen] @ weight[relation])
    return result


def attended(layer: Any, rows: torch.Tensor, targets: torch.Tensor, place: torch.Tensor, kind: torch.Tensor) -> torch.Tensor:
    """Return RGAT of targets in float64, likewise."""
    weight, query, key, bias = (p.detach().double() for p in (layer.weight, layer.q, layer.k, layer.bias))
    moved, scores = torch.empty_like(rows), rows.new_empty(rows.shape[0])
    for relation in range(BEYOND_RELATIONS):
        chosen = kind == relation
        moved[chosen] = rows[chosen] @ weight[relation]
        scores[chosen] = (targets[place[chosen]] @ weight[relation] @ query + moved[chosen] @ key).flatten()
    powers = torch.nn.functional.leaky_relu(scores, layer.negative_slope).exp()
    sums = powers.new_zeros(targets.shape[0]).index_add_(0, place, powers)
    return bias + torch.zeros_like(targets).index_add_(0, place, moved * (powers / sums[place])[:, None])


def identity(share: Share, out: torch.Tensor, meter: Meter) -> float:
    """Return how far gradients are from what a layer that is linear in x and in its parameters has to give, over the size of the sum.

    Sum of (gradient of x) x = sum of (gradient of the result) (result - bias), which also is the sum over weights and root.
    """
    layer: Any = share.layer.layer
    bias = layer.bias.detach()
    of_result, squares = (meter.total(dot(share.weights, out, power, bias)) for power in (1, 2))
    assert share.x.grad is not None
    of_x = meter.total(dot(share.x.grad, share.x.detach(), 1))
    of_weights = sum(float((p.grad.double() * p.detach().double()).sum()) for p in (layer.weight, layer.root))
    return max(abs(of_x - of_result), abs(of_weights - of_result)) / max(squares, 1e-30) ** 0.5


def dot(a: torch.Tensor, b: torch.Tensor, power: int, less: torch.Tensor | None = None) -> float:
    """Return the sum of (a (b - less)) ** power in float64."""
    result = 0.0
    for start in range(0, a.shape[0], ROWS):
        other = b[start : start + ROWS].double()
        result += float((a[start : start + ROWS].double() * (other if less is None else other - less)).pow(power).sum())
    return result


def values(first: int, end: int, seed: int, device: torch.device) -> torch.Tensor:
    """Return the rows of nodes, known from their numbers alone."""
    rows = torch.empty(end - first, WIDTH, device=device)
    for start in range(first, end, ROWS):
        stop = min(end, start + ROWS)
        rows[start - first : stop - first] = values_of(torch.arange(start, stop, device=device), seed)
    return rows


def values_of(nodes: torch.Tensor, seed: int) -> torch.Tensor:
    """Return float32 rows between -1 and 1: bits of products of the numbers with odd ones, which float32 holds exactly."""
    odd = torch.randint(1 << 40, (WIDTH,), generator=torch.Generator().manual_seed(seed)) * 2 + 1
    bits = (nodes[:, None] + 1) * odd.to(nodes.device)
    return ((bits >> 20 ^ bits >> 37) & 0xFFFF).float() / 32768 - 1
