"""The limit of each test: one that hangs fails with the stacks of its tasks and threads, and the others go on.

A part of pytest-timeout, which counts the time. What it does at its end would raise in the middle of trio's scheduler:
no stack of a task is seen then, and all tests after it in the same process fail, as trio still believes that it runs.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Generator, Iterator
from types import FrameType
from typing import Final

import pytest
import trio
from pytest_timeout import Settings, is_debugging
from trio.lowlevel import Task

_HUNG: Final = pytest.StashKey[str]()
# A test that is cancelled has so long to end. Then its process ends; pytest-xdist starts another one for what is left.
_END_S: Final = 5.0


@pytest.hookimpl
def pytest_timeout_set_timer(item: pytest.Item, settings: Settings) -> bool:
    """Begin to count."""

    def over(signum: int, frame: FrameType | None) -> None:
        if is_debugging():
            return
        if _HUNG in item.stash:
            _show(item, f"{item.nodeid} does not end when it is cancelled\n{_stacks(frame)}")
            os._exit(1)
        item.stash[_HUNG] = f"it took more than {settings.timeout:g} s\n{_stacks(frame)}"
        if not trio.lowlevel.in_trio_run():
            raise TimeoutError
        signal.setitimer(signal.ITIMER_REAL, _END_S)
        trio.lowlevel.current_trio_token().run_sync_soon(_cancel)

    signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, settings.timeout)
    return True


@pytest.hookimpl
def pytest_timeout_cancel_timer(item: pytest.Item) -> bool:
    """Count no longer."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    return True


def _show(item: pytest.Item, text: str) -> None:
    capture = item.config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.suspend_global_capture(in_=True)
    print(text, file=sys.stderr, flush=True)


def _fail(item: pytest.Item) -> Generator[None, object, object]:
    try:
        return (yield)
    finally:
        stacks = item.stash.get(_HUNG, None)
        if stacks is not None:
            del item.stash[_HUNG]
            pytest.fail(stacks, pytrace=False)


pytest_runtest_setup = pytest.hookimpl(wrapper=True)(_fail)
pytest_runtest_call = pytest.hookimpl(wrapper=True)(_fail)
pytest_runtest_teardown = pytest.hookimpl(wrapper=True)(_fail)


def _tasks() -> Iterator[Task]:
    """All tasks, each before those that it has started."""
    root = trio.lowlevel.current_root_task()
    found = [] if root is None else [root]
    while found:
        task = found.pop()
        yield task
        found += (child for nursery in task.child_nurseries for child in nursery.child_tasks)


def _cancel() -> None:
    for task in _tasks():
        # The tasks of trio itself end when the others have ended.
        if not task.name.startswith("trio.") and task is not trio.lowlevel.current_root_task():
            for nursery in task.child_nurseries:
                nursery.cancel_scope.cancel()


def _stacks(frame: FrameType | None) -> str:
    """Where everything is; `frame` is where the main thread was interrupted."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    stacks = [("main thread", traceback.format_stack(frame))]
    if trio.lowlevel.in_trio_run():
        stacks += [
            (f"task {task.name}", traceback.StackSummary.extract(task.iter_await_frames()).format())
            for task in _tasks()
        ]
    stacks += [
        (f"thread {names.get(ident)}", traceback.format_stack(at))
        for ident, at in sys._current_frames().items()
        if ident != threading.main_thread().ident
    ]
    return "\n".join(f"--- {name}\n{''.join(lines)}" for name, lines in stacks)
