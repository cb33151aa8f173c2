"""Searches: each a short generator over a Space, which yields recipes and is sent their records. `SEARCHES` holds them by name."""

from __future__ import annotations

from warpwright.errors import UsageError
from warpwright.search import anneal, bandit, beam, evolve, greedy, ladder, random, screen
from warpwright.search.moves import Proposer, Recipe, Search

SEARCHES: dict[str, Search] = {
    "ladder": ladder.search,
    "greedy": greedy.search,
    "beam": beam.search,
    "evolve": evolve.search,
    "evolve-ranked": evolve.ranked,
    "anneal": anneal.search,
    "bandit": bandit.search,
    "random": random.search,
    "screen": screen.search,
}


MODEL_SEARCHES = ("fsr", "islands", "policy", "ppo", "trees")
"""Searches that ask a model or learn one (`run.py` makes them)."""


def by_name(name: str) -> Search:
    """Return the search called `name`."""
    if name not in SEARCHES:
        raise UsageError(f"expected a search, saw {name!r}", f"choose one of {', '.join(SEARCHES)}")
    return SEARCHES[name]


__all__ = ["MODEL_SEARCHES", "SEARCHES", "Proposer", "Recipe", "Search", "by_name"]
