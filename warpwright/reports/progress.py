"""What a run says while it runs, on standard error: one live line on a terminal and in a notebook, plain lines otherwise."""

from __future__ import annotations

import contextlib
import time
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from warpwright.base import BASELINE, Record
from warpwright.reports.report import Line

PLAIN_SECONDS = 10.0
"""Without a terminal, programs that did not become the best are summed up this often, so that a log stays short."""


class Progress:
    """Shows the task and what is done with it, the best so far and the time left; of several tasks, how many are done.

    Its state is what it has been told.
    """

    def __init__(self, console: Console, seconds: float | None, tasks: int = 1, task: str = "") -> None:
        """`seconds`: the budget of one task, from now; `tasks`: how many there are; `task`: the name of the only one."""
        self.console, self.seconds, self.tasks, self.task = console, seconds, tasks, task
        self.began = time.monotonic()
        self.phase = "starting"
        self.lines: list[Line] = []
        self.tried = self.passed = 0
        self.best: Record | None = None
        self._said_at = self.began
        self._live = Live(get_renderable=self.text, console=console, refresh_per_second=4, transient=True) if console.is_terminal else None
        self._cell = Cell() if console.is_jupyter and not console.quiet else None

    def __enter__(self) -> Progress:
        if self._live is not None:
            self._live.start()
        self._show()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()
        self.phase = "done"
        self._show()

    def record(self, record: Record) -> None:
        """Take note of a program of the one task that is running."""
        if record.candidate.proposer.startswith(BASELINE):
            self.say(f"baseline {record.candidate.proposer.removeprefix(BASELINE)}: {_outcome(record)}")
            return
        self.tried += 1
        self.passed += record.status == "ok"
        if record.speedup > (self.best.speedup if self.best is not None else 0.0):
            self.best = record
            self.say(f"{_outcome(record)}  {_recipe(record)}")
            self._show()
        else:
            self._go_on()

    def tell(self, phase: str) -> None:
        """Take note of what begins."""
        self.phase = phase
        self._go_on()

    def line(self, line: Line) -> None:
        """Take note of a task that is finished."""
        self.lines.append(line)
        gain = line["speedup"]["best"]
        outcome = f"{line['verdict'] or ''} {gain:.2f}x the best baseline" if gain else f"{line['status']}: {(line['reason'] or '')[:160]}"
        self.say(f"[{len(self.lines)}/{self.tasks}] {line['task']}: {outcome.strip()}")
        self._show()

    def _show(self) -> None:
        """In a notebook, write the line over."""
        if self._cell is not None:
            self._cell.show(self.text().plain)

    def _go_on(self) -> None:
        """Show what changed; where no line can be written over, now and then."""
        self._show()
        if self._live is None and self._cell is None and time.monotonic() - self._said_at > PLAIN_SECONDS:
            self.say(self.text().plain)

    def say(self, text: str) -> None:
        """Print one line above the live one."""
        self._said_at = time.monotonic()
        self.console.print(Text(text))

    def text(self) -> Text:
        """Return the live line."""
        return Text(", ".join(self._tasks() if self.tasks > 1 or self.lines else self._programs()), style="dim")

    def _tasks(self) -> list[str]:
        done = len(self.lines)
        best = max((line for line in self.lines if line["speedup"]["best"]), key=lambda line: float(line["speedup"]["best"]), default=None)
        elapsed = time.monotonic() - self.began
        parts = [f"{done} of {self.tasks} tasks done"]
        parts += [f"best so far {best['speedup']['best']:.2f}x {best['task']}"] if best is not None else []
        parts += [f"about {elapsed / done * (self.tasks - done):.0f} s left"] if done else [f"{elapsed:.0f} s"]
        return parts

    def _programs(self) -> list[str]:
        spent = time.monotonic() - self.began
        parts = [f"{self.task}: {self.phase}" if self.task else self.phase]
        parts += [f"{self.tried} programs tried, {self.passed} passed"] if self.tried else []
        parts += [f"best so far {self.best.speedup:.2f}x"] if self.best is not None else []
        parts += [f"{max(0.0, self.seconds - spent):.0f} s left"] if self.seconds is not None else [f"{spent:.0f} s"]
        return parts


class Cell:
    """One line below a notebook's cell, which is written over."""

    def __init__(self) -> None:
        self.handle: Any = None

    def show(self, text: str) -> None:
        """Write the line, or write it over."""
        with contextlib.suppress(Exception):  # of a front end: a line that cannot be shown ends no search
            from IPython.display import display  # type: ignore[import-not-found]  # in whose process this is

            if self.handle is None:
                self.handle = display({"text/plain": text}, raw=True, display_id=True)
            else:
                self.handle.update({"text/plain": text}, raw=True)


def _outcome(record: Record) -> str:
    measured = record.measurement
    if record.status != "ok" or measured is None:
        return f"{record.status}: {record.detail[:200]}"
    median = measured.candidate.median
    figure = f"{median * 1e3:.3g} ms" if measured.unit == "s" else f"{measured.unit} {median:.3g}"
    return f"{figure}, {measured.speedup:.2f}x the best baseline ({measured.verdict})"


def _recipe(record: Record) -> str:
    return "; ".join(map(str, record.candidate.actions)) or "as written"
