"""Records -> one self-contained HTML page: nothing is loaded from elsewhere, so it opens offline."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from warpwright.base import BASELINE, IN_STRIDES, Measurement, Record, Regime, Timing, is_baseline
from warpwright.loop import best as recommended
from warpwright.reports import plots, report

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --ours: #1a7f37; --base: #57606a; --bad: #cf222e; --soft: #8881; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; border-top: 1px solid var(--line); padding-top: 1rem; margin-top: 2rem; } h3 { font-size: 1rem; }
table { border-collapse: collapse; margin: .5rem 0; } th, td { padding: .2rem .7rem; border-bottom: 1px solid var(--line); text-align: left; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
.FASTER { color: var(--ours); font-weight: 600; } .SLOWER, .bad { color: var(--bad); } .SAME, .UNSURE, .small { opacity: .75; }
tr.ours { background: var(--soft); font-weight: 600; }
pre { background: var(--soft); padding: .7rem; overflow-x: auto; font-size: 13px; } pre .add { color: var(--ours); } pre .del { color: var(--bad); }
svg { width: 100%; max-width: 760px; font-size: 12px; } svg text { fill: currentColor; } svg .small { font-size: 10px; }
svg .roof { fill: none; stroke: currentColor; stroke-width: 2; }
svg .grid { stroke: var(--line); } svg .floor { stroke: var(--bad); stroke-dasharray: 4 3; }
svg .ours line, svg .ours circle { stroke: var(--ours); fill: var(--ours); }
svg .base line, svg .base circle { stroke: var(--base); fill: var(--base); }
svg .curve { fill: none; stroke-width: 2; }
"""


def page(records: Sequence[Record], archive: str = "", title: str = "warpwright report") -> str:
    """Return the page of all tasks in `records`; `archive` is the path that the commands to reproduce will name."""
    groups = report.by_task(records)
    lines = [report.line(group[0].task.name, group) for group in groups]
    overview = _overview(lines) if len(groups) > 1 else ""
    parts = "".join(_task(group, one, archive) for group, one in zip(groups, lines, strict=True))
    return document(title, overview + parts)


