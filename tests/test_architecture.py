"""Rules of the code base, checked on the source files. ARCHITECTURE.md explains them."""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src" / "seqloom"
LAYERS = [
    {"core"},
    {"extensions"},
    {"config"},
    {"text"},
    {"data"},
    {"nn"},
    {"models"},
    {"metrics", "decoding"},
    {"tasks"},
    {"runs"},
    {"inference"},
    {"training", "analysis"},
    {"viz"},
    {"jobs"},
    {"lab", "serving", "interop", "testing"},
    {"cli"},
]
"""Packages from bottom to top. Packages of one layer do not import each other."""
DATA_ONLY = {"bundled", "recipes"}
TOP_LEVEL = {"seqloom", "seqloom.__main__"}
"""The public API, which may import every package."""
DOCUMENTED = {"core", "nn", "models", "decoding", "metrics"}
WITHOUT_TORCH = {"extensions", "config", "text", "core.errors", "core.storage"}
MAX_FILES = 16
"""Modules in one folder before it needs sub-packages."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Import:
    """`from module import names`, or `import module` without names."""

    module: str
    names: tuple[str, ...]
    level: int
    line: int
    type_checking: bool


@dataclass(frozen=True)
class Module:
    """A source file, for example seqloom.nn.attention."""

    path: Path
    name: str
    tree: ast.Module

    @property
    def package(self) -> str:
        """The package below seqloom; empty for the public API."""
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 else ""

    @cached_property
    def imports(self) -> list[Import]:
        """Every import in the file, also inside functions and `if TYPE_CHECKING`."""
        typed = {
            id(inner)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.If)
            and isinstance(node.test, ast.Name)
            and node.test.id == "TYPE_CHECKING"
            for statement in node.body
            for inner in ast.walk(statement)
        }
        found = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found += [
                    Import(alias.name, (), 0, node.lineno, id(node) in typed)
                    for alias in node.names
                ]
            elif isinstance(node, ast.ImportFrom):
                names = tuple(alias.name for alias in node.names)
                found.append(
                    Import(node.module or "", names, node.level, node.lineno, id(node) in typed)
                )
        return found

    @cached_property
    def calls(self) -> list[tuple[ast.Call, str]]:
        """Every call in the file, with the source of the called function."""
        return [
            (node, ast.unparse(node.func))
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Call)
        ]

    def location(self, node: ast.AST | Import) -> str:
        line = node.line if isinstance(node, Import) else getattr(node, "lineno", 1)
        return f"{self.path.relative_to(ROOT.parents[1])}:{line}"


def read(path: Path) -> Module:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Module(path, name, ast.parse(path.read_text(encoding="utf-8")))


@cache
def modules() -> dict[str, Module]:
    return {module.name: module for module in map(read, sorted(ROOT.rglob("*.py")))}


def all_modules() -> list[Module]:
    return list(modules().values())


def layer(package: str) -> int:
    return next(height for height, packages in enumerate(LAYERS) if package in packages)


def package_imports(module: Module) -> Iterator[tuple[Import, str]]:
    """The imports of seqloom packages, with the package."""
    for one in module.imports:
        if one.module.startswith("seqloom."):
            yield one, one.module.split(".")[1]


def imported_modules(module: Module) -> set[str]:
    """The seqloom modules that this module names in its imports, type-checking imports included."""
    found = set()
    for one in module.imports:
        if one.module.split(".")[0] == "seqloom":
            submodules = {f"{one.module}.{name}" for name in one.names} & set(modules())
            found |= submodules or ({one.module} & set(modules()))
    return found - {module.name}


@cache
def executed_modules(module: Module) -> set[str]:
    """The modules that importing this module executes directly: parent packages included."""
    found = set()
    for one in module.imports:
        if one.type_checking or one.module.split(".")[0] != "seqloom":
            continue
        for name in (one.module, *(f"{one.module}.{name}" for name in one.names)):
            parts = name.split(".")
            found |= {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
    return found & set(modules()) - {module.name}


def reachable(name: str) -> set[str]:
    """Everything that importing this module imports, itself included."""
    seen, waiting = set(), [name]
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen.add(current)
            waiting += executed_modules(modules()[current])
    return seen


def test_every_package_has_a_layer() -> None:
    packages = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"__pycache__"}
    assert packages <= set().union(*LAYERS) | DATA_ONLY
    for package in DATA_ONLY & packages:
        code = sorted((ROOT / package).rglob("*.py"))
        assert code == [ROOT / package / "__init__.py"], f"{package} contains data only"


def test_no_package_imports_from_a_layer_above() -> None:
    violations = [
        f"{module.location(one)} imports {package}"
        for module in all_modules()
        if module.name not in TOP_LEVEL and module.package not in DATA_ONLY
        for one, package in package_imports(module)
        if package not in DATA_ONLY and layer(package) > layer(module.package)
    ]
    assert not violations


def test_packages_of_one_layer_do_not_import_each_other() -> None:
    violations = [
        f"{module.location(one)} imports {package}"
        for module in all_modules()
        if module.name not in TOP_LEVEL and module.package not in DATA_ONLY
        for one, package in package_imports(module)
        if package not in DATA_ONLY
        and package != module.package
        and layer(package) == layer(module.package)
    ]
    assert not violations


def test_no_package_imports_the_public_api() -> None:
    """The version is the only exception: importing the API imports every package."""
    violations = [
        module.location(one)
        for module in all_modules()
        for one in module.imports
        if one.module in TOP_LEVEL and set(one.names) != {"__version__"}
    ]
    assert not violations


def test_there_are_no_import_cycles() -> None:
    """Type-checking imports count: a cycle between types is a cycle for a reader, too."""
    left = {module.name: imported_modules(module) - TOP_LEVEL for module in all_modules()}
    while free := {name for name, needs in left.items() if not needs & set(left)}:
        left = {name: needs for name, needs in left.items() if name not in free}
    assert not left, f"each of these modules imports another of them: {sorted(left)}"


def test_imports_are_absolute_and_name_what_they_use() -> None:
    """`from seqloom.x.y import z`: one form, from which this file reads the layers."""
    violations = [
        module.location(one)
        for module in all_modules()
        for one in module.imports
        if one.level > 0 or (one.module.split(".")[0] == "seqloom" and not one.names)
    ]
    assert not violations


def test_modules_do_not_import_through_the_face_of_their_own_package() -> None:
    violations = [
        module.location(one)
        for module in all_modules()
        for one, package in package_imports(module)
        if package == module.package
        and one.module == f"seqloom.{package}"
        and not {f"{one.module}.{name}" for name in one.names} <= set(modules())
    ]
    assert not violations


@pytest.mark.parametrize("start", sorted(WITHOUT_TORCH))
def test_light_packages_never_import_torch(start: str) -> None:
    prefix = f"seqloom.{start}"
    violations = {
        f"{module.location(one)} (reached from {name})"
        for name in modules()
        if name == prefix or name.startswith(f"{prefix}.")
        for module in map(modules().__getitem__, reachable(name))
        for one in module.imports
        if one.module.split(".")[0] == "torch" and not one.type_checking
    }
    assert not violations


def test_only_the_command_line_prints_or_exits() -> None:
    forbidden = {
        "print",
        "input",
        "warnings.warn",
        "Console",
        "sys.exit",
        "exit",
        "quit",
        "os._exit",
    }
    violations = [
        f"{module.location(call)} {name}"
        for module in all_modules()
        if module.package != "cli"
        for call, name in module.calls
        if name in forbidden or name.startswith(("sys.stdout.", "sys.stderr.", "typer."))
    ]
    assert not violations


def test_no_file_is_executed_as_code() -> None:
    violations = [
        f"{module.location(call)} {name}"
        for module in all_modules()
        for call, name in module.calls
        if name in {"eval", "exec", "compile", "torch.load", "torch.save"}
    ]
    violations += [
        f"{module.location(one)} {one.module}"
        for module in all_modules()
        for one in module.imports
        if one.module.split(".")[0] in {"pickle", "dill", "cloudpickle", "marshal", "shelve"}
        or (one.module == "torch" and {"load", "save"} & set(one.names))
    ]
    assert not violations


def test_every_module_has_a_docstring() -> None:
    assert not [one.location(one.tree) for one in all_modules() if not ast.get_docstring(one.tree)]


def test_public_classes_and_functions_of_the_lower_layers_have_docstrings() -> None:
    violations = [
        f"{module.location(node)} {node.name}"
        for module in all_modules()
        if module.package in DOCUMENTED
        for node in module.tree.body
        if isinstance(node, Function | ast.ClassDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
        and not any(ast.unparse(decorator) == "overload" for decorator in node.decorator_list)
    ]
    assert not violations


def test_class_names_are_unique() -> None:
    names = Counter(
        node.name
        for module in all_modules()
        for node in module.tree.body
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_folders_with_many_modules_have_sub_packages() -> None:
    """`cli/commands` and `lab/claims` hold one file per command and per claim."""
    catalogues = {ROOT / "cli" / "commands", ROOT / "lab" / "claims"}
    counts = Counter(
        module.path.parent for module in all_modules() if module.path.name != "__init__.py"
    )
    assert {
        str(folder.relative_to(ROOT)): count
        for folder, count in counts.items()
        if count > MAX_FILES and folder not in catalogues
    } == {}


def test_no_module_is_named_utils_or_helpers() -> None:
    vague = {"utils", "util", "helpers", "helper", "misc", "common", "stuff"}
    paths = [*ROOT.rglob("*"), *Path(__file__).parent.rglob("*")]
    assert not [path for path in paths if vague & set(path.stem.lower().split("_"))]
