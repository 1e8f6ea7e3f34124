"""The table of results: how each kind is known, and which checker checks it.

A kind is known by attributes, so any object that has them is checked as one of that kind. The first
line whose attributes a result has is its kind: kinds with more parts come before those with fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gpumatch.certificates.alternatives import verify_alternatives
from gpumatch.certificates.assignment import verify_assignment
from gpumatch.certificates.b_matching import verify_b_matching
from gpumatch.certificates.base import Certificate, CertificateError
from gpumatch.certificates.batch import verify_batch
from gpumatch.certificates.blocks import verify_blocks, verify_form
from gpumatch.certificates.bottleneck import verify_bottleneck
from gpumatch.certificates.edge_sets import verify_edge_set
from gpumatch.certificates.edges import verify_edges
from gpumatch.certificates.general import verify_general
from gpumatch.certificates.general_weights import verify_general_weights
from gpumatch.certificates.lexicographic import verify_lexicographic
from gpumatch.certificates.matching import verify_matching
from gpumatch.certificates.product import verify_product
from gpumatch.certificates.ranking import verify_ranking, verify_rankings
from gpumatch.certificates.suitor import verify_bound
from gpumatch.certificates.transport import verify_transport

__all__ = ["KINDS", "Kind", "check_claim"]


class Kind(NamedTuple):
    """A kind of results.

    Attributes
    ----------
    name : str
    parts : tuple of str
        The attributes that a result of this kind has.
    checker : callable
        It is called with the problem and the result.
    takes : tuple of str
        The arguments of `gpumatch.verify` that the checker takes, too.
    """

    name: str
    parts: tuple[str, ...]
    checker: Callable[..., Certificate]
    takes: tuple[str, ...] = ()


_EDGES = ("weight", "triangle")
_MASSES = ("supply", "demand", "pair_capacity")

KINDS = (
    Kind("BoundedMatching", ("mate", "bound"), verify_bound, _EDGES),
    Kind("GeneralWeightMatching", ("vertex_dual",), verify_general_weights, (*_EDGES, "optimal")),
    Kind("GeneralMatching", ("mate",), verify_general, ("triangle",)),
    Kind("RankedBatch", ("counts",), verify_rankings, ("sizes", "optimal")),
    Kind("RankedAssignments", ("tree",), verify_ranking, ("optimal",)),
    Kind("BatchTransport", ("errors", "row_flow"), verify_batch, (*_MASSES, "sizes", "optimal")),
    Kind("BatchAssignment", ("errors",), verify_batch, ("sizes", "optimal")),
    Kind("Transport", ("flow_units",), verify_transport, (*_MASSES, "optimal")),
    Kind("Assignment", ("row_dual",), verify_assignment, ("optimal",)),
    Kind("EdgeSet", ("edge_ind", "odd_vertices"), verify_edge_set, (*_EDGES, "optimal")),
    Kind("MatchingEdges", ("forced",), verify_edges),
    Kind("Alternatives", ("tolerance",), verify_alternatives),
    Kind("LexicographicAssignment", ("levels",), verify_lexicographic),
    Kind("BottleneckAssignment", ("threshold_cover",), verify_bottleneck),
    Kind("DulmageMendelsohn", ("rr",), verify_blocks),
    Kind("ProductMatching", ("row_log_scale",), verify_product),
    Kind("BlockTriangularForm", ("p", "q"), verify_form),
    Kind("BMatching", ("row_capacity",), verify_b_matching),
    Kind("Matching", ("row_to_col",), verify_matching),
)


def check_claim(A: Any, result: Any, **given: Any) -> Certificate:
    """Check a result of any kind. `given` are the arguments that differ from their defaults.

    Raises
    ------
    CertificateError
        If the result is not what it claims to be.
    TypeError
        If it is of no kind, or an argument is not for its kind.
    """
    kind = _kind_of(result)
    for name in given:
        if name not in kind.takes:
            names = _any_of([kind.name for kind in KINDS if name in kind.takes])
            raise TypeError(f"{name} is for {names}; got {kind.name}")
    try:
        return kind.checker(A, result, **given)
    except OverflowError as error:  # of sums with claims that no result has
        raise CertificateError(f"a number is too large to be checked: {error}") from error


def _kind_of(result: Any) -> Kind:
    for kind in KINDS:
        if all(hasattr(result, part) for part in kind.parts):
            return kind
    names = _any_of([kind.name for kind in KINDS])
    raise TypeError(f"result must be {names}; got {type(result).__name__}")


def _any_of(names: list[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
