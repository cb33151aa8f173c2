"""einsum of two tensors as one matrix product, so that whatever is known of products holds for it; of more, what is fixed among them first."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.ir import Edit, GraphIR, Inserter, argument, aten, dtype, edit, is_op, is_parameter_only, is_tensor, shape, value
from warpwright.domains.graph.techniques.rewrite import Rewrite
from warpwright.space import Traits


@dataclass(frozen=True)
class Product:
    """The letters of an equation by what they are: of a batch, of one operand alone, or summed over."""

    first: str
    second: str
    out: str
    batch: str
    left: str
    right: str
    summed: str


def read(equation: str) -> Product | None:
    """Return the product that an equation is, or None: other than two operands, diagonals, `...`, a letter that one operand alone sums over."""
    operands, out = _letters(equation)
    if len(operands) != 2 or "." in equation:
        return None
    first, second = operands
    if any(len(set(letters)) != len(letters) for letters in (first, second, out)):
        return None
    if set(first) - set(second) - set(out) or set(second) - set(first) - set(out):
        return None
    batch = "".join(letter for letter in first if letter in second and letter in out)
    summed = "".join(letter for letter in first if letter in second and letter not in out)
    left, right = "".join(x for x in first if x not in second), "".join(x for x in second if x not in first)
    return Product(first, second, out, batch, left, right, summed) if summed and left and right else None


def _letters(equation: str) -> tuple[list[str], str]:
    """Return the letters of each operand and of the result: where no arrow stands, those that occur once, in alphabetical order, capitals first."""
    subscripts, arrow, out = equation.replace(" ", "").partition("->")
    once = sorted(letter for letter in set(subscripts) - {","} if subscripts.count(letter) == 1)
    return subscripts.split(","), out if arrow else "".join(once)


def operations(node: fx.Node) -> float:
    """Return the multiply-adds of a call's products, one after the other; 0 for any other call."""
    return float(sum(math.prod(sizes.values()) for product, sizes, _ in _pairs(node) if product is not None))


def copied_bytes(node: fx.Node) -> float:
    """Return the bytes of what torch copies for a call, so that operands of its products are matrices, or one matrix for each place of a batch."""
    found = 0
    for product, sizes, pair in _pairs(node):
        forms = [] if product is None else [(product.batch, product.left, product.summed), (product.batch, product.summed, product.right)]
        found += sum(x.numel() * x.element_size() for (x, letters), groups in zip(pair, forms, strict=False) if _is_copied(x, letters, groups, sizes))
    return float(found)


def bytes_between(node: fx.Node) -> float:
    """Return the bytes of what a call of more than two tensors writes and reads again: it takes them from the left, two at a time."""
    pairs = list(_pairs(node))
    return float(sum(2 * pair[0][0].numel() * pair[0][0].element_size() for _, _, pair in pairs[1:]))


def _pairs(node: fx.Node) -> Iterator[tuple[Product | None, dict[str, int], tuple[tuple[torch.Tensor, str], tuple[torch.Tensor, str]]]]:
    """Yield of each step of a call the product, if it is one, its letters' sizes, and its two tensors (without elements), each with its letters."""
    form = _plain_form(node)
    if form is None or len(form[0]) < 2:
        return
    (first, *others), out, sizes = form
    letters, held = first[0], value(first[1])
    for at, (next_letters, x) in enumerate(others):
        wanted = set(out).union(*(own for own, _ in others[at + 1 :]))
        kept = out if at == len(others) - 1 else "".join(letter for letter in dict.fromkeys(letters + next_letters) if letter in wanted)
        product = read(f"{letters},{next_letters}->{kept}")
        yield product, {letter: sizes[letter] for letter in letters + next_letters}, ((held, letters), (value(x), next_letters))
        made = kept if product is None else product.batch + product.left + product.right
        held = torch.empty(_sizes(made, sizes), dtype=held.dtype, device="meta")
        letters = made


def _plain_form(node: fx.Node) -> tuple[list[tuple[str, fx.Node]], str, dict[str, int]] | None:
    """Return a call's tensors with their letters, the result's letters, and the letters' sizes; None where letters repeat, or for broadcasts."""
    equation, operands = node.args[:2]
    if not isinstance(equation, str) or "." in equation or not isinstance(operands, list | tuple):
        return None
    every, out = _letters(equation)
    pairs, sizes = list(zip(every, operands, strict=True)), dict[str, int]()
    for letters, x in pairs:
        if not is_tensor(x) or dtype(x) != dtype(node) or len(set(letters)) != len(letters):  # type: ignore[arg-type]
            return None
        if any(sizes.setdefault(letter, size) != size for letter, size in zip(letters, shape(x), strict=True)):  # type: ignore[arg-type]
            return None
    return (pairs, out, sizes) if math.prod(sizes.values()) else None  # type: ignore[return-value]


