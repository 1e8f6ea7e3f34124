"""The figures of each suite from its stored results; here Deveci et al. 2013 and the engine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from bench.report import analysis, assignment_plots
from bench.report import deveci2013_published as published
from bench.report.axes import COLOURS, Line, draw_lines, panels
from bench.report.tables import Graph
from bench.suites import batches, matching, ranks_gpu
from bench.suites.deveci2013 import BEST_GPU, FIGURE2, GPU_ALGORITHMS, SEQUENTIAL

_S1 = {"O_S1": "original graphs", "RCP_S1": "permuted graphs"}
_NAMES = {BEST_GPU: "GPU"}
_RIVALS = (matching.PAPER, "ecl-mm", "scipy")


def draw(data: dict[str, Any], threshold: float, folder: Path) -> list[Path]:
    """Draw each figure of the suite for which there are enough results; return the files."""
    suite = data["suite"]
    if suite == "deveci2013":
        figures = _of_deveci2013(data, threshold)
    elif suite == "matching":
        figures = {"rivals": rivals(data["graphs"])}
    elif suite == "batches":
        figures = batches.figures(data)
    elif suite == "ranks-gpu":
        figures = ranks_gpu.figures(data)
    else:
        figures = assignment_plots.of(data)
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, figure in figures.items():
        if figure is not None:
            files.append(folder / f"{suite}-{name}.png")
            save(figure, files[-1])
    return files


def _of_deveci2013(data: dict[str, Any], threshold: float) -> dict[str, Any]:
    sets = analysis.select(data, threshold)
    return {
        "figure2": bfs_levels(data["graphs"]),
        "figure3": speedup_profiles(sets),
        "figure4": performance_profiles(sets),
        "figure5": overall_speedups(sets),
    }


def save(figure: Any, file: Path) -> None:
    """Write a PNG of few colours, a third as large as one of many."""
    figure.savefig(file, dpi=110)
    plt.close(figure)
    Image.open(file).convert("RGB").quantize(128).save(file, optimize=True)


# -- figures -------------------------------------------------------------------------------------


def bfs_levels(graphs: Mapping[str, Graph]) -> Any:
    """Figure 2: how many BFS kernels each phase of the four CT algorithms launched."""
    shown = [name for name in (_largest(graphs, like) for like in FIGURE2) if name]
    if not shown:
        return None
    figure, axes = panels(len(shown))
    for panel, name in zip(axes, shown):
        results = graphs[name]["results"]
        lines = {
            algorithm: (range(1, len(levels) + 1), levels)
            for algorithm in GPU_ALGORITHMS
            if (levels := results[f"{algorithm} ct"].get("levels"))
        }
        panel.set(title=name, xscale="log", xlabel="BFS (phase)", yscale="log")
        panel.set_ylabel("BFS kernel executions")
        draw_lines(panel, lines, _NAMES, marker=".", markersize=3, linewidth=0.8)
    return figure


def rivals(graphs: Mapping[str, Graph]) -> Any:
    """How many times longer each rival takes than the GPU's engine, graph by graph."""
    names = [
        name for name in graphs if any(matching.times_slower(graphs[name], r) for r in _RIVALS)
    ]
    if not names:
        return None
    figure, axis = plt.subplots(figsize=(7.5, 1.2 + 0.19 * len(names)), layout="constrained")
    for rival, colour, marker in zip(_RIVALS, COLOURS, "os^"):
        ratios = [matching.times_slower(graphs[name], rival) for name in names]
        drawn = [(r.seconds, at) for at, r in enumerate(ratios) if r is not None]
        if drawn:
            axis.plot(*zip(*drawn), marker, color=colour, label=rival, ms=4.5)
    axis.axvline(1.0, color="black", lw=0.8)
    axis.set(xscale="log", xlabel="time / time of the engine", ylim=(len(names) - 0.5, -0.5))
    axis.set_yticks(range(len(names)), names, fontsize=7)
    axis.grid(axis="x", color="0.9")
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, 1.06), ncols=3, frameon=False)
    return figure