def document(title: str, body: str) -> str:
    """Return a self-contained page of `body`, which is HTML, in the reports' style."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style></head>'
        f"<body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )


def _overview(lines: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [
            f'<a href="#{escape(one["record"] or one["task"])}">{escape(one["task"])}</a>',
            escape(one["status"]),
            _number(one["ours_ms"], "{:.3g} ms"),
            _number(one["speedup"]["best"], "{:.2f}x"),
            _number(one["speedup"]["eager"], "{:.2f}x"),
            _verdict(one["verdict"]),
        ]
        for one in lines
    ]
    return _table(["task", "status", "#ours", "#against the best baseline", "#against eager", "verdict"], rows)


def _task(group: Sequence[Record], one: Mapping[str, Any], archive: str) -> str:
    record = recommended(group)
    task = group[0].task
    parts = [f'<h2 id="{escape(one["record"] or one["task"])}">{escape(task.name)}</h2>', _headline(one, group[0])]
    if record is not None and record.measurement is not None:
        parts += [
            _section("Baselines", _baselines(record, record.measurement)),
            _section("Ways of calling", _regimes(record.measurement)),
            *([_section("Shapes", _shapes(record.measurement))] if record.measurement.shapes else []),
            _section("Intervals", _intervals(record.measurement)),
            _section("Roofline", _roofline(record.measurement)),
            _section("Recipe", _recipe(record, group)),
            _section("Correctness", _correctness(record)),
            _section("Assumptions", _list(record.candidate.assumptions) or "<p>None beyond the shapes and dtypes that its guard tests.</p>"),
            _section("What changed", _difference(record)),
            _section("How to reproduce", _reproduce(record, archive)),
            _section("Conditions", _conditions(record, record.measurement)),
        ]
    for title, body in (("Search", _search(group)), ("Lineage of the best", _lineage(record, group) if record is not None else "")):
        parts += [_section(title, body)] if body else []
    parts.append(_section(f"All {len(group)} records", _records(group)))
    return "".join(parts)


def _search(group: Sequence[Record]) -> str:
    programs = [record for record in group if not is_baseline(record)]
    return plots.search([plots.Tried(record.speedup, _steps(record), record.status) for record in programs])


def _steps(record: Record) -> str:
    return "; ".join(map(str, record.candidate.actions)) or record.candidate.proposer


def _lineage(record: Record, group: Sequence[Record]) -> str:
    """The programs that the best was derived from, the oldest first."""
    by_key = {other.candidate.key: other for other in group}
    line: list[Record] = []
    while record.candidate.key not in {one.candidate.key for one in line}:
        line.insert(0, record)
        record = by_key.get(record.candidate.parent, record)
    if len(line) < 2:
        return ""
    rows = [[escape(one.key), escape(one.status), f"{one.speedup:.2f}x" if one.speedup else "", escape(_steps(one))] for one in line]
    return _table(["record", "status", "#against the best baseline", "recipe"], rows)


def _headline(one: Mapping[str, Any], first: Record) -> str:
    task = first.task
    scale = float(task.option("scale", 1.0))
    where = f'<p class="small">{escape(task.path)} on {escape(first.device)}, precision {task.precision}, scale {scale:g}</p>'
    if one["status"] != "ok":
        return f'<p class="bad">{escape(one["status"])}: {escape(one["reason"] or "")}</p>{where}'
    gain, interval = one["speedup"]["best"], one["speedup"]["interval"]
    headline = f"{gain:.2f}x the best baseline, 95 % interval {interval[0]:.2f} to {interval[1]:.2f}" if gain and interval else "verified, not timed"
    return f"<p>{_verdict(one['verdict'])} {headline}</p>{where}"


def _baselines(record: Record, measured: Measurement) -> str:
    rows = [_timing_row(name, timing, measured) for name, timing in measured.baselines.items()]
    ours = [_name(record), *_times(measured.candidate, measured.unit), "1.00x", ""]
    ratio = "#its time over ours" if measured.unit == "s" else f"#its {measured.unit} over ours"
    return _table(["program", "#median", "#interval", ratio, ""], [*rows, ours], ours=len(rows))


def _regimes(measured: Measurement) -> str:
    """Return a row for each way of calling that was timed; the one that the verdict is given in is named."""
    rows = []
    for name, regime in measured.regimes.items():
        remarks = "; ".join(filter(None, ["the verdict is given in it" if name == measured.conditions.get("regime") else "", regime.note]))
        rows.append([*_regime_cells(name, regime), escape(remarks)])
    why = [f"<p>{escape(name.removesuffix('_left_out'))} was not timed: {escape(str(text))}</p>" for name, text in measured.conditions.items()
           if name.endswith("_left_out")]  # fmt: skip
    if not rows:
        return "<p>The record is from before there were several.</p>"
    return _table(["way", "#ours", "#best baseline", "#speed-up", "verdict in it", ""], rows) + "".join(why)


def _shapes(measured: Measurement) -> str:
    """Return a row for each declared shape."""
    rows = [_regime_cells(name, shape) for name, shape in measured.shapes.items()]
    return _table(["shape", "#ours", "#best baseline", "#speed-up", "verdict in it"], rows)


def _regime_cells(name: str, regime: Regime) -> list[str]:
    low, high = regime.interval
    best = f"{escape(regime.best_baseline)}, {plots.time_text(regime.baselines[regime.best_baseline])}"
    gain = f"{regime.speedup:.2f}x, {low:.2f} to {high:.2f}"
    return [escape(name), plots.time_text(regime.candidate), best, gain, _verdict(regime.verdict)]


def _timing_row(name: str, timing: Timing, measured: Measurement) -> list[str]:
    if not timing.samples:
        return [escape(name), "", "", "", escape(timing.note)]
    copied = "its results are copied to the original's strides" if name in str(measured.conditions.get(IN_STRIDES, "")).split(",") else ""
    note = "; ".join(filter(None, ["the best baseline" if name == measured.best_baseline else timing.note, copied]))
    ratio = timing.median / measured.candidate.median if measured.candidate.median else None
    return [escape(name), *_times(timing, measured.unit), _number(ratio, "{:.2f}x"), escape(note)]


def _times(timing: Timing, unit: str) -> list[str]:
    if unit != "s":
        return [f"{timing.median:.4g} {unit}", f"{timing.low:.4g} to {timing.high:.4g}"]
    return [plots.time_text(timing.median), f"{plots.time_text(timing.low)} to {plots.time_text(timing.high)}"]


def _name(record: Record) -> str:
    return escape(f"{record.candidate.proposer.removeprefix(BASELINE)} (baseline, kept)" if is_baseline(record) else "ours")


def _intervals(measured: Measurement) -> str:
    if measured.unit != "s":
        return ""  # the picture's axis is one of time
    return plots.intervals(_bars(measured), _floor(measured))


def _bars(measured: Measurement) -> list[plots.Bar]:
    timed = [(name, timing) for name, timing in measured.baselines.items() if timing.samples]
    bars = [plots.Bar(name, timing.median, timing.low, timing.high) for name, timing in timed]
    ours = measured.candidate
    return [*bars, plots.Bar("ours", ours.median, ours.low, ours.high, ours=True)]


def _floor(measured: Measurement) -> float | None:
    floor = measured.conditions.get("floor_seconds")
    return float(floor) if isinstance(floor, int | float) and floor > 0 else None


def _roofline(measured: Measurement) -> str:
    floor = _floor(measured)
    if floor is None:
        note = str(measured.conditions.get("floor_note", "its bytes could not be counted, or this device's peaks were not measured"))
        return f"<p>No floor is known for this task: {escape(note)}.</p>"
    share = floor / measured.candidate.median if measured.candidate.median else 0.0
    limit = plots.time_text(floor)
    words = f"No correct program can take less than {limit} a call here: its inputs and outputs at this device's measured bandwidth, with a margin."
    timed = [(name, timing) for name, timing in measured.baselines.items() if timing.samples and timing.median]
    others = [f"{escape(name)} at {100 * floor / timing.median:.3g} %" for name, timing in timed]
    return f"<p>{words} Ours is at {100 * share:.3g} % of that limit{''.join(', ' + other for other in others)}.</p>{_roofline_picture(measured)}"


def _roofline_picture(measured: Measurement) -> str:
    names = ("work_flops", "work_bytes", "parameter_bytes", "peak_flops_per_second", "peak_bytes_per_second")
    flops, moved, parameters, peak_flops, peak_bytes = (float(measured.conditions.get(name, 0.0)) for name in names)
    picture = plots.roofline(flops, moved + parameters, peak_flops, peak_bytes, _bars(measured))
    return f"{picture}<p class=small>Flops of the original's products; a program above the roof does fewer.</p>" if picture else ""


def _recipe(record: Record, group: Iterable[Record]) -> str:
    if is_baseline(record):
        return "<p>No program was faster than this baseline beyond doubt, so the baseline is what is recommended.</p>"
    rows = [
        [f"<code>{escape(str(entry.action))}</code>", _number(entry.gain, "{:.2f}x"), escape(entry.note)] for entry in report.ablation(record, group)
    ]
    if not rows:
        return f"<p>No rewrite: the program came from {escape(record.candidate.proposer)}.</p>"
    return "<p>Worth: speed-up with the step over speed-up without it, both measured.</p>" + _table(["step", "#worth", ""], rows)


def _correctness(record: Record) -> str:
    verdict = record.verdict
    if verdict is None or verdict.error is None or verdict.error_reference is None:
        return f"<p>{escape(verdict.reason if verdict else record.detail)}</p>"
    theirs, ours = verdict.error_reference, verdict.error
    rows = [[name, f"{getattr(ours, name):.3g}", f"{getattr(theirs, name):.3g}"] for name in ("max", "rms", "centred")]
    caption = f"Errors against float64 on the case nearest to its tolerance ({escape(verdict.case)}), in units of the outputs."
    return f"<p>{caption}</p>" + _table(["error", "#ours", "#original"], rows)


def _difference(record: Record) -> str:
    text = record.candidate.source.text
    entry = str(record.task.option("entry", "Model"))
    before, after = _class_text(_original(record) or text, entry), _class_text(text, record.candidate.source.entry)
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "original", "optimised", lineterm="", n=3)
    whole = f"<details><summary>the whole program</summary><pre>{escape(text)}</pre></details>"
    return f"<pre>{_coloured(lines) or 'no difference'}</pre>{whole}"


def _original(record: Record) -> str:
    """Return the task file's text where it can still be read as text."""
    path = Path(record.task.path)
    try:
        return path.read_text(encoding="utf-8") if path.suffix == ".py" else ""
    except (OSError, UnicodeDecodeError):
        return ""


