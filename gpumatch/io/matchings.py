"""Matchings in files.

By the ending of the name, a matching is its `row_to_col` (.npy; -1 = unmatched), the same beside
other arrays (.npz), a list of its edges (.csv), or the pattern matrix of its edges (.mtx).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import scipy.io
from scipy.sparse import coo_array, csr_array

from gpumatch.io.canonical import canonical_csr
from gpumatch.io.contents import MAX_BYTES, content_of, naming
from gpumatch.io.edges import Edges, Header, parse_edges
from gpumatch.io.fields import Text
from gpumatch.io.formats import parse_arrays
from gpumatch.io.matrix_market import parse_matrix_market
from gpumatch.numeric.arrays import array_of

__all__ = ["MATCHING_SUFFIXES", "read_matching", "write_matching"]

Labels = tuple[Sequence[Any] | None, Sequence[Any] | None]
"""What rows and columns are called, None if they have numbers only."""

_LABELS = ("row_labels", "col_labels")
_NO_ARRAYS: Mapping[str, Any] = MappingProxyType({})


def write_matching(
    path: str | os.PathLike[str],
    row_to_col: Any,
    shape: tuple[int, int] | None = None,
    *,
    values: np.ndarray | None = None,
    arrays: Mapping[str, Any] = _NO_ARRAYS,
    labels: Labels | None = None,
) -> None:
    """Write a matching of a `shape` graph.

    Parameters
    ----------
    path
        Its ending says what is written: .npy (`row_to_col`), .npz (`row_to_col` and `arrays`), .csv
        (lines of row, column and perhaps value, below a header), .mtx (the pattern of the edges).
    row_to_col
        Column of each row, -1 = unmatched; or a `Matching`, or another result that has both mates.
        Of a matching of a graph, a .npy or .npz has the mate of each vertex, and a .csv or .mtx
        each edge once.
    shape
        Rows and columns of the graph; a result knows them.
    values
        What each edge costs, in the order of the rows; for .csv. An assignment knows it.
    arrays
        What a .npz holds besides.
    labels
        What rows and columns are called, if they have labels: two lists. A .csv then has these, and
        a .npz holds them, too, as texts; all else has numbers. A result knows those of its input.

    Raises
    ------
    ValueError
        `row_to_col` is not a matching of such a graph, or the name has another ending.
    """
    path, result = Path(path), row_to_col
    if hasattr(result, "mate"):
        shape = shape or (result.mate.size, result.mate.size)
        labels = labels or (result._nodes, result._nodes)
        row_to_col = _mates_of_graph(path, result)
    elif hasattr(result, "col_to_row"):
        shape = shape or (result.row_to_col.size, result.col_to_row.size)
        labels = labels or getattr(result, "_labels", None)
        if values is None and hasattr(result, "pair_costs"):
            values = array_of(np, result.pair_costs)
        row_to_col = array_of(np, result.row_to_col)
    labels = labels or (None, None)
    if shape is None:
        raise TypeError("shape is needed beside an array of columns")
    with naming(path):
        suffix = _matching_suffix(path)
        row_to_col = _checked_matching(np.asarray(row_to_col), shape)
    rows = np.flatnonzero(row_to_col >= 0)
    with open(path, "wb") as file:
        if suffix == ".npy":
            np.save(file, row_to_col)
        elif suffix == ".npz":
            sides = zip(_LABELS, labels)
            names = {name: np.array([*map(str, side)]) for name, side in sides if side}
            np.savez(file, **{"row_to_col": row_to_col, **arrays, **names})
        elif suffix == ".csv":
            file.write(_list_of_edges(rows, row_to_col[rows], values, labels).encode())
        else:
            edges = coo_array((np.ones(len(rows)), (rows, row_to_col[rows])), shape=shape)
            scipy.io.mmwrite(file, edges, field="pattern", symmetry="general")


def _mates_of_graph(path: Path, result: Any) -> np.ndarray:
    """The mate of each vertex; in a list of edges or their matrix, of the smaller ends only."""
    mates = array_of(np, result.mate)
    if path.suffix.lower() in (".npy", ".npz"):
        return mates
    return np.where(mates > np.arange(mates.size), mates, -1)


def _list_of_edges(
    rows: np.ndarray, cols: np.ndarray, values: np.ndarray | None, labels: Labels
) -> str:
    """Lines of row, column and perhaps value, whose header says whether the ends are labels."""
    header, ends = "row,column", (rows.tolist(), cols.tolist())
    row_labels, col_labels = labels
    if row_labels is None or col_labels is None:
        sides = [map(str, side) for side in ends]
    else:
        header = "source,target"
        names = zip((row_labels, col_labels), ends)
        sides = [map(_quoted, [str(of[end]) for end in side]) for of, side in names]
    if values is not None:
        header, sides = header + ",cost", [*sides, map(repr, values.tolist())]
    return "\n".join([header, *map(",".join, zip(*sides)), ""])


def _quoted(label: str) -> str:
    """A field of a .csv, quoted if what is in it would have a meaning."""
    if re.search(r'[",;\t#%]', label):
        return '"' + label.replace('"', '""') + '"'
    return label


def read_matching(
    path: str | os.PathLike[str], shape: tuple[int, int], *, labels: Labels = (None, None)
) -> np.ndarray:
    """Read a matching of a `shape` graph that `write_matching` wrote, with the same labels.

    Returns
    -------
    ndarray of int32
        Column of each row, -1 = unmatched.

    Raises
    ------
    ValueError
        The file is malformed, or holds no matching of a graph of this shape. The front door of
        matching checks whether its edges are edges of the graph.
    FileNotFoundError
        There is no such file.
    """
    path = Path(path)
    with naming(path):
        row_to_col = _READERS[_matching_suffix(path)](path, shape, labels)
        return _checked_matching(row_to_col, shape)


def _from_npy(path: Path, shape: tuple[int, int], labels: Labels) -> np.ndarray:
    return np.lib.format.open_memmap(path, mode="r")


def _from_npz(path: Path, shape: tuple[int, int], labels: Labels) -> np.ndarray:
    arrays = parse_arrays(content_of(path, MAX_BYTES), MAX_BYTES)
    if "row_to_col" not in arrays:
        raise ValueError("has no array 'row_to_col'")
    return arrays["row_to_col"]


def _from_csv(path: Path, shape: tuple[int, int], labels: Labels) -> np.ndarray:
    text = Text.of(content_of(path, MAX_BYTES), ".csv")
    listed = _in_numbers(parse_edges(text, Header.of(text)), labels)
    edges = canonical_csr(listed.matrix, MAX_BYTES, "last")
    rows, columns = edges.shape
    if rows > shape[0] or columns > shape[1]:
        raise ValueError(f"edge of a {rows} by {columns} graph, but the graph's is {tuple(shape)}")
    edges.resize(shape)
    return _row_to_col(edges)


def _in_numbers(edges: Edges, labels: Labels) -> Edges:
    """The edges between the rows and columns of these labels."""
    if edges.row_labels is None or edges.col_labels is None:
        return edges
    row_labels, col_labels = labels
    if row_labels is None or col_labels is None:
        raise ValueError("has labels, but rows and columns of the graph have none")
    ends: list[np.ndarray] = []
    for what, own, all_of_graph, side in (
        ("row", edges.row_labels, row_labels, edges.rows),
        ("column", edges.col_labels, col_labels, edges.cols),
    ):
        number_of = {str(label): number for number, label in enumerate(all_of_graph)}
        stray = next((label for label in own if label not in number_of), None)
        if stray is not None:
            raise ValueError(f"names {stray!r}, which is no {what} of the graph")
        ends.append(np.array([number_of[label] for label in own], np.int64)[side])
    return edges._replace(rows=ends[0], cols=ends[1], row_labels=None, col_labels=None)


def _from_mtx(path: Path, shape: tuple[int, int], labels: Labels) -> np.ndarray:
    edges = canonical_csr(parse_matrix_market(content_of(path, MAX_BYTES), MAX_BYTES), MAX_BYTES)
    if edges.shape != tuple(shape):
        raise ValueError(f"shape {edges.shape}, but the graph's is {tuple(shape)}")
    return _row_to_col(edges)


_READERS = {".npy": _from_npy, ".npz": _from_npz, ".csv": _from_csv, ".mtx": _from_mtx}
MATCHING_SUFFIXES = tuple(_READERS)


def _matching_suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in _READERS:
        raise ValueError(f"a matching is a file of {', '.join(_READERS)}")
    return suffix


def _row_to_col(edges: csr_array) -> np.ndarray:
    degree = np.diff(edges.indptr)
    if degree.max(initial=0) > 1:
        raise ValueError(f"row {degree.argmax()} is matched {degree.max()} times")
    row_to_col = np.full(edges.shape[0], -1)
    row_to_col[degree == 1] = edges.indices
    return row_to_col


def _checked_matching(row_to_col: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    rows, columns = shape
    if row_to_col.dtype.kind not in "iu":
        raise ValueError(f"row_to_col has type {row_to_col.dtype}, expected integers")
    if row_to_col.shape != (rows,):
        raise ValueError(f"row_to_col has shape {row_to_col.shape}, expected ({rows},)")
    wrong = (row_to_col < -1) | (row_to_col >= columns)
    if wrong.any():
        row = wrong.argmax()
        raise ValueError(f"row {row} is matched to column {row_to_col[row]} of {columns}")
    checked = row_to_col.astype(np.int32)
    times = np.bincount(checked[checked >= 0])
    if times.max(initial=0) > 1:
        raise ValueError(f"column {times.argmax()} is matched {times.max()} times")
    return checked
