"""Draws docstrings and error messages at random, to be read by someone who does not know the code.

python -m tools.sample_texts --count 40 --seed 7
"""

import argparse
import ast
import random
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "seqloom"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=40, help="number of texts")
    parser.add_argument(
        "--seed", type=int, default=None, help="seed of the draw; a new draw each time if not given"
    )
    options = parser.parse_args()
    texts = [text for path in sorted(SOURCE.rglob("*.py")) for text in texts_of(path)]
    for number, text in enumerate(
        random.Random(options.seed).sample(texts, options.count), start=1
    ):
        print(f"--- {number}. {text}\n")


def texts_of(path: Path) -> Iterator[str]:
    """Yields every docstring with the name it belongs to, and the source of every `raise` that holds a message."""
    source = path.read_text(encoding="utf-8")
    place = path.relative_to(SOURCE.parent)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring:
                yield f"{place}: {_heading(node)}\n{docstring}"
        elif isinstance(node, ast.Raise) and any(_is_text(part) for part in ast.walk(node)):
            yield f"{place}:{node.lineno}: message\n{ast.get_source_segment(source, node)}"


def _heading(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    if isinstance(node, ast.Module):
        return "module"
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}"
    return f"def {node.name}({ast.unparse(node.args)})"


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value


if __name__ == "__main__":
    main()
