"""HGTConv: PyG's heterogeneous graph transformer layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn import Parameter, ParameterDict

from warpwright.domains.rgnn.attention.in_place import attention as in_place_attention
from warpwright.domains.rgnn.attention.layer import attended
from warpwright.domains.rgnn.attention.of_rows import Begun, attention, taken
from warpwright.domains.rgnn.emit.own.kernel import MANY
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.nn.common import Layer, check_rows, of_dtype, whole_call, wide
from warpwright.domains.rgnn.nn.hgt_nodes import Finish, Mixed, Project
from warpwright.domains.rgnn.nn.node_types import Together, are_few, in_place, kernels_for, side_by_side
from warpwright.domains.rgnn.operator import Edges, apply
from warpwright.errors import UsageError

EdgeType = tuple[str, str, str]


class _Linears(torch.nn.Module):
    """One linear layer for each node type; `lins` is what PyG's HeteroDictLinear calls them."""

    def __init__(self, widths: dict[str, int], out_channels: int) -> None:
        super().__init__()
        self.lins = torch.nn.ModuleDict({kind: torch.nn.Linear(width, out_channels) for kind, width in widths.items()})


class _Relations(torch.nn.Module):
    """One matrix for each head and relation, at head * relations + relation."""

    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.weight = Parameter(torch.empty(count, width, width))


def _projected(
    counts: list[int], rows: Sequence[torch.Tensor], linears: list[tuple[torch.Tensor, torch.Tensor]], begun: Begun | None, lying: bool
) -> tuple[torch.Tensor, ...]:
    if torch.compiler.is_compiling():  # which writes no views
        whole = torch.cat([F.linear(x, *linear) for x, linear in zip(rows, linears, strict=True)])
        return tuple(part.contiguous() for part in whole.chunk(3, 1))
    parts: tuple[torch.Tensor, ...] = Project.apply(counts, begun, lying, *rows, *(w for w, _ in linears), *(b for _, b in linears))
    return parts


