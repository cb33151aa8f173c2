"""The functions that stand for a kernel in the output: one runs a block, one may run a row of blocks, one runs the grid."""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.domains.transpile.analysis import regions
from warpwright.domains.transpile.analysis.regions import Loop, MaskedLoop, Plan
from warpwright.domains.transpile.emit import fused_blocks, nodes
from warpwright.domains.transpile.emit.writer import Writer
from warpwright.domains.transpile.frontend.scan import Kernel, split_commas
from warpwright.domains.transpile.ir import Declare, DoWhile, For, Raw, Shape, Stmt, Var, walk
from warpwright.domains.transpile.passes.unstaged import Unstaged
from warpwright.domains.transpile.passes.variables import private_counts
from warpwright.domains.transpile.printing import declarator, trip_count

LONG = 16
"""Rounds from which a loop makes a thread that much heavier: 256 of them are then worth a second CPU thread."""


def functions(
    kernel: Kernel, writer: Writer, line: int, row_writer: Writer | None = None, counts: Sequence[Var] = (), column_writer: Writer | None = None,
    plain: tuple[Unstaged, Writer] | None = None,
) -> str:  # fmt: skip
    """Return the functions that replace a kernel in the output: one runs a block, one the grid.

    `row_writer` writes one more, for rows of blocks, `column_writer` one for blocks side by side, `plain` one without copies in shared memory.
    `counts`: arrays that each CPU thread counts in apart.
    """
    names = ", ".join(n for n in kernel.template_names)
    arguments = ", ".join(["launch", "index", *(p.name + ("..." if p.pack else "") for p in kernel.parameters)])
    instance = f", {names}" if names else ""
    parts = block_function(kernel, writer, line, f"{kernel.name}_block", counts)
    if row_writer is not None:
        parts += block_function(kernel, row_writer, line, f"{kernel.name}_rows", counts)
    down = writer.lowered.down
    weight = f", {LONG}" if _is_long(writer.plan) else ", 1" if down else ""
    grid = [
        f"{kernel.template + ' ' if kernel.template else ''}static void {kernel.name}_launch(const ww::Launch& launch{''.join(', ' + p.text for p in kernel.parameters)}) {{",  # noqa: E501
        "  if (ww::failed() || !ww::acceptable(launch)) return;",
    ]
    if column_writer is not None:
        parts += block_function(kernel, column_writer, line, f"{kernel.name}_columns")
        grid += _side_by_side(kernel.name, column_writer.settings.blocks, instance, arguments.removeprefix("launch"), weight)
    if plain is not None:
        parts += block_function(kernel, plain[1], line, f"{kernel.name}_unstaged", counts)
        grid += _inside(kernel.name, plain[0], instance, arguments.removeprefix("launch"), weight)
    size = row_writer.lowered.one_row if row_writer is not None else writer.lowered.one_row
    if size:
        wide = f"{kernel.name}_{'block' if row_writer is None else 'rows'}<0, 0, 0{instance}>(ww_row{arguments.removeprefix('launch')});"
        run = f"[&](const ww::Launch& ww_row, const uint3 index) {{ {wide} }}"
        grid.append(f"  if (launch.is_row({size})) return ww::each_stretch(launch, {run}{weight});")
    if writer.lowered.prologue is not None:
        grid.append("  ww::each_stretch(launch, [&](const ww::Launch& launch, const uint3 index) {")
    else:
        grid.append("  ww::each_block(launch, [&](const uint3 index) {")
    keyword = "if"
    for x, y, z in writer.settings.blocks:
        grid.append(f"    {keyword} (launch.is({x}, {y}, {z})) {kernel.name}_block<{x}, {y}, {z}{instance}>({arguments});")
        keyword = "else if"
    general = f"{kernel.name}_block<0, 0, 0{instance}>({arguments});"
    grid.append(f"    else {general}" if writer.settings.blocks else f"    {general}")
    return "\n".join([*parts, *grid, f"  }}{weight}{', true' if down else ''});", "}"])


def _side_by_side(name: str, blocks: Sequence[Shape], instance: str, arguments: str, weight: str) -> list[str]:
    """Return the launches of blocks that stand side by side, for shapes of blocks that are known and grids of one row."""
    lines = []
    for together, x, _ in blocks:
        lines += [
            f"  if (launch.is({x}, 1, 1) && launch.joins({together})) {{",
            f"    const ww::Launch wide(dim3(launch.grid.x / {together}), dim3({together}, {x}), {together} * launch.shared);",
            f"    return ww::each_block(wide, [&](const uint3 index) {{ {name}_columns<{together}, {x}, 1{instance}>(wide{arguments}); }}{weight});",
            "  }",
        ]
    return lines


