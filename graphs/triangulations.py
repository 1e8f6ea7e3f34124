"""Delaunay triangulations of random points, in strips.

A triangle is Delaunay when its circumcircle holds no point.  So a triangle found among the points
of a region is one of the whole set's triangles if no part of its circumcircle lies in the unit
square outside the region.  The regions are overlapping vertical strips, and a frame along the
square's border, where the convex hull's long flat triangles are.  Euler's formula, 3n - 3 - h
edges for n points of which h are on the hull, tells whether all edges were found; if not, the
regions grow.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import ConvexHull, Delaunay

from graphs.csr import INDEX, adjacency
from graphs.geometric import random_points

_STRIP = 1 << 16  # points of a strip, without overlap


def delaunay(k: int, *, seed: int = 0, workers: int | None = None) -> csr_array:
    """Return the Delaunay triangulation of 2**k random points: delaunay_n{k} of DIMACS10.

    The points are uniform in the unit square and numbered from left to right.

    Parameters
    ----------
    k : int
        Logarithm of the number of vertices; at least 2.
    workers : int, optional
        Strips triangulated at once; all cores unless given.  It does not change the graph.

    References
    ----------
    Holtgrewe, Sanders, Schulz, "Engineering a scalable high quality graph partitioner",
    IPDPS 2010.
    """
    return triangulation(random_points(1 << k, seed), workers=workers)


def triangulation(
    points: np.ndarray, *, strip: int = _STRIP, workers: int | None = None
) -> csr_array:
    """Return the adjacency matrix of the Delaunay triangulation of points in the unit square.

    Parameters
    ----------
    points : (n, 2) array
        Distinct points, sorted by their first coordinate.
    strip : int
        Points of a strip, without overlap.
    workers : int, optional
        Strips triangulated at once.
    """
    n = len(points)
    if n > strip:
        edges = 3 * n - 3 - ConvexHull(points).vertices.size
        # Three times the radius of the largest circle that n random points leave empty.
        margin = 3.0 * math.sqrt(math.log(n) / (math.pi * n))
        while margin < 0.5:
            graph = _stitch(points, list(_regions(points, strip, margin)), workers)
            if graph.nnz == 2 * edges:
                return graph
            margin *= 2.0
    return _stitch(points, [_Region(np.arange(n, dtype=INDEX), np.empty((0, 2, 2)), 0.0)], 1)


@dataclass(frozen=True)
class _Region:
    """A part of the unit square, and the points in it."""

    members: np.ndarray  # numbers of all points in the region
    outside: np.ndarray  # the rest of the square: rectangles, each its low and its high corner
    slack: float  # distance to `outside` below which a circle is not trusted to miss it


def _regions(points: np.ndarray, strip: int, margin: float) -> Iterator[_Region]:
    """Yield strips of about `strip` points, widened by the margin, and the frame."""
    n = len(points)
    x = points[:, 0]
    slack = 1e-3 * margin
    for start in range(0, n, strip):
        low, high = x[start] - margin, x[min(start + strip, n) - 1] + margin
        first, last = np.searchsorted(x, [low, high])
        sides = np.array([[(0.0, 0.0), (low, 1.0)], [(high, 0.0), (1.0, 1.0)]])
        outside = sides[[first > 0, last < n]]
        yield _Region(np.arange(first, last, dtype=INDEX), outside, slack)
    inner = np.array([[[margin, margin], [1.0 - margin, 1.0 - margin]]])
    framed = ((points <= margin) | (points >= 1.0 - margin)).any(axis=1)
    yield _Region(np.flatnonzero(framed).astype(INDEX), inner, slack)


def _stitch(points: np.ndarray, regions: list[_Region], workers: int | None) -> csr_array:
    """Return the union of the regions' certified edges."""
    # Qhull runs without the interpreter's lock, so threads are enough, and they share the points.
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        found = pool.map(lambda region: _certified_edges(points, region), regions)
        edges = np.concatenate(list(found), axis=1)
    return adjacency(edges[0], edges[1], len(points))


def _certified_edges(points: np.ndarray, region: _Region) -> np.ndarray:
    """Return the (2, m) edges of the region's triangles that are triangles of all points."""
    local = points[region.members]
    triangles = Delaunay(local).simplices
    if region.outside.size:
        triangles = triangles[_certified(local[triangles], region)]
    ends = region.members[triangles]
    return np.stack([ends.ravel(), ends[:, [1, 2, 0]].ravel()])


def _certified(corners: np.ndarray, region: _Region) -> np.ndarray:
    """Tell which triangles' circumcircles miss the rest of the square."""
    centre, radius = _circumcircles(corners)
    certified = np.ones(len(corners), bool)
    for low, high in region.outside:
        distance = np.linalg.norm(centre - np.clip(centre, low, high), axis=1)
        certified &= distance > radius + region.slack
    return certified


def _circumcircles(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return centres and radii of the circles through (m, 3, 2) corners."""
    origin = corners[:, 0]
    b, c = corners[:, 1] - origin, corners[:, 2] - origin
    bb, cc = (b * b).sum(axis=1), (c * c).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):  # flat triangles are never certified
        scale = 0.5 / (b[:, 0] * c[:, 1] - b[:, 1] * c[:, 0])
        offset = np.stack(
            [(c[:, 1] * bb - b[:, 1] * cc) * scale, (b[:, 0] * cc - c[:, 0] * bb) * scale], axis=1
        )
        return origin + offset, np.linalg.norm(offset, axis=1)
