"""A tenth set: the models of the draws by seeds 15 and 14, as the ninth has those of seed 12.

    python -m benchmarks.third_party --tenth --budget "120s, 2 proposals, until faster" --device cuda --jobs 4 --together --out ROWS

Those of seed 15 come first. Seed 14 was drawn without asking whether a model can be made at the size that it is used at: one that cannot is small.
"""

from __future__ import annotations

from benchmarks.models import ninth

MODELS = {**dict(ninth.of_draw(15)), **dict(ninth.of_draw(14, or_small=True))}
