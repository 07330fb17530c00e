"""Serves the demo web: `python -m tests.web --port N --log F --hosts-file F --seeds-file F`.

It writes the hosts and seeds files, prints one line when it listens, and serves until SIGTERM or SIGINT, until a pipe
at its standard input is closed, or until its parent process is gone, so that nothing is left behind.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import signal
import socket
import stat
import sys
from pathlib import Path

from tests.web.demo import READY
from tests.web.request_log import RequestLog
from tests.web.server import Server, listen
from tests.web.sites import Scale
from tests.web.web import Web

PARENT_CHECK_S = 0.5


def main() -> None:
    """The command."""
    options = _options()
    scale = Scale(options.pages, options.hosts, options.words, not options.no_corners)
    try:
        sockets, port = listen(Web(options.seed, scale, 0).listening(), options.port)
    except OSError as error:
        print(f"cannot listen: {error}", flush=True)
        sys.exit(1)
    web = Web(options.seed, scale, port)
    web.warm_up()
    options.hosts_file.write_text(web.hosts_file())
    options.seeds_file.write_text("".join(f"{seed}\n" for seed in web.seeds()))
    gc.freeze()
    log = RequestLog(options.log)
    try:
        asyncio.run(_run(Server(web, log), sockets, f"{READY}: port {port}, {len(web.addresses)} hosts"))
    finally:
        log.close()


async def _run(server: Server, sockets: list[socket.socket], greeting: str) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    if stat.S_ISFIFO(os.fstat(0).st_mode):
        loop.add_reader(0, _read_stdin, ended)
    _watch_parent(os.getppid(), ended)
    serving = asyncio.create_task(server.serve(sockets, ended))
    await asyncio.sleep(0)
    print(greeting, flush=True)
    await serving


def _read_stdin(ended: asyncio.Event) -> None:
    if not os.read(0, 4096):
        ended.set()


def _watch_parent(parent: int, ended: asyncio.Event) -> None:
    """Looks every half second; a process whose parent has died gets another one."""
    if os.getppid() == parent:
        asyncio.get_running_loop().call_later(PARENT_CHECK_S, _watch_parent, parent, ended)
    else:
        ended.set()


def _options() -> argparse.Namespace:
    scale = Scale()
    parser = argparse.ArgumentParser(prog="python -m tests.web", description="Serves the demo web on loopback.")
    parser.add_argument("--port", type=int, default=0, help="one port for all addresses; 0 finds a free one")
    parser.add_argument("--log", type=Path, required=True, help="file to which each request is appended as a JSON line")
    parser.add_argument("--hosts-file", type=Path, required=True, help="file to write, in hosts(5) format")
    parser.add_argument("--seeds-file", type=Path, required=True, help="file to write, one URL a line")
    parser.add_argument("--seed", type=int, default=1, help="decides about every page")
    parser.add_argument("--pages", type=int, default=scale.pages, help="ordinary pages in all")
    parser.add_argument("--hosts", type=int, default=scale.hosts, help="ordinary hosts")
    parser.add_argument("--words", type=int, default=scale.words, help="mean words of a page")
    parser.add_argument("--no-corners", action="store_true", help="ordinary pages only")
    return parser.parse_args()


if __name__ == "__main__":
    main()
