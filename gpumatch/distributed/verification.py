"""The front door to the checks of results that are divided among ranks."""

from __future__ import annotations

from typing import Any

from gpumatch.certificates import Certificate
from gpumatch.certificates import verify as verify_here
from gpumatch.certificates.distributed import verify_share_of_assignment, verify_share_of_matching
from gpumatch.distributed.assignment import costs_of
from gpumatch.distributed.communicator import Communicator
from gpumatch.distributed.matching import graph_of

__all__ = ["verify"]


def verify(
    block: Any, result: Any, *, comm: Any = None, optimal: bool = True, sizes: Any = None
) -> Certificate:
    """Check a matching or an assignment, and what proves it; the matrix stays where it is.

    All ranks of the communicator call it together.

    Parameters
    ----------
    block : as for `maximum_matching` and `assign`
        This rank's rows.
    result : DistributedMatching or DistributedAssignment
        This rank's share.
    comm : mpi4py communicator, optional
        By default ``MPI.COMM_WORLD``.
    optimal, sizes
        As for `gpumatch.verify`.

    Returns
    -------
    Certificate
        The same on all ranks; of a batch, that of this rank's problems.

    Raises
    ------
    CertificateError
        On all ranks, if any rank finds a fault; the message names the rank, and the edge or vertex.

    Notes
    -----
    Time for its own edges on each rank, and 8 bytes for each of its rows to be sent; for a matching
    a bit for each column to be received, for an assignment 24 bytes.
    """
    with Communicator(comm) as world:
        certificate = _checked(block, result, world, optimal, sizes)
        world.settle()
    return world.outcome(certificate)


def _checked(
    block: Any, result: Any, world: Communicator, optimal: bool, sizes: Any
) -> Certificate:
    if hasattr(result, "errors"):
        return verify_here(block, result, optimal=optimal, sizes=sizes)
    if sizes is not None:
        raise TypeError("sizes are for the result of a batch")
    if hasattr(result, "row_dual"):
        costs = costs_of(block, world)
        return verify_share_of_assignment(costs, result, world, optimal=optimal)
    if not optimal:
        raise TypeError("optimal=False is for assignments of least or greatest total")
    if hasattr(result, "cover"):
        return verify_share_of_matching(graph_of(block, world)[0], result, world)
    raise TypeError("result must be what gpumatch.distributed gave; got a " + type(result).__name__)
