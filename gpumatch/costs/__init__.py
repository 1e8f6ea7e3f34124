"""What an assignment costs: kinds of costs, and what algorithms need of any of them.

`gpumatch.costs.base.Costs` states what every kind can do. It names the costs of pairs (`at`,
`allows`), of ranges of rows (`tile`), or of all pairs, as a matrix (`dense`) or in the form that
kernels of its kind read (`entries`). A dense matrix and a sparse one are here, distances of points
and costs that a function of the caller computes. A new kind is a file.

Costs are checked once, when they are made. An algorithm never sees the caller's array, only the
`problem` made from it. This has costs to be minimised, no more rows than columns, one of the dtypes
below, and is C-contiguous. A forbidden pair is inf if dense, and not stored if sparse. There are no
other infinities.

    given                 dense    sparse
    integers below 2**25  int32    int64
    other integers        int64    int64
    float16, float32      float32  float64
    other floats          float64  float64

On a device, where kernels count in 64 bits, int32 stays what it is.
Duals of integer problems are int64, of others float64.

Costs live where their source does. The problems made from them live there too. A dense matrix that
has a problem's form already is not copied, and nothing here needs a second one beside it, because
whatever looks at every entry does so in tiles of rows.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from gpumatch.bipartite import BipartiteGraph
from gpumatch.costs.base import TOO_LARGE, Costs, check_extent, check_sums, overflow_of_sums
from gpumatch.costs.batch import CostBatch, SideBySide, is_batch, native
from gpumatch.costs.called import CalledCosts
from gpumatch.costs.dense import DenseCosts
from gpumatch.costs.functions import FunctionCosts
from gpumatch.costs.points import PointCosts
from gpumatch.costs.sparse import SparseCosts
from gpumatch.interop.networkx import is_networkx
from gpumatch.interop.tensors import is_tensor, source_of
from gpumatch.numeric.arrays import is_sparse

__all__ = [
    "TOO_LARGE",
    "CalledCosts",
    "CostBatch",
    "Costs",
    "DenseCosts",
    "FunctionCosts",
    "PointCosts",
    "SideBySide",
    "SparseCosts",
    "as_costs",
    "check_sums",
    "is_batch",
    "native",
    "overflow_of_sums",
]


def as_costs(
    source: Any,
    weight: Hashable | None = "weight",
    row_nodes: Iterable[Hashable] | None = None,
    *,
    summed: bool = True,
) -> Costs:
    """`source` itself if it is costs, else the dense or sparse costs made from it.

    `weight` and `row_nodes` say what the costs of a networkx graph are, as in
    `SparseCosts.from_networkx`. Unless they are `summed`, costs may be so large that sums overflow.
    """
    if is_networkx(source):
        return SparseCosts.from_networkx(source, weight, row_nodes, summed=summed)
    if row_nodes is not None or weight != "weight":
        raise TypeError("row_nodes and weight are for a networkx graph only")
    if isinstance(source, Costs):
        check_extent(source.extent, min(source.shape), summed=summed)
        return source
    if isinstance(source, BipartiteGraph):
        raise TypeError("a BipartiteGraph has no costs: pass a sparse matrix or a tuple with data")
    if is_tensor(source):
        source = source_of(source)
    has_entries = isinstance(source, tuple) or is_sparse(source)
    return (SparseCosts if has_entries else DenseCosts)(source, summed=summed)


def __dir__() -> list[str]:
    return __all__
