"""The common part of the checkers: the certificate, and the checks of mates and covers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gpumatch.bipartite import BipartiteGraph
from gpumatch.numeric.arrays import array_of, first_true

TILE = 2**24  # edges checked at a time


class CertificateError(Exception):
    """A result that is not what it claims to be; the message says what breaks it."""


@dataclass(frozen=True)
class Certificate:
    """The proof of a result, checked.

    Attributes
    ----------
    problem : str
        ``"matching"``.
    size : int
        Edges of the matching.
    bound : int; a float for the costs of an assignment
        Vertices of the cover: no matching has more edges.
    edges : int
        Edges of the graph that were checked.
    """

    problem: str
    size: int
    bound: float
    edges: int

    def __str__(self) -> str:
        return (
            f"maximum: a matching of {self.size} edges and a cover of {self.bound} vertices, "
            f"checked on {self.edges} edges"
        )


class ClaimedMatching(Protocol):
    """What the checker of matchings looks at in a result."""

    @property
    def row_to_col(self) -> Any: ...
    @property
    def col_to_row(self) -> Any: ...
    def vertex_cover(self) -> tuple[Any, Any]: ...


def cover_of(result: ClaimedMatching) -> tuple[Any, Any]:
    """A result's vertex cover in numbers: by ``cover_ind()``, if ``vertex_cover()`` names nodes."""
    return getattr(result, "cover_ind", result.vertex_cover)()


class ClaimedBlocks(Protocol):
    """What the checker of Dulmage–Mendelsohn decompositions looks at in a result."""

    @property
    def p(self) -> Any: ...
    @property
    def q(self) -> Any: ...
    @property
    def r(self) -> Any: ...
    @property
    def s(self) -> Any: ...
    @property
    def cc(self) -> Any: ...
    @property
    def rr(self) -> Any: ...


class ClaimedForm(Protocol):
    """What the checker of block triangular forms looks at in a result."""

    @property
    def p(self) -> Any: ...
    @property
    def q(self) -> Any: ...
    @property
    def r(self) -> Any: ...


class ClaimedProduct(Protocol):
    """What the checker of maximum product matchings looks at in a result."""

    @property
    def row_to_col(self) -> Any: ...
    @property
    def col_to_row(self) -> Any: ...
    @property
    def row_log_scale(self) -> Any: ...
    @property
    def col_log_scale(self) -> Any: ...


class ClaimedBottleneck(ClaimedMatching, Protocol):
    """What the checker of bottleneck assignments looks at in a result."""

    @property
    def pair_costs(self) -> Any: ...
    @property
    def objective(self) -> float | None: ...
    @property
    def maximize(self) -> bool: ...
    @property
    def cardinality(self) -> str: ...
    def threshold_cover(self) -> tuple[Any, Any]: ...


class ClaimedAssignment(ClaimedMatching, Protocol):
    """What the checker of assignments looks at in a result."""

    @property
    def row_ind(self) -> Any: ...
    @property
    def col_ind(self) -> Any: ...
    @property
    def row_dual(self) -> Any: ...
    @property
    def col_dual(self) -> Any: ...
    @property
    def objective(self) -> float: ...
    @property
    def gap(self) -> float: ...
    @property
    def maximize(self) -> bool: ...
    @property
    def cardinality(self) -> str: ...
    @property
    def cost_limit(self) -> float | None: ...


def python_number(what: str, value: Any) -> int | float:
    """A claimed number as Python's, which no comparison rounds. NaN is none, nor is a bool."""
    if hasattr(value, "detach") and value.ndim == 0:  # a tensor with a gradient
        value = value.detach().item()
    if isinstance(value, np.floating):
        value = float(value)  # item() leaves a longdouble what it is
    elif isinstance(value, np.generic):
        value = value.item()
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or value != value:
        raise CertificateError(f"{what} must be a number; got {value!r}")
    return value


def check_flag(what: str, value: Any) -> bool:
    """Check that a claim says yes or no."""
    if not isinstance(value, (bool, np.bool_)):
        raise CertificateError(f"{what} must be True or False; got {value!r}")
    return bool(value)


def check_cardinality(value: Any, known: tuple[str, ...]) -> str:
    """Check that a claim says one of the known cardinalities."""
    if not (isinstance(value, str) and value in known):
        raise CertificateError(f"the cardinality must be one of {known}; got {value!r}")
    return value


def check_numbers(what: str, values: Any, length: int) -> Any:
    """Check that `values` are `length` finite numbers; as int64 or as float64."""
    if values.shape != (length,) or values.dtype.kind not in "iuf":
        raise CertificateError(
            f"the {what} must be {length} numbers; got {values.dtype} of shape {values.shape}"
        )
    with np.errstate(over="ignore"):
        numbers = values.astype(np.float64 if values.dtype.kind == "f" else np.int64, copy=False)
    if values.dtype.kind == "f":
        stray = first_true(~(abs(numbers) < np.inf))
    else:
        is_beyond = numbers < 0 if values.dtype.kind == "u" else numbers == -(2**63)
        stray = first_true(is_beyond)
    if stray is not None:
        raise CertificateError(
            f"the {what} must be finite numbers of float64 or int64; number {stray} is "
            f"{values[stray]}"
        )
    return numbers


def check_claim_of_size(result: Any, size: int) -> None:
    """Check that a result which says how many pairs it has says so truly."""
    claimed = getattr(result, "size", size)
    if python_number("the size", claimed) != size:
        raise CertificateError(f"there are {size} pairs, but the size is {claimed}")


