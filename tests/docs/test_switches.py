"""Every line of docs/switches.md can be applied, and changes something."""

import re
from pathlib import Path

import pytest

from seqloom.config.loading.loader import load_bundled_recipe
from seqloom.core.signature import NoSource, Signature, Tokens
from seqloom.models.build import build_model

PAGE = Path(__file__).parents[2] / "docs" / "switches.md"
ROWS = re.findall(r"^\| ([^|]+) \| (`.+`) \|$", PAGE.read_text(encoding="utf-8"), flags=re.M)


def settings_of(row: str) -> list[str]:
    return re.findall(r"`([^`]+)`", row)


def test_the_page_has_lines() -> None:
    assert len(ROWS) > 45


@pytest.mark.parametrize(("choice", "row"), ROWS, ids=[choice for choice, _ in ROWS])
def test_a_choice_can_be_made_and_built(choice: str, row: str) -> None:
    plain, changed = (
        load_bundled_recipe("demo").config,
        load_bundled_recipe("demo", settings_of(row)).config,
    )
    assert changed != plain or choice == "scaled by √d"  # which the recipe has
    alone = changed.model.encoder.kind == "none"
    signature = Signature(NoSource() if alone else Tokens(90), Tokens(90), shared=True)
    build_model(changed.model, signature)
