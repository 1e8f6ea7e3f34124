"""Check that a result is what it claims to be.

The checkers share the conversion of the input with the algorithms, and nothing else. That is:

- `gpumatch.bipartite`: `BipartiteGraph` and `as_bipartite`, with the arrays of the edges;
- `gpumatch.costs`: `Costs`, `as_costs` and `CostBatch`, with the costs of pairs and of row ranges;
- `gpumatch.costs.capacities`: `PairCapacities`;
- `gpumatch.general.graph`: `Graph`, `pattern_of` and `weighted_of`;
- `gpumatch.numeric.arrays`: `array_module`, `array_of`, `any_true` and `first_true`, which the
  conversion uses too.

They count, add and compare by code of their own. No algorithm and no front door imports a checker.
"""

from __future__ import annotations

import os
from collections.abc import Hashable
from typing import Any

from gpumatch.certificates.alternatives import AlternativesCertificate
from gpumatch.certificates.assignment import AssignmentCertificate
from gpumatch.certificates.b_matching import BMatchingCertificate
from gpumatch.certificates.base import Certificate, CertificateError
from gpumatch.certificates.batch import BatchCertificate
from gpumatch.certificates.blocks import BlocksCertificate
from gpumatch.certificates.bottleneck import BottleneckCertificate
from gpumatch.certificates.edge_sets import EdgeSetCertificate
from gpumatch.certificates.edges import EdgesCertificate
from gpumatch.certificates.files import Proof, load, save
from gpumatch.certificates.general import GeneralCertificate
from gpumatch.certificates.general_weights import GeneralWeightCertificate
from gpumatch.certificates.kinds import check_claim
from gpumatch.certificates.lexicographic import LexicographicCertificate
from gpumatch.certificates.matching import check_matching
from gpumatch.certificates.product import ProductCertificate
from gpumatch.certificates.ranking import RankingCertificate, RankingsCertificate
from gpumatch.certificates.suitor import BoundCertificate
from gpumatch.certificates.transport import TransportCertificate
from gpumatch.certificates.violators import check_violator

__all__ = [
    "AlternativesCertificate",
    "AssignmentCertificate",
    "BMatchingCertificate",
    "BatchCertificate",
    "BlocksCertificate",
    "BottleneckCertificate",
    "BoundCertificate",
    "Certificate",
    "CertificateError",
    "EdgeSetCertificate",
    "EdgesCertificate",
    "GeneralCertificate",
    "GeneralWeightCertificate",
    "LexicographicCertificate",
    "ProductCertificate",
    "Proof",
    "RankingCertificate",
    "RankingsCertificate",
    "TransportCertificate",
    "check",
    "check_matching",
    "check_violator",
    "load",
    "save",
    "verify",
]