class HGTConv(Layer):
    """Attention over all incoming edges of a node, with projections by node type and by edge type.

    Relations are taken by name, whatever the order of `edge_index_dict` (PyG's answer depends on it).
    """

    pyg_module = "torch_geometric.nn.conv.hgt_conv"
    checked: tuple[list[str], list[EdgeType], str] | None = None
    """Node types and edge types of the last call, and the form of its edges: wikikg2's graph has 535 edge types."""

    def __init__(
        self, in_channels: int | dict[str, int], out_channels: int, metadata: tuple[list[str], list[EdgeType]], heads: int = 1, **kwargs: Any
    ) -> None:
        """Take PyG's arguments; widths have to be known (-1, a lazy one, is not computed here)."""
        super().__init__()
        self.remember(locals())
        if out_channels % heads:
            raise ValueError(f"'out_channels' (got {out_channels}) must be divisible by the number of heads (got {heads})")
        widths = in_channels if isinstance(in_channels, dict) else dict.fromkeys(metadata[0], in_channels)
        self.in_channels, self.out_channels, self.heads = widths, out_channels, heads
        self.node_types, self.edge_types = metadata
        self.edge_names = ["__".join(kind) for kind in self.edge_types]
        self.edge_types_map = {kind: number for number, kind in enumerate(self.edge_types)}
        self.dst_node_types = {kind[-1] for kind in self.edge_types}
        self.unsupported = f"the arguments {', '.join(kwargs)}" if kwargs else ""
        self.replayable = heads == 1
        depth, relations = out_channels // heads, len(self.edge_types)
        self.kqv_lin, self.out_lin = _Linears(widths, 3 * out_channels), _Linears(dict.fromkeys(self.node_types, out_channels), out_channels)
        self.k_rel, self.v_rel = _Relations(heads * relations, depth), _Relations(heads * relations, depth)
        self.skip, self.p_rel = ParameterDict(), ParameterDict()
        for kind in self.node_types:  # one by one: a dictionary would be sorted, and optimisers count parameters
            self.skip[kind] = Parameter(torch.empty(1))
        for name in self.edge_names:
            self.p_rel[name] = Parameter(torch.empty(1, heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the weights anew."""
        for linear in (*self.kqv_lin.lins.values(), *self.out_lin.lins.values()):
            linear.reset_parameters()  # type: ignore[operator]
        for relation in (self.k_rel, self.v_rel):
            bound = 1 / math.sqrt(relation.weight.shape[-1])
            torch.nn.init.uniform_(relation.weight, -bound, bound)
        for one in (*self.skip.values(), *self.p_rel.values()):
            torch.nn.init.ones_(one)

    @whole_call
    def forward(self, x_dict: dict[str, torch.Tensor], edge_index_dict: dict[EdgeType, Any]) -> dict[str, torch.Tensor]:
        """Return [N, out] for each node type that is a destination; node types that the metadata lack are left out, as PyG does."""
        edges = list(edge_index_dict.values())
        strange = any(not isinstance(e, torch.Tensor) or e.layout != torch.strided for e in edges)
        if self.unsupported or strange:
            result: dict[str, torch.Tensor] = self.fall_back(self.unsupported or "edges that are no tensors", x_dict, edge_index_dict)
            return result
        kinds = [kind for kind in x_dict if kind in self.skip]
        self._check(x_dict, kinds, edge_index_dict)
        counts = [x_dict[kind].shape[0] for kind in kinds]
        rows = [wide(x_dict[kind]) for kind in kinds]
        together = self._alike(x_dict, kinds, counts)
        lying = together and in_place(rows, counts, self.out_channels)
        if together and not lying:
            rows = [Together.apply(*rows)] if len(rows) > 1 else rows
        linears = [self._linear(self.kqv_lin, kind) for kind in kinds]
        begun = Begun()
        found = self._in_place(rows, counts, kinds, linears, edge_index_dict) if lying else None
        out, end = found or (self._of_rows(rows, counts, kinds, linears, edge_index_dict, begun), [])
        alone = out is None or not all(x.requires_grad for x in rows)
        few = together and rows[0].shape[-1] == self.out_channels
        shared = begun if few and edge_index_dict and rows[0].requires_grad else None  # without edges no gradient comes to the projections
        if out is None:
            out = self._of_projections(rows, counts, kinds, linears, edge_index_dict, shared, lying)
        if few:
            return self._all_finished(x_dict, kinds, counts, rows if lying else rows[0], out.flatten(1), shared, end)
        return self._finished(x_dict, kinds, counts, out.flatten(1), None if alone else begun)

    def _of_projections(
        self, rows: list[torch.Tensor], counts: list[int], kinds: list[str], linears: list[tuple[torch.Tensor, torch.Tensor]],
        edge_index_dict: dict[EdgeType, Any], begun: Begun | None, lying: bool,
    ) -> torch.Tensor:  # fmt: skip
        """Return the attention of all nodes, with a key, a query and a value of each."""
        keys, queries, values = self._by_head(_projected(counts, rows, linears, begun, lying))
        if edge_index_dict:
            tensors = self._tensors(keys, queries, values)
            graph = self._edges(kinds, counts, edge_index_dict)
            fused = attended(graph, tensors, self.options) if self.heads == 1 else None
            return apply("hgt_single" if self.heads == 1 else "hgt", graph, tensors, self.options) if fused is None else fused
        return torch.zeros_like(values)

    def _in_place(
        self, rows: list[torch.Tensor], counts: list[int], kinds: list[str], linears: list[tuple[torch.Tensor, torch.Tensor]],
        edge_index_dict: dict[EdgeType, Any],
    ) -> tuple[torch.Tensor, list[torch.Tensor]] | None:  # fmt: skip
        """Return the attention of a small graph's nodes from their own rows, without gradients; None where that is not computed so.

        And weights, biases and gates of the layer's end, side by side: they are laid with the others, by the same launches.
        """
        if self.heads > 1 or not edge_index_dict or any(kind[0] not in kinds for kind in self.edge_types):
            return None
        kernels, own = kernels_for(rows[0], counts, self.out_channels), self.results(kinds)
        ends = [(*self._linear(self.out_lin, kind), wide(self.skip[kind])) for kind in own]
        priors = [wide(self.p_rel._parameters[name]) for name in self.edge_names]  # type: ignore[arg-type]
        groups = [[*group] for group in (*zip(*linears, strict=True), *zip(*ends, strict=True))] + [priors]
        if kernels is None or any(x.dtype is not torch.float32 for group in groups for x in group):
            return None
        sources, graph = tuple(kinds.index(kind[0]) for kind in self.edge_types), self._edges(kinds, counts, edge_index_dict)
        end: list[torch.Tensor] = []

        def linear() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            weight, bias, *end[:], prior = side_by_side(*groups)
            return weight, bias, prior.view(-1)

        relations, factor = (wide(self.k_rel.weight), wide(self.v_rel.weight)), 1.0 / math.sqrt(self.out_channels)
        found = in_place_attention(graph, kernels, rows, sources, linear, relations, factor, self.options)
        return None if found is None else (found, end)

    def _of_rows(
        self, rows: list[torch.Tensor], counts: list[int], kinds: list[str], linears: list[tuple[torch.Tensor, torch.Tensor]],
        edge_index_dict: dict[EdgeType, Any], begun: Begun,
    ) -> torch.Tensor | None:  # fmt: skip
        """Return the attention of all nodes from their own rows, where it is one kernel and all types' rows have one width; else None."""
        if self.heads > 1 or not edge_index_dict or self.options.attend is False or torch.compiler.is_compiling():
            return None
        if self.options.attend is None and sum(counts) < MANY:
            return None  # products of relations' matrices take more launches than a small graph's rows
        if len({(x.shape[1], x.dtype, x.device) for x in rows}) > 1 or any(kind[0] not in kinds for kind in self.edge_types):
            return None
        weights, biases = zip(*linears, strict=True)
        key_of, value_of = (wide(r.weight) for r in (self.k_rel, self.v_rel))
        graph = self._edges(kinds, counts, edge_index_dict)
        launch = taken(graph, rows[0], sum(counts), self.out_channels, self.options, (*weights, *biases, key_of, value_of))
        if launch is None:
            return None
        prior = self._prior().view(-1)
        x, sources = rows[0] if len(rows) == 1 else torch.cat(rows), tuple(kinds.index(kind[0]) for kind in self.edge_types)
        return attention(graph, launch, tuple(counts), sources, x, weights, biases, key_of, value_of, prior, begun)

    def _check(self, x_dict: dict[str, torch.Tensor], kinds: list[str], edge_index_dict: dict[EdgeType, torch.Tensor]) -> None:
        if not kinds:
            raise UsageError(f"expected rows of some of {', '.join(self.node_types)} in x_dict, saw {', '.join(map(repr, x_dict)) or 'none'}")
        for kind in kinds:
            check_rows(x_dict[kind], self.in_channels[kind], f"x_dict[{kind!r}]")
        if self._known(kinds, edge_index_dict) is not None:
            return
        for relation in edge_index_dict:
            if relation not in self.edge_types_map:
                raise UsageError(f"expected relations of the metadata, saw {relation}; they are {', '.join(map(str, self.edge_types))}")
            if lacking := [kind for kind in (relation[0], relation[-1]) if kind not in kinds]:
                raise UsageError(f"expected rows of {lacking[0]!r} in x_dict, which {relation} has as an end, saw rows of {', '.join(kinds)}")

        if not torch.compiler.is_compiling():
            self.checked = kinds, list(edge_index_dict), self._form(kinds, edge_index_dict)

    def _known(self, kinds: list[str], edge_index_dict: dict[EdgeType, torch.Tensor]) -> str | None:
        """Return the form of the edges where the last call had the same types. Asked anew at each use: by now it may be another thread's call."""
        known = None if torch.compiler.is_compiling() else self.checked
        return known[2] if known is not None and known[0] == kinds and known[1] == list(edge_index_dict) else None

    def _form(self, kinds: list[str], edge_index_dict: dict[EdgeType, torch.Tensor]) -> str:
        return ",".join(f"{self.edge_types_map[kind]} {kinds.index(kind[0])} {kinds.index(kind[-1])}" for kind in edge_index_dict)

    def results(self, kinds: Sequence[str]) -> list[str]:
        """Return the destinations among the node types."""
        return [kind for kind in kinds if kind in self.dst_node_types]

    def _linear(self, linears: _Linears, kind: str) -> tuple[torch.Tensor, torch.Tensor]:
        linear = linears.lins[kind]
        return wide(linear.weight), wide(linear.bias)  # type: ignore[arg-type]

    def _by_head(self, parts: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
        return [part if self.heads == 1 else part.view(part.shape[0], self.heads, -1) for part in parts]

    def _tensors(self, keys: torch.Tensor, queries: torch.Tensor, values: torch.Tensor) -> dict[str, tuple[Domain, torch.Tensor]]:
        relations, depth, prior = len(self.edge_types), self.out_channels // self.heads, self._prior()
        if self.heads == 1:  # views: a selection's gradient is two launches
            weights, prior = [wide(r.weight) for r in (self.k_rel, self.v_rel)], prior.view(-1)
        else:
            weights = [wide(r.weight).view(self.heads, relations, depth, depth).transpose(0, 1).contiguous() for r in (self.k_rel, self.v_rel)]
        return {
            "key": (Domain.NODE, keys), "query": (Domain.NODE, queries), "value": (Domain.NODE, values),
            "attention": (Domain.ETYPE, weights[0]), "message": (Domain.ETYPE, weights[1]), "prior": (Domain.ETYPE, prior),
        }  # fmt: skip

    def _prior(self) -> torch.Tensor:
        """Return the relations' priors over the root of a head's width [R, heads]."""
        parameters = self.p_rel._parameters  # a ParameterDict's own look-up takes longer than the rest of this, with a hundred relations
        return wide(torch.cat([parameters[name] for name in self.edge_names])) / math.sqrt(self.out_channels // self.heads)  # type: ignore[misc]

    def _edges(self, kinds: list[str], counts: list[int], edge_index_dict: dict[EdgeType, torch.Tensor]) -> Edges:
        form = self._known(kinds, edge_index_dict) or self._form(kinds, edge_index_dict)
        return Edges(tuple(edge_index_dict.values()), (*counts, len(self.edge_types)), form)

    def _alike(self, x_dict: dict[str, torch.Tensor], kinds: list[str], counts: list[int]) -> bool:
        """Is it a small graph, whose rows are alike in all types?"""
        if not are_few(counts) or torch.compiler.is_compiling():
            return False
        return len({(x_dict[kind].dtype, x_dict[kind].shape[-1]) for kind in kinds}) == 1

    def _all_finished(
        self, x_dict: dict[str, torch.Tensor], kinds: list[str], counts: list[int], rows: torch.Tensor | Sequence[torch.Tensor], out: torch.Tensor,
        begun: Begun | None, end: list[torch.Tensor],
    ) -> dict[str, torch.Tensor]:  # fmt: skip
        """Return the results of a small graph's destinations, mixed with their own rows; all types lie in one tensor, or each in its own.

        `end`: weights, biases and gates, where they are side by side already.
        """
        own = [kind for kind in kinds if kind in self.dst_node_types]
        if not own:
            return {}
        weights, biases = zip(*(self._linear(self.out_lin, kind) for kind in own), strict=True)
        gates, numbers = [wide(self.skip[kind]) for kind in own], tuple(kinds.index(kind) for kind in own)
        parts: tuple[torch.Tensor, ...] = Finish.apply(
            tuple(counts), numbers, begun, torch.is_grad_enabled(), rows, end, out, *weights, *biases, *gates
        )
        return {kind: of_dtype(part, x_dict[kind].dtype) for kind, part in zip(own, parts, strict=True)}

    def _finished(
        self, x_dict: dict[str, torch.Tensor], kinds: list[str], counts: list[int], out: torch.Tensor, begun: Begun | None
    ) -> dict[str, torch.Tensor]:
        large = not are_few(counts) and not torch.compiler.is_compiling()
        own = [kind for kind in kinds if kind in self.dst_node_types and x_dict[kind].shape[-1] == self.out_channels]
        shares = torch.cat([wide(self.skip[kind]) for kind in own]).sigmoid() if own else out.new_zeros(0)
        if large and own == kinds:
            weights, biases = zip(*(self._linear(self.out_lin, kind) for kind in kinds), strict=True)
            ends = Mixed.apply(counts, begun, out, shares, *(wide(x_dict[kind]) for kind in kinds), *weights, *biases)
            return {kind: part.to(x_dict[kind].dtype) for kind, part in zip(kinds, ends, strict=True)}
        results, share_of = {}, dict(zip(own, shares.split(1), strict=True)) if own else {}
        for kind, part in zip(kinds, (out if large else F.gelu(out)).split(counts), strict=True):
            if kind not in self.dst_node_types:
                continue
            if large and kind in share_of:
                weight, bias = self._linear(self.out_lin, kind)
                (end,) = Mixed.apply([part.shape[0]], None, part, share_of[kind], wide(x_dict[kind]), weight, bias)
                results[kind] = end.to(x_dict[kind].dtype)
                continue
            part = F.gelu(part) if large else part
            done = F.linear(part, *self._linear(self.out_lin, kind))
            results[kind] = (torch.lerp(wide(x_dict[kind]), done, share_of[kind]) if kind in share_of else done).to(x_dict[kind].dtype)
        return results