def _inside(name: str, plain: Unstaged, instance: str, arguments: str, weight: str) -> list[str]:
    """Return the launch of blocks of one shape without their copies in shared memory, for those blocks of which that holds."""
    x, y, z = plain.shape
    stretches = [f"ww::Stretch(launch.grid.{axis}, [&]([[maybe_unused]] long at) {{ return {asked}; }})" for axis, asked in plain.inside.items()]
    row = f"[&](const ww::Launch& ww_row, const uint3 index) {{ {name}_unstaged<0, 0, 0{instance}>(ww_row{arguments}); }}"
    if plain.rounds:
        one_sheet = f"launch.is({x}, {y}, {z}) && launch.is_row({x}) && launch.grid.z == 1"
        return [
            f"  if (const long rounds = {plain.rounds}; {one_sheet} && rounds > 0 && {plain.apart})",
            f"    return ww::each_stretch(ww::Launch(dim3(launch.grid.x, launch.grid.y, rounds), launch.block, launch.shared), {row}{weight});",
        ]
    block = f"[&](const uint3 index) {{ {name}_block<{x}, {y}, {z}{instance}>(launch{arguments}); }}"
    return [
        f"  if (launch.is({x}, {y}, {z}) && launch.is_row({x}) && {plain.apart})",
        f"    return ww::each_inside(launch, {', '.join(stretches)}, {row}, {block}{weight});",
    ]


def _is_long(plan: Plan) -> bool:
    """Say whether a thread runs a loop that is not known to be short."""
    for node, _ in regions.walk(plan.nodes):
        if isinstance(node, Loop | MaskedLoop):
            return True
        for stmt in walk(tuple(regions.node_stmts(node))):
            if isinstance(stmt, DoWhile) or (isinstance(stmt, For) and (trip_count(stmt) or LONG) >= LONG):
                return True
    return False


def block_function(kernel: Kernel, writer: Writer, line: int, name: str, counts: Sequence[Var] = ()) -> list[str]:
    """Return the lines of a function that runs a block, or a row of blocks."""
    body = _body(writer)
    inside = kernel.template[kernel.template.index("<") + 1 : kernel.template.rindex(">")] if kernel.template else ""
    template = f"template <int BX, int BY, int BZ{', ' + _without_defaults(inside) if inside else ''}>"
    parameters = ", ".join(["const ww::Launch& launch", "const uint3 index", *(p.text.partition("=")[0] for p in kernel.parameters)])
    head = [
        f"{template} static void {name}({parameters}) {{  // line {line}",
        "  [[maybe_unused]] const int dim_x = BX ? BX : (int)launch.block.x, dim_y = BX ? BY : (int)launch.block.y, dim_z = BX ? BZ : (int)launch.block.z;",  # noqa: E501
        "  [[maybe_unused]] const int grid_x = (int)launch.grid.x, grid_y = (int)launch.grid.y, grid_z = (int)launch.grid.z;",
        "  [[maybe_unused]] const int block_x = (int)index.x, block_y = (int)index.y, block_z = (int)index.z;",
        "  [[maybe_unused]] const int threads = dim_x * dim_y * dim_z, warps = (threads + 31) / 32;",
        "  [[maybe_unused]] const bool one_row = BX ? BY * BZ == 1 : dim_y * dim_z == 1;",
        "  [[maybe_unused]] constexpr int threads_max = BX ? BX * BY * BZ : 1024;",
    ]
    if writer.lowered.one_row:
        head.append("  const int row_x = BX ? BX : (int)launch.row;  // threads of all blocks that run as one row")
    others = ", ".join(p.name + ("..." if p.pack else "") for p in kernel.parameters)
    head += [f"  const auto {private_counts.name_of(var)} = ww::counts_of<{nth}>(launch, {var.name}, {others});" for nth, var in enumerate(counts)]
    return [*head, *body, "}"]


def _without_defaults(inside: str) -> str:
    return ", ".join(part.partition("=")[0].strip() for part in split_commas(inside))


def _body(writer: Writer) -> list[str]:
    """Return the lines of the block function's body, after the shape's constants."""
    plan, prologue = writer.plan, writer.lowered.prologue
    for stmt in plan.hoisted:
        if prologue is None or not isinstance(stmt, Declare) or stmt.var.key not in prologue.shared:
            _hoisted(writer, stmt)
    for var in plan.in_order(plan.arrays - (prologue.arrays if prologue is not None else set())):
        writer.line(f"alignas(64) {declarator(var, f'{var.name}_t', '[threads_max]')};")
    if prologue is None:
        nodes.write(writer, plan.nodes)
    else:
        fused_blocks.write(writer, prologue)
    return writer.lines


def _hoisted(writer: Writer, stmt: Stmt) -> None:
    if isinstance(stmt, Raw):
        writer.line(writer.printer.expr(stmt.expr))
        return
    assert isinstance(stmt, Declare)
    var = stmt.var
    if var.space == "dynamic":
        writer.line(f"{var.type}* const {var.name} = ({var.type}*)ww::dynamic_shared();  // line {stmt.line}")
    elif var.space == "shared":
        writer.line(f"alignas(64) {declarator(var)};  // shared, line {stmt.line}")
    else:
        word = "constexpr" if stmt.init is not None and not var.dims and var.space != "constant" else ("static const" if var.const else "static")
        init = f"{'' if stmt.direct else ' = '}{writer.printer.expr(stmt.init)}" if stmt.init is not None else ""
        writer.line(f"{'const' if word == 'constexpr' else word} {declarator(var)}{init};")
