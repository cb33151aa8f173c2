"""Several programs of one model as one IR: of its parts, where the whole is not captured, and for each kind of call that they get.

    piece      a class of parts that compute the same, and where they stand in the model ("" is the model itself)
    program    what a piece computes in one kind of call: shapes, types and numbers

An action at a place, `scalar_into_linear(part_0.linear)`, is done in every program of that piece in which it is legal; one without a place,
`compile(mode="default")`, in every program of all pieces. The model's own Python between the pieces stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from warpwright.base import Action
from warpwright.domains.graph.costs import cost_model
from warpwright.domains.graph.ir import GraphIR
from warpwright.domains.graph.words import stand_ins as stand_ins_of
from warpwright.domains.graph.words import words as words_of
from warpwright.errors import NotApplicable
from warpwright.space import Traits

WHOLE = ("",)
"""The path of a piece that is the model itself."""


@dataclass(frozen=True, eq=False)
class Piece:
    """Parts of a model that compute the same, and their programs."""

    paths: tuple[str, ...]
    programs: tuple[GraphIR, ...]
    """One for each kind of call."""
    kind: type = object
    """The class of the parts."""


@dataclass(frozen=True, eq=False)
class Assembly:
    """The pieces of one model. Never changed in place."""

    pieces: tuple[Piece, ...]
    unreadable: str = ""
    """Why the model was not captured as a whole, where it was not."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the rewrites so far take for granted, in words."""
        return tuple(dict.fromkeys(text for program in self.programs() for text in program.assumptions))

    def programs(self) -> Iterator[GraphIR]:
        """Yield every program."""
        for piece in self.pieces:
            yield from piece.programs

    def mapped(self, change: Callable[[int, GraphIR], GraphIR]) -> Assembly:
        """Return the assembly with each program changed; `change` is given the number of its piece too."""
        pieces = (replace(piece, programs=tuple(change(n, program) for program in piece.programs)) for n, piece in enumerate(self.pieces))
        return replace(self, pieces=tuple(pieces))

    def outside(self, number: int, at: str) -> str:
        """Return the place in the assembly of a place in piece `number`."""
        return at if not at or self.pieces[number].paths == WHOLE else f"part_{number}.{at}"

    def inside(self, number: int, at: str) -> str | None:
        """Return the place in piece `number` of a place in the assembly; None where it lies in another."""
        if not at or self.pieces[number].paths == WHOLE:
            return at
        part, _, rest = at.partition(".")
        return rest if part == f"part_{number}" else None


@dataclass(frozen=True)
class InPieces:
    """A technique of single programs, done in all those of an assembly that it is legal in."""

    technique: Any

    @property
    def name(self) -> str:
        """That of the technique."""
        return str(self.technique.name)

    @property
    def traits(self) -> Traits:
        """Those of the technique."""
        traits: Traits = self.technique.traits
        return traits

    def sites(self, ir: Assembly) -> Iterable[Action]:
        """Yield the actions that are legal in one program or more, each once."""
        seen: set[Action] = set()
        for number, piece in enumerate(ir.pieces):
            for program in piece.programs:
                for action in self.technique.sites(program):
                    placed = replace(action, at=ir.outside(number, action.at))
                    if placed not in seen:
                        seen.add(placed)
                        yield placed

    def apply(self, ir: Assembly, action: Action) -> Assembly:
        """Return the assembly with the action done wherever it is legal; raise NotApplicable where that is nowhere."""
        refusals: list[NotApplicable] = []
        done = 0

        def change(number: int, program: GraphIR) -> GraphIR:
            nonlocal done
            at = ir.inside(number, action.at)
            if at is None:
                return program
            own = replace(action, at=at)
            try:
                if own not in self.technique.sites(program):
                    return program
                changed: GraphIR = self.technique.apply(program, own)
            except NotApplicable as refusal:
                refusals.append(refusal)
                return program
            done += 1
            return changed

        changed = ir.mapped(change)
        if not done:
            raise refusals[0] if refusals else NotApplicable(f"{action} is not legal in any piece", "take the action from sites(ir)")
        return changed


def seconds(ir: Assembly, target: str) -> float:
    """Return the cost model's estimate: of each piece the mean over its kinds of call, once for each place where it stands."""
    return sum(_mean([cost_model.seconds(program, target) for program in piece.programs]) * len(piece.paths) for piece in ir.pieces)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def words(ir: Assembly) -> tuple[str, ...]:
    """Return the words of all pieces, of each its first program."""
    return tuple(word for piece in ir.pieces for word in ("piece", *words_of(piece.programs[0])))


def stand_ins(ir: Assembly) -> dict[str, tuple[str, ...]]:
    """Return what may stand for the words of all pieces."""
    found: dict[str, tuple[str, ...]] = {"piece": ()}
    for piece in ir.pieces:
        found = {**stand_ins_of(piece.programs[0]), **found}
    return found
