"""The ladder: what a good engineer tries first, in order. The default search, and the portfolio of `warpwright bench`.

    1  the original as it is: not proposed, since it is a baseline, and so are torch.compile and a CUDA graph of it
    2  every exact rewrite and every removal of dead code, until none is left      (classes E, D)
    3  the same and everything that depends on parameters only, folded             (class P)
    4  the same and the rewrites that a guard on the inputs makes exact            (class Q); and the highest of these without the forms
       that only other rewrites need, if none of them did; first of all the highest without launches, where the estimate says that they are most
    5  each schedule and each permitted change of precision on the best of those   (classes S, N), and the pairs that go together
    6  the best of 5, joined by the others that gained, one after the other
    7  from there on greedily: one action more, one action less
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from random import Random
from typing import Any

from warpwright.base import Action, Record
from warpwright.search.greedy import climb
from warpwright.search.moves import Moves, Proposer, Recipe, distinct
from warpwright.space import Space

Rung = Generator[list[Recipe], list[Record], tuple[Recipe, float]]
"""Proposes, and returns the best recipe so far with its speed-up."""


def search(space: Space[Any], rng: Random, batch: int) -> Proposer:
    """Climb the ladder, then search greedily around its top."""
    moves = Moves(space)
    if space.draw is not None:  # nothing but schedules, too many for rungs
        yield from climb(moves, rng, batch, (), 1.0)
        return
    recipe, speedup = yield from _rewrites(moves, batch)
    if recipe and not speedup:
        recipe, speedup = yield from _more_exact(moves, batch, recipe)
    recipe, speedup = yield from _schedules(moves, batch, recipe, speedup)
    yield from climb(moves, rng, batch, recipe, speedup)


def _rewrites(moves: Moves, batch: int) -> Rung:
    """Rungs 1 to 4."""
    rungs: list[Recipe] = [()]
    for classes in ("ED", "EDP", "EDPQ"):
        rungs.append(moves.fixpoint(rungs[-1], classes))
    rungs = [rung for rung in distinct([*rungs[:0:-1], _plain(moves)]) if rung]  # the highest first: likeliest the best, and the budget may end here
    settled = {rung[:-1] for rung in rungs if moves.space.traits(rung[-1]).settled}
    rungs = [rung for rung in rungs if rung not in settled]
    highest = rungs[0] if rungs else ()
    lowest = min([*rungs, ()], key=moves.estimate)  # a rewrite whose fold did not come to pass costs more calls than it saves
    rungs = [rung for rung in rungs if not all(moves.space.traits(action).idle for action in rung)]
    rungs.sort(key=lambda rung: moves.estimate(rung) > LOSS * moves.estimate(lowest))  # stable
    rungs = distinct([*_without_launches(moves, lowest), *rungs])
    if not rungs:
        return highest, 1.0 if highest else 0.0
    rungs, records = yield from _asked(moves, rungs, batch)
    recipe, speedup = _ranked(records, rungs)[0]
    return (recipe, speedup) if speedup else (highest, 0.0)


def _asked(moves: Moves, rungs: list[Recipe], batch: int) -> Generator[list[Recipe], list[Record], tuple[list[Recipe], list[Record]]]:
    """Propose the rungs; where one is wrong, computed more exactly it comes next. Where one fails that ends with a settled action, it comes next
    without that; where it is wrong, last: kernels that round too coarsely do so without that schedule as well (KernelBench's 2:49 and 2:91). Return
    what was proposed, and the records."""
    waiting, asked, records = list(rungs), list[Recipe](), list[Record]()
    while waiting:
        now, waiting = waiting[:batch], waiting[batch:]
        answers = yield from moves.ask(now, batch)
        asked, records = [*asked, *now], [*records, *answers]
        failed = [(recipe, record.status == "wrong") for recipe, record in zip(now, answers, strict=True) if not record.speedup]
        exact = [longer for recipe, wrong in failed if wrong for longer in exactly(moves, recipe)]
        shorter = [(recipe[:-1], wrong) for recipe, wrong in failed if len(recipe) > 1 and moves.space.traits(recipe[-1]).settled]
        soon, late = ([recipe for recipe, wrong in shorter if wrong is of] for of in (False, True))
        waiting = [recipe for recipe in distinct([*exact, *soon, *waiting, *late]) if recipe not in asked]
    return asked, records


def exactly(moves: Moves, recipe: Recipe) -> list[Recipe]:
    """Return `recipe` with its kernels at the next precision; else with a schedule that computes its rewrites more exactly, in the place where that
    is legal: before the others."""
    precise = tuple(_at_next_precision(moves.space, action) for action in recipe)
    if precise != recipe and moves.legal(precise):
        return [precise]
    rewrites = recipe
    while rewrites and moves.space.traits(rewrites[-1]).legality == "S":
        rewrites = rewrites[:-1]
    if any(moves.space.traits(action).more_exact for action in recipe[len(rewrites) :]):
        return []
    exact = [longer for longer in moves.additions(rewrites) if moves.space.traits(longer[-1]).more_exact]
    return [longer for one in exact if moves.legal(longer := (*one, *recipe[len(rewrites) :]))]


def _at_next_precision(space: Space[Any], action: Action) -> Action:
    """Return an action of a kernel that computes more exactly; the same where there is none."""
    order, params = space.traits(action).precisions, dict(action.params)
    later = order[order.index(str(params["precision"])) + 1 :] if params.get("precision") in order else ()
    return replace(action, params=tuple({**params, "precision": later[0]}.items())) if later else action


LOOKED_AT = 2
"""Of a technique's choices, the first: others differ in tuning, cost as much to look at, and are told apart by timing, later."""

WORTH_A_STEP = 1.15
"""Of two recipes the shorter one comes first unless the other is estimated so much faster: it is built sooner, and less can be wrong in it."""

ALTERNATIVE = 1.5
"""A program whose estimate is so many times the first one's is no alternative to it: of 105 such the second was faster in two."""

ANOTHER_WAY, HOST_SECONDS = 2.5, 5e-5
"""So many times the first one's estimate may that of a program be which is scheduled as a whole in another way, to be tried second: what a host takes
for either is not known better. And up to which estimate of the first one that may decide."""

LOSS = 1.25
"""A schedule whose estimate is so many times that of the program without it comes after all others."""

GAIN = 0.97
"""The same of a schedule that is to be tried before the rewrites in any case. Of 27 programs on a CPU that were timed as a plan and without 23 were
faster as a plan, and of 12 fused ones 9 (results/kernelbench_cpu); a budget of 40 s ends after two or three proposals."""

LAUNCH_BOUND, WORTH_BUILDING, MOST_AT_FIRST = 0.75, 1e-4, 2
"""Share of a program's estimated time that a schedule of the whole may leave to be tried before the program itself; seconds that one has to save
which takes tens of seconds to build; and how many are tried before the rewrites alone: the best, and another in case that fails or loses, which does
without something of the first: of KernelBench's 2:8 both first programs held the convolution that lost (0.76)."""


def _without_launches(moves: Moves, recipe: Recipe) -> list[Recipe]:
    """Return `recipe` with the schedules that take most of an estimate away which is launches, and with pairs of them that go together: small models
    gain nothing from rewrites alone, and a short budget ends before rung 5. One that takes tens of seconds to build only where there is no other,
    and where it saves enough."""
    schedules: dict[str, list[Recipe]] = {}
    for longer in moves.additions(recipe):
        if moves.space.traits(longer[-1]).legality == "S":
            schedules.setdefault(longer[-1].technique, []).append(longer)
    plain = moves.estimate(recipe)
    chosen = [longer for kind in schedules.values() for longer in kind[:LOOKED_AT]]
    pairs = _joined(moves, chosen)
    third = [(longer, moves.space.traits(longer[-1])) for longer in _joined(moves, pairs)]  # two kinds of kernels in a CUDA graph, or three kinds
    every = distinct([*chosen, *pairs, *(longer for longer, traits in third if traits.in_baselines or traits.tried_first)])
    bound = [longer for longer in every if 0 < moves.estimate(longer) <= _bound(moves, longer) * plain]
    bound.sort(key=lambda longer: moves.estimate(longer) * WORTH_A_STEP ** len(longer))
    soon = [longer for longer in _with_settled(moves, bound) if not any(moves.space.traits(action).slow_to_build(action) for action in longer)]
    if soon and (other := _otherwise(moves, soon[0], [*every, *moves.additions(soon[0][:-1])], recipe)):
        return [soon[0], other]
    return _unlike(moves, soon, len(recipe)) or [longer for longer in bound if moves.estimate(longer) <= plain - WORTH_BUILDING]


def _bound(moves: Moves, longer: Recipe) -> float:
    """Return the share of the time without its last action up to which a schedule is tried before the rewrites alone."""
    return GAIN if moves.space.traits(longer[-1]).before_rewrites else LAUNCH_BOUND


def _otherwise(moves: Moves, first: Recipe, recipes: list[Recipe], rewrites: Recipe) -> Recipe:
    """Return the cheapest of `recipes` that is scheduled as a whole in another way than `first`, by a settled schedule (a launch plan) where that has
    none, else without (a CUDA graph) but with kernels of its kind; () where none takes less than `rewrites`. One of the two costs the host least, the
    other the GPU: which is faster no estimate of microseconds can tell."""

    def parts(recipe: Recipe) -> tuple[set[str], set[str], bool]:
        traits = {action.technique: moves.space.traits(action) for action in recipe[len(rewrites) :]}
        whole = {name for name, of in traits.items() if of.in_baselines}
        return whole, traits.keys() - whole, any(traits[name].settled for name in whole)

    whole, kernels, settled = parts(first)

    def other(recipe: Recipe) -> bool:
        own, beside, by_settled = parts(recipe)
        return bool(own) and by_settled is not settled and (by_settled or bool(beside & kernels))

    best = min(filter(other, recipes), key=moves.estimate, default=()) if whole else ()
    most = min(moves.estimate(rewrites), ANOTHER_WAY * moves.estimate(first))
    return best if best and moves.estimate(first) < HOST_SECONDS and moves.estimate(best) < most else ()


def _unlike(moves: Moves, recipes: list[Recipe], length: int) -> list[Recipe]:
    """Return the first of `recipes`, and of the others those that do not hold all techniques that it has beyond `length`, if there are such; in all
    MOST_AT_FIRST. One that is estimated much slower comes after one that holds more and gains by it and one that differs in tuning alone, which is
    likely to win or lose with the first, and before one that holds more and does not gain."""
    if not recipes:
        return []
    least, held = moves.estimate(recipes[0]), {action.technique for action in recipes[0][length:]}

    def rank(one: Recipe) -> int:
        estimate, names = moves.estimate(one), {action.technique for action in one}
        if held <= names:
            return 1 if estimate < least else 2 if estimate == least and len(one) == len(recipes[0]) else 4
        return 0 if estimate <= ALTERNATIVE * least else 3

    return [recipes[0], *sorted(recipes[1:], key=rank)][:MOST_AT_FIRST]


def _with_settled(moves: Moves, recipes: list[Recipe]) -> list[Recipe]:
    """Return `recipes`, each in its place with the settled schedules that another one of them has besides, where those gain by the estimate: of 125
    programs that were timed on an H200 with such a schedule and without it 114 were faster with it (results/first_choices_h200)."""
    settled = {action for recipe in recipes for action in recipe if moves.space.traits(action).settled}

    def best(one: Recipe) -> Recipe:
        more = [other for other in recipes if set(one) < set(other) and set(other) - set(one) <= settled]
        return min([one, *more], key=moves.estimate)  # of equals the shorter one, which comes first

    return distinct(best(one) for one in recipes)


def _plain(moves: Moves) -> Recipe:
    """Return the highest rewrite without the forms that only prepare others."""
    return moves.fixpoint((), "EDPQ", enabling=False)


def _more_exact(moves: Moves, batch: int, recipe: Recipe) -> Rung:
    """When no rewrite passed: the highest one again, computed more exactly."""
    exact = [longer for longer in moves.additions(recipe) if moves.space.traits(longer[-1]).more_exact and longer not in moves.known]
    records = yield from moves.ask(exact, batch)
    ranked = _ranked(records, exact)
    return ranked[0] if ranked and ranked[0][1] > 0 else (recipe, 0.0)


def _schedules(moves: Moves, batch: int, recipe: Recipe, speedup: float) -> Rung:
    """Rungs 5 and 6."""
    scheduled = [longer for longer in moves.additions(recipe) if moves.space.traits(longer[-1]).legality in "SN"]
    scheduled += [pair for start in distinct([recipe, _plain(moves)]) for pair in _pairs(moves, start)]
    scheduled = [longer for longer in distinct(scheduled) if longer not in moves.known]  # `recipe` is the best of those
    scheduled.sort(key=lambda longer: (_loses(moves, longer, recipe), _expense(moves.space, longer, recipe), moves.estimate(longer)))  # stable
    scheduled = distinct([*_with_settled(moves, scheduled), *scheduled])
    records = yield from moves.ask(scheduled, batch)
    gained = [(longer, gain) for longer, gain in _ranked(records, scheduled) if gain > moves.space.resolution * speedup]
    for longer, gain in gained:
        if gain == gained[0][1]:
            recipe, speedup = longer, gain
            continue
        joined = moves.repair((*recipe, longer[-1]))
        if joined == recipe:
            continue
        [record] = yield from moves.ask([joined], 1)
        if record.speedup > moves.space.resolution * speedup:
            recipe, speedup = joined, record.speedup
    return recipe, speedup


def _pairs(moves: Moves, recipe: Recipe) -> list[Recipe]:
    """Return `recipe` with two schedules more that gain together what neither gains alone, or with three that are all tried first: each takes over
    other calls (a convolution with what follows, its pool, the norm between them)."""
    pairs = _joined(moves, moves.additions(recipe))
    first = [pair for pair in pairs if all(moves.space.traits(action).tried_first for action in pair[len(recipe) :])]
    triples = [triple for triple in _joined(moves, first) if moves.space.traits(triple[-1]).tried_first]
    return [*pairs, *triples]


def _joined(moves: Moves, recipes: list[Recipe]) -> list[Recipe]:
    """Return each recipe with what goes together with its last action, of what this space has: kernels for a GPU go with much that a CPU has too."""
    known = {technique.name for technique in moves.space.techniques}
    pairs = [(*recipe, more) for recipe in recipes for more in moves.space.traits(recipe[-1]).best_with if more.technique in known]
    return [pair for pair in pairs if moves.legal(pair)]


def _loses(moves: Moves, longer: Recipe, recipe: Recipe) -> bool:
    """Is it a loss by the estimate, if that can tell?"""
    return all(moves.space.traits(action).estimated for action in longer) and moves.estimate(longer) > LOSS * moves.estimate(recipe)


def _expense(space: Space[Any], longer: Recipe, recipe: Recipe) -> int:
    """Order schedules: what gains most (and pairs with it), what whole programs profit from, other pairs, others, and last what takes tens of seconds
    to build."""
    traits = space.traits(longer[-1])
    if traits.slow_to_build(longer[-1]):
        return 4
    if longer[:-1] != recipe:
        return 0 if traits.tried_first or space.traits(longer[-2]).tried_first else 2
    return 0 if traits.tried_first else 1 if traits.in_baselines else 3


def _ranked(records: list[Record], recipes: list[Recipe]) -> list[tuple[Recipe, float]]:
    """Return the recipes with their speed-ups, the greatest first; of equals the earlier one first."""
    pairs = [(recipe, record.speedup) for recipe, record in zip(recipes, records, strict=True)]
    return sorted(pairs, key=lambda pair: -pair[1])
