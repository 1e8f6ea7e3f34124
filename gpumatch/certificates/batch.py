"""Check the assignments of a batch: each problem's by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpumatch.certificates.assignment import AssignmentCertificate, verify_assignment
from gpumatch.certificates.base import Certificate, CertificateError
from gpumatch.certificates.transport import verify_transport
from gpumatch.costs import CostBatch
from gpumatch.numeric.arrays import array_of, first_true

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
    gap : int or float
        The sum of the gaps.
    certificates : tuple of AssignmentCertificate
        Those of the problems.
    """

    gap: float
    certificates: tuple[AssignmentCertificate, ...]

    def __str__(self) -> str:
        is_optimal = all(one.gap <= one.allowance for one in self.certificates)
        return (
            f"{'optimal' if is_optimal else 'not proven optimal'}: {len(self.certificates)} "
            f"problems with {self.size} pairs, checked on {self.edges} pairs"
        )


def verify_batch(
    C: Any,
    result: Any,
    *,
    sizes: Any = None,
    optimal: bool = True,
    supply: Any = None,
    demand: Any = None,
    pair_capacity: Any = None,
) -> BatchCertificate:
    """Check each problem of a batch; see `gpumatch.verify`.

    What a problem is does not come from the result: a padded array is read as far as `sizes` says,
    and whole without them. Of flows, `supply`, `demand` and `pair_capacity` are checked as they
    were given to `transport`.
    """
    problems = CostBatch(C, sizes)
    if len(problems) != len(result):
        raise CertificateError(f"there are {len(problems)} problems, but {len(result)} results")
    claimed = array_of(np, result.sizes)
    if claimed.shape != problems.sizes.shape or (claimed != problems.sizes).any():
        hint = (
            "" if isinstance(C, list) or sizes is not None else ": pass the sizes of the problems"
        )
        raise CertificateError(f"the result is for problems of other sizes{hint}")
    if hasattr(result, "row_to_col"):  # a proof in a file has no padding
        _check_padding(result, problems.sizes)
    checked: list[AssignmentCertificate] = []
    for k, costs in enumerate(problems):
        one = result[k]
        try:
            if hasattr(one, "flow_units"):
                lengths = problems.sizes[k].tolist()
                masses = [
                    _mass_of(mass, k, length) for mass, length in zip((supply, demand), lengths)
                ]
                given = {
                    "supply": masses[0],
                    "demand": masses[1],
                    "pair_capacity": _capacity_of(pair_capacity, k, lengths),
                }
                checked.append(verify_transport(costs, one, optimal=optimal, **given))
            else:
                checked.append(verify_assignment(costs, one, optimal=optimal))
        except CertificateError as exc:
            raise CertificateError(f"problem {k}: {exc}") from exc
    return BatchCertificate(
        "batch",
        sum(one.size for one in checked),
        sum(one.bound for one in checked),
        sum(one.edges for one in checked),
        sum(one.gap for one in checked),
        tuple(checked),
    )


def _mass_of(mass: Any, k: int, length: int) -> Any:
    """The supply or demand of problem k: its own, if each problem has one."""
    if isinstance(mass, tuple):
        return tuple(_mass_of(part, k, length) for part in mass)
    if isinstance(mass, list) and mass and (isinstance(mass[0], tuple) or np.ndim(mass[0])):
        return mass[k]
    if getattr(mass, "ndim", 0) == 2:
        return mass[k, 0] if mass.shape[1] == 1 else mass[k, :length]
    return mass


def _capacity_of(capacity: Any, k: int, lengths: list[int]) -> Any:
    """The capacities of the pairs of problem k."""
    if isinstance(capacity, list):
        return capacity[k] if capacity and np.ndim(capacity[0]) else capacity
    if getattr(capacity, "ndim", 0) == 3:
        return capacity[k, : lengths[0], : lengths[1]]
    return capacity


def _check_padding(result: Any, sizes: np.ndarray) -> None:
    """Check that rows and columns which a problem does not have are unmatched."""
    for side, name in enumerate(("row_to_col", "col_to_row")):
        mates = array_of(np, getattr(result, name))
        is_beyond = np.arange(mates.shape[1]) >= sizes[:, side, None]
        problem = first_true((is_beyond & (mates != -1)).any(axis=1))
        if problem is not None:
            raise CertificateError(f"problem {problem}: {name} has mates of what is not there")