def _is_copied(x: torch.Tensor, letters: str, groups: Sequence[str], sizes: Mapping[str, int]) -> bool:
    turned = x.permute([letters.index(letter) for letter in "".join(groups)])
    made = turned.reshape([math.prod(_sizes(group, sizes)) for group in groups])
    return made.untyped_storage()._cdata != x.untyped_storage()._cdata


def _match(node: fx.Node) -> Any:
    equation, operands = node.args[:2]
    product = read(equation) if isinstance(equation, str) else None
    if product is None or not isinstance(operands, list | tuple) or not all(is_tensor(x) and dtype(x) == dtype(node) for x in operands):  # type: ignore[arg-type]
        return None
    sizes: dict[str, int] = {}
    for letters, x in zip((product.first, product.second), operands, strict=True):
        for letter, size in zip(letters, shape(x), strict=True):  # type: ignore[arg-type]
            if sizes.setdefault(letter, size) != size:
                return None  # broadcast
    return (product, sizes, operands) if math.prod(sizes.values()) else None


def _emit(e: Edit, node: fx.Node, match: Any) -> None:
    product, sizes, (first, second) = match
    at = e.before(node)
    result = _multiplied(at, product, sizes, first, second)
    e.replace(node, _ordered(at, result, product.batch + product.left + product.right, product.out))


def _multiplied(at: Inserter, product: Product, sizes: Mapping[str, int], first: fx.Node, second: fx.Node) -> fx.Node:
    """Return a product whose letters are those of the batch, of the first operand and of the second."""
    batch = [math.prod(_sizes(product.batch, sizes))] if product.batch else []
    outer = batch + ([math.prod(_sizes(product.left, sizes))] if batch else _sizes(product.left, sizes))
    inner, right = (math.prod(_sizes(letters, sizes)) for letters in (product.summed, product.right))
    a = at.shaped(_ordered(at, first, product.first, product.batch + product.left + product.summed), [*outer, inner])
    b = at.shaped(_ordered(at, second, product.second, product.batch + product.summed + product.right), [*batch, inner, right])
    result = at.call(aten.bmm.default if batch else aten.matmul.default, a, b)
    return at.shaped(result, _sizes(product.batch + product.left + product.right, sizes))


def in_pairs(ir: GraphIR) -> GraphIR:
    """Return the IR with each einsum as its products, two tensors at a time in torch's order, for what knows no einsum.

    A pair is a matrix product, or a product of elements that is summed. A call stays where an operand has a letter twice, or sizes are spread.
    """
    e = edit(ir)
    for node in [node for node in e.graph.nodes if is_op(node, aten.einsum)]:
        made = _by_pairs(e, node)
        if made is not None:
            e.replace(node, made)
    return e.finish()


def _by_pairs(e: Edit, node: fx.Node) -> fx.Node | None:
    form = _plain_form(node)
    if form is None:
        return None
    pairs, out, sizes = form
    path = [*(argument(node, "path") or [])]
    at, held = e.before(node), list(pairs)
    while len(held) > 1:
        first, second = sorted((path.pop(0), path.pop(0))) if path else (0, 1)
        b, a = held.pop(second), held.pop(first)
        wanted = set(out).union(*(letters for letters, _ in held))
        made = _pair(at, a, b, wanted, sizes)
        held.insert(len(held) if argument(node, "path") else 0, made)
    letters, x = _summed(at, held[0], set(out))
    return _ordered(at, x, letters, out)


_Lettered = tuple[str, fx.Node]


def _summed(at: Inserter, of: _Lettered, wanted: set[str]) -> _Lettered:
    """Return a tensor without the letters that nothing wants, which it is summed over."""
    letters, x = of
    gone = [d for d, letter in enumerate(letters) if letter not in wanted]
    return ("".join(letter for letter in letters if letter in wanted), at.call(aten.sum.dim_IntList, x, gone) if gone else x)


