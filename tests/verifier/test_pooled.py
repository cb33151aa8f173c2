"""What an audit refuses as a whole, where one element makes up the error: the figures that docs/trust.md gives."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from benchmarks.verifier import pooled


def test_an_audit_refuses_what_one_judgement_mostly_lets_by() -> None:
    rows = {row["rule"]: row for row in pooled.table(24, 0.0, 4000)}
    rule, squares = rows["any call"], rows["sum of squares"]
    assert rule["refused at 4x"] > 0.99 and 0.3 < rule["refused at 2x"] < 0.45 and 0.02 < rule["refused at 1.4x"] < 0.06
    again, typical = rows["seen again"], rows["typical error"]
    assert again["refused at 4x"] > 0.98 and again["refused at 1.4x"] < 0.002 and again["refused at 2x"] < 0.08
    assert typical["refused at 4x"] > 0.99 and typical["refused at 3x"] > 0.9 and 0.15 < typical["refused at 2x"] < 0.26
    assert typical["refused at 1.4x"] < 0.004 and typical["refused at 1x"] < 0.001
    assert squares["refused at 4x"] > 0.99 and squares["refused at 1.4x"] < 0.001
