"""`python host.py NAME URL`: a host whose handlers do as they are told, and say in lines of JSON what happens.

A handler waits until a line on standard input has its key. When standard input ends this process does too, whatever
runs, so that nothing outlives the tests.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from collections import defaultdict

import trio
from pydantic import BaseModel

from probe.toolhost import Host, HostRefusedError, ToolContext, run, tool

_PATIENCE_S = 60

gates: dict[str, threading.Event] = defaultdict(threading.Event)


class Done(BaseModel):
    key: str


def say(what: str, key: str) -> None:
    # `time.monotonic` is one clock for all processes of this machine.
    sys.stdout.write(json.dumps({"what": what, "key": key, "at": time.monotonic()}) + "\n")
    sys.stdout.flush()


async def released(key: str) -> None:
    await trio.to_thread.run_sync(gates[key].wait, abandon_on_cancel=True)


def report(context: ToolContext | None, reports: int) -> None:
    for step in range(1, reports + 1):
        (context or ToolContext()).report_progress(step, 10, f"step {step}")


@tool
async def echo(word: str) -> Done:
    return Done(key=word)


@tool
async def work(key: str, reports: int = 0, stubborn: bool = False, context: ToolContext | None = None) -> Done:
    report(context, reports)
    say("waits", key)
    try:
        await released(key)
    except trio.Cancelled:
        say("cancelled", key)
        if stubborn:
            with trio.CancelScope(shield=True), trio.move_on_after(_PATIENCE_S):
                await released(key)
        say("stopped", key)
        raise
    return Done(key=key)


@tool
def work_in_thread(key: str, reports: int = 0, stubborn: bool = False, context: ToolContext | None = None) -> Done:
    context = context or ToolContext()
    report(context, reports)
    say("waits", key)
    while not gates[key].wait(0.002):
        if context.cancelled:
            say("cancelled", key)
            if stubborn:
                gates[key].wait(_PATIENCE_S)
            say("stopped", key)
            context.check_cancelled()
    return Done(key=key)


def obey() -> None:
    for line in sys.stdin:
        gates[line.strip()].set()
    os._exit(3)


def main(name: str, url: str) -> int:
    logging.basicConfig(format="%(message)s", level=logging.WARNING, stream=sys.stdout)
    logging.getLogger("probe.toolhost").setLevel(logging.INFO)
    threading.Thread(target=obey, daemon=True).start()
    try:
        # Without chance in it, a host that comes back does so soon.
        run(Host(name, [echo, work, work_in_thread], jitter=lambda: 0.0), url, os.environ["MCP_PROBE_TOOLHOST_SECRET"])
    except HostRefusedError as error:
        print(f"refused: {error}", flush=True)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
