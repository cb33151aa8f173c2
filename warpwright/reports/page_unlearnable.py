"""Findings of `warpwright verify` -> one self-contained HTML page: headline, tables, training curves, contact sheet."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from warpwright.domains.unlearnable.data.contact import contact_sheet
from warpwright.domains.unlearnable.verification.experiments import ABOUT
from warpwright.domains.unlearnable.verification.findings import LIMITS, Findings, Row
from warpwright.reports import page as pages
from warpwright.reports import plots

_SHOWN = (("plain", "clean"), ("plain", "protected"), ("universal filter", "control"), ("random filter per image", "control"))


def page(findings: Findings, samples: Sequence[tuple[NDArray[np.uint8], NDArray[np.uint8]]]) -> str:
    """Return the page; `samples` are clean/protected pairs `[C, H, W]` for the contact sheet."""
    mixed = _mixed(findings)
    parts = [
        f'<p class="{"" if findings.headline.valid else "bad"}"><b>{escape(findings.headline.text)}</b></p>',
        pages.section("Controls", _controls(findings)),
        pages.section("Counter-measures", _attacks(findings)),
        *([pages.section("Sets of which a part is protected", mixed)] if mixed else []),
        pages.section("Accuracy on clean test images, epoch by epoch", _curves(findings)),
        pages.section("Clean and protected", _sheet(samples)),
        pages.section("Image quality", _quality(findings)),
        pages.section("What to make of it", "".join(f"<p>{escape(note)}</p>" for note in findings.notes())),
        pages.section("Limits", f"<p>{escape(LIMITS)}</p>"),
        pages.section("Conditions", _conditions(findings)),
    ]
    return pages.document("How far the protection goes", "".join(parts))


def _cells(row: Row) -> list[str]:
    mean = "void" if row.mean is None else f"{row.mean:.1f}"
    return [mean, f"{row.spread:.1f}", f"{np.mean(row.train):.1f}", f"{len(row.accuracies)} of {len(row.train)}"]


def _controls(findings: Findings) -> str:
    rows = []
    for name, on in _SHOWN:
        row = findings.row(name, on)
        if row is not None:
            own, perm = ("" if value is None else f"{value:.1f}" for value in (row.own, row.perm))
            rows.append([escape(name if on == "control" else f"{name} training on {on} images"), *_cells(row), own, perm])
    heads = ["training", "#clean test %", "#spread", "#train %", "#seeds that learned", "#own filter", "#permuted filter"]
    beyond = findings.beyond_control
    remark = "" if beyond is None else f"<p>Below the universal filter's accuracy by {beyond:.1f} points: the part that is due to the classes.</p>"
    return pages.table(heads, rows) + remark


def _attacks(findings: Findings) -> str:
    rows = []
    base = findings.mean("plain", "clean")
    for row in findings.rows:
        if row.on == "protected" and row.name != "plain":
            cost = findings.mean(row.name, "clean")
            lost = "" if cost is None or base is None else f"{base - cost:+.1f}"
            rows.append([escape(row.name), *_cells(row), lost, escape(ABOUT.get(row.name, ""))])
    if not rows:
        return "<p>None was run.</p>"
    heads = ["counter-measure", "#clean test %", "#spread", "#train %", "#seeds that learned", "#its cost on clean data", "what it is"]
    worst = next((i for i, row in enumerate(rows) if row[0] == escape(findings.headline.attack)), -1)
    return pages.table(heads, rows, ours=worst)


def _mixed(findings: Findings) -> str:
    """Return the sets of which a part is protected, beside what their clean part gives alone."""
    rows = []
    for row in findings.rows:
        alone = findings.row(f"{row.name}, clean part", "clean")
        if row.on == "mixed" and alone is not None:
            rows.append([escape(row.name), *_cells(row), _cells(alone)[0]])
    return pages.table(["set", "#clean test %", "#spread", "#train %", "#seeds that learned", "#its clean part alone %"], rows) if rows else ""


def _curves(findings: Findings) -> str:
    rows = [row for row in findings.rows if row.curve and ((row.name, row.on) in _SHOWN or row.name == findings.headline.attack)]
    return plots.curves([(f"{row.name}, {row.on}", [test for _, test in row.curve]) for row in rows])


def _sheet(samples: Sequence[tuple[NDArray[np.uint8], NDArray[np.uint8]]]) -> str:
    if not samples:
        return "<p>No images.</p>"
    data = base64.b64encode(contact_sheet(samples)).decode()
    return f'<img alt="pairs of clean (left) and protected (right) images" style="max-width:100%" src="data:image/png;base64,{data}">'


def _quality(findings: Findings) -> str:
    q = findings.quality
    rows = [["PSNR, dB", f"{q.psnr:.1f}", f"{q.psnr_worst:.1f}"], ["SSIM", f"{q.ssim:.3f}", f"{q.ssim_worst:.3f}"]]
    return pages.table([f"over {q.images} images", "#median", "#worst"], rows)


def _conditions(findings: Findings) -> str:
    shares = sorted(set(findings.fractions.values()))
    protected = f"{100 * shares[0]:.0f} to {100 * shares[-1]:.0f} % of each class" if shares else ""
    facts = {**findings.recipe, "protected": protected, "filters": findings.filters, "date": findings.day, "counter-measures as of": findings.dated}
    return pages.table(["", ""], [[escape(name), escape(str(value))] for name, value in facts.items()])
