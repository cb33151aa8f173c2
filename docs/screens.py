"""Take the pictures of docs/screens.md: what a user sees in a terminal, in the browser, in a notebook and on a pull request.

    python docs/screens.py docs/screens [--task FILE] [--budget 60s] [--only terminal,watch,report,check,notebook]

Everything is run for real on this machine, for about three times the budget. It needs chromium in the path, pillow, and for the notebook the
extra `notebook`. A picture that cannot be taken is named and left as it was.
"""

from __future__ import annotations

import argparse
import io
import os
import pty
import shutil
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = 150
WAIT_SECONDS = 900
FOLDER = Path("/tmp/warpwright-example")
LATE_SHARE = 0.8
"""Of the budget: the page that follows a run is taken then, when most programs have been tried."""

TALLEST, COLOURS = 1400, 128
"""Pixels that are kept of a page, and colours of a picture: each is below 100 kB then."""

PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 16px; font: 15px/1.5 sans-serif; {style} }} pre {{ font: 13px monospace; white-space: pre-wrap; margin: 4px 0; }}
.in {{ background: #f4f4f4; padding: 6px 10px; border-left: 3px solid #88a; }}
.out {{ padding: 4px 10px; }} td, th {{ padding: 2px 10px; }}
</style>{body}"""


class Screens:
    """Takes the pictures in order; its state is the folder of the run that they show."""

    def __init__(self, out: Path, task: Path, budget: str) -> None:
        self.out, self.task, self.budget = out, task, budget
        self.browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
        self.folder = FOLDER  # its name is in the pictures
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.archive = self.folder / "archive.db"

    # --- the pictures ---

    def terminal(self) -> None:
        """A search in a terminal; the page that follows it is taken meanwhile."""
        from warpwright.reports.watch import Server

        with Server(self.archive) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            watching = threading.Thread(target=self._watch, args=(server,))
            watching.start()
            command = ["optimize", self.task.name, "--target", "cpu", "--budget", self.budget, "--baselines", "eager,compile"]
            shown = self._in_terminal([*command, "--archive", str(self.archive), "--out", "out"])
            watching.join(WAIT_SECONDS)
            server.shutdown()
        said = "warpwright " + " ".join([*command])
        self._shoot("terminal", self._page(f"<pre>$ {escape(said)}\n{_ansi(shown)}</pre>", "background: #16181d; color: #e6e6e6;"))

    def _watch(self, server: Any) -> None:
        """Take the page late in the run, or when it is over."""
        deadline = time.monotonic() + WAIT_SECONDS
        begun = False
        while time.monotonic() < deadline:
            running = server.watcher.state()["running"]
            begun |= bool(running)
            if (begun and not running) or any(time.time() - run["began"] > LATE_SHARE * run["seconds"] for run in running):
                break
            time.sleep(0.3)
        self._shoot("watch", server.url, live=True)

    def report(self) -> None:
        """The page that a search writes."""
        self._shoot("report", (self.folder / "out/report.html").as_uri())

    def check(self) -> None:
        """What the GitHub Action adds to a pull request: its own script is run."""
        self._warpwright("archive", "export", "speed.jsonl", "--archive", str(self.archive))
        action = (ROOT / ".github/actions/check/action.yml").read_text()
        script = "\n".join(line[8:] for line in action.partition("run: |\n")[2].partition("      env:")[0].splitlines())
        shim = self.folder / "bin/warpwright"
        shim.parent.mkdir(exist_ok=True)
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m warpwright "$@"\n')
        shim.chmod(0o755)
        told = {"BASELINE": "speed.jsonl", "MAX_REGRESS": "10%", "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md")}
        place = {**_environment(), **told, "PATH": f"{shim.parent}:{os.environ['PATH']}"}
        done = subprocess.run(["bash", "-e", "-c", script], cwd=self.folder, env=place, capture_output=True, text=True, timeout=WAIT_SECONDS)
        summary = (self.folder / "summary.md").read_text()
        text = summary.replace("### warpwright check", "").replace("```", "").strip("\n")
        mark = "✓" if done.returncode == 0 else "✗"
        self._shoot("check", self._page(f"<h3>{mark} warpwright check</h3><pre class='in'>{escape(text)}\n{escape(done.stderr.strip())}</pre>", ""))

    def notebook(self) -> None:
        """The notebook of the tutorials, run."""
        import nbclient
        import nbformat

        book = nbformat.read(ROOT / "docs/tutorials/notebook.ipynb", as_version=4)
        os.environ["PYTHONPATH"] = _environment()["PYTHONPATH"]
        nbclient.NotebookClient(book, timeout=WAIT_SECONDS, resources={"metadata": {"path": str(self.folder)}}).execute()
        parts = []
        for cell in book.cells[3:7]:
            parts.append(f"<p>{escape(cell.source)}</p>" if cell.cell_type == "markdown" else f"<pre class='in'>{escape(cell.source)}</pre>")
            for output in cell.get("outputs", ()):
                page = output.get("data", {}).get("text/html", "")
                text = f"<pre>{escape(output.get('text', ''))}</pre>" if output.get("name") == "stdout" else ""
                parts.append(f"<div class='out'>{page or text}</div>")
        self._shoot("notebook", self._page("".join(parts), ""))

    # --- how they are taken ---

    def _warpwright(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "warpwright", *arguments]
        subprocess.run(command, cwd=self.folder, env=_environment(), check=True, capture_output=True, timeout=WAIT_SECONDS)

    def _in_terminal(self, arguments: list[str]) -> str:
        """Return what a command prints to a terminal, without the live line, which it takes back."""
        shutil.copy(self.task, self.folder)
        ours, theirs = pty.openpty()
        environment = {**_environment(), "COLUMNS": str(COLUMNS), "LINES": "50", "TERM": "xterm-256color"}
        command = [sys.executable, "-m", "warpwright", *arguments]
        process = subprocess.Popen(command, cwd=self.folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        pieces = []
        while True:
            try:
                piece = os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            pieces.append(piece)
        process.wait(60)
        return b"".join(pieces).decode(errors="replace")

    def _page(self, body: str, style: str) -> str:
        file = self.folder / f"page-{time.monotonic_ns()}.html"
        file.write_text(PAGE.format(style=style, body=body))
        return file.as_uri()

    def _shoot(self, name: str, address: str, live: bool = False) -> None:
        """Write NAME.png: the page without the empty space below it, in few colours."""
        from PIL import Image, ImageChops

        made = self.folder / f"{name}.png"
        command = [self.browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={self.folder / name}"]
        command += [f"--window-size=1100,{TALLEST}", f"--screenshot={made}", "--virtual-time-budget=3000", *([] if live else ["--allow-file-access"])]
        subprocess.run([*command, address], capture_output=True, timeout=120, check=True)
        image = Image.open(made).convert("RGB")
        empty = Image.new("RGB", image.size, image.getpixel((2, image.height - 2)))
        box = ImageChops.difference(image, empty).getbbox()
        image = image.crop((0, 0, image.width, min(image.height, (box[3] if box else image.height) + 16)))
        image.quantize(COLOURS).save(self.out / f"{name}.png", optimize=True)
        print(f"{name}: {(self.out / f'{name}.png').stat().st_size >> 10} kB", flush=True)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))}


def _ansi(text: str) -> str:
    """Return a terminal's text as HTML; of a line that was written over, what stays."""
    from rich.console import Console
    from rich.text import Text

    kept: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        last = line.rpartition("\r")[2]
        kept.append(last.rpartition("\x1b[2K")[2])
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi("\n".join(line for line in kept if line.strip())))
    return console.export_html(inline_styles=True, code_format="{code}")


def main() -> None:
    """Take what was asked for; what fails is said, and the rest goes on."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--task", type=Path, default=ROOT / "examples/conv_avgpool_task.py")
    parser.add_argument("--budget", default="60s")
    parser.add_argument("--only", default="terminal,report,check,notebook", help="the watch page is taken with the terminal")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    screens = Screens(given.out.resolve(), given.task.resolve(), given.budget)
    steps: dict[str, Callable[[], None]] = {name: getattr(screens, name) for name in ("terminal", "report", "check", "notebook")}
    failed = 0
    for name in given.only.split(","):
        try:
            steps[name]()
        except Exception:  # the other pictures are still worth taking
            failed += 1
            print(f"{name}: not taken:\n{traceback.format_exc(limit=-3)}", file=sys.stderr)
    shutil.rmtree(screens.folder, ignore_errors=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
