"""Runs coroutines in tests."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")


def run_async(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in a thread of its own.

    The main thread may already have a running event loop: Playwright keeps one as long as the
    browser is open.
    """
    with ThreadPoolExecutor(max_workers=1) as executor:
        return executor.submit(asyncio.run, coroutine).result()


async def run_other_tasks() -> None:
    """Let the other tasks of the event loop run until each of them waits for something."""
    for _ in range(100):
        await asyncio.sleep(0)
