"""`python -m jobs.demo`: crawl the demo web, a little internet on loopback addresses that the tests use too.

It lives in the checkout's `tests/web`, runs in a process of its own and ends with the crawl.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

from jobs.cli import invoke
from jobs.exits import BAD_USE
from jobs.options import DEFAULT_LAKE

DEFAULT_DEMO_LAKE = f"{DEFAULT_LAKE}-demo"


def main(arguments: list[str] | None = None) -> int:
    """Crawl the demo web for some rounds into a fresh lake; the exit code of `orbweaver crawl` comes back."""
    options = _options(arguments)
    folder = Path(options.lake)
    if not options.keep and not remove_lake(folder):
        print(f"orbweaver: {folder} is a folder, but no lake of a demo crawl; name another one", file=sys.stderr)
        return BAD_USE
    from tests.web.demo import DemoWeb

    with DemoWeb() as web:
        print(f"The demo web: {len(web.web.addresses)} hosts on loopback addresses, port {web.port}", flush=True)
        settings = demo_settings(web.hosts_file, web.allow_addresses, web.port)
        given = [word for setting in [*settings, *options.set] for word in ("--set", setting)]
        common = ["--lake", options.lake, "--config", "laptop", *given]
        failed = invoke(["inject", str(web.seeds_file), *common])  # makes the lake, in an empty folder only
        if failed:
            return failed
        (folder / MARK).write_text("made by python -m jobs.demo, which removes it\n")
        return invoke(["crawl", "--rounds", str(options.rounds), *common])


MARK = "demo"
PATIENCE = (
    "round.time_limit_s=40.0",
    "fetch.robots_retry_s=5.0",
    "fetch.head_timeout_s=5.0",
    "fetch.idle_timeout_s=5.0",
)
"""The demo web has hosts that never answer; a crawl of real servers waits longer for them."""


def remove_lake(folder: Path) -> bool:
    """Remove the lake of an earlier demo; False, and nothing removed, for a folder that holds anything else."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return True
    if not (folder / MARK).is_file():
        return False
    shutil.rmtree(folder)
    return True


def demo_settings(hosts_file: Path, addresses: tuple[str, ...], port: int) -> list[str]:
    """What a crawl needs so that it finds the demo web, and can touch nothing else."""
    return [
        f"fetch.host_map={json.dumps(str(hosts_file))}",
        f"fetch.allow_addresses={json.dumps(list(addresses))}",
        "fetch.only_allowed=true",
        f"filters.ports=[{port}]",
        'crawl.name="ORB-DEMO"',
        *PATIENCE,
    ]


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m jobs.demo", description="Crawl the demo web.")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds at most")
    parser.add_argument("--lake", default=DEFAULT_DEMO_LAKE, metavar="FOLDER", help="made anew")
    parser.add_argument("--keep", action="store_true", help="go on with the lake that is there")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting; repeatable")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
