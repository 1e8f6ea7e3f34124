"""Check the assignments of a batch: each problem's by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gpumatch.certificates.assignment import AssignmentCertificate, verify_assignment
from gpumatch.certificates.base import Certificate, CertificateError
from gpumatch.costs import CostBatch

__all__ = ["BatchCertificate", "verify_batch"]


@dataclass(frozen=True)
class BatchCertificate(Certificate):
    """The proofs of a batch, checked.

    Attributes
    ----------
    problem : str
        ``"batch"``.
    size, edges : int
        Assigned pairs and checked pairs of all problems.
    bound : int or float
        The sum of what the duals prove.
    certificates : tuple of AssignmentCertificate
        Those of the problems.
    """

    certificates: tuple[AssignmentCertificate, ...]

    def __str__(self) -> str:
        return (
            f"optimal: {len(self.certificates)} problems with {self.size} pairs, "
            f"checked on {self.edges} pairs"
        )


def verify_batch(C: Any, result: Any) -> BatchCertificate:
    """Check each problem of a batch; of a padded array, the parts of the result's `sizes`."""
    sizes = None if isinstance(C, list) else (result.sizes[:, 0], result.sizes[:, 1])
    problems = CostBatch(C, sizes)
    if len(problems) != len(result):
        raise CertificateError(f"there are {len(problems)} problems, but {len(result)} results")
    checked = []
    for k, costs in enumerate(problems):
        try:
            checked.append(verify_assignment(costs, result[k]))
        except CertificateError as exc:
            raise CertificateError(f"problem {k}: {exc}") from exc
    return BatchCertificate(
        "batch",
        sum(one.size for one in checked),
        sum(one.bound for one in checked),
        sum(one.edges for one in checked),
        tuple(checked),
    )
