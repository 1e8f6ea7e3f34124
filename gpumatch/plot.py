"""Pictures of sparse matrices: where the entries are, in the order given or in another.

They need matplotlib, which is imported when a picture is drawn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.bipartite import as_bipartite
from gpumatch.numeric.arrays import array_of

__all__ = ["spy"]

_DOTS = 600  # along the longer side of the picture; entries that share one make it darker
_BLOCKS = 2000  # that are drawn at most, the largest ones


def spy(A: Any, order: Any = None, *, axes: Any = None) -> Any:
    """Draw the pattern of a matrix, permuted if an order is given.

    Parameters
    ----------
    A : sparse or dense matrix, tuple of CSR arrays, or BipartiteGraph
        Anything `gpumatch.BipartiteGraph` is made from.
    order : DulmageMendelsohn, BlockTriangularForm, ProductMatching or MC64, optional
        Any result with permutations ``p`` and ``q``, or ``row_perm`` and ``col_perm``. If it has
        blocks, they are framed.
    axes : matplotlib Axes, optional
        Where to draw; by default in a figure of its own.

    Returns
    -------
    matplotlib Axes
        Its ``figure`` can be saved.

    Examples
    --------
    >>> import numpy as np, gpumatch as gm
    >>> A = np.array([[0, 1, 0, 1], [1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 1]])
    >>> axes = gm.plot.spy(A, gm.linalg.dmperm(A))
    >>> axes.get_xlabel()
    '4 columns, 8 entries'
    """
    graph = as_bipartite(A)
    nrows, ncols = graph.shape
    rows, cols = (array_of(np, part) for part in graph.edges())
    p = _permutation(order, "p", "row_perm")
    q = _permutation(order, "q", "col_perm")
    rows = rows if p is None else _places(p)[rows]
    cols = cols if q is None else _places(q)[cols]
    if axes is None:
        axes = _new_axes()
    axes.imshow(
        _darkness(rows, cols, graph.shape),
        cmap="Greys",
        vmin=0,
        vmax=1,
        extent=(0, max(ncols, 1), max(nrows, 1), 0),
        interpolation="nearest",
    )
    for first_row, first_col, height, width in _blocks(order):
        _frame(axes, first_row, first_col, height, width)
    axes.set(xlabel=f"{ncols} columns, {graph.nnz} entries", ylabel=f"{nrows} rows")
    return axes


def _permutation(order: Any, *names: str) -> np.ndarray | None:
    """The result's permutation under one of these names."""
    if order is None:
        return None
    for name in names:
        if hasattr(order, name):
            return array_of(np, getattr(order, name))
    raise TypeError(
        f"order must have permutations, {' or '.join(names)}; got {type(order).__name__}"
    )


def _places(permutation: np.ndarray) -> np.ndarray:
    """Where each vertex stands."""
    places = np.empty(permutation.size, np.int64)
    places[permutation] = np.arange(permutation.size)
    return places


def _darkness(rows: np.ndarray, cols: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """How dark each dot is: from 0.3 for one entry to 1 for as many as it has room for."""
    cell = max(1, -(-max(shape) // _DOTS))
    height, width = (max(1, -(-side // cell)) for side in shape)
    counts = np.bincount(rows // cell * width + cols // cell, minlength=height * width)
    shares = np.log1p(counts) / np.log1p(cell * cell)
    return np.where(counts > 0, 0.3 + 0.7 * shares, 0.0).reshape(height, width)


def _blocks(order: Any) -> list[tuple[int, int, int, int]]:
    """First row, first column, height and width of the largest blocks of an order."""
    if not hasattr(order, "r"):
        return []
    r = array_of(np, order.r).astype(np.int64)
    s = array_of(np, order.s).astype(np.int64) if hasattr(order, "s") else r
    heights, widths = np.diff(r), np.diff(s)
    largest = np.argsort(-(heights + widths), kind="stable")[:_BLOCKS]
    parts = r[largest], s[largest], heights[largest], widths[largest]
    return list(zip(*(part.tolist() for part in parts)))


def _frame(axes: Any, first_row: int, first_col: int, height: int, width: int) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(
        Rectangle((first_col, first_row), width, height, fill=False, edgecolor="C3", linewidth=0.8)
    )


def _new_axes() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as exc:
        raise ImportError(f"{exc}: pip install 'gpumatch[viz]'") from exc
    return Figure(figsize=(5, 5), layout="constrained").subplots()


def __dir__() -> list[str]:
    return __all__
