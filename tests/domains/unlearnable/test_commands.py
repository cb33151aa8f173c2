"""The verbs key, protect, recover, inspect and verify through the front door."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from warpwright import cli
from warpwright.cli.domains import unlearnable
from warpwright.domains.unlearnable import protect as protect_module
from warpwright.domains.unlearnable.verification.quality import psnr


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def key() -> str:
    """The same key in every run: filters of another may be harder to invert."""
    text = bytes(range(32)).hex()
    Path("my.key").write_text(f"warpwright-key-1 {text}\n")
    return text


def pictures(root: str, classes: int = 3, each: int = 4, side: int = 24) -> None:
    rng = np.random.default_rng(0)
    for c in range(classes):
        (Path(root) / f"class{c}").mkdir(parents=True)
        for i in range(each):
            smooth = rng.normal(0, 1, (side, side, 3)).cumsum(0).cumsum(1)
            smooth = 255 * (smooth - smooth.min()) / np.ptp(smooth)
            Image.fromarray(np.rint(smooth).astype(np.uint8)).save(Path(root) / f"class{c}" / f"{i}.png")


def load(root: str) -> np.ndarray:
    return np.stack([np.asarray(Image.open(path)).transpose(2, 0, 1) for path in sorted(Path(root).rglob("*.png"))])


def said(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Run a verb with --json; return the exit code, the object and what went to standard error."""
    code = cli.main([*arguments, "--json"])
    out, err = capfd.readouterr()
    lines = out.splitlines()
    assert len(lines) == 1
    return code, json.loads(lines[0]), err


def test_protect_and_recover_round_trip_and_the_key_shows_nowhere(key: str, capfd: pytest.CaptureFixture[str]) -> None:
    pictures("in")
    code, done, err = said(capfd, "protect", "in", "out", "--key", "my.key", "--preset", "recoverable", "--preview", "sheet.png")
    assert (code, done["written"], done["complete"], done["manifest"]) == (cli.DONE, 12, True, "out.manifest.jsonl")
    assert done["images_per_second"] > 0 and done["fingerprint"] and not np.array_equal(load("in"), load("out"))
    code, back, more = said(capfd, "recover", "out", "back", "--key", "my.key")
    assert (code, back["written"]) == (cli.DONE, 12)
    assert np.median(psnr(load("in"), load("back"))) >= 45
    with Image.open("sheet.png") as sheet:
        assert sheet.size[0] > 500
    written = [path for path in Path().rglob("*") if path.is_file() and path.name != "my.key"]
    assert not any(key.encode() in path.read_bytes() or bytes.fromhex(key) in path.read_bytes() for path in written)
    assert key not in err + more + json.dumps([done, back])
    assert Path("out.manifest.jsonl").stat().st_mode & 0o077 == 0


def test_a_new_key_is_private_and_never_overwritten(capfd: pytest.CaptureFixture[str]) -> None:
    code, made, err = said(capfd, "key", "new", "--out", "new.key")
    text = Path("new.key").read_text().split()[1]
    assert code == cli.DONE and len(text) == 64 and text not in err + json.dumps(made) and Path("new.key").stat().st_mode & 0o077 == 0
    assert said(capfd, "key", "new", "--out", "new.key")[0] == cli.WRONG_USE and Path("new.key").read_text().split()[1] == text


def test_a_key_on_the_command_line_is_refused_and_not_repeated(key: str, capfd: pytest.CaptureFixture[str]) -> None:
    pictures("in", 1, 1)
    capfd.readouterr()
    for given in (key, f"warpwright-key-1 {key}"):
        code, error, err = said(capfd, "protect", "in", "out", "--key", given)
        assert code == cli.WRONG_USE and key not in json.dumps(error) + err and "path of a key file" in error["error"]


def test_dry_run_writes_nothing_but_the_preview(key: str, capfd: pytest.CaptureFixture[str]) -> None:
    pictures("in")
    capfd.readouterr()
    before = {path.name for path in Path().iterdir()}
    code, done, _ = said(capfd, "protect", "in", "out", "--key", "my.key", "--dry-run", "--preview", "sheet.png")
    assert (code, done["written"], done["out"], done["manifest"]) == (cli.DONE, 12, None, None)
    assert {path.name for path in Path().iterdir()} - before == {"sheet.png"}