def check_pair_costs(claimed: Any, paid: Any) -> None:
    """Check that claimed costs of the pairs are these: int64 or float64.

    A batch that has floats too has integers as floats, so these may be rounded.
    """
    if paid.dtype.kind != "f" and claimed.dtype.kind == "f":
        paid = paid.astype(np.float64)
    is_alike = claimed.shape == paid.shape and claimed.dtype.kind in "iuf"
    if not is_alike or first_true(claimed != paid) is not None:
        raise CertificateError("pair_costs does not agree with the costs of the pairs")


def check_mates(side: str, mates: Any, length: int, partners: int) -> Any:
    """Check that `mates` are one number in [-1, partners) for each of `length` vertices; as int64.

    So no small or unsigned type wraps in what follows.
    """
    if mates.shape != (length,) or mates.dtype.kind not in "iu":
        raise CertificateError(
            f"the mates of the {side}s must be {length} integers; "
            f"got {mates.dtype} of shape {mates.shape}"
        )
    is_stray = mates >= np.int64(partners)
    if mates.dtype.kind == "i":
        is_stray |= mates < -1
    vertex = first_true(is_stray)
    if vertex is not None:
        raise CertificateError(
            f"{side} {vertex} is matched to {_OTHER[side]} {int(mates[vertex])}, "
            f"outside [-1, {partners})"
        )
    return mates.astype(np.int64, copy=False)


def check_partners(side: str, mates: Any, partners: Any) -> None:
    """Check that every matched vertex of `side` is its mate's mate."""
    vertices = (mates >= 0).nonzero()[0]
    broken = first_true(partners[mates[vertices]] != vertices)
    if broken is not None:
        vertex = int(vertices[broken])
        mate = int(mates[vertex])
        third = int(partners[mate])
        raise CertificateError(
            f"{side} {vertex} is matched to {_OTHER[side]} {mate}, "
            + (f"which is matched to {side} {third}" if third >= 0 else "which is unmatched")
        )


def check_pairs(row_to_col: Any, col_to_row: Any, shape: tuple[int, int]) -> tuple[Any, Any]:
    """Check that both arrays are the mates of one set of pairs; return them as signed integers."""
    row_to_col = check_mates("row", row_to_col, *shape)
    col_to_row = check_mates("column", col_to_row, *shape[::-1])
    check_partners("row", row_to_col, col_to_row)
    check_partners("column", col_to_row, row_to_col)
    return row_to_col, col_to_row


def check_edges(graph: BipartiteGraph, row_to_col: Any, first: int = 0) -> None:
    """Check that each pair is an edge; `first` is the caller's number of the graph's first row."""
    is_paired = row_to_col < 0
    for rows, cols in edge_tiles(graph):
        is_paired[rows[row_to_col[rows] == cols]] = True
    row = first_true(~is_paired)
    if row is not None:
        raise CertificateError(
            f"row {first + row} is matched to column {int(row_to_col[row])}, but that is no edge"
        )


def marks_of(xp: Any, members: Any, length: int, side: str) -> Any:
    """A bool array of the cover's members on one side."""
    return marks_in(xp, members, length, f"the cover's {side}s", f"the cover names {side}")


def marks_in(xp: Any, members: Any, length: int, what: str, names: str) -> Any:
    """A bool array of a set's members; errors say what it is, and that it names a stranger."""
    marks = xp.zeros(length, dtype=bool)
    if members.size == 0:
        return marks
    if members.ndim != 1 or members.dtype.kind not in "iu":
        raise CertificateError(
            f"{what} must be a list of integers; got {members.dtype} of shape {members.shape}"
        )
    stray = first_true((members < 0) | (members >= length))
    if stray is not None:
        raise CertificateError(f"{names} {int(members[stray])} of {length}")
    marks[members] = True
    return marks


def count_of(marks: Any) -> int:
    """How many marks of a bool array are set."""
    if isinstance(marks, np.ndarray):
        return int(np.count_nonzero(marks))
    return int(marks.ravel().nonzero()[0].size)


def first_pair(xp: Any, rows: Any, cols: Any, marks: Any) -> tuple[int, int] | None:
    """The row and the column of the first mark in a tile of costs; None if there is none."""
    place = first_true(marks.ravel())
    if place is None:
        return None
    row, col = (int(xp.broadcast_to(part, marks.shape).ravel()[place]) for part in (rows, cols))
    return row, col


def edge_tiles(graph: BipartiteGraph) -> Iterator[tuple[Any, Any]]:
    """Rows and columns of all edges, a tile at a time, from the CSR that is there."""
    by_rows = graph.has_rows
    indptr = graph.indptr if by_rows else graph.col_indptr
    indices = graph.indices if by_rows else graph.col_indices
    for begin in range(0, graph.nnz, TILE):
        minor = indices[begin : begin + TILE]
        major = _owners(graph.xp, indptr, begin, minor.size)
        yield (major, minor) if by_rows else (minor, major)


def _owners(xp: Any, indptr: Any, begin: int, count: int) -> Any:
    """The row of each of `count` entries from `begin`: the first's, plus the row starts since."""
    first = int(xp.searchsorted(indptr, begin, side="right")) - 1
    after = int(xp.searchsorted(indptr, begin + count, side="left"))
    starts = indptr[first + 1 : after] - begin
    return first + xp.cumsum(xp.bincount(starts, minlength=count))


_OTHER = {"row": "column", "column": "row"}


def csr_arrays(matrix: Any) -> tuple[Any, Any, Any]:
    """Offsets, columns and values of a result's sparse matrix, or tensor, on the host."""
    if hasattr(matrix, "crow_indices"):
        parts = matrix.crow_indices(), matrix.col_indices(), matrix.values()
    else:
        parts = matrix.indptr, matrix.indices, matrix.data
    offsets, cols, values = (array_of(np, part) for part in parts)
    return offsets, cols, values
