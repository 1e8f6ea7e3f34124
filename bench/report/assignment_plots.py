"""Figures of the suites on cost matrices: Date and Nagi, Roverso et al., Vasconcelos and Rosenhahn.

A figure is None if its results are missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from bench.report.axes import COLOURS, Line, draw_lines, panels
from bench.report.tables import Graph, Time, by_size, mean_time
from bench.suites import date2016, roverso2010, vasconcelos2009

Groups = dict[int, list[Graph]]


def of(data: dict[str, Any]) -> dict[str, Any]:
    """The figures of a suite by name; none of a suite that has no figures."""
    if data["suite"] == "date2016":
        groups = date2016.grouped(data)
        return {"figure2": small_instances(groups), "figure3": contributions(groups)}
    if data["suite"] == "roverso2010":
        sizes = by_size(data)
        return {
            "figure1": difference_evaluation(sizes),
            "figure2": shares_of_switching(sizes),
            "figure3": forms(sizes),
        }
    if data["suite"] == "vasconcelos2009":
        return {"figure6": auctions(data)}
    return {}


# -- Date, Nagi ----------------------------------------------------------------------------------


def small_instances(groups: date2016.Groups) -> Any:
    """Figure 2: seconds on costs from [0, n], up to n = 5,000."""
    sizes = {n: graphs for (factor, n), graphs in groups.items() if factor == 1.0 and n <= 5000}
    columns = (*date2016.PUBLISHED, date2016.OURS, *date2016.RIVALS)
    return _by_size(sizes, columns, mean_time, "n", "seconds")


def contributions(groups: date2016.Groups) -> Any:
    """Figure 3: what each step contributes to the time of the largest problems, by range."""
    steps = ("matrix compression", "forward pass", "dual update")
    bars = {}
    for factor, name in ((1.0, "[0, n]"), (10.0, "[0, 10n]")):
        n = max((n for of, n in groups if of == factor), default=0)
        for contender in date2016.ON_GPU:
            graphs = groups.get((factor, n), [])
            total = mean_time(graphs, contender)
            parts = [date2016.part_of(graphs, contender, step) for step in steps]
            if total is not None:
                seconds = [0.0 if part is None else part.seconds for part in parts]
                seconds.append(total.seconds - sum(seconds))
                bars[f"{contender} {name}\nn = {n:,}"] = np.divide(seconds, total.seconds)
    if not bars:
        return None
    figure, axes = panels(1)
    left = np.zeros(len(bars))
    for step, colour, shares in zip((*steps, "other"), COLOURS, np.transpose([*bars.values()])):
        axes[0].barh([*bars], 100 * shares, left=100 * left, color=colour, label=step)
        left += shares
    axes[0].set(xlabel="percent of the time", xlim=(0, 100))
    axes[0].invert_yaxis()
    axes[0].legend(loc="upper center", bbox_to_anchor=(0.5, 1.12), ncols=4, frameon=False)
    return figure


# -- Roverso et al. ------------------------------------------------------------------------------


def difference_evaluation(sizes: Groups) -> Any:
    """Figure 1: seconds of difference evaluation on the CPU, by the paper's two forms, by ours."""

    def seconds(graphs: Sequence[Graph], name: str) -> Time | None:
        return roverso2010.part_of(graphs, name, roverso2010.EVALUATION)

    paper = (roverso2010.CPU, roverso2010.MIXED_GLOBAL, roverso2010.MIXED_SHARED)
    columns = (*paper, roverso2010.GPU)
    return _by_size(sizes, columns, seconds, "n", "seconds of difference evaluation")


def shares_of_switching(sizes: Groups) -> Any:
    """Figure 2: how much of the mixed form is switching, and how much difference evaluation."""
    shares = {
        n: share
        for n, graphs in sizes.items()
        if (share := roverso2010.share_of_switching(graphs, roverso2010.MIXED_SHARED)) is not None
    }
    if not shares:
        return None
    figure, axes = panels(1)
    switching = np.array([*shares.values()])
    place = [f"{n:,}" for n in shares]
    axes[0].bar(place, 100 - switching, color=COLOURS[1], label=roverso2010.EVALUATION)
    axes[0].bar(place, switching, bottom=100 - switching, color="0.8", label="switching")
    published = 100 - roverso2010.SWITCHING_AT_MOST
    axes[0].axhline(published, color="black", ls="--", lw=0.8, label="published: down to here")
    axes[0].set(xlabel="n", ylabel="percent of both")
    axes[0].legend(loc="upper center", bbox_to_anchor=(0.5, 1.12), ncols=3, frameon=False)
    return figure


def forms(sizes: Groups) -> Any:
    """Figure 3: seconds of the forms of Deep Greedy Switching, and of the GPU's auction."""
    shown = (roverso2010.CPU, roverso2010.MIXED_SHARED, roverso2010.GPU_SHARED, roverso2010.GPU)
    columns = (*shown, roverso2010.AUCTION)
    return _by_size(sizes, columns, mean_time, "n", "seconds")


# -- Vasconcelos, Rosenhahn ----------------------------------------------------------------------


def auctions(data: dict[str, Any]) -> Any:
    """Figure 6: mean milliseconds over the data sets of a size; a panel for each box."""
    families = {
        title: lines
        for family, title in vasconcelos2009.TITLES.items()
        if (lines := _mean_lines(vasconcelos2009.of_family(data, family)))
    }
    if not families:
        return None
    figure, axes = panels(len(families))
    for axis, (title, lines) in zip(axes, families.items()):
        axis.set(xlabel="points", ylabel="milliseconds", xscale="log", yscale="log", title=title)
        draw_lines(axis, lines, marker=".", linewidth=1.6)
        axis.get_legend().remove()
    axes[-1].legend(
        frameon=False, labelcolor="linecolor", loc="center left", bbox_to_anchor=(1.0, 0.5)
    )
    return figure


def _mean_lines(sizes: vasconcelos2009.Sizes) -> dict[str, Line]:
    """The paper's contenders and ours, over the sizes that they ended on."""
    times = {
        name: {n: vasconcelos2009.milliseconds(graph, name) for n, graph in sizes.items()}
        for name in (*vasconcelos2009.OF_PAPER[:3], *vasconcelos2009.OURS)
    }
    return _lines(times)


# -- curves --------------------------------------------------------------------------------------


def _by_size(
    sizes: Groups,
    columns: Sequence[str],
    taken: Callable[[Sequence[Graph], str], Time | None],
    xlabel: str,
    ylabel: str,
) -> Any:
    """A line for each contender that ended on two sizes or more, over these; times are logs."""
    lines = _lines(
        {name: {n: taken(graphs, name) for n, graphs in sizes.items()} for name in columns}
    )
    if not lines:
        return None
    figure, axes = panels(1)
    axes[0].set(xlabel=xlabel, ylabel=ylabel, yscale="log")
    draw_lines(axes[0], lines, marker=".", linewidth=1.6)
    axes[0].legend(
        frameon=False, labelcolor="linecolor", loc="center left", bbox_to_anchor=(1.0, 0.5)
    )
    return figure


def _lines(times: Mapping[str, Mapping[int, Time | None]]) -> dict[str, Line]:
    """Those that have two known times or more, over these."""
    lines: dict[str, Line] = {}
    for name, of_size in times.items():
        known = {n: t.seconds for n, t in of_size.items() if t is not None and not t.at_least}
        if len(known) > 1:
            lines[name] = [*known], [*known.values()]
    return lines
