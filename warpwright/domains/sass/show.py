"""A schedule as people read it: control fields, stalls, text, what each instruction depends on; before and after side by side, as text or HTML.

What an edge says stands in model/dependences.py. Two schedules beside one another have edges on the page alone: two columns of text are too narrow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from warpwright.domains.sass.code import control
from warpwright.domains.sass.code.kernel import Kernel, Schedule
from warpwright.domains.sass.model.dependences import dependences
from warpwright.domains.sass.model.hazards import entries, items, step

TEXT_WIDTH = 64

_STYLE = """body{font:13px/1.35 monospace;margin:1.5em}table{border-collapse:collapse}td{padding:0 .8em;white-space:pre;vertical-align:top}
tr.block td{border-top:1px solid #888;color:#666;padding-top:.4em}td.moved{background:#fff0c0}td.control{color:#555}td.changed{background:#d8f0d8}
td.needs{color:#888}"""


@dataclass(frozen=True)
class Row:
    """One place of a schedule."""

    place: int
    index: int
    """The instruction's place in the original."""
    control: str
    text: str
    needs: tuple[str, ...]
    """The instructions that it depends on, with the register, and the cycles since their issue or the scoreboard that tells of them."""
    moved: bool
    changed: bool
    """Is its control word another than in the original?"""


def rows(schedule: Schedule) -> Iterator[tuple[int, list[Row]]]:
    """Yield each block's number and rows."""
    needs = dependences(schedule)
    for number, block in enumerate(schedule.kernel.blocks):
        yield number, [_row(schedule, place, needs[place]) for place in block]


def _row(schedule: Schedule, place: int, needs: tuple[str, ...]) -> Row:
    instruction, word = schedule.at(place), schedule.words[place]
    original = schedule.kernel.words[instruction.index]
    return Row(place, instruction.index, str(control.decode(word)), instruction.text, needs, place != instruction.index, word != original)


def boards_in_flight(schedule: Schedule) -> dict[int, str]:
    """Return for each place the scoreboards that may be pending there, as 0-2---."""
    boards: dict[int, str] = {}
    for entry, block in zip(entries(schedule), schedule.kernel.blocks, strict=True):
        if entry is None:
            continue
        state = entry.copy()
        for place, (instruction, word) in zip(block, items(schedule, block), strict=True):
            pending = 0
            for facts in state.facts.values():
                for cover in facts.values():
                    pending |= cover
            boards[place] = "".join(str(board) if pending >> board & 1 else "-" for board in range(control.BOARDS))
            step(state, instruction, word)
    return boards


def text(schedule: Schedule) -> str:
    """Return the listing of one schedule."""
    pending = boards_in_flight(schedule)
    lines = [_head(schedule.kernel)]
    for number, block in rows(schedule):
        lines.append(f"block b{number}, {len(block)} instructions, in {schedule.kernel.depth[number]} loops")
        for row in block:
            mark = "*" if row.moved or row.changed else " "
            edges = "; ".join(row.needs)
            body = f"{mark} i{row.index:<5}{row.control}  {pending.get(row.place, '      ')}  {row.text[:TEXT_WIDTH]:{TEXT_WIDTH}}"
            lines.append(f"{body}  {edges}".rstrip())
    return "\n".join(lines) + "\n"


def side_by_side(before: Schedule, after: Schedule) -> str:
    """Return two schedules of one kernel beside one another; only blocks that differ. `|`: another instruction, `~`: another control word."""
    lines = [_head(before.kernel)]
    width = TEXT_WIDTH // 2 + 34
    for (number, old), (_, new) in zip(rows(before), rows(after), strict=True):
        if [(row.index, row.control) for row in old] == [(row.index, row.control) for row in new]:
            continue
        lines.append(f"block b{number}, {len(old)} instructions, in {before.kernel.depth[number]} loops")
        for left, right in zip(old, new, strict=True):
            mark = "|" if left.index != right.index else "~" if left.control != right.control else " "
            lines.append(f"{_short(left):{width}} {mark} {_short(right)}".rstrip())
    if len(lines) == 1:
        lines.append("no block differs")
    return "\n".join(lines) + "\n"


def _short(row: Row) -> str:
    return f"i{row.index:<5}{row.control} {row.text[: TEXT_WIDTH // 2]}"


def _head(kernel: Kernel) -> str:
    loops = max(kernel.depth, default=0)
    return f"{kernel.name}: sm_{kernel.cubin.arch}, {len(kernel.words)} instructions, {len(kernel.blocks)} blocks, loops {loops} deep"


def html(before: Schedule, after: Schedule) -> str:
    """Return both schedules as a page: moved instructions and changed control words are marked."""
    parts = [f"<!doctype html><meta charset='utf-8'><title>{escape(before.kernel.name)}</title><style>{_STYLE}</style>"]
    key = "Before and after. Yellow: another instruction stands here; green: another control word. Grey: what an instruction depends on."
    parts.append(f"<h1>{escape(_head(before.kernel))}</h1><p>{key}</p><table>")
    for (number, old), (_, new) in zip(rows(before), rows(after), strict=True):
        parts.append(f"<tr class='block'><td colspan='6'>block b{number}, in {before.kernel.depth[number]} loops</td></tr>")
        parts += [f"<tr>{_cells(left)}{_cells(right)}</tr>" for left, right in zip(old, new, strict=True)]
    return "\n".join([*parts, "</table>"]) + "\n"


def _cells(row: Row) -> str:
    moved, changed = " class='moved'" if row.moved else "", "control changed" if row.changed else "control"
    needs = escape("; ".join(row.needs))
    return f"<td{moved}>i{row.index} {escape(row.text)}</td><td class='{changed}'>{escape(row.control)}</td><td class='needs'>{needs}</td>"
