"""The search for reference cycles is paused, and then continues as before."""

import gc

import pytest

from seqloom.core.garbage_collection import without_garbage_collection


def fail_without_garbage_collection() -> None:
    with without_garbage_collection():
        raise ValueError("enabled" if gc.isenabled() else "paused")


@pytest.mark.parametrize("was_enabled", [True, False])
def test_garbage_collection_is_paused_and_restored_also_after_an_error(was_enabled: bool) -> None:
    before = gc.isenabled()
    try:
        gc.enable() if was_enabled else gc.disable()
        with pytest.raises(ValueError, match="paused"):
            fail_without_garbage_collection()
        assert gc.isenabled() == was_enabled
    finally:
        gc.enable() if before else gc.disable()


def test_overlapping_pauses_end_with_the_last_one() -> None:
    """Two threads overlap: the second enters before the first leaves, and leaves after it."""
    before = gc.isenabled()
    try:
        gc.enable()
        first, second = without_garbage_collection(), without_garbage_collection()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert not gc.isenabled(), "the second pause is still active"
        second.__exit__(None, None, None)
        assert gc.isenabled(), "no pause is active any more"
    finally:
        gc.enable() if before else gc.disable()
