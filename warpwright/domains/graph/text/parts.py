"""An assembly as one file: the original, the programs of each piece in a function of its own, and `ModelNew`.

    def _part_0(Model):             kernels, straight-line functions and a subclass of Model that falls back to it, as for a whole model
    _Block_0 = _named(_part_0(Block), "_Block_0")
    class ModelNew(Model):          the original; when it is constructed its parts take the classes of their pieces

The model's own code, which nobody captured, then calls its parts as before. A piece of several programs is a chain of subclasses: the one whose
shapes a call has takes it, the rest pass it on, and the first of all says why there is none. For the model itself the chain's last is `ModelNew`.
"""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections.abc import Sequence
from dataclasses import replace

from warpwright.base import Action, Candidate, Source
from warpwright.domains.graph import template
from warpwright.domains.graph.assembly import WHOLE, Assembly, Piece
from warpwright.domains.graph.ir import GraphIR
from warpwright.domains.graph.lower import Original, constructor, entry, head, program_text, tail
from warpwright.domains.graph.text.apart import apart

NAMED = '''def _named(kind, name):
    """Give a class that a function returned the name that it has in this file, by which it is pickled."""
    kind.__name__ = kind.__qualname__ = name
    return kind


'''

PLACED = '''def _place(model, pieces):
    """Let the parts of a model take the classes of their pieces; one that has another class than it was captured with stays."""
    for path, (own, kind) in pieces.items():
        try:
            part = model.get_submodule(path)
        except AttributeError:
            continue
        if type(part) is own:
            part.__class__ = kind
            part.built_as_verified, part._built = model.built_as_verified, _Watch.form(part)


'''

OF_PARTS = "Model, whose parts have a faster forward for the calls of their VERIFIED; other calls take the original's, with one warning."
OF_SHAPES = "Model with a faster forward for each of the verified shapes; any other call takes the original's forward, with one warning."


def lower(ir: Assembly, actions: Sequence[Action], original: Original) -> Candidate:
    """Return the candidate whose file is the original and `ModelNew` for the pieces."""
    alias = template.functional_alias(original.text)
    parts = [head(ir.assumptions, tuple(actions), original, _about(ir)), original.text.rstrip("\n"), "", "", template.RULER]
    opening = [f"import torch\nimport torch.nn.functional as {alias}", "", ""]
    body = "\n".join([template.watch(), "", NAMED, *(_piece(n, piece, original) for n, piece in enumerate(ir.pieces)), *_model(ir, original)])
    if alias != "F":
        body = re.sub(r"\bF\.", f"{alias}.", body)
    trained = any(program.training is not None for program in ir.programs())
    end = tail(trained).replace(template.GUARDED, "").replace("@DEVICE", original.target)
    text = "\n".join([*parts, apart(original.text, "\n".join([*opening, body, end]))])
    source = Source("python", (("optimized.py", text),), entry(trained))
    return Candidate(source, original.target, tuple(actions), proposer="graph", assumptions=ir.assumptions)


def _about(ir: Assembly) -> list[str]:
    if not ir.unreadable:
        return []
    places = [f"    part_{number}: {', '.join(piece.paths)}" for number, piece in enumerate(ir.pieces)]
    return [f"not captured whole: {ir.unreadable}", "its parts that were:", *places]


def _piece(number: int, piece: Piece, original: Original) -> str:
    """Return the functions that make a piece's classes, one a program."""
    placed = replace(original, part=piece.paths != WHOLE, several=len(piece.programs) > 1)
    return "\n\n".join(_function(_maker(number, turn), program, replace(placed, after=turn)) for turn, program in enumerate(piece.programs))


def _maker(number: int, turn: int) -> str:
    return f"_part_{number}" if not turn else f"_part_{number}_call_{turn}"


def _function(name: str, program: GraphIR, original: Original) -> str:
    text = imports_first(program_text(program, original).strip("\n"))
    return f'def {name}(Model):\n    """Return Model with a faster forward for one kind of call."""\n{indented(text)}\n    return ModelNew\n\n'


def imports_first(text: str) -> str:
    """Return the text with its imports in front, each once: in a function, where it will stand, no line above an import has what that brings.

    Torch itself the file has.
    """
    found = [node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)]
    lines = text.splitlines()
    taken = {number for node in found for number in range(node.lineno - 1, node.end_lineno or node.lineno)}
    rest = [line for number, line in enumerate(lines) if number not in taken]
    imports = dict.fromkeys(ast.unparse(node) for node in found)
    return "\n".join([*(one for one in imports if one != "import torch"), *rest])


def indented(text: str) -> str:
    """Return the text four columns further to the right, except for the lines that a text of several lines goes on in."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    texts = [token for token in tokens if tokenize.tok_name[token.type] in ("STRING", "FSTRING_MIDDLE")]
    inside = {line for token in texts for line in range(token.start[0] + 1, token.end[0] + 1)}
    return "\n".join(line if number in inside else textwrap.indent(line, "    ") for number, line in enumerate(text.splitlines(), 1))


def _model(ir: Assembly, original: Original) -> list[str]:
    if len(ir.pieces) == 1 and ir.pieces[0].paths == WHOLE:
        return [f"class ModelNew({_chain(0, ir.pieces[0], 'Model')}):", f'    """{OF_SHAPES}"""', "", ""]
    lines, places = [PLACED.rstrip("\n"), "", ""], []
    for number, piece in enumerate(ir.pieces):
        base, imported = _base(number, piece.kind)
        name = f"_{piece.kind.__name__}_{number}"
        lines += [*imported, f'{name} = _named({_chain(number, piece, base)}, "{name}")', ""]
        places += [f"    {path!r}: ({base}, {name})," for path in piece.paths]
    lines += ["PIECES = {", *places, "}", "", "", "class ModelNew(Model):", f'    """{OF_PARTS}"""', "", *constructor(original)]
    folds = any(program.scheduled("fold_parameters") for program in ir.programs())
    return [*lines, "        _place(self, PIECES)", *([template.REFRESH.rstrip("\n")] if folds else []), "", ""]


def _chain(number: int, piece: Piece, base: str) -> str:
    """Return the expression of a piece's last class."""
    for turn in range(len(piece.programs)):
        base = f"{_maker(number, turn)}({base})"
    return base


def _base(number: int, kind: type) -> tuple[str, list[str]]:
    """Return the name of a part's own class in the file, and the line that imports it."""
    if kind.__module__.startswith("warpwright_task_"):  # the original's text defines it
        return kind.__name__, []
    name = f"_{kind.__name__}_own_{number}"  # classes of several modules may have one name
    return name, [f"from {kind.__module__} import {kind.__name__} as {name}"]
