"""What a benchmark says: figures with their units and, where there is one, the bound they must keep."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Figure:
    """One number. `at_least` and `at_most` are promises; a figure without either only informs."""

    name: str
    value: float
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None

    @property
    def is_kept(self) -> bool:
        """True when no bound is broken."""
        return (self.at_least is None or self.value >= self.at_least) and (
            self.at_most is None or self.value <= self.at_most
        )

    @property
    def bound(self) -> str:
        if self.at_least is not None:
            return f"at least {self.at_least:g}"
        return "" if self.at_most is None else f"at most {self.at_most:g}"


@dataclass(frozen=True)
class Result:
    """The figures of one benchmark."""

    name: str
    figures: list[Figure]
    notes: list[str] = field(default_factory=list)

    @property
    def is_kept(self) -> bool:
        return all(figure.is_kept for figure in self.figures)

    def table(self) -> str:
        """For people: a line a figure."""
        width = max(len(figure.name) for figure in self.figures)
        lines = [self.name]
        for figure in self.figures:
            verdict = "" if not figure.bound else f"{figure.bound}: {'kept' if figure.is_kept else 'BROKEN'}"
            lines.append(f"  {figure.name:<{width}}  {_number(figure.value):>10} {figure.unit:<8} {verdict}".rstrip())
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])


def _number(value: float) -> str:
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:,.1f}"
