"""What all figures are drawn with: colours, panels, lines.

Colours are Okabe and Ito's, which all readers can tell apart; lines differ in dashes too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COLOURS = (
    *("#D55E00", "#0072B2", "#009E73", "#CC79A7"),
    *("#E69F00", "#56B4E9", "#000000", "#999999"),
)
_DASHES = ("-", (0, (6, 1.5)), "--", ":")

Line = tuple[Any, Any]  # x and y


def panels(count: int, size: tuple[float, float] | None = None) -> tuple[Any, Sequence[Any]]:
    """A figure of panels side by side, without the box's upper and right sides.

    `size` is the width and height of all in inches.
    """
    size = size or (max(5.0 * count, 7.0), 4.0)
    figure, axes = plt.subplots(1, count, figsize=size, squeeze=False, layout="constrained")
    for panel in axes[0]:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(alpha=0.25)
        panel.set_axisbelow(True)
    return figure, axes[0]


def draw_lines(
    panel: Any, lines: Mapping[str, Line], names: Mapping[str, str] | None = None, **style: Any
) -> None:
    """Draw the lines, each in its colour and dashes, and name them in theirs."""
    for colour, dashes, (name, (x, y)) in zip(COLOURS, cycle(_DASHES), lines.items()):
        label = (names or {}).get(name, name)
        panel.plot(x, y, color=colour, linestyle=dashes, label=label, **style)
    if lines:
        panel.legend(frameon=False, labelcolor="linecolor")
