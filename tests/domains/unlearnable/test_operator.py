"""The CWC operator: every back end bit-equal to the int64 definition, and the definition's own properties."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from warpwright.domains.unlearnable.cwc import backends
from warpwright.domains.unlearnable.cwc.bank import UNIT, FilterBank, FilterSpec, distance, farthest, response
from warpwright.domains.unlearnable.cwc.operator import PADS, SCALES, Operator, reference
from warpwright.errors import UsageError

KEY = bytes(range(32))
CLASSES = ("ant", "bee", "cat")
SHAPES = ((5, 3, 8, 8), (2, 1, 1, 1), (3, 4, 7, 13), (1, 3, 1, 9), (2, 3, 33, 31), (0, 3, 4, 4))


def make(shape: tuple[int, ...], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, shape, dtype=np.uint8), rng.integers(0, len(CLASSES), shape[0])


def bank(k: int = 3, **spec: object) -> FilterBank:
    return FilterBank.from_key(KEY, CLASSES, FilterSpec(k, 0.3 if k < 6 else 0.06, **spec))


@pytest.mark.parametrize("backend", ["cpp", "torch"])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 9, 11])
def test_back_ends_are_bit_equal_to_the_definition(backend: str, k: int) -> None:
    for shape in SHAPES:
        images, labels = make(shape, k)
        for pad in PADS:
            for scale in SCALES:
                operator = Operator(pad, scale)
                expected = reference(images, labels, bank(k).weights, operator)
                got = np.asarray(backends.pick(backend)(images, labels, bank(k), operator))
                assert (got == expected).all(), (shape, operator)


@pytest.mark.parametrize("fill", [0, 1, 255])
@pytest.mark.parametrize("scale", SCALES)
def test_constant_images(fill: int, scale: str) -> None:
    images, labels = np.full((3, 3, 9, 9), fill, np.uint8), np.arange(3)
    operator = Operator("reflect", scale)
    expected = reference(images, labels, bank().weights, operator)
    assert (backends.cpp(images, labels, bank(), operator) == expected).all()
    assert (expected == (fill if scale == "sum" else 255 * (fill > 0))).all()


def test_tunings_threads_layouts_and_splits_give_the_same_bytes() -> None:
    images, labels = make((11, 3, 20, 18))
    expected = backends.cpp(images, labels, bank(), Operator())
    for tuning in (backends.Tuning(1, 1, 8), backends.Tuning(4, 2, 8), backends.Tuning(3, 2, 16)):
        assert (backends.cpp(images, labels, bank(), Operator(), threads=2, tuning=tuning) == expected).all()
    nhwc = np.ascontiguousarray(images.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    assert (backends.cpp(nhwc, labels, bank(), Operator()) == expected).all()
    assert (backends.cpp(images[:, :, ::-1], labels, bank(), Operator()) == backends.numpy(images[:, :, ::-1], labels, bank(), Operator())).all()
    parts = [backends.cpp(images[i : i + 4], labels[i : i + 4], bank(), Operator()) for i in range(0, 11, 4)]
    assert (np.concatenate(parts) == expected).all()


def test_out_is_filled_in_place_and_overlap_is_refused() -> None:
    images, labels = make((4, 3, 6, 6))
    out = np.empty_like(images)
    assert backends.cpp(images, labels, bank(), Operator(), out) is out
    with pytest.raises(UsageError, match="separate"):
        backends.cpp(images, labels, bank(), Operator(), images)


def test_identity_filter_leaves_bytes() -> None:
    images, labels = make((4, 3, 6, 6))
    identity = FilterBank.from_key(KEY, CLASSES, FilterSpec(3, 0.0))
    assert (backends.cpp(images, labels, identity, Operator()) == images).all()


def test_filters_are_golden() -> None:
    """Changing this digest changes every data set ever protected: raise SCHEME instead."""
    weights = np.concatenate([bank(3).weights.ravel(), bank(9).weights.ravel(), bank(3, tap="random").weights.ravel()])
    assert hashlib.sha256(weights.astype("<i4").tobytes()).hexdigest()[:16] == "891c630ffb0a46df"


def test_classes_are_keyed_by_name() -> None:
    one = FilterBank.from_key(KEY, ("a", "b"))
    two = FilterBank.from_key(KEY, ("new", "b", "a"))
    assert (one.weights[0] == two.weights[2]).all() and (one.weights[1] == two.weights[1]).all()
    assert (one.weights != FilterBank.from_key(KEY, ("a", "b"), dataset="other").weights).any()


def test_weights_are_uniform_and_keys_unrelated() -> None:
    """Kolmogorov-Smirnov against U(0, p_b) over 2,000 keys; keys that differ in one bit give uncorrelated filters."""
    keys = [i.to_bytes(32, "little") for i in range(2000)]
    weights = np.stack([FilterBank.from_key(key, ("a",)).weights[0] for key in keys]) / UNIT
    outer = np.sort(np.delete(weights.reshape(2000, 9), 4, axis=1).ravel()) / 0.3
    distance = np.abs(outer - (np.arange(outer.size) + 0.5) / outer.size).max()
    assert distance < 1.95 / np.sqrt(outer.size)  # 0.1 % point
    assert (weights[:, 1, 1] == 1).all()
    first, second = weights[0::2, 0, 0], weights[1::2, 0, 0]
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(first.size)


def test_random_tap_places_are_uniform() -> None:
    places = np.zeros(9)
    for i in range(1800):
        filters = FilterBank.from_key(i.to_bytes(32, "big"), ("a",), FilterSpec(tap="random"))
        places[int(filters.weights[0].argmax())] += 1
    assert ((places - 200) ** 2 / 200).sum() < 26.1  # chi-square, 8 degrees of freedom, 0.1 %


def test_min_response_is_kept() -> None:
    filters = FilterBank.from_key(KEY, [str(i) for i in range(50)], FilterSpec(min_response=0.25))
    assert response(filters.weights).min() > 0.25


def test_the_farthest_of_the_candidates_stays_and_a_class_that_is_added_last_changes_none() -> None:
    names = [f"class {i}" for i in range(8)]
    apart = FilterBank.from_key(KEY, names, FilterSpec(pb=0.2, candidates=32))
    drawn = FilterBank.from_key(KEY, names, FilterSpec(pb=0.2))

    def nearest(bank: FilterBank) -> float:
        return min(distance(bank.weights[a], bank.weights[b]) for a in range(8) for b in range(a))

    assert nearest(apart) > 2 * nearest(drawn) and (apart.weights[0] == drawn.weights[0]).all()
    fewer = FilterBank.from_key(KEY, names[:5], FilterSpec(pb=0.2, candidates=32))
    assert (fewer.weights == apart.weights[:5]).all()
    assert (FilterBank.from_key(KEY, names, FilterSpec(pb=0.2, candidates=32)).weights == apart.weights).all()
    near, far, taken = drawn.weights[1], apart.weights[2], drawn.weights[0]
    expected = far if distance(far, taken) > distance(near, taken) else near
    assert (farthest([near, far], [taken]) == expected).all() and farthest([near, far], []) is near
    clear = FilterBank.from_key(KEY, names, FilterSpec(candidates=4, min_response=0.25))
    assert response(clear.weights).min() > 0.25
    with pytest.raises(UsageError, match="candidates"):
        FilterSpec(candidates=0)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (np.zeros((2, 3, 4, 4), np.uint16), np.zeros(2, int), "uint8"),
        (np.zeros((2, 4, 4), np.uint8), np.zeros(2, int), "uint8"),
        (np.zeros((2, 3, 4, 0), np.uint8), np.zeros(2, int), "pixels"),
        (np.zeros((2, 3, 4, 4), np.uint8), np.zeros(3, int), "labels"),
        (np.zeros((2, 3, 4, 4), np.uint8), np.array([0, 3]), "labels in 0..2"),
        (np.zeros((2, 3, 4, 4), np.uint8), np.array([0.0, 1.0]), "integer labels"),
    ],
)
def test_bad_input_gets_one_clear_error(images: np.ndarray, labels: np.ndarray, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        backends.cpp(images, labels, bank(), Operator())


def test_bad_specs_are_refused() -> None:
    for spec in ({"k": 0}, {"pb": 1.5}, {"k": 31, "pb": 0.3}):
        with pytest.raises(UsageError):
            FilterSpec(**spec)
    with pytest.raises(UsageError, match="16 bytes"):
        FilterBank.from_key(b"short", CLASSES)
    with pytest.raises(UsageError, match="distinct"):
        FilterBank.from_key(KEY, ("a", "a"))
