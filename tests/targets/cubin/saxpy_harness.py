"""How the tests launch saxpy: y = a x + y, of which the fake driver computes a x."""

from __future__ import annotations

from warpwright.domains.sass.harness import Launch, given, output


def launch() -> Launch:
    return Launch("saxpy", (16, 1, 1), (256, 1, 1), (2.0, given("f32", 4096), output("f32", 4096), 4096))
