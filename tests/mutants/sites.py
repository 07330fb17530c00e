"""Where a token can be changed, and what the code is then.

Cosmic Ray knows how Python is mutated; which of its operators are used, and on what, is chosen here. A change must have
a meaning: annotations are never evaluated, and whether a class is frozen matters to the type checker, so a mutant that
differs in them alone is none; and a number other than the whole ones 0, 1 and 2 is a measure (60.0 seconds, 4,096
bytes, 0.0 for a time long ago), which would serve as well if it were one more. Two changes Cosmic Ray does
not know are added: `min` and `max`, `any` and `all`.

A site is known by the text of its line before and after, not by its number, so what is said of it in `accepted.py`
stays true when lines above it come and go.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.plugins import get_operator
from parso.python.tree import Name

COMPARISONS = "Eq_NotEq NotEq_Eq Lt_LtE Lt_Gt LtE_Lt LtE_GtE Gt_GtE Gt_Lt GtE_Gt GtE_LtE Is_IsNot IsNot_Is"
ARITHMETIC = (
    "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Mul Mod_Mul BitOr_BitAnd BitAnd_BitOr LShift_RShift RShift_LShift"
)
NAMES = (
    *(f"ReplaceComparisonOperator_{pair}" for pair in COMPARISONS.split()),
    *(f"ReplaceBinaryOperator_{pair}" for pair in ARITHMETIC.split()),
    *("ReplaceUnaryOperator_Delete_Not", "ReplaceUnaryOperator_Delete_USub", "AddNot"),
    *("ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ExceptionReplacer", "ZeroIterationForLoop"),
    "NumberReplacer",
)
NUMBERS_OF_LOGIC = frozenset({"0", "1", "2"})
OTHER_NAME = {"min": "max", "max": "min", "any": "all", "all": "any"}


class OtherName(Operator):  # type: ignore[misc]  # Cosmic Ray has no types
    """Calls the built-in function that chooses the other end."""

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        follows_a_dot = (leaf := node.get_previous_leaf()) is not None and leaf.value == "."
        if isinstance(node, Name) and node.value in OTHER_NAME and not follows_a_dot:
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.value = OTHER_NAME[node.value]
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("max(a, b)", "min(a, b)"),)


OPERATORS: tuple[Any, ...] = (*(get_operator(f"core/{name}")() for name in NAMES), OtherName())


@dataclass(frozen=True)
class Site:
    """A place in a module where an operator applies, for the n-th time."""

    path: Path
    operator: Any
    occurrence: int
    line: int

    def mutant(self) -> Mutant | None:
        """The change; None when it has no meaning, or is no Python (`not` before an assignment)."""
        source = self.path.read_text(encoding="utf-8")
        mutated: str | None = mutate_code(source, self.operator, self.occurrence)
        if mutated is None or _meaning(mutated) in (None, _meaning(source)):
            return None
        changed = [line for line in difflib.ndiff(source.splitlines(), mutated.splitlines()) if line[0] in "-+"]
        before, after = (" / ".join(" ".join(line[2:].split()) for line in changed if line[0] == sign) for sign in "-+")
        return Mutant(self.line, before, after, mutated)


@dataclass(frozen=True)
class Mutant:
    """A module with one change. `before` and `after`: the changed line, with single spaces."""

    line: int
    before: str
    after: str
    source: str


def sites(path: Path) -> list[Site]:
    """All places of a module, in order of lines."""
    found = []
    nodes = list(ast_nodes(get_ast(path.read_text(encoding="utf-8"))))
    for operator in OPERATORS:
        count = 0
        for node in nodes:
            for (line, _), _ in operator.mutation_positions(node):
                is_measure = node.type == "number" and node.value not in NUMBERS_OF_LOGIC
                found += [] if is_measure else [Site(path, operator, count, line)]
                count += 1
    return sorted(found, key=lambda site: site.line)


class _Bare(ast.NodeTransformer):
    """Takes annotations away, and how classes are decorated."""

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.generic_visit(node)
        node.decorator_list = []
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        node.annotation = ast.Constant(None)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.returns = None
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.returns = None
        return node


@cache
def _meaning(source: str) -> str | None:
    try:
        return ast.dump(_Bare().visit(ast.parse(source)))
    except SyntaxError:
        return None
