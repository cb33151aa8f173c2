"""The image sets that `verify` trains and tests on: clean, protected, controls, and what estimates without the key make of them."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from warpwright.domains.unlearnable.cwc.bank import FilterBank
from warpwright.domains.unlearnable.cwc.inverse import recover
from warpwright.domains.unlearnable.cwc.operator import Operator
from warpwright.domains.unlearnable.data.labelled import Labelled, filtered, load_labelled, read_labelled, stack
from warpwright.domains.unlearnable.data.sources import open_listed_as_written
from warpwright.domains.unlearnable.verification import estimate, quality
from warpwright.domains.unlearnable.verification.estimate import Fit
from warpwright.domains.unlearnable.verification.findings import Quality
from warpwright.errors import UsageError

_REFERENCES = 500
"""Unlabelled clean images that the blind estimate gets, evenly chosen from the test set, which may come class by class."""

_RECOVERED = {"cpu": 2**20}
"""Values of the images that are recovered together, on a GPU 2^25: there the 4,000 kernels of a batch cost as much for few images as for many."""

_CONTROL_KEY = b"warpwright control filters: no secret, every report may use it"


@dataclass(frozen=True)
class Data:
    """A clean training set, the same images protected, and a clean test set of the same classes."""

    clean: Labelled
    protected: Labelled
    """In the order of `clean`."""
    test: Labelled
    side: int = 32
    absent: int = 0
    """Clean images that the protected set lacks: left out of everything here, but not protected."""

    @functools.cached_property
    def fit(self) -> Fit:
        """The operator and the filters, estimated from one pair of each class."""
        changed = self.changed
        pairs = []
        for label, name in enumerate(self.clean.classes):
            members = np.flatnonzero((self.clean.labels == label) & changed)
            if not len(members):
                raise UsageError(f"expected a protected image of each class, saw none of {name!r}", "protect the whole set")
            varied = max(members[:20], key=lambda i: float(self.clean.pictures[i].std()))  # a flat image reveals nothing of its filter
            pairs.append((self.clean.pictures[varied], self.protected.pictures[varied]))
        return estimate.fit(pairs, self.clean.classes)

    @functools.cached_property
    def changed(self) -> NDArray[np.bool_]:
        """`[N]` does the image differ from the clean one?"""
        pairs = zip(self.clean.pictures, self.protected.pictures, strict=True)
        return np.array([a.shape != b.shape or not np.array_equal(a, b) for a, b in pairs])

    def fractions(self) -> dict[str, float]:
        """Return the share of each class's images that is protected."""
        return {name: float(self.changed[self.clean.labels == label].mean()) for label, name in enumerate(self.clean.classes)}

    def fingerprint(self) -> str:
        """Return 16 hexadecimal digits of all names, labels and pixels, and of the side."""
        sha = hashlib.sha256(str(self.side).encode())
        for part in (self.clean, self.protected, self.test):
            sha.update("\n".join(part.names).encode() + part.labels.tobytes())
            for picture in part.pictures:
                sha.update(picture.tobytes())
        return sha.hexdigest()[:16]

    def samples(self, each: int = 2) -> list[tuple[NDArray[np.uint8], NDArray[np.uint8]]]:
        """Return clean/protected pairs for a contact sheet: the first of up to ten classes."""
        chosen = [i for label in range(min(10, len(self.clean.classes))) for i in np.flatnonzero(self.clean.labels == label)[:each]]
        return [(self.clean.pictures[i], self.protected.pictures[i]) for i in chosen]

    def quality(self, limit: int = 500) -> Quality:
        """Return PSNR (dB) and SSIM of protected images, over the first `limit`."""
        shapes: dict[tuple[int, ...], list[tuple[NDArray[np.uint8], NDArray[np.uint8]]]] = {}
        for before, after in zip(self.clean.pictures[:limit], self.protected.pictures[:limit], strict=True):
            if before.shape == after.shape:
                shapes.setdefault(before.shape, []).append((before, after))
        if not shapes:
            return Quality(0, 0.0, 0.0, 0.0, 0.0)
        stacked = [(np.stack([one for one, _ in pairs]), np.stack([other for _, other in pairs])) for pairs in shapes.values()]
        noise = np.concatenate([quality.psnr(*pair) for pair in stacked])
        likeness = np.concatenate([quality.ssim(*pair) for pair in stacked])
        return Quality(len(noise), float(np.median(noise)), float(noise.min()), float(np.median(likeness)), float(likeness.min()))


def load(clean: Path, protected: Path, labels: str, test: str | None, holdout: float, side: int, limit: int = 0) -> Data:
    """Return the sets matched by name; without `test`, a share `holdout` of the clean images is kept for testing."""
    if test is None and not 0 < holdout < 1:
        raise UsageError(f"expected --holdout between 0 and 1, saw {holdout}", "write --holdout 0.2")
    before, after = load_labelled(clean, labels, limit), _protected(protected, labels)
    place = {name: i for i, name in enumerate(after.names)}
    both = [i for i, name in enumerate(before.names) if name in place]
    if len(both) < len(before.names) // 2 or not both:
        raise UsageError(f"expected {protected} to hold the images of {clean}, saw {len(both)} of {len(before.names)} names", "give the two in order")
    matched, absent = before.take(np.array(both)), len(before.names) - len(both)
    changed = after.take(np.array([place[before.names[i]] for i in both]))
    if test is not None:
        held = load_labelled(Path(test), "auto")
        if held.classes != before.classes:
            raise UsageError(f"expected the classes of {clean} in {test}, saw {len(held.classes)} others", "give a test set of the same classes")
        return Data(matched, changed, held, side, absent)
    order = np.random.default_rng(0).permutation(len(both))
    cut = max(1, int(len(both) * holdout))
    return Data(matched.take(order[cut:]), changed.take(order[cut:]), matched.take(order[:cut]), side, absent)


