"""nbody.cu with 33792 bodies: one wave of 132 multiprocessors."""

from __future__ import annotations

import numpy as np

from warpwright.domains.sass.harness import Launch, given, output


def launch(bodies: int = 33792) -> Launch:
    return Launch("nbody", (bodies // 256, 1, 1), (256, 1, 1), (given("f32", 4 * bodies), output("f32", 4 * bodies), bodies))


def small() -> Launch:
    return launch(512)


def expected(bodies: np.ndarray) -> np.ndarray:
    bodies = bodies.reshape(-1, 4)
    apart = bodies[None, :, :3] - bodies[:, None, :3]
    pull = bodies[None, :, 3] * ((apart**2).sum(2) + 1e-2) ** -1.5
    return np.concatenate([(apart * pull[:, :, None]).sum(1), np.zeros((len(bodies), 1))], 1)
