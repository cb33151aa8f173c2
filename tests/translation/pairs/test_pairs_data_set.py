"""The data set: duplicates, shards, resuming, crashes, and the verb."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from warpwright import cli
from warpwright.errors import MissingExtra, UsageError
from warpwright.translation.pairs import data_set, worker
from warpwright.translation.pairs import generate as generating
from warpwright.translation.pairs.data_set import Folder, read_pairs, split_of
from warpwright.translation.pairs.dedup import identity, normalised, skeleton
from warpwright.translation.pairs.draft import Options

pytest.importorskip("pyarrow", reason="writing pairs needs pyarrow (extra pairs)")


def test_names_and_blanks_make_no_new_pair() -> None:
    a = "void f(float* out) { for (int i = 0; i < 8; ++i) out[i] = sqrtf(2.0f); } // one"
    b = "void g(float *r)\n{ for (int k = 0; k < 8; ++k) r[k] = sqrtf(2.0f); }"
    assert identity(a, a) == identity(b, b)
    assert identity(a, a) != identity(a.replace("8", "9"), a)
    assert skeleton(a) == skeleton(a.replace("8", "9"))
    assert normalised(a) != normalised(a.replace("sqrtf", "cosf"))


def pair(number: int, name: str = "exp") -> dict[str, Any]:
    made = next(said for said in worker.work([3], Options(seed=1, tune=1, operators=("exp",), verify_cuda=False)) if "pair" in said)["pair"]
    return {**made, "index": number, "id": f"id{number}", "name": name}


@pytest.mark.compiler
def test_parquet_round_trip_and_card(tmp_path: Path) -> None:
    folder = Folder.open(tmp_path / "set", Options(seed=1), False)
    rows = [pair(number) for number in range(3)]
    for row in rows:
        folder.add(row, 2)
    folder.next_index = 3
    folder.card({"constant": 2})
    read = read_pairs(tmp_path / "set")
    assert [{key: value for key, value in row.items() if key != "split"} for row in read] == rows
    assert {path.name for path in (tmp_path / "set").iterdir()} == {"part-00000.parquet", "part-00001.parquet", "state.json", "README.md"}
    card = (tmp_path / "set" / "README.md").read_text()
    assert "3 pairs" in card and "constant 2" in card and all(f"`{name}`" in card for name in read[0])
    assert json.loads((tmp_path / "set" / "state.json").read_text())["next"] == 3


def test_splits_hold_whole_operators_out() -> None:
    assert split_of("graph_softmax") == split_of("softmax")
    shares = [split_of(name) for name in map(str, range(1000))]
    assert 60 < shares.count("test") < 140


@pytest.mark.slow
@pytest.mark.compiler
def test_resuming_goes_on_with_the_same_numbers(tmp_path: Path) -> None:
    options = Options(seed=5, tune=1, operators=("exp", "sum", "transpose", "tanh", "add"), verify_cuda=False)
    whole = generating.generate(tmp_path / "whole", 8, None, options, 1, False)
    generating.generate(tmp_path / "parts", 4, None, options, 1, False)
    generating.generate(tmp_path / "parts", 8, None, options, 1, True)
    assert whole.pairs == 8 and not whole.reasons
    assert generating.generate(tmp_path / "parts", 8, None, options, 1, True).drafts == 0
    once, twice = ([(row["index"], row["cuda"]) for row in read_pairs(tmp_path / name)] for name in ("whole", "parts"))
    assert once == twice


def test_a_folder_is_not_overwritten_nor_mixed(tmp_path: Path) -> None:
    Folder.open(tmp_path, Options(seed=1), False).flush()
    with pytest.raises(UsageError, match="--resume"):
        Folder.open(tmp_path, Options(seed=1), False)
    with pytest.raises(UsageError, match="options"):
        Folder.open(tmp_path, Options(seed=2), True)
    with pytest.raises(UsageError, match="leave --resume out"):
        Folder.open(tmp_path / "none", Options(), True)
    with pytest.raises(UsageError, match="part-"):
        read_pairs(tmp_path / "nothing")


def test_without_pyarrow_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[pairs\]"):
        data_set.parquet()


CRASHES = """
import json, os, sys
for line in sys.stdin:
    for index in json.loads(line)["indices"]:
        print(json.dumps({"begin": index}), flush=True)
        if index == 4:
            os.abort()
        print(json.dumps({"index": index, "rejected": "constant: a stand-in"}), flush=True)
    print('{"done": true}', flush=True)
"""


def test_a_pair_that_crashes_ends_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess

    def start(pool: Any) -> Any:
        child = subprocess.Popen([sys.executable, "-c", CRASHES], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        pool.children.add(child)
        return child

    monkeypatch.setattr(generating._Pool, "_start", start)
    pool = generating._Pool(Options(), 1, 1, 0)
    said = pool.in_order()
    found = [next(said) for _ in range(20)]
    pool.close()
    assert [one["index"] for one in found] == list(range(20))
    assert found[4]["rejected"].startswith("crashed") and all(one["rejected"].startswith("constant") for one in found[:4] + found[5:])


@pytest.mark.compiler
def test_the_verb(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = [
        "pairs",
        "--out",
        str(tmp_path / "set"),
        "--count",
        "3",
        "--seed",
        "2",
        "--jobs",
        "1",
        "--tune",
        "2",
        "--operators",
        "exp,sum,softmax",
        "--json",
    ]
    assert cli.main(words) == 0
    said = json.loads(capfd.readouterr().out)
    assert said["pairs"] == 3 and said["faults"] == []
    rows = read_pairs(tmp_path / "set")
    assert len(rows) == 3 and all(row["cuda_verified"] and "__global__" in row["cuda"] and "void op_" in row["c"] for row in rows)
    assert cli.main(["pairs", "--out", str(tmp_path / "x"), "--operators", "no_such", "--json"]) == 2
    assert "no_such" in json.loads(capfd.readouterr().out)["error"]
