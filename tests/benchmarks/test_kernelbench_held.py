"""Where the seconds of verdicts went, from a run's logs."""

from __future__ import annotations

from pathlib import Path

from benchmarks.kernelbench import held

LOG = """  0.13     0.24 trusted processes  start judge
 11.03     4.42 trusted processes  holding the device
 26.37     7.05 MainThread         holding the device
 33.42          MainThread         # all that is trusted begins anew: holding the device
 34.00     1.25 MainThread         close judge
  sum   11.47 s in     2 x holding the device
  sum    3.39 s in    55 x judge: viable
  sum    2.18 s in   156 x judge: compare
"""


def test_a_log_is_summed_up(tmp_path: Path) -> None:
    path = tmp_path / "level1_8_product.txt"
    path.write_text(LOG)
    row = held.row_of(path)
    assert row["task"] == "level1_8_product" and row["seconds"] == 35.2
    assert row["alone"] == "4.4, 7.0" and row["alone s"] == 11.5, "what is said about a lock is no holding of it"
    assert row["cases s"] == 3.4 and row["comparisons s"] == 2.2 and row["inputs s"] == 0.0
