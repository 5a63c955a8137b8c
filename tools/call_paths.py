"""Measures the two paths through the code that ARCHITECTURE.md shows, and writes their tables.

    python -m tools.call_paths            write both tables into ARCHITECTURE.md
    python -m tools.call_paths --check    compare them with ARCHITECTURE.md; exit code 1 if they differ

Run the first form after a change of these paths, and edit the landmarks below if a function was renamed. The
program trains a tiny model and translates with it. `sys.setprofile` reports every call of a Python
function. At each landmark, the stack of calls is stored, from the function of the command to the
landmark. A table has one line per function of seqloom on these stacks. Its number is the number of
Python frames from the command's function, itself included. Frames of other packages are counted, but
not listed.

`tests/docs/test_call_paths.py` checks the tables, the limits, and that no closure is on a path.
"""

import ast
import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "seqloom"
PAGE = ROOT / "ARCHITECTURE.md"

DATA = """\
data.{split} = {{kind = "synthetic", task = "reverse", min_length = 2, max_length = 4, symbols = 4, examples = 8}}
"""
RECIPE = (
    "".join(DATA.format(split=split) for split in ("train", "dev", "test"))
    + """\
text.tokenizer.kind = "characters"
training = {steps = 2, batch_tokens = 64, evaluate_every = 2, checkpoint_every = 2, precision = "fp32"}
"""
)
PART = "{kind = 'transformer', width = 8, layers = 1, feedforward = 16, attention = {heads = 2}}"


@dataclass(frozen=True)
class CallPath:
    """One table.

    heading:    the heading in ARCHITECTURE.md above the table
    arguments:  arguments of the command
    command:    file and name of the function of the command
    landmarks:  file and qualified name of functions, in the order of their first calls
    goal:       the landmark to which frames are counted
    limit:      maximum number of frames from the command to the goal
    max_closures: maximum number of closures among these frames
    """

    heading: str
    arguments: tuple[str, ...]
    command: tuple[str, str]
    landmarks: tuple[tuple[str, str], ...]
    goal: tuple[str, str]
    limit: int
    max_closures: int


LOSS = ("nn/fast/cross_entropy.py", "LinearCrossEntropy.forward")
STEP = ("models/recurrent.py", "RecurrentDecoder.step")
CALL_PATHS = (
    CallPath(
        "## A training step",
        (
            *("train", "recipe.toml", "--run", "transformer", "--quiet"),
            *("--set", f"model.encoder={PART}", "--set", f"model.decoder={PART}"),
        ),
        ("cli/commands/train.py", "train"),
        (
            ("models/transformer.py", "TransformerEncoder.forward"),
            ("models/transformer.py", "TransformerDecoder.forward"),
            LOSS,
        ),
        LOSS,
        limit=10,
        max_closures=0,
    ),
    CallPath(
        "## A translation",
        ("translate", "recurrent", "--quiet"),
        ("cli/commands/translate.py", "translate"),
        (
            ("tasks/translation.py", "Translation.prepare"),
            ("models/recurrent.py", "RecurrentEncoder.forward"),
            STEP,
            ("inference/prediction.py", "PredictionBuilder.build"),
        ),
        STEP,
        limit=9,
        max_closures=0,
    ),
)


@dataclass(frozen=True)
class Call:
    """A Python frame on the way to a landmark.

    depth: number of frames from the function of the command, itself included
    """

    depth: int
    code: CodeType

    @property
    def file(self) -> str:
        """Path relative to the package seqloom; "" for code of other packages."""
        path = Path(self.code.co_filename)
        return path.relative_to(SOURCE).as_posix() if path.is_relative_to(SOURCE) else ""

    @property
    def function(self) -> tuple[str, str]:
        return self.file, self.code.co_qualname

    @property
    def is_closure(self) -> bool:
        return bool(self.file) and "<locals>" in self.code.co_qualname


@dataclass(frozen=True)
class Measurement:
    """The stacks of calls from the command to each landmark, in the order of the first calls."""

    path: CallPath
    stacks: tuple[tuple[Call, ...], ...]

    def to_goal(self) -> tuple[Call, ...]:
        return next(stack for stack in self.stacks if stack[-1].function == self.path.goal)

    def table(self) -> str:
        """Return the lines of the table. A line is indented by its number of callers in the table."""
        rows: list[tuple[int, str, Call]] = []
        previous: tuple[Call, ...] = ()
        for stack in self.stacks:
            shared = next(
                (i for i, (a, b) in enumerate(zip(stack, previous, strict=False)) if a != b),
                min(len(stack), len(previous)),
            )
            for index in range(shared, len(stack)):
                if stack[index].file:
                    callers = sum(bool(call.file) for call in stack[:index])
                    name = stack[index].code.co_qualname.replace(".<locals>", "")
                    rows.append((stack[index].depth, " " * callers + name, stack[index]))
            previous = stack
        name_width = max(len(name) for _, name, _ in rows)
        file_width = max(len(call.file) for *_, call in rows)
        return "".join(
            f"{depth:2}  {name:{name_width}}  {call.file:{file_width}}  {summary(call.code)}".rstrip()
            + "\n"
            for depth, name, call in rows
        )


