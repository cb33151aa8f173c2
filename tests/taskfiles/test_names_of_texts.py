"""A task's text and what a generated file holds besides stand in one module: no name is defined in both."""

import ast
from pathlib import Path

import warpwright
from warpwright.tasks import shapes, training
from warpwright.tasks.modules import saved_module

NATIVE = sorted((Path(warpwright.__file__).parent / "native").glob("*.py"))


def defined(text: str) -> set[str]:
    """Return the names that a text defines at its top."""
    names: set[str] = set()
    for node in ast.parse(text).body:
        names |= {node.name} if isinstance(node, ast.FunctionDef | ast.ClassDef) else set()
        names |= {target.id for target in getattr(node, "targets", ()) if isinstance(target, ast.Name)}
    return names


def test_no_helper_has_the_name_of_a_tasks() -> None:
    """`_fresh` was a task's function and a generated file's: on a GPU every training step of a saved module failed."""
    tasks = defined(saved_module.TEXT.format(path="")) | defined(training.TEXT) | defined(shapes.TEXT.replace("@DECLARED", "{}"))
    assert "_fresh_example" in tasks
    for file in NATIVE:
        assert not (defined(file.read_text()) & tasks) - {"get_inputs"}, file.name