def _largest(graphs: Mapping[str, Graph], like: str) -> str | None:
    """The largest original graph of that name on which all four CT algorithms have ended."""
    ended = [
        name
        for name, graph in graphs.items()
        if fnmatch(name, like) and not graph["permuted"]
        if all(graph["results"].get(f"{a} ct", {}).get("levels") for a in GPU_ALGORITHMS)
    ]
    return max(ended, key=lambda name: graphs[name]["entries"], default=None)


def speedup_profiles(sets: dict[str, list[Graph]]) -> Any:
    """Figure 3: the share of graphs on which the speedup is at least 2**x."""
    figure, axes = panels(len(_S1))
    for panel, (name, title) in zip(axes, _S1.items()):
        over = analysis.baseline(sets[name])
        lines = {}
        for contender in analysis.PARALLEL:
            speedups = analysis.speedups(sets[name], contender, over)
            if speedups:
                lines[contender] = _share_of_at_least(np.log2(speedups))
        _title(panel, title, sets[name])
        panel.set(xlabel=f"speedup over {over.upper()} at least $2^x$", ylabel="share of graphs")
        draw_lines(panel, lines, _NAMES, drawstyle="steps-pre", linewidth=1.8)
    return figure


def performance_profiles(sets: dict[str, list[Graph]]) -> Any:
    """Figure 4: the share of graphs on which a contender takes at most x times the best time."""
    figure, axes = panels(len(_S1))
    for panel, (name, title) in zip(axes, _S1.items()):
        ratios = analysis.ratios_to_best(sets[name], analysis.PARALLEL)
        worst = max((r for values in ratios.values() for r in values if r < math.inf), default=1.0)
        lines = {code: _share_of_at_most(values, 1.1 * worst) for code, values in ratios.items()}
        _title(panel, title, sets[name])
        panel.set(xlabel="at most x times the best time", ylabel="share of graphs", xscale="log")
        panel.set_ylim(0.0, 1.05)
        draw_lines(panel, lines, _NAMES, drawstyle="steps-post", linewidth=1.8)
    return figure


def overall_speedups(sets: dict[str, list[Graph]]) -> Any:
    """Figure 5: geometric mean of the GPU's speedup over PFP and over HK on each set."""
    means = {
        over: [_mean(analysis.speedups(graphs, BEST_GPU, over)) for graphs in sets.values()]
        for over in SEQUENTIAL
    }
    if not np.isfinite(list(means.values())).any():
        return None
    figure, axes = panels(1)
    place = np.arange(len(sets))
    for shift, colour, (over, values) in zip((-0.2, 0.2), COLOURS, means.items()):
        bars = axes[0].bar(place + shift, values, 0.38, color=colour)
        label = f"over {over.upper()}\n"
        axes[0].bar_label(bars, [f"{label if i == 0 else ''}{v:.3g}" for i, v in enumerate(values)])
    ratios = [published.FIGURE5[name] for name in sets]
    axes[0].plot(place, ratios, "_", color="black", ms=30, label="published, at least")
    axes[0].legend(loc="upper left", frameon=False)
    axes[0].set_xticks(place, [f"{name}\n{len(graphs)} graphs" for name, graphs in sets.items()])
    axes[0].set(ylabel="speedup (geometric mean)", title=f"{BEST_GPU} over the sequential codes")
    axes[0].margins(y=0.2)
    return figure


# -- curves --------------------------------------------------------------------------------------


def _share_of_at_least(values: Any) -> Line:
    """(x, share of the values that are x or more), from 1 at the smallest to 0."""
    x = np.sort(values)
    return np.append(x, x[-1]), np.append(1.0 - np.arange(x.size) / x.size, 0.0)


def _share_of_at_most(values: Any, end: float) -> Line:
    """(x, share of the values that are x or less) for x from 1 to `end`."""
    reached = np.sort([value for value in values if value < math.inf])
    x = np.concatenate([[1.0], reached, [end]])
    share = np.concatenate([np.arange(reached.size + 1), [reached.size]]) / len(values)
    return x, share


def _mean(values: Sequence[float]) -> float:
    return math.exp(float(np.mean(np.log(values)))) if values else math.nan


# -- axes ----------------------------------------------------------------------------------------


def _title(panel: Any, title: str, graphs: Sequence[Graph]) -> None:
    panel.set_title(f"{title} ({len(graphs) or 'none'} in S1)")
