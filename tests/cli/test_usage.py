"""How the command is asked: what was meant, warpwright.toml, completion, and how soon it answers."""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from warpwright import cli
from warpwright.cli import outline, usage
from warpwright.errors import UsageError

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [(["optimise"], "optimize"), (["optimize", "t.py", "--buget", "60s"], "--budget"), (["optimize", "t.py", "--search", "ladde"], "ladder")],
)
def test_wrong_words_are_answered_with_the_nearest(arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    assert ended.value.code == cli.WRONG_USE and f"did you mean {meant}?" in capsys.readouterr().err


def parsed(folder: Path, text: str, *arguments: str) -> argparse.Namespace:
    (folder / usage.FILE).write_text(text)
    below = folder / "a" / "b"
    below.mkdir(parents=True, exist_ok=True)
    top = cli.parser()
    return top.parse_args(usage.with_defaults(top, arguments, below))


def test_options_from_the_file(tmp_path: Path) -> None:
    text = 'archive = "kept.db"\ntarget = "cpu"\n[optimize]\nbudget = "5m"\n[check]\nmax-regress = "7%"\n'
    given = parsed(tmp_path, text, "optimize", "task.py")
    assert (given.archive, given.target, given.budget, given.seed) == ("kept.db", "cpu", "5m", 0)
    assert parsed(tmp_path, text, "optimize", "task.py", "--budget", "9s").budget == "9s"
    assert parsed(tmp_path, text, "check", "--baseline", "x").max_regress == "7%"
    assert parsed(tmp_path, text, "bench", "x").budget == "60s"


@pytest.mark.parametrize(
    ("text", "said"),
    [("[optimise]\nbudget='5s'", "optimize"), ("[optimize]\nbuget='5s'", "budget"), ("xyzzy=1", "known"), ("[", "TOML"),
     ("[archive]\nfile='x'", "known")],
)  # fmt: skip
def test_what_the_file_may_not_say(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parsed(tmp_path, text, "optimize", "task.py")


@pytest.mark.parametrize("shell", usage.SHELLS)
def test_completion_names_every_verb(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == cli.DONE
    text = capsys.readouterr().out
    assert all(name in text for name in usage.verbs(cli.parser())) and "budget" in text


def test_bash_completes() -> None:
    script = usage.completion(cli.parser(), "bash")
    asked = 'COMP_WORDS=(warpwright optimize --search lad); COMP_CWORD=3; _warpwright; echo "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", f"{script}\n{asked}"], capture_output=True, text=True, check=False, timeout=250)
    assert done.stdout.split() == ["ladder"], done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["optimize"], ["optimise"], ["doctor", "--archive", "a.db"]])
def test_it_answers_at_once(arguments: list[str], tmp_path: Path) -> None:
    """CPU time, which a busy machine may double; torch alone would take 1.5 s on an idle one."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-m", "warpwright", *arguments], cwd=tmp_path, env=environment, capture_output=True, timeout=100)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode in (0, 1, 2)
    seconds = after.ru_utime - before.ru_utime
    most = 0.3 if arguments[0] in ("--help", "--version", "optimise") else 1.2  # 0.05 s and 0.25 s on an idle machine
    assert seconds < most, f"{seconds:.2f} s"


def test_the_outline_says_of_each_verb_what_its_module_says() -> None:
    [verbs] = [action for action in cli.parser()._actions if isinstance(action, argparse._SubParsersAction)]
    assert {choice.dest: choice.help for choice in verbs._choices_actions} == outline.VERBS
    assert outline.parser().format_help() == cli.parser().format_help()


def test_the_command_line_loads_no_torch() -> None:
    code = "import sys, warpwright.cli as cli; cli.parser(); print({'torch', 'numpy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=100)
    assert done.stdout.strip() == "set()", done.stderr
