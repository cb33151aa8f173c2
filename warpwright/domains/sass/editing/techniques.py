"""The legal actions on a schedule: single edits at instructions (i17), and edits of whole blocks (b3).

exchange(i17)                         a; b  ->  b; a
move(i17, by=-8)                      an instruction, eight places up
shuffle(b3, seed=5, count=16)         sixteen exchanges at once, then repaired
stall(i17, by=-1)                     one cycle less until the next instruction
hold(i17, count=8)                    hold <-> yield, in a run of eight
board(i17, to=3)                      another scoreboard for a load
share(b3, size=2, seed=5)             the scoreboards dealt out anew to a block's loads
reuse_off(i17)                        without the operand cache
drift(b3, loads="shared", by=-64)     every load as early (late) as it goes
lean(b3)                              without the waits of arithmetic that nothing needs
tighten(b3)                           every stall as short as it goes
relist(b3, push=0.3, jitter=2, seed=5, least=0, by="place")   a block listed anew, critical paths first; least: with the shortest
                                      stalls; by: what decides among neighbours ("operands", "cycles", "time")
lift(i17, by=-8)                      an instruction with all that it depends on
pattern(b3, hold="float-9of16")       yields by a pattern
scatter(b3, share=0.3, seed=5)        yields at so many of a block's instructions, by chance
reuse_block(b3)                       a block without the operand cache
hint(i17, evict="first", ahead=-1)    what a load or store of global memory says to the caches; "" and -1 leave what is there
hints(k, of="STG", evict="first", ahead=-1)    the same for all loads or all stores of the kernel
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random

from warpwright.base import Action
from warpwright.domains.sass.code.kernel import Identity, Schedule
from warpwright.domains.sass.editing.kinds import Make, at_places, of_blocks
from warpwright.domains.sass.model.checker import Checker
from warpwright.errors import NotApplicable
from warpwright.space import Traits

LOOP_WEIGHT = 12
"""An instruction in a loop is drawn this much more often than one outside; one in an inner loop, its square."""

DRAWS = 60
REMEMBERED = 4096


class _Unknown:
    """In the place of a result that there is not yet: None is one."""


_UNKNOWN = _Unknown()


@dataclass
class Memory:
    """Results of edits: a search asks for the same one when it lists, replays and lowers."""

    results: dict[tuple[Identity, Action], Schedule | None] = field(default_factory=dict)

    def get(self, schedule: Schedule, action: Action, make: Make) -> Schedule | None:
        """Return what an edit gives, made once."""
        key = (schedule.identity, action)
        known = self.results.pop(key, _UNKNOWN)
        if not isinstance(known, _Unknown):
            self.results[key] = known  # the newest: a recipe's first actions are asked for again and again
            return known
        while len(self.results) >= REMEMBERED:
            del self.results[next(iter(self.results))]
        edited = self.results[key] = make(schedule, action)
        return edited


@dataclass(frozen=True)
class Edit:
    """One kind of edit."""

    name: str
    make: Make
    every: Callable[[Schedule], Iterator[Action]]
    """All actions of the kind, legal or not."""
    draw: Callable[[Schedule, Random, int], Action]
    """One action of the kind for a place that was drawn, legal or not."""
    memory: Memory
    weight: int
    traits: Traits

    def sites(self, ir: Schedule) -> Iterator[Action]:
        """Yield every action that is legal on `ir`."""
        return (action for action in self.every(ir) if self.memory.get(ir, action, self.make) is not None)

    def apply(self, ir: Schedule, action: Action) -> Schedule:
        """Return the edited schedule; raise NotApplicable for an edit that the rules refuse."""
        try:
            edited = self.memory.get(ir, action, self.make)
        except (ValueError, KeyError, IndexError) as error:
            raise NotApplicable(f"expected an action of {self.name} on this kernel, saw {action}", "the recipe may be another kernel's") from error
        if edited is None:
            raise NotApplicable(f"{action} is not legal here: the model of hazards refuses it, or it changes nothing")
        return edited


def techniques(checker: Checker) -> tuple[Edit, ...]:
    """Return all kinds of edits of a kernel."""
    memory, plain, first = Memory(), Traits("S"), Traits("S", tried_first=True)
    kinds = [(kind, plain) for kind in at_places(checker)] + [(kind, first) for kind in of_blocks(checker)]
    return tuple(Edit(name, make, every, draw, memory, weight, traits) for (name, make, every, draw, weight), traits in kinds)


def drawer(checker: Checker, kinds: tuple[Edit, ...]) -> Callable[[Schedule, Random], Action | None]:
    """Return a function that draws one legal action: the kind by its weight, the place by how deep in loops it lies."""
    kernel = checker.kernel
    weights = [LOOP_WEIGHT ** min(2, kernel.depth[number]) if checker.reachable(number) else 0 for number in kernel.block_of]
    places, cumulative = range(len(weights)), list(accumulate(weights))
    kind_weights = [kind.weight for kind in kinds]

    def draw(schedule: Schedule, rng: Random) -> Action | None:
        for _ in range(DRAWS):
            [kind] = rng.choices(kinds, kind_weights)
            [place] = rng.choices(places, cum_weights=cumulative)
            action = kind.draw(schedule, rng, place)
            if kind.memory.get(schedule, action, kind.make) is not None:
                return action
        return None

    return draw