def _pair(at: Inserter, a: _Lettered, b: _Lettered, wanted: set[str], sizes: Mapping[str, int]) -> _Lettered:
    a, b = _summed(at, a, wanted | set(b[0])), _summed(at, b, wanted | set(a[0]))
    kept = "".join(letter for letter in dict.fromkeys(a[0] + b[0]) if letter in wanted)
    product = read(f"{a[0]},{b[0]}->{kept}")
    if product is not None:
        return product.batch + product.left + product.right, _multiplied(at, product, sizes, a[1], b[1])
    every = "".join(dict.fromkeys(a[0] + b[0]))
    x, y = (_spread(at, of, every, sizes) for of in (a, b))
    return _summed(at, (every, at.call(aten.mul.Tensor, x, y)), wanted)


def _spread(at: Inserter, of: _Lettered, every: str, sizes: Mapping[str, int]) -> fx.Node:
    """Return a tensor with a dimension for each letter, of size 1 where it has none."""
    letters = [letter for letter in every if letter in of[0]]
    turned = _ordered(at, of[1], of[0], "".join(letters))
    return at.shaped(turned, [sizes[letter] if letter in letters else 1 for letter in every])


def _sizes(letters: str, sizes: Mapping[str, int]) -> list[int]:
    return [sizes[letter] for letter in letters]


def _ordered(at: Inserter, x: fx.Node, letters: str, wanted: str) -> fx.Node:
    return x if letters == wanted else at.call(aten.permute.default, x, [letters.index(letter) for letter in wanted])


EINSUM = Rewrite(
    "einsum_as_product", Traits("E", enabling=True, idle=True), (aten.einsum.default,), _match, _emit,
    "einsum('bijl,lk->bijk', x, y)  ->  matmul(x, y), with axes put in order before and after; with letters that both operands and the result have "
    "a batched product.",
    together=True,
)  # fmt: skip



@dataclass(frozen=True)
class _Parted:
    """The operands of an einsum that depend on parameters alone and the others, each with its letters; and the letters of the first ones' product."""

    fixed: list[tuple[str, fx.Node]]
    rest: list[tuple[str, fx.Node]]
    made: str
    out: str


def _parted(node: fx.Node) -> _Parted | None:
    """Return the parts of an einsum with two operands or more that can be folded, and with others, where the former's product is not the largest."""
    form = _plain_form(node)
    if form is None:
        return None
    pairs, out, sizes = form
    fixed = [pair for pair in pairs if is_parameter_only(pair[1])]
    rest = [pair for pair in pairs if pair not in fixed]
    if len(fixed) < 2 or not rest:
        return None
    made = _letters_of_product(fixed, rest, out)
    largest = max(math.prod(shape(x)) for x in (node, *node.all_input_nodes))
    return _Parted(fixed, rest, made, out) if math.prod(_sizes(made, sizes)) <= largest else None


def _letters_of_product(fixed: Any, rest: Any, out: str) -> str:
    """Return what the fixed operands' product keeps: what is batch, in the order of the others, its own, and last what is summed over later."""
    read_later = "".join(dict.fromkeys("".join(letters for letters, _ in rest)))
    own = "".join(dict.fromkeys("".join(letters for letters, _ in fixed)))
    batch = "".join(letter for letter in read_later if letter in own and letter in out)
    kept = "".join(letter for letter in own if letter in out and letter not in read_later)
    return batch + kept + "".join(letter for letter in read_later if letter in own and letter not in out)


def _emit_parted(e: Edit, node: fx.Node, parted: _Parted) -> None:
    at = e.before(node)
    equation = f"{','.join(letters for letters, _ in parted.fixed)}->{parted.made}"
    made = at.call(aten.einsum.default, equation, [x for _, x in parted.fixed])
    equation = f"{','.join([parted.made, *(letters for letters, _ in parted.rest)])}->{parted.out}"
    e.replace(node, at.call(aten.einsum.default, equation, [made, *(x for _, x in parted.rest)]))


PARAMETERS_FIRST = Rewrite(
    "einsum_parameters_first", Traits("E", idle=True), (aten.einsum.default,), _parted, _emit_parted,
    "einsum('ln,sn,ls,sp->lp', C, B, L, x)  ->  einsum('ls,sp->lp', M, x) with M = einsum('ln,sn,ls->ls', C, B, L), where C, B and L depend on "
    "parameters alone: M is folded. Sums and products of real numbers in another order. Not where M is larger than any tensor that the call has.",
    together=True,
)  # fmt: skip

TECHNIQUES = (PARAMETERS_FIRST, EINSUM)
