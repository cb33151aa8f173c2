"""stencil.cu on 512 x 512 x 64 points."""

from __future__ import annotations

import numpy as np

from warpwright.domains.sass.harness import Launch, given, output

WEIGHTS = (-8.541666, 1.6, -0.2, 0.02539683, -0.001785714)


def launch(x: int = 512, y: int = 512, z: int = 64) -> Launch:
    return Launch("stencil", (x // 32, y // 16, 1), (32, 16, 1), (given("f32", (x + 8) * (y + 8) * (z + 8)), output("f32", x * y * z), x, y, z))


def small() -> Launch:
    return launch(64, 32, 8)


def expected(u: np.ndarray) -> np.ndarray:
    u = u.reshape(16, 40, 72)
    total = WEIGHTS[0] * u[4:-4, 4:-4, 4:-4]
    for r in range(1, 5):
        for shift in (-r, r):
            total = total + WEIGHTS[r] * sum(np.roll(u, shift, axis)[4:-4, 4:-4, 4:-4] for axis in range(3))
    return total
