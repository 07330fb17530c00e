"""The project's own files, and what the house rules ask of their syntax trees."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
NOT_OURS = frozenset({".git", ".venv", ".jars", "build", "dist", "lake", "demo-lake", "__pycache__"})
SUFFIXES = frozenset(
    {".py", ".toml", ".md", ".txt", ".in", ".lock", ".cfg", ".properties", ".ipynb", ".yml", ".yaml", ""}
)


class Function(NamedTuple):
    """A function or method: where it is, and its parameters without self and cls."""

    place: str
    parameters: int


@cache
def tracked() -> list[Path]:
    """Files that are or will be in the repository; where there is no git, those that look like it."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        paths = [path for path in ROOT.rglob("*") if not NOT_OURS & set(path.relative_to(ROOT).parts)]
    return sorted(path for path in paths if path.is_file())


def texts() -> Iterator[tuple[str, str]]:
    """Name and content of every tracked text file."""
    for path in tracked():
        if path.suffix in SUFFIXES:
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8", errors="replace")


def python_files(*folders: str) -> list[Path]:
    """Our modules below the folders."""
    return [path for path in tracked() if path.suffix == ".py" and path.relative_to(ROOT).parts[0] in folders]


def module_name(path: Path) -> str:
    """`crawler.page.url` of crawler/page/url.py, `crawler.page` of its __init__.py."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Path]:
    """Our modules by name."""
    return {module_name(path): path for path in python_files("crawler", "jobs", "tests")}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(path: Path) -> set[str]:
    """Full names of the modules a module imports, at the top or late: of `from crawler import x`, `crawler.x`."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            inner = members & modules().keys()
            found |= inner or {node.module}
            found |= {node.module} if inner != members else set()
    return found


def functions(path: Path) -> Iterator[Function]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield Function(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", _parameters(node))


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    names = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len([name for name in names if name not in {"self", "cls"}])