def measure(path: CallPath) -> Measurement:
    """Run a command and return the stacks of calls to its landmarks."""
    from seqloom.cli.main import app

    stacks: dict[tuple[str, str], tuple[Call, ...]] = {}

    def profile(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_qualname
        if event == "call" and name in names:
            function = Call(0, frame.f_code).function
            if function in path.landmarks and function not in stacks:
                stacks[function] = stack_of(frame, path.command)

    names = {name for _, name in path.landmarks}
    sys.setprofile(profile)
    try:
        app(path.arguments, prog_name="seqloom", standalone_mode=False)
    finally:
        sys.setprofile(None)
    if missing := [": ".join(each) for each in path.landmarks if each not in stacks]:
        raise LookupError(f"not called: {', '.join(missing)}. Edit its name in tools/call_paths.py")
    return Measurement(path, tuple(stacks.values()))


def stack_of(frame: FrameType, command: tuple[str, str]) -> tuple[Call, ...]:
    """Return the calls from the function of the command to this frame."""
    codes = []
    current: FrameType | None = frame
    while current is not None:
        codes.append(current.f_code)
        if Call(0, current.f_code).function == command:
            break
        current = current.f_back
    return tuple(Call(depth, code) for depth, code in enumerate(reversed(codes), 1))


def summary(code: CodeType) -> str:
    """Return the first sentence of the docstring of a function, in one line."""
    docstrings = read_docstrings(code.co_filename)
    docstring = docstrings.get((code.co_name, code.co_firstlineno), "")
    return " ".join(docstring.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")


@cache
def read_docstrings(file: str) -> dict[tuple[str, int], str]:
    """Map name and first line of each function of a file to its docstring."""
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return {
        (
            node.name,
            [*(each.lineno for each in node.decorator_list), node.lineno][0],
        ): ast.get_docstring(node) or ""
        for node in functions
    }


def measure_all() -> list[Measurement]:
    """Train a recurrent model, which the second path needs, and measure all paths."""
    from seqloom.cli.main import app

    sides = [f"model.{side}={{kind='recurrent', width=8}}" for side in ("encoder", "decoder")]
    train = ["train", "recipe.toml", "--run", "recurrent", "--quiet"]
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.dict(os.environ, XDG_CACHE_HOME=folder),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"abc\n"))),
        contextlib.chdir(folder),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        Path("recipe.toml").write_text(RECIPE, encoding="utf-8")
        app([*train, "--set", sides[0], "--set", sides[1]], standalone_mode=False)
        return [measure(path) for path in CALL_PATHS]


def with_table(page: str, heading: str, table: str) -> str:
    """Replace the first block of text after a heading."""
    before, found, after = page.partition(f"{heading}\n")
    assert found, f"{PAGE.name} has no heading '{heading}'"
    introduction, _, rest = after.partition("```text\n")
    _, end, rest = rest.partition("```\n")
    return f"{before}{found}{introduction}```text\n{table}{end}{rest}"


def problems(measurement: Measurement) -> list[str]:
    """Return what a path must not have: too many frames, or closures."""
    stack, path = measurement.to_goal(), measurement.path
    found = []
    if len(stack) > path.limit:
        found.append(f"{path.heading}: {len(stack)} frames, at most {path.limit} are allowed")
    closures = [f"{call.file}: {call.code.co_qualname}" for call in stack if call.is_closure]
    if len(closures) > path.max_closures:
        found.append(f"{path.heading}: closures on the path: {', '.join(closures)}")
    return found


def main(arguments: Sequence[str]) -> int:
    page = before = PAGE.read_text(encoding="utf-8")
    found = []
    for measurement in measure_all():
        page = with_table(page, measurement.path.heading, measurement.table())
        found += problems(measurement)
    print(*found, sep="\n", end="\n" if found else "")
    if "--check" in arguments:
        if page != before:
            print("ARCHITECTURE.md differs from the measured paths: run python -m tools.call_paths")
        return 1 if found or page != before else 0
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
