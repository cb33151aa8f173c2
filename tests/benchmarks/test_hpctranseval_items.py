"""HPCTransEval's items judged one after another: a row as each ends, and a second call judges what is left."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks.translation import hpctranseval

ITEM = {
    "op_name": "exp", "op_args": [], "input_shape": [[640]], "output_shape": [[640]],
    "c_code": "void default_function_kernel(float* compute, float* ph_0) {\n"
              "  for (int32_t i = 0; i < 640; ++i) {\n    compute[i] = expf(ph_0[i]);\n  }\n}\n",
    "cuda_code": 'extern "C" __global__ void __launch_bounds__(64) default_function_kernel(float* __restrict__ compute, float* __restrict__ ph_0) {\n'
                 "  compute[((int)blockIdx.x) * 64 + ((int)threadIdx.x)] = __expf(ph_0[((int)blockIdx.x) * 64 + ((int)threadIdx.x)]);\n}\n",
}  # fmt: skip


@pytest.mark.compiler
@pytest.mark.usefixtures("quick_builds")
def test_items_are_judged_as_they_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = {**ITEM, "op_name": "off", "cuda_code": str(ITEM["cuda_code"]).replace("__expf", "0.5f + __expf")}
    (tmp_path / "IndependentOperator.json").write_text(json.dumps([ITEM, wrong]))
    out = tmp_path / "rows.jsonl"
    monkeypatch.setattr(sys, "argv", ["hpctranseval", "--suite", str(tmp_path), "--out", str(out)])
    hpctranseval.main()
    rows = list(map(json.loads, out.read_text().splitlines()))
    assert [(row["name"], row["family"], row["status"], row["control"]) for row in rows] == [
        ("exp", "IndependentOperator", "ok", "ok"), ("off", "IndependentOperator", "not_built", "ok"),
    ]  # fmt: skip
    assert "off by 0.5" in rows[1]["reason"]
    capsys.readouterr()
    hpctranseval.main()
    assert not capsys.readouterr().out and len(out.read_text().splitlines()) == 2
