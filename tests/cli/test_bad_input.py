"""What nobody means to give is answered in one sentence, with an exit code: names and files that the system or a parser takes badly."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from warpwright import cli, domains
from warpwright.cli import outline

DEEP = "[" * 100_000


@pytest.fixture
def refused(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return a function that gives the one line with which a command is refused, which runs in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> str:
        code = cli.main(words)
        out, err = capfd.readouterr()
        assert code == cli.WRONG_USE and not out and "Traceback" not in err
        [line] = err.strip().splitlines()
        assert len(line) < 600
        return line

    return run


@pytest.mark.parametrize("words", [["optimize", "@"], ["audit", "candidate.py", "--task", "@"], ["export", "harbor", "@"]])
def test_names_that_the_system_does_not_take(words: list[str], refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "loop.py").symlink_to("loop.py")
    for name, why in (("a" * 300 + ".py", "File name too long"), ("loop.py", "a link to itself|symbolic links")):
        line = refused(*(name if word == "@" else word for word in words))
        assert any(one in line for one in why.split("|")) and "check the path" in line


READERS = (
    ("reproduce", "@.json"), ("check", "--baseline", "@.json"), ("compare", "@.json", "@.json"), ("explain", "@.json"),
    ("collect", "--merge", "@.jsonl", "--out", "rows.jsonl"),
    ("train", "--trees", "@.jsonl"), ("ask", "evaluate", "@.py"), ("optimize", "task.py", "--shapes", "@.json"),
)  # fmt: skip
"""Commands that read a file of their own kind."""


@pytest.mark.parametrize("words", READERS, ids=lambda words: words[0])
def test_files_of_another_kind(words: tuple[str, ...], refused: Callable[..., str]) -> None:
    Path("task.py").write_text("class Model: pass\ndef get_inputs(): return []\ndef get_init_inputs(): return []\n")
    for content in (bytes(range(256)) * 100, *([] if words[0] == "ask" else [b"[]", b"{", DEEP.encode(), b'{"a": 1}'])):
        for suffix in (".json", ".jsonl", ".py"):
            Path(f"given{suffix}").write_bytes(content)
        line = refused(*(word.replace("@", "given") for word in words))
        assert "expected" in line and ("saw given" in line or "saw [" in line or "saw {" in line)


@pytest.mark.parametrize(
    "words",
    [*READERS, ("optimize", "@"), ("audit", "@", "--task", "task.py"), ("export", "harbor", "@"), ("transpile", "@"),
     ("protect", "@", "out", "--key", "k"),
     ("report", "--archive", "@"), ("sass", "show", "@"), ("mpi", "explain", "@"), ("optimize", "task.py", "--model", "replay:@")],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_file_is_not_waited_for(words: tuple[str, ...], kind: str, refused: Callable[..., str], tmp_path: Path) -> None:
    place = "/dev/zero" if kind == "device" else str(tmp_path / "pipe")
    if kind == "pipe":
        os.mkfifo(place)
    Path("task.py").write_text("class Model: pass\ndef get_inputs(): return []\ndef get_init_inputs(): return []\n")
    line = refused(*(re.sub(r"@(\.\w+)?", place, word) for word in words))
    assert f"saw {place}: it is a {'named pipe' if kind == 'pipe' else 'device'}" in line


@pytest.mark.parametrize("name", ["task.cwc", "task.front", "task.mpi"])
def test_json_that_is_nested_too_deeply(name: str, refused: Callable[..., str]) -> None:
    Path(name).write_text(DEEP)
    assert "nested" in refused("optimize", name)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--baselines", "eager,liger"), "there is no baseline 'liger' on cpu; known there: eager, compile"),
        (("--search", "trees"), "expected the file of a learned cost model, saw none"),
        (("--search", "trees", "--model", "none.json"), "expected a file of a learned cost model, saw none.json"),
        (("--search", "islands"), "expected a model for --search islands, saw none"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_read(words: tuple[str, ...], said: str, refused: Callable[..., str]) -> None:
    defined = "class Model: pass\ndef get_inputs(): return []\ndef get_init_inputs(): return []\n"
    Path("task.py").write_text(f"raise SystemExit('the task was run')\n{defined}")
    assert said in refused("optimize", "task.py", "--target", "cpu", "--budget", "60s", *words)


def test_ctrl_c_before_a_verb_has_begun_is_no_fault(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("warpwright.cli.command.main", interrupted)
    monkeypatch.setattr("sys.argv", ["warpwright", "report"])
    assert outline.main() == cli.INTERRUPTED and capfd.readouterr().err == "interrupted\n"


def test_a_result_that_cannot_be_written_where_it_goes_by_itself(refused: Callable[..., str]) -> None:
    pytest.importorskip("clang", reason="needs the extra transpile")
    Path("twice.cu").write_text("__global__ void twice(float* x) { x[threadIdx.x] *= 2.f; }\n")
    Path("twice.cpp").mkdir()
    assert "twice.cpp: Is a directory" in refused("transpile", "twice.cu", "--kernels-only", "--no-check")


def test_a_text_of_nothing_but_brackets_does_not_end_the_process(refused: Callable[..., str]) -> None:
    pytest.importorskip("clang", reason="needs the extra transpile")
    Path("deep.cu").write_text(DEEP)
    assert cli.main(["transpile", "deep.cu"]) != cli.DONE


def test_a_fault_of_ours_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fault(*_: object) -> None:
        raise FileNotFoundError(2, "No such file or directory", "/nowhere/of_ours.txt")

    (tmp_path / "task.py").write_text("x = 1\n")
    monkeypatch.setattr(domains, "describe", fault)
    with pytest.raises(FileNotFoundError):
        cli.main(["export", "harbor", str(tmp_path / "task.py")])


def test_a_text_of_hundreds_of_megabytes_is_not_read(refused: Callable[..., str]) -> None:
    with open("task.py", "wb") as file:
        file.truncate(domains.MOST_BYTES + 1)
    assert "at most 64 MB" in refused("optimize", "task.py")