def test_a_bad_image_is_named_and_resume_completes_the_run(key: str, capfd: pytest.CaptureFixture[str]) -> None:
    pictures("in", 2, 2)
    Path("in/class0/9.png").write_bytes(b"")
    capfd.readouterr()
    code, done, err = said(capfd, "protect", "in", "out", "--key", "my.key")
    assert (code, done["written"], done["complete"]) == (cli.NOT_PASSED, 4, False)
    assert "class0/9.png: expected an image, saw an empty file" in err and len(done["failed"]) == 1
    shutil.copy("in/class1/0.png", "in/class0/9.png")
    code, done, _ = said(capfd, "protect", "in", "out", "--key", "my.key", "--resume")
    assert (code, done["written"], done["present"], done["complete"]) == (cli.DONE, 1, 4, True)
    assert said(capfd, "recover", "out", "back", "--key", "my.key")[1]["written"] == 5


def test_ctrl_c_is_told_and_resumed(key: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pictures("in")
    capfd.readouterr()
    with monkeypatch.context() as patch:
        patch.setattr(protect_module, "BATCH_ITEMS", 5)

        def stop(run: Any, summary: Any) -> None:
            run.summary = summary
            raise KeyboardInterrupt

        patch.setattr(unlearnable._Run, "show", stop)
        code, done, err = said(capfd, "protect", "in", "out", "--key", "my.key")
    assert (code, done["written"], done["complete"]) == (cli.INTERRUPTED, 5, False) and "--resume goes on" in err
    code, done, _ = said(capfd, "protect", "in", "out", "--key", "my.key", "--resume")
    assert (code, done["written"], done["present"]) == (cli.DONE, 7, 5)
    assert said(capfd, "recover", "out", "back", "--key", "my.key")[1]["written"] == 12


def test_the_documented_calls_run(capfd: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[3] / "docs/unlearnable.md").read_text()
    exec(re.findall(r"```python\n(.*?)```", text, re.S)[0], {})
    out, _ = capfd.readouterr()
    assert "Operator(pad='circular', scale='sum')" in out


def test_arrays_come_back_in_their_order(key: str, capfd: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    images = np.repeat(np.repeat(rng.integers(60, 200, (50, 6, 6, 3)), 4, 1), 4, 2).astype(np.uint8)
    np.savez("set.npz", images=images, labels=rng.integers(0, 4, 50), classes=np.array(list("abcd")))
    capfd.readouterr()
    for number, preset in enumerate(("recoverable", "paper")):
        assert said(capfd, "protect", "set.npz", f"out{number}", "--key", "my.key", "--preset", preset)[0] == cli.DONE
        assert said(capfd, "recover", f"out{number}", f"back{number}", "--key", "my.key")[0] == cli.DONE
        back = np.load(f"back{number}/images.npy")
        before, after = (psnr(images.transpose(0, 3, 1, 2), np.load(f"{name}{number}/images.npy").transpose(0, 3, 1, 2)) for name in ("out", "back"))
        assert back.shape == images.shape and np.median(after) > np.median(before) + 4


def test_recover_refuses_what_it_cannot_do_well(key: str, capfd: pytest.CaptureFixture[str]) -> None:
    pictures("in", 2, 2)
    cli.main(["key", "new", "--out", "other.key"])
    for name, form in (("out", "png"), ("lossy", "jpeg:90")):
        cli.main(["protect", "in", name, "--key", "my.key", "--preset", "recoverable", "--format", form])
    capfd.readouterr()
    code, error, _ = said(capfd, "recover", "out", "a", "--key", "other.key")
    assert code == cli.WRONG_USE and "expected the key" in error["error"]
    code, error, _ = said(capfd, "recover", "lossy", "b", "--key", "my.key")
    assert code == cli.WRONG_USE and "--best-effort" in error["hint"]
    assert said(capfd, "recover", "lossy", "c", "--key", "my.key", "--best-effort")[1]["written"] == 4
    shutil.copy("in/class0/0.png", "out/class0/1.png")
    code, done, _ = said(capfd, "recover", "out", "d", "--key", "my.key")
    assert code == cli.NOT_PASSED and "saw others" in done["failed"][0] and done["written"] == 3
    assert said(capfd, "recover", "out", "e", "--key", "my.key", "--manifest", "none")[0] == cli.WRONG_USE
    Path("bad").write_text("{}\n")
    assert said(capfd, "recover", "out", "f", "--key", "my.key", "--manifest", "bad")[0] == cli.WRONG_USE
    assert not {path for path in map(Path, "abef") if path.exists()}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--format", "bmp"], "--format png"),
        (["--format", "jpeg:0"], "quality"),
        (["--k", "9"], "pb"),
        (["--labels", "none.csv"], "label file"),
        (["--workers", "0"], "--workers"),
        (["--preview", "none/sheet.png"], "preview"),
        (["--manifest", "out/m"], "outside"),
        (["--manifest", "my.key"], "new manifest"),
        (["--manifest", "none/m"], "no folder"),
        (["--resume"], "unfinished"),
    ],
)
def test_wrong_use_is_one_line_and_leaves_no_output(key: str, arguments: list[str], expected: str, capfd: pytest.CaptureFixture[str]) -> None:
    pictures("in", 2, 1)
    capfd.readouterr()
    code, error, _ = said(capfd, "protect", "in", "out", "--key", "my.key", *arguments)
    assert code == cli.WRONG_USE and expected in f"{error['error']}; {error['hint']}" and not Path("out").exists()


