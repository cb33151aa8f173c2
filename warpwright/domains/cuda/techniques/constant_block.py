"""Kernels that write their block's size as a number: with blockDim in its place the other rewrites see which thread does what."""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpwright.base import Action
from warpwright.domains.cuda.constants import block_shape
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.transpile.frontend.text.edits import Edit
from warpwright.errors import NotApplicable
from warpwright.space import Traits

_LEFT = re.compile(r"\bblockIdx\s*\.\s*(?P<axis>[xyz])\s*\*\s*(?P<size>\d+)[uU]?\b(?!\s*[.*/%])")
_RIGHT = re.compile(r"(?<![\w.*/%])(?P<size>\d+)[uU]?\s*\*\s*blockIdx\s*\.\s*(?P<axis>[xyz])\b(?!\s*[*/%])")


class ConstantBlock:
    """`blockIdx.x * 128 + threadIdx.x` -> `blockIdx.x * blockDim.x + threadIdx.x`, where every launch has blocks of 128: the same index.

    It says what the kernel assumed: a launch with another block is right afterwards as well.
    """

    name = "constant_block"
    traits = Traits("E", enabling=True)

    def sites(self, ir: Plan) -> Iterator[Action]:
        """Yield the action for each kernel that has its block's size as a number in its indices."""
        for kernel in ir.unit.kernels:
            if not ir.has(self.name, kernel) and _places(ir, kernel):
                yield Action(self.name, kernel)

    def apply(self, ir: Plan, action: Action) -> Plan:
        """Return the text with blockDim in the numbers' places."""
        places = _places(ir, action.at) if action.at in ir.unit.kernels else []
        if not places:
            raise NotApplicable(f"expected a kernel whose launches have the block's size that its indices name, saw {action.at}")
        return ir.then(ir.unit.changed(places), self.name, action.at)


def _places(ir: Plan, name: str) -> list[Edit]:
    """Return the edits; none unless all of a kernel's block indices name the sizes that all of its launches have.

    What is looked for is a whole index, with the thread's own added: a tile's first row, say, is left as it is, and the kernel with it.
    """
    unit = ir.unit
    kernel = unit.kernels[name]
    shapes = {block_shape(unit, launch) for launch in unit.launches_of(name)}
    shape = next(iter(shapes), None)
    if len(shapes) != 1 or shape is None:
        return []
    body = unit.text[kernel.head_end : kernel.end]
    sizes = dict(zip("xyz", shape, strict=True))
    matches = [*_LEFT.finditer(body), *_RIGHT.finditer(body)]
    edits = []
    for match in sorted(matches, key=lambda one: one.start()):
        axis = match["axis"]
        if int(match["size"]) != sizes[axis] or not _is_index(body, match, axis):
            return []
        edits.append(Edit(kernel.head_end + match.start("size"), kernel.head_end + match.end("size"), f"blockDim.{axis}"))
    return edits


def _is_index(body: str, match: re.Match[str], axis: str) -> bool:
    """Is the thread's own index along the axis added to a product, or the product to it?"""
    own = rf"\(?\s*threadIdx\s*\.\s*{axis}\b"
    after = re.match(rf"\s*\)?\s*\+\s*{own}", body[match.end() :])
    before = re.search(rf"{own}\s*\)?\s*\+\s*\(?\s*$", body[: match.start()])
    return after is not None or before is not None
