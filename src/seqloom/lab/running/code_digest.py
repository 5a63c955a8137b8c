"""Computes a digest of the code that measures a claim.

If this code changes, cached measurements are not reused.
"""

import ast
import hashlib
import inspect
import sys
from functools import cache
from types import ModuleType

_NOT_MEASURING = {"judge", "plot", "CLAIM"}
"""Definitions in a claim's module that do not affect its measurements."""
_TYPE_MODULES = {"seqloom.lab.claim", "seqloom.lab.results", "seqloom.lab.verdict"}


@cache
def code_digest(name: str) -> str:
    """Return a digest of the code that measures a claim.

    The code is that of the claim's module and of the lab modules that it imports directly.
    Comments, docstrings and imports do not affect the digest. Neither do `judge`, `plot` and
    `CLAIM`, because they only evaluate, draw and describe the measurements.

    name: full name of the claim's module
    """
    module = sys.modules[name]
    texts = [ast.unparse(_measuring_code(each)) for each in (module, *_imported_modules(module))]
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def _imported_modules(module: ModuleType) -> list[ModuleType]:
    """Return the lab modules that a claim's module imports directly.

    Modules that only define types are left out.
    """
    names = {
        node.module
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.ImportFrom) and node.module is not None
    }
    return [
        sys.modules[name]
        for name in sorted(names - _TYPE_MODULES)
        if name.startswith("seqloom.lab.")
    ]


def _measuring_code(module: ModuleType) -> ast.Module:
    tree = ast.parse(inspect.getsource(module))
    tree.body = [node for node in tree.body if _affects_measurements(node)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [each for each in node.body if not _is_docstring(each)] or [ast.Pass()]
    return tree


def _affects_measurements(node: ast.stmt) -> bool:
    if isinstance(node, ast.FunctionDef):
        return node.name not in _NOT_MEASURING
    if isinstance(node, ast.Assign):
        return not any(
            isinstance(target, ast.Name) and target.id in _NOT_MEASURING for target in node.targets
        )
    return not isinstance(node, ast.Import | ast.ImportFrom)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