def _class_text(text: str, name: str) -> str:
    """Return the definition of class or function `name`, or the whole text where there is none."""
    try:
        definitions = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name]
    except SyntaxError:
        return text
    return (ast.get_source_segment(text, definitions[-1]) or text) if definitions else text


def _coloured(lines: Iterable[str]) -> str:
    marks = {"+": "add", "-": "del"}
    return "\n".join(f'<span class="{marks[line[0]]}">{escape(line)}</span>' if line[:1] in marks else escape(line) for line in lines)


def _reproduce(record: Record, archive: str) -> str:
    where = f" --archive {archive}" if archive else ""
    commands = f"warpwright reproduce {record.key}{where}\npython optimized.py          # the program's own self-test and self-benchmark"
    return f"<pre>{escape(commands)}</pre>"


def _conditions(record: Record, measured: Measurement) -> str:
    facts = {**measured.conditions, **record.versions, "when": record.when, "record": record.key}
    shown = {name: f"{value:.6g}" if isinstance(value, float) else str(value) for name, value in facts.items()}
    return _table(["", ""], [[escape(name), escape(value)] for name, value in shown.items()])


def _records(group: Sequence[Record]) -> str:
    rows = [
        [
            f"<code>{record.key}</code>",
            escape(record.candidate.proposer),
            escape(record.status),
            _number(record.speedup or None, "{:.2f}x"),
            _verdict(record.measurement.verdict if record.measurement else None),
            escape("; ".join(map(str, record.candidate.actions)) or record.detail[:200]),
        ]
        for record in group
    ]
    return f"<details><summary>show</summary>{_table(['record', 'proposer', 'status', '#speed-up', 'verdict', 'recipe or reason'], rows)}</details>"


def _section(title: str, body: str) -> str:
    return f"<h3>{escape(title)}</h3>{body}"


def _list(texts: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<ul>{items}</ul>" if items else ""


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], ours: int = -1) -> str:
    """Return a table of cells that are already escaped; a head that starts with # is a column of numbers."""
    marks = [' class="number"' if head.startswith("#") else "" for head in heads]
    head = "".join(f"<th{mark}>{escape(text.lstrip('#'))}</th>" for mark, text in zip(marks, heads, strict=True))
    body = "".join(
        f"<tr{' class=ours' if index == ours else ''}>{''.join(f'<td{mark}>{cell}</td>' for mark, cell in zip(marks, row, strict=True))}</tr>"
        for index, row in enumerate(rows)
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _number(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


def _verdict(verdict: str | None) -> str:
    return f'<span class="{verdict}">{verdict}</span>' if verdict else ""


section, table = _section, _table  # for pages of other kinds
