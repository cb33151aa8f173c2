"""Names that a generated text reads and nothing defines: a NameError at the call that comes to them."""

from __future__ import annotations

import ast
import builtins
import symtable

OF_A_MODULE = {*vars(builtins), "__name__", "__file__", "__doc__", "__dict__", "__class__"}


def undefined_names(text: str, given: frozenset[str] = frozenset()) -> set[str]:
    """Return the names that `text` reads and neither it, nor builtins, nor `given` define, and those of the modules that it executes as text."""
    top = symtable.symtable(text, "<generated>", "exec")
    scopes = [top]
    for scope in scopes:
        scopes += scope.get_children()
    symbols = [(symbol, scope) for scope in scopes for symbol in scope.get_symbols()]
    bound = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    bound |= {symbol.get_name() for symbol, _ in symbols if symbol.is_declared_global() and symbol.is_assigned()}
    read = {symbol.get_name() for symbol, scope in symbols if symbol.is_referenced() and (scope is top or symbol.is_global())}
    found = read - bound - OF_A_MODULE - given
    for body, own in _executed(ast.parse(text)):
        found |= undefined_names(body, own)
    return found


def _executed(tree: ast.Module) -> list[tuple[str, frozenset[str]]]:
    """Return the texts of `exec("...", module.__dict__)`, each with the names that `module.NAME = ...` gave that module before."""
    given: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else []:
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                given.setdefault(target.value.id, set()).add(target.attr)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "exec" and isinstance(node.args[0], ast.Constant):
            module = next((name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)), "")
            found.append((node.args[0].value, frozenset(given.get(module, ()))))
    return found
