"""Check that a matching of any graph is maximum, by code that algorithms do not share.

These are checked, for every edge of the input. A is the Tutte–Berge set, n the number of vertices:

1. the mate of each vertex is a vertex or none, and mates name each other,
2. every matched pair is an edge,
3. without A the graph falls into components, and as many vertices are unmatched as there are
   components with an odd number of vertices more than vertices in A.

Theorem. Then no matching has more edges. Proof. Take any matching, and an odd component of the
graph without A. Not all of its vertices are matched among themselves. So it has an unmatched
vertex, or one that is matched out of it, and that is to A. At most |A| components have the latter.
So at least as many vertices are unmatched as there are odd components more than vertices in A
(Tutte 1947, Berge 1958). ∎

Of the decomposition D, A, C these are checked as well:

4. each vertex is in one of the three parts, and A is the Tutte–Berge set,
5. each component of the graph without A is in D and odd, or in C and even.

Then a maximum matching matches C within itself and A into D. That each component of D has a perfect
matching without any one of its vertices, which makes the decomposition unique, is not checked.

Components are SciPy's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from gpumatch.certificates.base import (
    Certificate,
    CertificateError,
    check_claim_of_size,
    count_of,
    marks_in,
)
from gpumatch.general.graph import Graph, pattern_of
from gpumatch.numeric.arrays import array_of, first_true

__all__ = ["ClaimedGeneral", "GeneralCertificate", "check_mate", "checked_mates", "verify_general"]


class ClaimedGeneral(Protocol):
    """What the checker of matchings of any graph looks at in a result."""

    @property
    def mate(self) -> Any: ...
    def tutte_berge_ind(self) -> Any: ...


@dataclass(frozen=True)
class GeneralCertificate(Certificate):
    """The proof of a matching of any graph, checked.

    Attributes
    ----------
    problem : str
        ``"general-matching"``.
    size, bound : int
        Edges of the matching, and the most that any can have.
    edges : int
        Edges of the graph that were checked.
    odd_components, barrier : int
        Components with an odd number of vertices that the graph without the Tutte–Berge set has,
        and vertices of that set.
    """

    odd_components: int
    barrier: int

    def __str__(self) -> str:
        return (
            f"maximum: a matching of {self.size} edges, and {self.odd_components} odd components "
            f"without {self.barrier} vertices, checked on {self.edges} edges"
        )


def verify_general(G: Any, result: ClaimedGeneral, *, triangle: str = "both") -> GeneralCertificate:
    """Check a matching and the set that proves it maximum; see `gpumatch.verify`."""
    graph = pattern_of(G, triangle)
    mate = check_mate(graph, result.mate)
    size = count_of(mate >= 0) // 2
    check_claim_of_size(result, size)
    try:
        in_barrier = _marks(result.tutte_berge_ind(), graph.order)
    except ValueError as exc:
        raise CertificateError(str(exc)) from exc
    component = _components(graph, in_barrier)
    is_odd = np.bincount(component[~in_barrier]) % 2 == 1
    odd, barrier = count_of(is_odd), count_of(in_barrier)
    unmatched = graph.order - 2 * size
    if unmatched != odd - barrier:
        raise CertificateError(
            f"{unmatched} vertices are unmatched, but without {barrier} vertices the graph has "
            f"{odd} odd components: no proof"
        )
    if hasattr(result, "part_ind"):
        _check_parts(result.part_ind(), in_barrier, component, is_odd)
    bound = (graph.order - odd + barrier) // 2
    return GeneralCertificate("general-matching", size, bound, graph.size, odd, barrier)


def check_mate(graph: Graph, claimed: Any) -> np.ndarray:
    """Check points 1 and 2: the mates are a matching of the graph. Returns them as int64."""
    mate = checked_mates(array_of(np, claimed), graph.order)
    is_paired = mate < 0
    owners = _owners(graph)
    is_paired[owners[mate[owners] == graph.indices]] = True
    stray = first_true(~is_paired)
    if stray is not None:
        raise CertificateError(f"vertices {stray} and {int(mate[stray])} are mates, but no edge")
    return mate


def checked_mates(mate: Any, n: int) -> np.ndarray:
    """The mates as int64, each in [-1, n), and each its mate's mate."""
    if mate.shape != (n,) or mate.dtype.kind not in "iu":
        raise CertificateError(
            f"the mates must be {n} integers; got {mate.dtype} of shape {mate.shape}"
        )
    is_stray = (mate >= np.int64(n)) | ((mate < -1) if mate.dtype.kind == "i" else False)
    stray = first_true(is_stray)
    if stray is not None:
        raise CertificateError(f"vertex {stray} has the mate {int(mate[stray])}, outside [-1, {n})")
    mate = mate.astype(np.int64)
    matched = np.flatnonzero(mate >= 0)
    stray = first_true(mate[mate[matched]] != matched)
    if stray is not None:
        vertex = int(matched[stray])
        other = int(mate[vertex])
        raise CertificateError(
            f"vertex {vertex} has the mate {other}, which has the mate {int(mate[other])}"
        )
    return mate


def _owners(graph: Graph) -> np.ndarray:
    return np.repeat(np.arange(graph.order, dtype=np.int32), np.diff(graph.indptr))


def _marks(members: Any, n: int) -> np.ndarray:
    """A bool array of the vertices in a set."""
    what = "a set of vertices"
    marks: np.ndarray = marks_in(np, array_of(np, members), n, what, f"{what} names")
    return marks


def _components(graph: Graph, without: np.ndarray) -> np.ndarray:
    """The component of each vertex in the graph without some vertices; those are alone."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    is_kept = ~(without[_owners(graph)] | without[graph.indices])
    indptr = np.concatenate([[0], is_kept.cumsum()])[graph.indptr]
    indices = graph.indices[is_kept]
    pattern = csr_array((np.ones(indices.size), indices, indptr), shape=(graph.order,) * 2)
    # Each edge is there from both ends, so strong components are components. They need no
    # transposed matrix.
    return connected_components(pattern, directed=True, connection="strong")[1]


def _check_parts(
    parts: tuple[Any, Any, Any], in_barrier: np.ndarray, component: np.ndarray, is_odd: np.ndarray
) -> None:
    """Check points 4 and 5."""
    n = in_barrier.size
    outer, inner, perfect = (_marks(part, n) for part in parts)
    stray = first_true(outer.astype(np.int8) + inner + perfect != 1)
    if stray is not None:
        raise CertificateError(f"vertex {stray} is not in one of the parts D, A and C")
    stray = first_true(inner != in_barrier)
    if stray is not None:
        raise CertificateError(f"vertex {stray} is in A or in the Tutte–Berge set, but not in both")
    others = np.flatnonzero(~in_barrier)
    stray = first_true(is_odd[component[others]] != outer[others])
    if stray is not None:
        vertex = int(others[stray])
        kind = "odd" if is_odd[component[vertex]] else "even"
        part = "D" if outer[vertex] else "C"
        raise CertificateError(f"vertex {vertex} is in {part}, but its component is {kind}")