def test_inspect_sees_the_border_that_zero_padding_leaves(key: str, capfd: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    images = np.cumsum(rng.normal(0, 12, (600, 16, 16, 3)), 2) + 128
    np.savez("set.npz", images=np.clip(images, 0, 255).astype(np.uint8), labels=rng.integers(0, 5, 600))
    found = {}
    for preset in ("gentle", "paper"):
        assert cli.main(["protect", "set.npz", preset, "--key", "my.key", "--preset", preset]) == cli.DONE
        capfd.readouterr()
        code, found[preset], _ = said(capfd, "inspect", preset)
        assert code == cli.DONE and found[preset]["images"] == 600
    assert found["paper"]["border"]["leaks"] and not found["gentle"]["border"]["leaks"]
    assert found["gentle"]["spectrum"]["leaks"] and "estimated" in found["gentle"]["judgement"]


def test_verify_marks_a_run_that_did_not_learn_and_writes_its_page(key: str, capfd: pytest.CaptureFixture[str]) -> None:
    pictures("in", 3, 20, 12)
    assert cli.main(["protect", "in", "out", "--key", "my.key"]) == cli.DONE
    capfd.readouterr()
    arguments = ("verify", "in", "out", "--attacks", "none", "--seeds", "1", "--epochs", "1", "--report", "page.html")
    code, found, err = said(capfd, *arguments)
    assert code == cli.NOT_PASSED and found["headline"]["text"].startswith("VOID") and "4 of 4 trainings" in err
    page = Path("page.html").read_text()
    assert "VOID" in page and "data:image/png;base64," in page and not re.search(r'(src|href)="http', page)


def test_verify_of_a_set_that_can_be_learned(key: str, capfd: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(240) % 3
    images = rng.normal(110, 25, (240, 12, 12, 1)).clip(0, 255)
    for i, label in enumerate(labels):
        images[i, 4 * label : 4 * label + 4] += 60
    np.savez("set.npz", images=images.clip(0, 255).astype(np.uint8), labels=labels)
    assert cli.main(["protect", "set.npz", "out", "--key", "my.key"]) == cli.DONE
    capfd.readouterr()
    code, found, _ = said(capfd, "verify", "set.npz", "out", "--attacks", "none", "--seeds", "1", "--epochs", "5", "--report", "found.json")
    assert code == cli.DONE and found["headline"]["valid"] and found["headline"]["clean"] > 80
    assert json.loads(Path("found.json").read_text()) == found and key not in json.dumps(found)
    assert cli.main(["verify", "set.npz", "out", "--attacks", "none", "--seeds", "1", "--epochs", "5", "--test", "set.npz"]) == cli.DONE
    out, _ = capfd.readouterr()
    assert found["limits"] in out and "PSNR" in out and "universal filter" in out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [(["--holdout", "1.5"], "holdout"), (["--test", "none"], "nothing"), (["--report", "page.pdf"], ".html or .json"), (["--seeds", "0"], "--seeds")],
)
def test_verify_refuses_wrong_use(arguments: list[str], expected: str, capfd: pytest.CaptureFixture[str]) -> None:
    pictures("in", 2, 2, 12)
    code, error, _ = said(capfd, "verify", "in", "in", *arguments)
    assert code == cli.WRONG_USE and expected in error["error"]


def test_verify_says_when_the_second_set_is_not_protected(capfd: pytest.CaptureFixture[str]) -> None:
    pictures("in", 2, 3, 12)
    code, error, _ = said(capfd, "verify", "in", "in")
    assert code == cli.WRONG_USE and "protected image of each class" in error["error"]
