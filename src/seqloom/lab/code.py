"""Which code measures a claim, so that numbers of other code are not taken for its own."""

import ast
import hashlib
import inspect
import sys
from functools import cache
from types import ModuleType

_TALK = {"judge", "plot", "CLAIM"}
"""What a claim says about its numbers: it may change without measuring again."""


@cache
def code_of(name: str) -> str:
    """A digest of the module of a claim and of the lab's modules that it imports, without
    comments, docstrings and whatever only judges, draws or describes."""
    module = sys.modules[name]
    texts = [ast.unparse(_bare(one)) for one in (module, *_tools(module))]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _tools(module: ModuleType) -> list[ModuleType]:
    """The modules directly in seqloom.lab that its experiments are built from."""
    names = {
        node.module
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.ImportFrom) and node.module is not None
    }
    told = {"seqloom.lab.claim", "seqloom.lab.results", "seqloom.lab.verdict"}
    return [sys.modules[one] for one in sorted(names - told) if one.startswith("seqloom.lab.")]


def _bare(module: ModuleType) -> ast.Module:
    tree = ast.parse(inspect.getsource(module))
    tree.body = [node for node in tree.body if not _talks(node)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [one for one in node.body if not _is_string(one)] or [ast.Pass()]
    return tree


def _talks(node: ast.stmt) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name in _TALK
    if isinstance(node, ast.Assign):
        return any(isinstance(one, ast.Name) and one.id in _TALK for one in node.targets)
    return isinstance(node, ast.Import | ast.ImportFrom)


def _is_string(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
