"""The pictures of a round's report, as SVG text."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from jobs.words import visible

Facts = dict[str, Any]
BLUE, GREEN, RED, GREY = "#2a5d9f", "#3d8b5f", "#b4483c", "#9aa3ad"
STYLE: Any = {
    "svg.fonttype": "path",
    "svg.hashsalt": "orbweaver",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.0,
    "text.parse_math": False,  # a type that a server states may hold any sign of TeX
}
MOST_BARS, FEWEST_BARS = 12, 5
MOST_NAME = 40  # characters; a name as long as the picture is wide would leave no room for bars


def plots(facts: Facts) -> dict[str, str]:
    """SVG by title; a picture that would be empty is left out."""
    return {title: _svg(draw, facts) for title, (has_data, draw) in PICTURES.items() if has_data(facts)}


def _svg(draw: Callable[[Axes, Facts], None], facts: Facts) -> str:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 3.0), layout="constrained")
        draw(figure.subplots(), facts)
        target = io.StringIO()
        figure.savefig(target, format="svg", metadata={"Date": None})
    return target.getvalue()[target.getvalue().index("<svg") :]


def _bars(axes: Axes, names: Sequence[str], values: Sequence[float], colours: str | Sequence[str] = BLUE) -> None:
    """Horizontal bars, the first on top, with their values written at the end."""
    places = np.arange(len(names))
    bars = axes.barh(places, values, color=colours, height=0.7)
    axes.bar_label(bars, [f"{value:,.0f}" for value in values], padding=3, fontsize=8)
    axes.set_yticks(places, [visible(name)[:MOST_NAME] for name in names])
    axes.set_ylim(max(len(names), FEWEST_BARS) - 0.5, -0.5)
    axes.margins(x=0.15)
    _whole(axes.xaxis)


def _whole(axis: Axis) -> None:
    """Counts have no fractions."""
    axis.set_major_locator(MaxNLocator(integer=True))
    axis.set_major_formatter("{x:,.0f}")


def draw_funnel(axes: Axes, facts: Facts) -> None:
    """From the plan to new content: each bar is part of the one above."""
    uris, contents = facts["uris"], facts["contents"]
    steps = {
        "planned": uris["planned"],
        "processed": uris["processed"],
        "requested": facts["rates"]["requests"],
        "successes": uris["successes"],
        "with content": sum(one["uris"] for one in contents.values()),
        "novel": contents["novel"]["uris"],
    }
    _bars(axes, list(steps), list(steps.values()))
    axes.set_xlabel("URIs")


def draw_statuses(axes: Axes, facts: Facts) -> None:
    """HTTP statuses; none stands for requests without an answer."""
    groups = facts["by_status"][:MOST_BARS]
    colours = [_status_colour(group["value"]) for group in groups]
    _bars(axes, [str(group["value"] or "none") for group in groups], [group["uris"] for group in groups], colours)
    axes.set_xlabel("URIs")


def _status_colour(status: int | None) -> str:
    return {2: GREEN, 3: BLUE}.get((status or 0) // 100, RED if status else GREY)


def draw_mime_types(axes: Axes, facts: Facts) -> None:
    """MIME types by the bytes of the body."""
    groups = facts["by_mime"][:MOST_BARS]
    _bars(axes, [group["value"] for group in groups], [group["uris"] for group in groups])
    axes.set_xlabel("URIs")


def draw_hosts(axes: Axes, facts: Facts) -> None:
    """How many hosts gave how many pages."""
    pairs = [(one["values"], one["counts"]) for one in facts["hosts"]["pages_of_each"]]
    pages, hosts = (np.array(column, np.float64) for column in zip(*pairs, strict=True))
    top = max(float(pages.max()), 1.0)
    edges = np.arange(-0.5, top + 1) if top <= 30 else np.concatenate([[-0.5], np.geomspace(0.5, top + 1, 25)])
    axes.hist(pages, bins=edges.tolist(), weights=hosts, color=BLUE, rwidth=0.9)
    if top > 30:
        axes.set_xscale("symlog", linthresh=1)
    else:
        _whole(axes.xaxis)
    _whole(axes.yaxis)
    axes.set(xlabel="pages of a host in this round", ylabel="hosts")


def draw_time(axes: Axes, facts: Facts) -> None:
    """Requests a second over the fetch stage."""
    over = facts["pages_over_time"]
    step = over["step_s"]
    at = np.arange(len(over["requests"])) * step
    axes.fill_between(at, np.array(over["requests"]) / step, step="post", color=BLUE, alpha=0.85)
    axes.set(xlabel=f"seconds since {over['began_at']}", ylabel="requests a second", ylim=(0, None))


def draw_gaps(axes: Axes, facts: Facts) -> None:
    """Gaps between two requests to a host, next to the promise."""
    gaps = facts["gaps"]
    edges = np.array(gaps["edges"])
    axes.bar(edges[:-1], gaps["ratios"], width=np.diff(edges), align="edge", color=BLUE)
    if gaps["is_ratio"]:
        axes.axvline(1.0, color=RED, linewidth=1.5, label=f"promise; {gaps['below_promise']:,} below")
        axes.legend(frameon=False)
    axes.set_xlabel("gap / promised delay (4: and more)" if gaps["is_ratio"] else "gap, seconds (4: and more)")
    axes.set_ylabel("pairs of requests")
    _whole(axes.yaxis)


def draw_due(axes: Axes, facts: Facts) -> None:
    """URLs by the day they come due."""
    due = facts["due"]
    values = [due["now"], *due["days"]]
    axes.bar(range(len(values)), values, color=[RED, *[BLUE] * len(due["days"])], width=0.85)
    axes.set_xticks(range(0, len(values), 7), ["now", *(f"{week} w" for week in range(1, len(values) // 7 + 1))])
    later = f"; {due['later']:,} later" if due["later"] else ""
    _whole(axes.yaxis)
    axes.set(xlabel=f"due after the round's time{later}", ylabel="URLs")


PICTURES: dict[str, tuple[Callable[[Facts], bool], Callable[[Axes, Facts], None]]] = {
    "Fetch funnel": (lambda facts: facts["uris"]["planned"] > 0, draw_funnel),
    "Status codes": (lambda facts: bool(facts["by_status"]), draw_statuses),
    "MIME types": (lambda facts: bool(facts["by_mime"]), draw_mime_types),
    "Pages of a host": (lambda facts: bool(facts["hosts"]["pages_of_each"]), draw_hosts),
    "Requests over time": (lambda facts: sum(facts["pages_over_time"]["requests"]) > 0, draw_time),
    "Gaps between requests to a host": (lambda facts: facts["gaps"]["pairs"] > 0, draw_gaps),
    "Due calendar": (lambda facts: facts["due"]["now"] + sum(facts["due"]["days"]) > 0, draw_due),
}