def _protected(path: Path, labels: str) -> Labelled:
    """A CSV's names end as the clean files do; protected ones may end otherwise."""
    if labels in ("auto", "folders") or labels.startswith("hf:"):
        return load_labelled(path, "auto")
    return read_labelled(open_listed_as_written(path, Path(labels)), path)


class TrainingSets:
    """The arrays that networks are trained and tested on, `[N, C, h, w]` uint8 at the training side; computed on first use."""

    def __init__(self, data: Data) -> None:
        self.data = data
        self.labels, self.test_labels = data.clean.labels, data.test.labels
        self.classes = len(data.clean.classes)
        self._kept: dict[tuple[object, ...], NDArray[np.uint8]] = {}

    @functools.cached_property
    def clean(self) -> NDArray[np.uint8]:
        """The clean training images."""
        return self.data.clean.at_side(self.data.side)

    @functools.cached_property
    def protected(self) -> NDArray[np.uint8]:
        """The protected training images."""
        return self.data.protected.at_side(self.data.side)

    @functools.cached_property
    def test(self) -> NDArray[np.uint8]:
        """Clean images to test on."""
        return self.data.test.at_side(self.data.side)

    def tested_with(self, shift: int) -> NDArray[np.uint8]:
        """Return the test images with the filter of the class `shift` further: 0 is each one's own."""
        return self.once(("tested", shift), lambda: self._shifted(shift))

    def once(self, key: tuple[object, ...], make: Callable[[], NDArray[np.uint8]]) -> NDArray[np.uint8]:
        """Return what `make` gives, computed once for a key: seeds share what does not depend on them."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def _shifted(self, shift: int) -> NDArray[np.uint8]:
        labels = (self.test_labels + shift) % self.classes
        return stack(filtered(self.data.test.pictures, labels, self.data.fit.bank, self.data.fit.operator), self.data.side)

    def universal(self, seed: int) -> NDArray[np.uint8]:
        """Return the clean training images, all with one filter: what blur costs without regard to class."""
        bank = FilterBank.from_key(_CONTROL_KEY, [f"universal {seed}"], self.data.fit.bank.spec)
        return self._filtered(np.zeros(len(self.labels), np.int64), bank)

    def random(self, seed: int) -> NDArray[np.uint8]:
        """Return the clean training images, each with a filter of its own."""
        bank = FilterBank.from_key(_CONTROL_KEY, [f"{seed} {i}" for i in range(len(self.labels))], self.data.fit.bank.spec)
        return self._filtered(np.arange(len(self.labels)), bank)

    def _filtered(self, labels: NDArray[np.integer], bank: FilterBank) -> NDArray[np.uint8]:
        return stack(filtered(self.data.clean.pictures, labels, bank, self.data.fit.operator), self.data.side)

    @functools.cached_property
    def blind(self) -> NDArray[np.uint8]:
        """Return the protected images with class spectra equalised: from labels and similar clean images, without a key or a pair."""
        index = np.unique(np.linspace(0, len(self.test) - 1, min(_REFERENCES, len(self.test))).astype(np.int64))
        responses = estimate.blind_responses(self.protected, self.labels, self.classes, self.test[index], self.data.fit.bank.spec.k)
        return estimate.undo(self.protected, self.labels, responses)

    def from_pairs(self, device: str = "cpu") -> NDArray[np.uint8]:
        """Return the protected images recovered with the filters estimated from one pair of each class; `device` computes it."""
        return self.once(("from pairs",), lambda: self._recovered(device))

    def _recovered(self, device: str) -> NDArray[np.uint8]:
        fit = self.data.fit
        operator = Operator(fit.operator.pad, "sum")  # for "max" each image's divisor is unknown: only brightness is off, by a factor
        restored: list[NDArray[np.uint8]] = list(self.data.protected.pictures)
        most = _RECOVERED.get(device, 2**25)
        shapes: dict[tuple[int, ...], list[int]] = {}
        for index, picture in enumerate(restored):
            shapes.setdefault(picture.shape, []).append(index)
        for shape, members in shapes.items():
            size = max(1, most // math.prod(shape))
            for start in range(0, len(members), size):
                part = members[start : start + size]
                done = recover(np.stack([restored[i] for i in part]), self.labels[part], fit.bank, operator, device=device)
                for place, index in enumerate(part):
                    restored[index] = done[place]
        return stack(restored, self.data.side)

    def mixed(self, share: float, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """Return the training images with that share of each class protected, drawn by the seed, and which are."""
        rng = np.random.default_rng(seed)
        chosen = np.zeros(len(self.labels), np.bool_)
        for label in range(self.classes):
            members = rng.permutation(np.flatnonzero(self.labels == label))
            chosen[members[: round(share * len(members))]] = True
        return np.where(chosen[:, None, None, None], self.protected, self.clean), chosen
