"""Every setting in docs/switches.md is valid and changes the demo recipe."""

import re
from pathlib import Path

import pytest
import torch

from seqloom.config.loading.loader import load_bundled_recipe
from seqloom.core.signature import NoSource, Signature, Tokens
from seqloom.models.build import build_model

PAGE = Path(__file__).parents[2] / "docs" / "switches.md"
ROWS = re.findall(r"^\| ([^|]+) \| (`.+`) \|$", PAGE.read_text(encoding="utf-8"), flags=re.M)


def settings_of(row: str) -> list[str]:
    return re.findall(r"`([^`]+)`", row)


def test_the_page_has_settings() -> None:
    assert len(ROWS) > 45


@pytest.mark.parametrize(("choice", "row"), ROWS, ids=[choice for choice, _ in ROWS])
def test_a_setting_changes_the_recipe_and_the_model_can_be_built(choice: str, row: str) -> None:
    default = load_bundled_recipe("demo").config
    changed = load_bundled_recipe("demo", settings_of(row)).config
    assert changed != default or choice == "scaled by √d"  # the setting of the recipe
    is_decoder_only = changed.model.encoder.kind == "none"
    signature = Signature(NoSource() if is_decoder_only else Tokens(90), Tokens(90), shared=True)
    with torch.device("meta"):  # without initialising millions of weights
        build_model(changed.model, signature)
