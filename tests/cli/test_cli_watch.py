"""What is seen of a training while it runs."""

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.cli.work.watch import LiveView, fitting, step_news
from seqloom.training.event_log import Event

NEWS = {"loss": 1.5, "perplexity": 4.48, "tokens_per_second": 1234.0, "seconds_left": 61.0}


@pytest.mark.parametrize("width", [20, 40, 80, 120])
def test_the_step_is_whole_in_every_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    view = LiveView()
    view.steps = 10_000
    view.show(Event("step", 9_999, NEWS))
    with view.progress.console.capture() as capture:
        view.progress.console.print(view.progress.get_renderable())
    (line,) = capture.get().splitlines()
    assert "step 9,999/10,000" in line
    assert len(line) <= width
    assert ("1:01 left" in line) == (width >= 80)


@given(st.lists(st.text("ab", min_size=1, max_size=9)), st.integers(0, 60))
def test_parts_are_shown_from_the_first_as_far_as_they_fit(parts: list[str], room: int) -> None:
    line = fitting(parts, room)
    shown = line.split()
    assert parts[: len(shown)] == shown
    assert len(line) <= room
    rest = parts[len(shown) :]
    assert not rest or len("  ".join([*shown, rest[0]])) > room


def test_a_smoothed_loss_has_no_perplexity() -> None:
    assert step_news(NEWS)[1] == "ppl 4.48"
    smoothed = {name: value for name, value in NEWS.items() if name != "perplexity"}
    assert step_news(smoothed) == ["loss 1.500", "1,234 tokens/s", "1:01 left"]
