"""Run benchmarks by name, or all: `python -m tests.benchmarks [NAME…] [--json]`. Exit code 1 when a bound is broken."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from tests.benchmarks.results import Result

BENCHMARKS = {
    "page_path": "fetch_stage:page_path",
    "fetch_stage": "fetch_stage:fetch_stage",
    "memory": "memory:memory",
    "fixed": "fixed:fixed",
    "growth": "growth:growth",
}


def main() -> int:
    arguments = _arguments()
    results = []
    for name in arguments.names or BENCHMARKS:
        with tempfile.TemporaryDirectory(prefix=f"orbweaver-{name}-", dir=arguments.folder) as folder:
            result = _load(name)(Path(folder))
        results.append(result)
        if not arguments.json:
            print(result.table(), flush=True)
    if arguments.json:
        print(json.dumps([asdict(result) | {"is_kept": result.is_kept} for result in results], indent=2))
    return 0 if all(result.is_kept for result in results) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"one of {', '.join(BENCHMARKS)}; all when none is given"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--folder", help="where lakes and logs are made, and removed; the system's temporary folder")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    return arguments


def _load(name: str) -> Callable[[Path], Result]:
    module, _, function = BENCHMARKS[name].partition(":")
    benchmark: Callable[[Path], Result] = getattr(import_module(f"tests.benchmarks.{module}"), function)
    return benchmark


if __name__ == "__main__":
    sys.exit(main())
