"""The progress display of a training."""

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqloom.cli.training_display import LiveDisplay, ReadingMeter, fit_fields, step_fields
from seqloom.training.event_log import Event

STEP = {"loss": 1.5, "perplexity": 4.48, "tokens_per_second": 1234.0, "seconds_left": 61.0}


@pytest.mark.parametrize("width", [20, 40, 80, 120])
def test_step_counter_fits_into_every_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    display = LiveDisplay()
    display.total_steps = 10_000
    display.show(Event("step", 9_999, STEP))
    with display.progress.console.capture() as capture:
        display.progress.console.print(display.progress.get_renderable())
    (line,) = capture.get().splitlines()
    assert "step 9,999/10,000" in line
    assert len(line) <= width
    assert ("1:01 left" in line) == (width >= 80)


@given(st.lists(st.text("ab", min_size=1, max_size=9)), st.integers(0, 60))
def test_as_many_fields_as_fit_are_shown(fields: list[str], width: int) -> None:
    line = fit_fields(fields, width)
    shown = line.split()
    assert fields[: len(shown)] == shown
    assert len(line) <= width
    rest = fields[len(shown) :]
    assert not rest or len("  ".join([*shown, rest[0]])) > width


def test_perplexity_is_shown_only_if_the_event_has_it() -> None:
    assert step_fields(STEP)[1] == "ppl 4.48"
    smoothed = {name: value for name, value in STEP.items() if name != "perplexity"}
    assert step_fields(smoothed) == ["loss 1.500", "1,234 tokens/s", "1:01 left"]


def test_reading_shows_rate_and_remaining_time(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 10.0])
    monkeypatch.setattr("seqloom.cli.training_display.time.monotonic", lambda: next(times))
    meter = ReadingMeter()
    data = {"split": "train", "total": 4_000, "waits": False}
    assert meter.describe({**data, "examples": 1_000}) == "1,000/4,000 examples"
    shown = meter.describe({**data, "examples": 3_000})
    assert shown == "3,000/4,000 examples  200 examples/s  0:05 left"
    waiting = meter.describe({**data, "examples": 0, "waits": True})
    assert waiting == "waiting for another process that prepares the same data"
