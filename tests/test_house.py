"""The rules of the house, read from the code itself: see ARCHITECTURE.md."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "seqloom"
STAIRS = [
    {"core"},
    {"config"},
    {"text"},
    {"data"},
    {"nn"},
    {"models"},
    {"metrics", "decoding"},  # numbers and search: neither needs the other
    {"tasks"},
    {"runs"},
    {"training", "inside"},  # learning, and looking at what was learned
    {"viz"},
    {"lab", "serving", "interop"},  # rooms at the top
    {"cli"},
]
DATA_ONLY = {"bundled", "recipes"}
FACE = {"seqloom", "seqloom.__main__"}
"""The package itself, imported or run: the public face, which may look at every room."""
DOCUMENTED = {"core", "nn", "models", "decoding", "metrics"}
LIGHT = {"config", "text", "core.errors", "core.storage"}
"""What answers before torch could be imported."""
MAX_FILE_LINES, MAX_FUNCTION_LINES, MAX_PARAMETERS = 300, 70, 6

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Import:
    """One line of imports: `from module import names`, or `import module` with no names."""

    module: str
    names: tuple[str, ...]
    level: int
    for_types_only: bool
    line: int


@dataclass(frozen=True)
class Module:
    """A file of the product: seqloom.nn.attention, say."""

    path: Path
    name: str
    tree: ast.Module

    @property
    def room(self) -> str:
        """The folder under seqloom; empty for the public face."""
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 else ""

    @property
    def imports(self) -> list[Import]:
        """Every import anywhere in the file, inside functions too."""
        typed = {
            id(inner)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            for statement in node.body
            for inner in ast.walk(statement)
        }
        found = []
        for node in ast.walk(self.tree):
            hidden = id(node) in typed
            if isinstance(node, ast.Import):
                found += [Import(one.name, (), 0, hidden, node.lineno) for one in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = tuple(one.name for one in node.names)
                found.append(Import(node.module or "", names, node.level, hidden, node.lineno))
        return found

    @property
    def functions(self) -> list[Function]:
        return [one for one in ast.walk(self.tree) if isinstance(one, Function)]

    def at(self, node: ast.AST | Import) -> str:
        line = node.line if isinstance(node, Import) else getattr(node, "lineno", 1)
        return f"{self.path.relative_to(ROOT.parents[1])}:{line}"


def read(path: Path) -> Module:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Module(path, name, ast.parse(path.read_text(encoding="utf-8")))


@cache
def modules() -> dict[str, Module]:
    return {module.name: module for module in map(read, sorted(ROOT.rglob("*.py")))}


def every_module() -> list[Module]:
    return list(modules().values())


def stair(room: str) -> int:
    return next(height for height, rooms in enumerate(STAIRS) if room in rooms)


def rooms_imported(module: Module) -> Iterator[tuple[Import, str]]:
    for one in module.imports:
        if one.module.startswith("seqloom."):
            yield one, one.module.split(".")[1]


def neighbours(module: Module) -> set[str]:
    """The modules of the product that this one imports when it is run, packages on the way too."""
    found = set()
    for one in module.imports:
        if one.for_types_only or one.module.split(".")[0] != "seqloom":
            continue
        for name in (one.module, *(f"{one.module}.{name}" for name in one.names)):
            parts = name.split(".")
            found |= {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
    return found & set(modules()) - {module.name}


def reachable(name: str) -> set[str]:
    """Everything that importing this module imports, itself included."""
    seen, waiting = set(), [name]
    while waiting:
        here = waiting.pop()
        if here not in seen:
            seen.add(here)
            waiting += neighbours(modules()[here])
    return seen


def test_every_folder_has_its_place() -> None:
    rooms = {path.name for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert rooms <= set().union(*STAIRS) | DATA_ONLY
    for room in DATA_ONLY & rooms:
        code = sorted((ROOT / room).rglob("*.py"))
        assert code == [ROOT / room / "__init__.py"], f"{room} holds data only"


def test_no_folder_imports_from_above_itself() -> None:
    broken = [
        f"{module.at(one)} reaches up to {room}"
        for module in every_module()
        if module.name not in FACE and module.room not in DATA_ONLY
        for one, room in rooms_imported(module)
        if room not in DATA_ONLY and stair(room) > stair(module.room)
    ]
    assert not broken


def test_rooms_on_one_stair_do_not_import_each_other() -> None:
    """Neither metrics and decoding, nor training and inside, nor lab, serving and interop."""
    broken = [
        f"{module.at(one)} imports {room}, on the same stair as {module.room}"
        for module in every_module()
        if module.name not in FACE and module.room not in DATA_ONLY
        for one, room in rooms_imported(module)
        if room not in DATA_ONLY and room != module.room and stair(room) == stair(module.room)
    ]
    assert not broken


def test_no_room_looks_at_the_public_face() -> None:
    """But for the version: whoever imports the face imports every room."""
    broken = [
        module.at(one)
        for module in every_module()
        for one in module.imports
        if one.module in FACE and set(one.names) != {"__version__"}
    ]
    assert not broken


def test_no_modules_import_each_other_in_a_circle() -> None:
    # The face is where every import passes through, and it imports nothing that is not finished.
    graph = {module.name: neighbours(module) - FACE for module in every_module()}
    left = dict(graph)
    while free := {name for name, needs in left.items() if not needs & set(left)}:
        left = {name: needs for name, needs in left.items() if name not in free}
    assert not left, f"each of these imports another of them: {sorted(left)}"


def test_the_product_is_imported_by_name_and_absolutely() -> None:
    """`from seqloom.x.y import z` and nothing else: one form to read the stairs from."""
    broken = [
        module.at(one)
        for module in every_module()
        for one in module.imports
        if one.level > 0 or (one.module.split(".")[0] == "seqloom" and not one.names)
    ]
    assert not broken


def test_folders_hold_nothing_in_their_init() -> None:
    broken = [
        module.at(module.tree)
        for module in every_module()
        if module.path.name == "__init__.py"
        and module.name not in FACE
        and len(module.tree.body) != 1
    ]
    assert not broken


@pytest.mark.parametrize("start", sorted(LIGHT))
def test_what_must_answer_at_once_never_imports_torch(start: str) -> None:
    whole = f"seqloom.{start}"
    heavy = {
        f"{module.at(one)} (reached from {name})"
        for name in modules()
        if name == whole or name.startswith(f"{whole}.")
        for module in map(modules().__getitem__, reachable(name))
        for one in module.imports
        if one.module.split(".")[0] == "torch" and not one.for_types_only
    }
    assert not heavy


def calls(module: Module) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            yield node, ast.unparse(node.func)


def test_only_the_command_line_prints_or_exits() -> None:
    speech = {"print", "input", "warnings.warn", "Console", "sys.exit", "exit", "quit", "os._exit"}
    broken = [
        f"{module.at(call)} {name}"
        for module in every_module()
        if module.room != "cli"
        for call, name in calls(module)
        if name in speech or name.startswith(("sys.stdout.", "sys.stderr.", "typer."))
    ]
    assert not broken


def test_nothing_runs_code_that_it_reads() -> None:
    broken = [
        f"{module.at(call)} {name}"
        for module in every_module()
        for call, name in calls(module)
        if name in {"eval", "exec", "compile", "torch.load", "torch.save"}
    ]
    broken += [
        f"{module.at(one)} {one.module}"
        for module in every_module()
        for one in module.imports
        if one.module.split(".")[0] in {"pickle", "dill", "cloudpickle", "marshal", "shelve"}
        or (one.module == "torch" and {"load", "save"} & set(one.names))
    ]
    assert not broken


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    lengths = {
        module.at(module.tree): len(module.path.read_text(encoding="utf-8").splitlines())
        for module in every_module()
    }
    assert not {place: n for place, n in lengths.items() if n > MAX_FILE_LINES}


def test_no_function_is_longer_than_a_page() -> None:
    broken = [
        f"{module.at(one)} {one.name}: {(one.end_lineno or 0) - one.lineno + 1} lines"
        for module in every_module()
        for one in module.functions
        if (one.end_lineno or 0) - one.lineno + 1 > MAX_FUNCTION_LINES
    ]
    assert not broken


def parameters(function: Function) -> list[str]:
    spec = function.args
    named = [*spec.posonlyargs, *spec.args, *spec.kwonlyargs]
    extra = [one for one in (spec.vararg, spec.kwarg) if one is not None]
    return [one.arg for one in (*named, *extra) if one.arg not in ("self", "cls")]


def is_command(module: Module, function: Function) -> bool:
    """A function whose parameters are the options of a command: typer wants them one by one."""
    options = [one.annotation for one in (*function.args.args, *function.args.kwonlyargs)]
    written = [ast.unparse(one) for one in options if one is not None]
    return module.room == "cli" and any("typer." in one or "Annotated" in one for one in written)


def is_kernel(function: Function) -> bool:
    """A kernel takes pointers and numbers, and nothing that could hold several of them."""
    return any(ast.unparse(one) == "triton.jit" for one in function.decorator_list)


def test_no_function_takes_more_than_six_parameters() -> None:
    broken = [
        f"{module.at(one)} {one.name}: {len(parameters(one))}"
        for module in every_module()
        for one in module.functions
        if len(parameters(one)) > MAX_PARAMETERS
        and not is_command(module, one)
        and not is_kernel(one)
    ]
    assert not broken


def test_every_module_says_what_it_is() -> None:
    assert not [one.at(one.tree) for one in every_module() if not ast.get_docstring(one.tree)]


def test_every_public_class_and_function_of_the_lower_rooms_says_what_it_is() -> None:
    broken = [
        f"{module.at(node)} {node.name}"
        for module in every_module()
        if module.room in DOCUMENTED
        for node in module.tree.body
        if isinstance(node, Function | ast.ClassDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]
    assert not broken


def test_nothing_is_called_after_nothing() -> None:
    """utils, helpers and misc are where things go that nobody has thought about."""
    empty = {"utils", "util", "helpers", "helper", "misc", "common", "stuff"}
    everything = [*ROOT.rglob("*"), *Path(__file__).parent.rglob("*")]
    assert not [path for path in everything if empty & set(path.stem.lower().split("_"))]