def verify(
    A: Any,
    result: Any,
    *,
    optimal: bool = True,
    sizes: Any = None,
    supply: Any = None,
    demand: Any = None,
    pair_capacity: Any = None,
    weight: Hashable = "weight",
    triangle: str = "both",
) -> Certificate:
    """Check a matching, an assignment, a flow or a form of a matrix, and what proves it.

    Parameters
    ----------
    A : what was matched or decomposed, or the costs of what was assigned
        Anything `BipartiteGraph` is made from; anything `assign` or `transport` takes; for a
        GeneralMatching or EdgeSet, anything `gpumatch.general.maximum_matching` takes.
    result : Matching, GeneralMatching, GeneralWeightMatching, BMatching, Assignment, \
            BottleneckAssignment, LexicographicAssignment, Transport, DulmageMendelsohn, \
            BlockTriangularForm, ProductMatching, RankedAssignments, MatchingEdges, EdgeSet, \
            Alternatives, or a batch of assignments, flows or rankings
        Or any object with ``row_to_col``, ``col_to_row`` and ``vertex_cover()``, or with what one
        of the others holds. `gpumatch.problems.cardinality` states what proves an assignment,
        `gpumatch.problems.transport` what proves a flow,
        `gpumatch.problems.bottleneck` what proves a bottleneck, `gpumatch.certificates.blocks` what
        proves a decomposition or a form, `gpumatch.certificates.product` what proves a product,
        `gpumatch.certificates.edge_sets` what proves an edge cover or a T-join, and
        `gpumatch.certificates.ranking` what proves the k cheapest assignments.
    optimal : bool
        Of assignments, flows, weighted matchings and sets of edges of best total: False accepts
        any, also of a run that was stopped, and the certificate has what its duals prove: none is
        better than ``bound``, and this one is at most ``gap`` worse. All else that the result says
        is still checked.
    sizes : (rows, cols), optional
        How many rows and columns of a padded array each problem of a batch has, as they were given
        to `assign`.
    supply, demand : optional
        The masses of a `Transport` or of a batch of flows, as they were given to `transport`.
        Without them, those that the result names are taken for these.
    pair_capacity : optional
        The capacities of pairs, in the same way.
    weight : hashable
        Of a `GeneralWeightMatching`, `BoundedMatching` or `EdgeSet`: the edge attribute of a
        networkx graph, as it was chosen.
    triangle : {"both", "upper", "lower"}
        Of these and a `GeneralMatching`: the entries of a matrix that are edges, as they were
        chosen.

    Returns
    -------
    Certificate
        Of a batch, it has those of all problems.

    Raises
    ------
    CertificateError
        If a matched pair is not an edge, a vertex is matched twice, or the cover or the duals do
        not prove the result maximum or optimal, or a part or block is not what it must be. The
        message names the edge, the vertex or the block.
    TypeError
        If `result` is none of these, or another argument is not for it.

    Notes
    -----
    Bound and gap of an assignment are true as numbers, not up to rounding. Integers must leave no
    gap; with floats a gap up to the certificate's ``allowance`` is accepted as optimal, which
    depends on the number of pairs, and on the costs and duals in use only. The theorem is stated
    in `gpumatch.certificates.assignment`.

    O(nrows + ncols + nnz) on the device that holds the graph, in tiles of 2**24 edges. The strong
    components of a decomposition or form are found on the host, with memory for all edges, and a
    product is checked there.

    Examples
    --------
    >>> import numpy as np, gpumatch as gm
    >>> A = np.array([[1, 1], [0, 0]])
    >>> print(gm.verify(A, gm.maximum_matching(A)))
    maximum: a matching of 1 edges and a cover of 1 vertices, checked on 2 edges
    """
    optional = {"sizes": sizes, "supply": supply, "demand": demand, "pair_capacity": pair_capacity}
    given = {name: value for name, value in optional.items() if value is not None}
    if not optimal:
        given["optimal"] = False
    if weight != "weight":
        given["weight"] = weight
    if triangle != "both":
        given["triangle"] = triangle
    return check_claim(A, result, **given)


def check(
    file: str | os.PathLike[str],
    A: Any,
    *,
    sizes: Any = None,
    supply: Any = None,
    demand: Any = None,
    pair_capacity: Any = None,
    weight: Hashable = "weight",
    triangle: str = "both",
) -> Certificate:
    """Check a proof in a file: that it is one of this problem, and proves its result.

    Parameters
    ----------
    file : path
        What `save` has written.
    A : the graph or the costs
        In any form; the hash does not depend on it.
    sizes : (rows, cols), optional
        Of a batch in a padded array, as for `verify`.
    supply, demand, pair_capacity : optional
        The masses of a flow, as for `verify`. The hash does not have them, so without them the
        proof is one for the masses that it names itself.
    weight, triangle
        Of a graph, as for `verify`.

    Returns
    -------
    Certificate

    Raises
    ------
    CertificateError
        If the proof is one of another problem, or does not prove its result.
    TypeError
        If an argument is not for this kind of proof.
    ValueError, OSError
        If the file cannot be read, as for `load`.
    """
    proof = load(file)
    proof.check_problem(A, sizes=sizes, weight=weight, triangle=triangle)
    given = {"sizes": sizes, "supply": supply, "demand": demand, "pair_capacity": pair_capacity}
    return verify(A, proof, weight=weight, triangle=triangle, **given)


def __dir__() -> list[str]:
    return __all__
