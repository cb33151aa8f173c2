"""What Rodinia's programs without an OpenMP twin have to compute, in NumPy; each function takes a program's input files, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

Given = Mapping[str, np.ndarray]


def solve(given: Given) -> list[np.ndarray]:
    """gaussian: the solution of the linear system in its file."""
    values = given["made.txt"]
    n = int(values[0])
    return [np.linalg.solve(values[1 : 1 + n * n].reshape(n, n), values[1 + n * n : 1 + n * n + n])]


def sort(given: Given) -> list[np.ndarray]:
    """hybridsort: the floats of its file in order."""
    return [np.sort(given["made.txt"].astype(np.float32)).astype(np.float64)]


def host(given: Given) -> list[np.ndarray]:
    """huffman: what its own encoder on the host made."""
    return [given["host.bin"]]


def heat(given: Given, side: int = 128, steps: int = 60) -> list[np.ndarray]:
    """hotspot: explicit steps of the heat equation on a chip of 16 x 16 x 0.5 mm in air of 80 degrees, with no flow over its sides.

    Its OpenMP twin is no judge: in blocks at the rim it adds to inner cells what it computed for the last cell of the rim."""
    temperature, power = (given[f"{name}_{side}"].reshape(side, side) for name in ("temp", "power"))
    edge, thick, conductivity, heat_capacity = 0.016 / side, 0.0005, 100.0, 1.75e6
    capacity = 0.5 * heat_capacity * thick * edge * edge
    sideways, upwards = 1 / (2 * conductivity * thick), thick / (conductivity * edge * edge)
    step = 0.001 / (3.0e6 / (0.5 * thick * heat_capacity))
    for _ in range(steps):
        around = np.pad(temperature, 1, mode="edge")
        flow = around[2:, 1:-1] + around[:-2, 1:-1] + around[1:-1, 2:] + around[1:-1, :-2] - 4 * temperature
        temperature = temperature + step / capacity * (power + flow / sideways + (80 - temperature) / upwards)
    return [temperature.reshape(-1)]


def wavelet(given: Given, whole: bool, forward: bool, side: int = 192, levels: int = 3) -> list[np.ndarray]:
    """dwt2d: three levels of the 5/3 transform in whole numbers, or of the 9/7 transform, of a square picture of bytes, or back.

    Bands of a level follow one another: low, high along x, high along y, high along both; low holds the next level."""
    picture = given["grey.raw"].reshape(side, side)
    values = picture - 128 if whole else picture / 255 - 0.5
    lift, unlift = (_lift53, _unlift53) if whole else (_lift97, _unlift97)
    sizes = [side >> level for level in range(levels)]
    if forward:
        flat = np.zeros(side * side)
        low = values
        for size in sizes:
            low = _along(_along(low, lift, 0), lift, 1)
            bands = [low[a::2, b::2] for a, b in ((0, 0), (0, 1), (1, 0), (1, 1))]
            flat[: size * size] = np.concatenate([band.reshape(-1) for band in bands])
            low = bands[0]
        return [flat]
    flat = values.reshape(-1).astype(np.float64).copy()
    for size in reversed(sizes):
        half = size // 2
        low = np.zeros((size, size))
        for band, (a, b) in zip(flat[: size * size].reshape(4, half, half), ((0, 0), (0, 1), (1, 0), (1, 1)), strict=True):
            low[a::2, b::2] = band
        low = _along(_along(low, unlift, 1), unlift, 0)
        flat[: size * size] = low.reshape(-1)
    return [flat]


def _along(values: np.ndarray, step: Callable[[np.ndarray], np.ndarray], axis: int) -> np.ndarray:
    return np.swapaxes(step(np.swapaxes(values, 0, axis)), 0, axis)


def _around(values: np.ndarray, odd: bool) -> np.ndarray:
    """Return for each odd (even) row the sum of both its neighbours, mirrored at the ends; the number of rows is even."""
    if odd:
        even = values[0::2]
        return even + np.concatenate([even[1:], even[-1:]])
    high = values[1::2]
    return np.concatenate([high[:1], high[:-1]]) + high


def _lift53(values: np.ndarray) -> np.ndarray:
    done = values.astype(np.float64).copy()
    done[1::2] -= np.trunc(_around(done, True) / 2)  # whole numbers are divided as in C
    done[0::2] += np.trunc((_around(done, False) + 2) / 4)
    return done


def _unlift53(values: np.ndarray) -> np.ndarray:
    done = values.astype(np.float64).copy()
    done[0::2] -= np.trunc((_around(done, False) + 2) / 4)
    done[1::2] += np.trunc(_around(done, True) / 2)
    return done


_STEPS_97 = ((True, -1.586134342), (False, -0.05298011854), (True, 0.8829110762), (False, 0.4435068522))
_SCALE_97 = 1.230174104914


def _lift97(values: np.ndarray) -> np.ndarray:
    done = values.astype(np.float64).copy()
    for odd, factor in _STEPS_97:
        done[int(odd) :: 2] += factor * _around(done, odd)
    done[0::2] /= _SCALE_97
    done[1::2] *= _SCALE_97
    return done


def _unlift97(values: np.ndarray) -> np.ndarray:
    done = values.astype(np.float64).copy()
    done[0::2] *= _SCALE_97
    done[1::2] /= _SCALE_97
    for odd, factor in reversed(_STEPS_97):
        done[int(odd) :: 2] -= factor * _around(done, odd)
    return done
