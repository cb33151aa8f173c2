"""The command on machine code, on a machine without a GPU: optimise in the simulator, look, check, apply, go back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from sass_cubins import LISTED, kernel, task_path

import warpwright
from warpwright import api, cli
from warpwright.cli import command
from warpwright.cli.bounded import Bound
from warpwright.domains.sass.model.distances import Distances, shipped
from warpwright.errors import UsageError


def test_from_a_cubin_to_a_faster_one_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    path = str(task_path("rmsnorm_90", tmp_path))
    assert cli.main(["optimize", path, "--target", "cubin:sim", "--budget", "8 proposals", "--json"]) == cli.DONE
    line = json.loads(capfd.readouterr().out.splitlines()[-1])
    folder = Path("warpwright-out/rmsnorm")
    assert line["artifact"] == str(folder / "optimized.cubin") and line["speedup"]["best"] > 1
    assert (folder / "original.cubin").read_bytes() == Path(path).read_bytes() != (folder / "optimized.cubin").read_bytes()
    schedule = str(folder / "schedule.json")
    assert cli.main(["sass", "check", path, "--schedule", schedule]) == cli.DONE
    assert capfd.readouterr().out == "legal\n"
    assert cli.main(["sass", "apply", path, "--schedule", schedule, "-o", "again.cubin"]) == cli.DONE
    assert Path("again.cubin").read_bytes() == (folder / "optimized.cubin").read_bytes()
    assert cli.main(["sass", "show", path, "--schedule", schedule]) == cli.DONE
    assert " | " in capfd.readouterr().out
    assert cli.main(["sass", "apply", path, "-o", "original.cubin"]) == cli.DONE
    assert Path("original.cubin").read_bytes() == Path(path).read_bytes()
    assert cli.main(["sass", "show", path, "--schedule", schedule, "--html", "page.html"]) == cli.DONE
    assert "class='moved'" in Path("page.html").read_text()


def test_a_record_of_machine_code_is_reproduced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    path = task_path("rmsnorm_90", tmp_path)
    assert cli.main(["optimize", str(path), "--target", "cubin:sim", "--budget", "8 proposals", "--json"]) == cli.DONE
    line = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert cli.main(["reproduce", line["record"], "--json"]) == cli.DONE
    again = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert again["agrees"] and again["speedup"]["best"] == line["speedup"]["best"] > 1 and not again["note"]
    assert cli.main(["explain", line["record"]]) == cli.DONE
    capfd.readouterr()
    path.write_bytes(path.read_bytes() + b"\0")
    assert cli.main(["reproduce", line["record"]]) == cli.WRONG_USE
    assert "as it was recorded, saw an edited file" in capfd.readouterr().err


def test_a_search_goes_on_from_an_earlier_schedule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    path = str(task_path("rmsnorm_90", tmp_path))
    search = ["optimize", path, "--target", "cubin:sim", "--json", "--search", "screen"]
    assert cli.main([*search, "--budget", "8 proposals", "--out", "first"]) == cli.DONE
    first = json.loads(capfd.readouterr().out.splitlines()[-1])["speedup"]["best"]
    assert cli.main([*search, "--budget", "1 proposals", "--start", "first/schedule.json", "--out", "second"]) == cli.DONE
    assert json.loads(capfd.readouterr().out.splitlines()[-1])["speedup"]["best"] == first > 1
    assert Path("second/optimized.cubin").read_bytes() == Path("first/optimized.cubin").read_bytes()
    said = json.loads(Path("first/schedule.json").read_text())
    load = next(instruction.index for instruction in kernel("rmsnorm_90").instructions if instruction.base == "LDG")
    said["control"][str(load)] = "B------:R-:W-:-:S01:---"  # nothing tells when it is done
    Path("illegal.json").write_text(json.dumps(said))
    assert cli.main([*search, "--start", "illegal.json"]) != cli.DONE
    assert "refuses the schedule" in capfd.readouterr().err


def test_the_listing_shows_control_words_boards_and_dependences(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["sass", "show", str(task_path("saxpy_90", tmp_path))]) == cli.DONE
    lines = capfd.readouterr().out.splitlines()
    assert lines[0] == "saxpy: sm_90, 20 instructions, 3 blocks, loops 0 deep"
    [product] = [line for line in lines if "IMAD R7, R7, UR4, R0" in line]
    assert "B0-----:R-:W-" in product and "i1 R0 B0" in product and "i2 UR4 B0" in product


def test_distances_are_learnt_from_one_architecture_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ours = [str(task_path(name, tmp_path)) for name in LISTED if name.endswith("_90")]
    learnt = tmp_path / "sm_90.json"
    assert cli.main(["sass", "learn", *ours, "-o", str(learnt)]) == cli.DONE
    assert ["RAW", "FMA", "FMA.a", "R", 4] in [row[:5] for row in json.loads(learnt.read_text())]
    ours_alone = Distances.from_json(learnt.read_text()).least
    assert shipped(90).least != ours_alone
    monkeypatch.setenv("WARPWRIGHT_SASS_LEARNT", str(tmp_path))
    assert shipped(90).least == ours_alone and shipped(80).least  # of an architecture that was not learnt: the package's
    other = str(task_path("saxpy_90", tmp_path)), str(task_path("rmsnorm_80", tmp_path))
    assert cli.main(["sass", "learn", *other, "-o", str(learnt)]) == cli.WRONG_USE
    assert "sm_80, sm_90" in capfd.readouterr().err


def test_an_illegal_schedule_is_named_and_not_applied(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = str(task_path("saxpy_90", tmp_path))
    assert cli.main(["sass", "apply", path, "-o", str(tmp_path / "x.cubin"), "--json"]) == cli.DONE
    from sass_cubins import kernel

    text = {"original": kernel("saxpy_90").digest, "order": {}, "control": {"4": "B------:R-:W-:-:S01:---"}}  # without its wait
    (tmp_path / "bad.json").write_text(json.dumps(text))
    capfd.readouterr()
    assert cli.main(["sass", "check", path, "--schedule", str(tmp_path / "bad.json")]) == cli.NOT_PASSED
    assert "RAW at 4" in capfd.readouterr().out
    assert cli.main(["sass", "apply", path, "--schedule", str(tmp_path / "bad.json"), "-o", str(tmp_path / "y.cubin")]) == cli.WRONG_USE
    assert not (tmp_path / "y.cubin").exists()


def test_what_is_missing_or_damaged_is_said_and_is_no_fault_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = str(task_path("saxpy_90", tmp_path))
    Path("cut.cubin").write_bytes(Path(path).read_bytes()[:2000])
    Path("kernel.cu").write_text("")
    Path("raises.py").write_text("import nothing_of_that_name")
    Path("throws.py").write_text("def launch():\n    return 1 / 0")
    show, flags = ["sass", "show"], ["sass", "flags", "-o", "out"]
    said = [
        ([*show, "cut.cubin"], "expected a whole cubin"),
        (["sass", "learn", "cut.cubin", "-o", "x.json"], "expected a whole cubin"),
        (["optimize", "cut.cubin", "--target", "cubin:sim"], "expected a whole cubin"),
        ([*show, "none.cubin"], "give the path of a cubin or a fat binary"),
        ([*show, path, "--kernel", "other"], "name one with --kernel NAME"),
        (["optimize", path, "--target", "cubin:sim", "--option", "kernel=other"], "name one with --option kernel=NAME"),
        ([*show, path, "--schedule", "none.json"], "give the path of a schedule.json"),
        ([*show, path, "--html", "none/page.html"], "none/page.html cannot be written"),
        ([*flags, "kernel.cu", "--harness", "none.py"], "the harness none.py cannot be read: No such file"),
        ([*flags, "none.cu", "--harness", "throws.py"], "give the path of a kernel in CUDA C++"),
        ([*flags, "kernel.cu", "--harness", "raises.py"], "raised ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ([*flags, "kernel.cu", "--harness", "throws.py"], "launch() of the harness throws.py raised ZeroDivisionError"),
        (["optimize", path, "--target", "cubin:sim", "--harness", "none.py"], "give the path of a harness"),
        (["optimize", path, "--target", "cubin:sim", "--start", "none.json"], "give the path of a schedule.json"),
    ]
    for words, expected in said:
        assert cli.main(words) == cli.WRONG_USE, words
        assert expected in " ".join(capfd.readouterr().err.split()), words


@pytest.mark.parametrize(("target", "judged"), [("cubin", True), ("cubin:0", True), ("cubin:sim", False)])
def test_the_judgement_behind_a_budget_has_time_of_its_own(target: str, judged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def ends(*arguments: object) -> None:
        raise UsageError("enough")

    monkeypatch.setattr(api, "optimize_task", ends)
    bound = Bound(1000.0)
    told = ["optimize", str(task_path("saxpy_90", tmp_path)), "--target", target, "--budget", "10s"]
    assert command.main(told, bound) == cli.WRONG_USE
    assert (bound.end > 1000.0 + 10.0 + 100.0) is judged and bound.end >= 1010.0


def test_the_decorator_is_there_with_the_package() -> None:
    code = "import sys, warpwright; assert 'warpwright.sass' not in sys.modules; print(warpwright.sass.tune.__name__)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "tune\n"
    with pytest.raises(AttributeError, match="no attribute 'sas'"):
        getattr(warpwright, "sas")  # noqa: B009
