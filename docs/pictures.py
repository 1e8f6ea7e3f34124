"""The pictures of the site's first page, drawn when it is built: results of gpumatch, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import gpumatch as gm

__all__ = ["draw"]

WIDTH, HEIGHT = 240, 120
GREEN, GREY, RED = "#0b6e4f", "#9aa5ad", "#c1121f"


def draw(folder: Path) -> None:
    """Write all of them into a folder, each as NAME.svg."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in PICTURES.items():
        shapes = "".join(picture())
        text = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">{shapes}</svg>'
        )
        (folder / f"{name}.svg").write_text(text + "\n", encoding="utf-8")


def records() -> Iterable[str]:
    """Candidate pairs of two lists, and the links of greatest total."""
    rng = np.random.default_rng(4)
    scores = np.where(rng.random((9, 9)) < 0.3, rng.random((9, 9)), -np.inf)
    links = gm.assign(scores, maximize=True, cardinality="maximum")
    ys = np.linspace(10, HEIGHT - 10, 9)
    for i, j in np.argwhere(scores > 0).tolist():
        yield _line((50, ys[i]), (190, ys[j]), GREY, 0.7)
    for i, j in links.edges().tolist():
        yield _line((50, ys[i]), (190, ys[j]), GREEN, 2)
    for x in (50, 190):
        for y in ys:
            yield _dot((x, y), 3, GREEN)


def boxes() -> Iterable[str]:
    """The boxes of two frames, and which are the same object."""
    rng = np.random.default_rng(8)
    before = rng.random((7, 2)) * (WIDTH - 50, HEIGHT - 40) + 5
    after = (before + rng.normal(0, 7, (7, 2)) + (6, 2))[rng.permutation(7)[:6]]
    costs = np.linalg.norm(before[:, None] - after, axis=2)
    for points, colour in ((before, GREY), (after, GREEN)):
        for x, y in points:
            yield (
                f'<rect x="{x:.1f}" y="{y:.1f}" width="28" height="22" fill="none" '
                f'stroke="{colour}" stroke-width="1.5"/>'
            )
    for i, j in gm.assign(costs, cost_limit=30.0).edges().tolist():
        yield _line(before[i] + (14, 11), after[j] + (14, 11), RED, 1.5)


def blocks() -> Iterable[str]:
    """A matrix, and its block triangular form."""
    rng = np.random.default_rng(3)
    n, order = 40, rng.permutation(40)
    block = np.repeat(np.arange(10), 4)
    upper = (block[:, None] < block) & (rng.random((n, n)) < 0.05)
    inside = (block[:, None] == block) & (rng.random((n, n)) < 0.6)
    A = csr_array((inside | upper | np.eye(n, dtype=bool)).astype(float))
    A = A[order][:, rng.permutation(n)]
    p, q, _ = gm.linalg.btf(A)
    for left, matrix in ((6, A.tocoo()), (128, A[p][:, q].tocoo())):
        yield f'<rect x="{left}" y="7" width="106" height="106" fill="none" stroke="{GREY}"/>'
        for i, j in zip(matrix.row, matrix.col):
            yield _dot((left + 3 + 2.55 * j, 10 + 2.55 * i), 1.2, GREEN)


def clouds() -> Iterable[str]:
    """Two clouds, coupled by their distances."""
    rng = np.random.default_rng(2)
    one = rng.normal((80, 60), (24, 20), (70, 2))
    angle = rng.random(70) * 2 * np.pi
    other = np.stack([165 + 42 * np.cos(angle), 60 + 42 * np.sin(angle)], axis=1)
    pairs = gm.assign(gm.PointCosts(one, other)).row_to_col
    for start, end in zip(one, other[pairs]):
        yield _line(start, end, GREY, 0.6)
    for points, colour in ((one, RED), (other, GREEN)):
        for point in points:
            yield _dot(point, 1.8, colour)


def graph() -> Iterable[str]:
    """A graph, and a maximum matching of it."""
    rng = np.random.default_rng(6)
    points = rng.random((45, 2)) * (WIDTH - 20, HEIGHT - 20) + 10
    near = np.triu(np.linalg.norm(points[:, None] - points, axis=2) < 32, 1)
    for u, v in np.argwhere(near).tolist():
        yield _line(points[u], points[v], GREY, 0.7)
    for u, v in gm.general.maximum_matching((np.argwhere(near), None)).edges().tolist():
        yield _line(points[u], points[v], GREEN, 2.5)
    for point in points:
        yield _dot(point, 2, GREEN)


def cells() -> Iterable[str]:
    """Cells that have moved, of which some have left and others come in."""
    rng = np.random.default_rng(5)
    before = rng.random((40, 2)) * (WIDTH - 20, HEIGHT - 20) + 10
    after = np.concatenate([before[:34] + rng.normal(0, 5, (34, 2)), rng.random((5, 2)) * 100 + 10])
    found = gm.assign(gm.PointCosts(before, after), cost_limit=14.0**2)
    for i, j in found.edges().tolist():
        yield _line(before[i], after[j], RED, 1.5)
    for points, colour in ((before, GREY), (after, GREEN)):
        for point in points:
            yield _dot(point, 4, colour, opacity=0.7)


def stars() -> Iterable[str]:
    """Sources of two surveys; a circle is as wide as its error."""
    rng = np.random.default_rng(11)
    sky = rng.random((30, 2)) * (WIDTH - 24, HEIGHT - 24) + 12
    seen = [sky[rng.random(30) < 0.85] + rng.normal(0, error, 2) for error in (2, 4)]
    seen = [points + rng.normal(0, e, points.shape) for points, e in zip(seen, (1, 3))]
    costs = np.linalg.norm(seen[0][:, None] - seen[1], axis=2) - 12
    for i, j in gm.assign(costs, cardinality="any").edges().tolist():
        yield _line(seen[0][i], seen[1][j], RED, 1.5)
    for points, radius, colour in ((seen[0], 2.5, GREEN), (seen[1], 5, GREY)):
        for point in points:
            yield _dot(point, radius, colour, opacity=0.7)


def controls() -> Iterable[str]:
    """Treated units above, controls below, by their propensity; pairs within a caliper."""
    rng = np.random.default_rng(9)
    treated, others = (
        np.sort(rng.beta(*ab)) * (WIDTH - 20) + 10 for ab in ((3, 2, 18), (2, 3, 30))
    )
    distance = abs(treated[:, None] - others)
    for i, j in gm.assign(distance, cardinality="maximum", cost_limit=14.0).edges().tolist():
        yield _line((treated[i], 25), (others[j], 95), GREY, 1)
    for x in treated:
        yield _dot((x, 25), 3, RED)
    for x in others:
        yield _dot((x, 95), 3, GREEN)


PICTURES: dict[str, Callable[[], Iterable[str]]] = {
    picture.__name__: picture
    for picture in (records, boxes, blocks, clouds, graph, cells, stars, controls)
}


def _line(start: Any, end: Any, colour: str, width: float) -> str:
    (x1, y1), (x2, y2) = start, end
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width}"/>'


def _dot(at: Any, radius: float, colour: str, *, opacity: float = 1) -> str:
    x, y = at
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}" fill-opacity="{opacity}"/>'
    )
