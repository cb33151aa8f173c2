"""The one loop: propose, evaluate, remember, until the budget is spent; and the ablation of what it found.

The loop knows a Space, a search and an Evaluator; it imports neither torch nor a domain. Every program, whoever proposed it, goes through
`Evaluator.evaluate`, and what became of it is a Record in the archive before the next one is begun.

    course.py    how a run is to go, and what it gave
    programs.py  from a recipe to a program
    choosing.py  which record to recommend
    running.py   the loop
    ablation.py  what each action of a recipe is worth
    live.py      what runs now, for whoever watches
"""

from warpwright.loop.ablation import Ablation, ablate
from warpwright.loop.choosing import Best, bandwidth_share, best
from warpwright.loop.course import Course, Outcome
from warpwright.loop.programs import Failed, make_candidate
from warpwright.loop.running import optimize

__all__ = ["Ablation", "Best", "Course", "Failed", "Outcome", "ablate", "bandwidth_share", "best", "make_candidate", "optimize"]
