"""The table, the links and the map of packages of the README are complete."""

import re

from support.cli_runner import run_cli
from tools.site.links import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_table_of_commands_lists_all_commands() -> None:
    in_table = re.findall(r"^\| `seqloom ([\w-]+)", README, flags=re.M)
    in_help = re.findall(r"^[│ ]+(\w[\w-]*) {2,}", run_cli("--help").stdout, flags=re.M)
    assert set(in_table) == set(in_help)


def test_links_into_the_repository_exist() -> None:
    for page in (ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert target.startswith("http") or (page.parent / target).exists(), target


def test_the_map_lists_all_packages() -> None:
    shown = set(re.findall(r"^[├└]── (\w+)", README, flags=re.M))
    folders = {path.name for path in (ROOT / "src/seqloom").iterdir() if path.is_dir()}
    assert shown == folders - {"__pycache__", "bundled"}
