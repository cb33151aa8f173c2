"""What `warpwright.optimize` returns: the module, and what was proven of it."""

from __future__ import annotations

import html
import io
import shutil
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from warpwright.base import BASELINE, Record, is_baseline
from warpwright.errors import UsageError
from warpwright.files import make_folder
from warpwright.reports import report, summary
from warpwright.reports.results import Result as Written

if TYPE_CHECKING:
    import torch

CONDITIONS = {
    "eval": "verified in eval mode and without gradients: call module.eval() and use torch.no_grad() or inference_mode()",
    "train": "verified in training mode and without gradients: call it under torch.no_grad() or inference_mode()",
    "as_is": "verified in the training mode that it had and without gradients: call it under torch.no_grad() or inference_mode()",
}

BACKWARD = "verified for training, with the gradients of parameters and inputs: call it in that training mode, and backward() on what it gives"

_MEANING = {
    "FASTER": "a program was proven faster than every baseline, and right; it is the module",
    "SAME": "nothing was proven faster than the best baseline, which is the module",
    "SLOWER": "nothing was proven faster",
    "UNSURE": "a program passed, and its time could not be told from the baselines'",
    "UNSCORED": "the task gives no score, so that no program could be judged: the original is kept",
    "FAILED": "no program passed: the original is kept",
}


@dataclass(frozen=True, repr=False)
class Result:
    """A module with the signature and the state of the original, and what is known of it. Call it, or take `module`."""

    module: torch.nn.Module
    written: Written
    mode: str = "eval"

    # --- what came of it ---

    @property
    def line(self) -> Mapping[str, Any]:
        """The JSON object of docs/cli.md."""
        return self.written.line

    @property
    def record(self) -> Record | None:
        """The record of the program that `module` runs; None when the original is kept because nothing passed."""
        return self.written.best

    @property
    def verdict(self) -> str:
        """FASTER; SAME: a baseline is kept; UNSURE; UNSCORED: the task gives no score; FAILED: nothing passed."""
        if self.written.best is not None:
            return str(self.line["verdict"])
        return "UNSCORED" if self.line["status"] == "unscored" else "FAILED"

    @property
    def speedup(self) -> float:
        """Over the best baseline; 1.0 where one is kept, or the original."""
        return float(self.line["speedup"]["best"] or 1.0)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of `speedup`."""
        interval = self.line["speedup"]["interval"]
        return (interval[0], interval[1]) if interval else None

    @property
    def speedup_over_eager(self) -> float | None:
        """Over the original as it is called today."""
        speedup = self.line["speedup"]["eager"]
        return float(speedup) if speedup else None

    @property
    def recipe(self) -> tuple[str, ...]:
        """The steps from the original to the program, as text; `baseline:NAME` where one is kept."""
        return tuple(self.line["recipe"])

    @property
    def reason(self) -> str:
        """Why it is not FASTER, or what limits it; "" for nothing to say."""
        return str(self.line["reason"] or "" if self.verdict == "FASTER" else self.line["reason"] or _MEANING[self.verdict])

    @property
    def left_out(self) -> tuple[str, ...]:
        """What the budget had no time for."""
        return tuple(self.line["left_out"])

    @property
    def folder(self) -> Path:
        """Where optimized.py, report.html and report.json lie."""
        return self.written.folder

    @property
    def recalled(self) -> bool:
        """Is it the answer of an earlier run?"""
        return self.written.recalled

    # --- what to read ---

    def report(self) -> str:
        """Return the table of times, as the command prints it."""
        text = io.StringIO()
        report.print_table([dict(self.line)], Console(file=text, width=160))
        return text.getvalue()

    def explain(self) -> str:
        """Return in sentences what was done, what each step is worth, what it takes for granted and where it holds."""
        lines = [f"{self.verdict}: {_MEANING[self.verdict]}."]
        if self.written.best is not None and self.interval is not None:
            low, high = self.interval
            lines += [f"{self.speedup:.2f}x [{low:.2f}, {high:.2f}] of the best of {', '.join(self.line['baselines'])}, on {self.line['device']}."]
        if self.line["reason"]:
            lines += [f"{self.line['reason']}."]
        for name, shape in self.line["shapes"].items():
            low, high = shape["interval"]
            lines += [f"For {name}: {shape['speedup']:.2f}x [{low:.2f}, {high:.2f}] of {shape['best_baseline']}, {shape['verdict']}."]
        lines += [f"{said}." for said in summary.refused_though_quicker(self.line)]
        lines += [f"No time for {what}." for what in self.left_out]
        best = self.written.best
        if best is not None and not is_baseline(best):
            worth = report.ablation(best, self.written.records)
            lines += ["Steps:"] + [f"  {step.action}" + (f"  ({step.gain:.2f}x)" if step.gain else f"  ({step.note})") for step in worth]
            lines += ["It takes for granted:"] + [f"  {text}" for text in best.candidate.assumptions] if best.candidate.assumptions else []
        drawn = best is not None and best.task.option("calibrate")
        lines += ["It was verified with drawn, well-scaled parameters, and has its own."] if drawn else []
        trained = best is not None and best.task.option("backward")
        return "\n".join([*lines, f"It was {BACKWARD if trained else CONDITIONS[self.mode]}."])

    def _repr_html_(self) -> str:
        """A notebook shows this."""
        head = "".join(f"<th style='text-align:right'>{html.escape(name)} ms</th>" for name in (*self.line["baselines"], "ours"))
        times = (*self.line["baselines"].values(), self.line["ours_ms"])
        row = "".join(f"<td style='text-align:right'>{f'{time:.3g}' if time else '-'}</td>" for time in times)
        explained = html.escape(self.explain()).replace("\n", "<br>")
        title = f"<b>{html.escape(str(self.line['task']))}: {self.verdict} {self.speedup:.2f}x</b>"
        return f"<div>{title}<table><tr>{head}</tr><tr>{row}</tr></table><div>{explained}</div><a href='{self.folder}/report.html'>report</a></div>"

    def __repr__(self) -> str:
        because = f"; {self.reason}" if self.reason else ""
        return f"Result({self.line['task']}: {self.verdict}, {self.speedup:.2f}x the best baseline{because}; call it, or take .module)"

    # --- what to do with it ---

    def save(self, path: str | Path) -> Path:
        """Write the program to the file at `path`, and its state beside it; return the file. Raise UsageError where nothing passed."""
        source = self.folder / "optimized.py"
        if self.written.best is None or not source.is_file():
            raise UsageError(f"expected a program that passed, saw {self.verdict}: {self.reason}", "save the original instead")
        file = Path(path)
        make_folder(file.parent)
        text = source.read_text()
        for state in self.folder.glob("*.pt"):
            beside = f"{file.stem}.pt"
            if repr(state.name) in text:
                shutil.copyfile(state, file.parent / beside)
                text = text.replace(repr(state.name), repr(beside))
        file.write_text(text)
        return file

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self.module(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """Give what the module has of that name: before there was a Result, `optimize` returned the module."""
        if name.startswith("__") or "module" not in self.__dict__:
            raise AttributeError(name)
        value = getattr(self.module, name)
        warnings.warn(f"optimize() returns a Result: write result.module.{name}", DeprecationWarning, stacklevel=2)
        return value

    @property
    def baseline(self) -> str:
        """The name of the baseline that is kept; "" for a program of ours, or none."""
        best = self.written.best
        return best.candidate.proposer.removeprefix(BASELINE) if best is not None and is_baseline(best) else ""
