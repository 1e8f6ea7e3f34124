"""`emd` and `emd2` with the signatures, results, logs and warnings of POT (``import ot``).

A program that calls ``ot.emd`` calls ``gpumatch.interop.pot.emd`` instead. It takes arrays of NumPy
and lists, sparse matrices of SciPy, dense and sparse torch tensors, and JAX arrays that are not
traced. Results are like them. POT is not needed.

These differ from POT:

- Where several plans or duals are optimal, another one may be returned.
- `numItermax` counts reports of the algorithm, which are fewer than POT's pivots, and the beginning
  of the call as the first. A run that is stopped by it returns what is shipped so far, which may be
  less than all.
- `numThreads` is the number of threads. ``"max"`` uses all cores.
- A problem without a plan returns one of zeros, with POT's warning. Only forbidden pairs, of
  infinite cost or not stored, make one so.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import numpy as np

from gpumatch.interop import jax_arrays
from gpumatch.interop.torch_tensors import is_own as is_tensor
from gpumatch.interop.torch_tensors import source_of, tensor_of
from gpumatch.numeric.arrays import PROTOCOLS, array_of, as_array, is_sparse
from gpumatch.problems.cardinality import InfeasibleError
from gpumatch.results.transport import Transport
from gpumatch.transportation import transport

__all__ = ["emd", "emd2"]

INFEASIBLE, OPTIMAL, STOPPED = 0, 1, 3
"""POT's result codes."""
MESSAGES = {
    INFEASIBLE: "Problem infeasible. Check that a and b are in the simplex",
    OPTIMAL: None,
    STOPPED: "numItermax reached before optimality. Try to increase numItermax.",
}
DECIMALS = 1.5e-6
"""Totals that differ by less count as equal, as in POT."""


def emd(
    a: Any,
    b: Any,
    M: Any,
    numItermax: int = 100000,
    log: bool = False,
    center_dual: bool = True,
    numThreads: int | str = 1,
    check_marginals: bool = True,
    potentials_init: tuple[Any, Any] | None = None,
) -> Any:
    """The optimal transport plan, as ``ot.emd`` returns it.

    Parameters
    ----------
    a, b : arrays of length ns and nt
        The masses of both sides; uniform if empty.
    M : array of shape (ns, nt), or sparse matrix
        The costs.
    numItermax : int
        The reports of the algorithm after which it stops.
    log : bool
        Return a dict as well: ``cost``, ``u``, ``v``, ``warning`` and ``result_code``.
    center_dual : bool
        Shift the duals so that both sides have the same dual cost.
    numThreads : int or "max"
        The number of threads.
    check_marginals : bool
        Check that both sides have the same total, up to 1.5e-6.
    potentials_init : (alpha, beta), optional
        Duals to begin from.

    Returns
    -------
    G : array of shape (ns, nt), or sparse matrix
        The plan, in the dtype of `a`.
    log : dict
        If `log` is true.

    Raises
    ------
    AssertionError
        If lengths or totals do not agree.
    ValueError
        If a mass is negative or not finite, or a cost is NaN.

    Examples
    --------
    >>> from gpumatch.interop.pot import emd
    >>> emd([0.5, 0.5], [0.5, 0.5], [[0.0, 1.0], [1.0, 0.0]])
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    given = _Given(a, b, M)
    given.check(check_marginals)
    solved = given.solve(given.b, numItermax, center_dual, numThreads, potentials_init)
    plan = given.plan(solved)
    return (plan, given.log(solved)) if log else plan


def emd2(
    a: Any,
    b: Any,
    M: Any,
    processes: int = 1,
    numItermax: int = 100000,
    log: bool = False,
    return_matrix: bool = False,
    center_dual: bool = True,
    numThreads: int | str = 1,
    check_marginals: bool = True,
    potentials_init: tuple[Any, Any] | None = None,
) -> Any:
    """The cost of the optimal transport plan, as ``ot.emd2`` returns it.

    Parameters
    ----------
    a, b, M, numItermax, log, center_dual, numThreads, check_marginals, potentials_init
        As for `emd`. `b` may have several columns, each for a problem of its own.
    processes : int
        It is not used, as in POT.
    return_matrix : bool
        Return a dict as with `log`, with the plan as ``G``.

    Returns
    -------
    cost : float, or a list for several problems
        A tensor has gradients with respect to `a`, `b` and a dense `M` that are tensors.
    log : dict
        In a list with the cost, if `log` or `return_matrix` is true.

    Examples
    --------
    >>> from gpumatch.interop.pot import emd2
    >>> emd2([0.5, 0.5], [0.25, 0.75], [[0.0, 1.0], [1.0, 0.0]])
    0.25
    """
    given = _Given(a, b, M)
    given.check(check_marginals)
    if processes > 1 and given.b.ndim > 1:
        warnings.warn(
            "The 'processes' parameter has been deprecated. "
            "Multiprocessing should be done outside of POT.",
            stacklevel=2,
        )

    def one(b: np.ndarray, tensor: Any) -> Any:
        solved = given.solve(b, numItermax, center_dual, numThreads, potentials_init)
        plan = given.plan(solved)
        cost = given.cost(solved, plan, tensor)
        if not (log or return_matrix):
            return cost
        said = given.log(solved) | {"cost": cost}
        return [cost, said | {"G": plan} if return_matrix else said]

    if given.b.ndim == 1:
        return one(given.b, given.given[1])
    columns = range(given.b.shape[1])
    return [one(given.b[:, k].copy(), _column(given.given[1], k)) for k in columns]


class _Solved:
    """A plan with its duals and POT's result code."""

    def __init__(
        self, found: Transport | None, shape: tuple[int, int], *, is_stopped: bool
    ) -> None:
        self.found = found
        if found is None:
            self.code, self.cost = STOPPED if is_stopped else INFEASIBLE, 0.0
            self.u, self.v = np.zeros(shape[0]), np.zeros(shape[1])
        else:
            self.code = STOPPED if is_stopped and not found.proven else OPTIMAL
            self.cost = float(found.objective)
            self.u, self.v = found.row_dual, found.col_dual

    def center(self, a: np.ndarray, b: np.ndarray) -> None:
        """Shift the duals so that both sides have the same dual cost."""
        shift = (b @ self.v - a @ self.u) / (a.sum() + b.sum())
        self.u, self.v = self.u + shift, self.v - shift


class _Given:
    """The arguments of a call: as they are given, and as arrays of float64."""

    def __init__(self, a: Any, b: Any, M: Any) -> None:
        self.given = a, b, M
        arrays = [_readable(part) for part in (a, b, M)]
        if isinstance(arrays[2], tuple) and is_tensor(M):  # a sparse one
            arrays[2] = _matrix_of(*arrays[2])
        self.is_sparse = is_sparse(arrays[2])
        self.costs = arrays[2].tocsr().astype(np.float64) if self.is_sparse else _floats(arrays[2])
        self.shape: tuple[int, int] = self.costs.shape
        sides = zip((a, b), arrays)
        self.like = next((part for part, array in sides if array is not None and len(array)), M)
        masses = []
        for part, length in zip(arrays[:2], self.shape):
            is_empty = part is None or len(part) == 0
            masses.append(np.full(length, 1.0 / length) if is_empty else _floats(part))
        self.a, self.b = masses

    def check(self, check_marginals: bool) -> None:
        """Check lengths and totals, and give the columns exactly the total of the rows."""
        if self.a.shape[0] != self.shape[0] or self.b.shape[0] != self.shape[1]:
            raise AssertionError("Dimension mismatch, check dimensions of M with a and b")
        total, totals = self.a.sum(0), self.b.sum(0)
        if check_marginals and not np.all(np.abs(total - totals) < DECIMALS):
            raise AssertionError(f"a and b vector must have the same sum; got {total} and {totals}")
        self.b = self.b * (total / totals)

    def solve(
        self,
        b: np.ndarray,
        most: int,
        center_dual: bool,
        threads: int | str,
        initial: tuple[Any, Any] | None,
    ) -> _Solved:
        """The plan for these masses of the columns."""
        reports = 1  # the beginning of the call

        def is_enough(_: Any) -> bool:
            nonlocal reports
            reports += 1
            return reports >= most

        if initial is not None:
            initial = _floats(initial[0]), _floats(initial[1])
        found = None
        if reports < most:
            with contextlib.suppress(InfeasibleError):
                found = transport(
                    self.costs,
                    self.a,
                    b,
                    initial=initial,
                    threads=None if threads == "max" else int(threads),
                    callback=is_enough,
                )
        solved = _Solved(found, self.shape, is_stopped=reports >= most)
        if center_dual or not (self.a.all() and b.all()):
            solved.center(self.a, b)
        message = MESSAGES[solved.code]
        if message is not None:
            warnings.warn(message, stacklevel=3)
        return solved

    # -- results like the arguments --------------------------------------------------------------

    def plan(self, solved: _Solved) -> Any:
        """The plan, in the dtype of the masses."""
        found = solved.found
        ends, flow = (
            (np.zeros((0, 2), np.int64), np.zeros(0))
            if found is None
            else (
                found.edges(),
                found.flow,
            )
        )
        if self.is_sparse:
            if is_tensor(self.given[2]):
                return self._sparse_tensor(flow, ends)
            from scipy.sparse import coo_array

            return coo_array((self._number(flow), (ends[:, 0], ends[:, 1])), shape=self.shape)
        if self._is_integer:
            warnings.warn(
                "Input histogram consists of integer. The transport plan will be "
                "casted accordingly, possibly resulting in a loss of precision. "
                "If this behaviour is unwanted, please make sure your input "
                "histogram consists of floating point elements.",
                stacklevel=3,
            )
        plan = np.zeros(self.shape)
        plan[ends[:, 0], ends[:, 1]] = flow
        return self._like(plan)

    def cost(self, solved: _Solved, plan: Any, b: Any) -> Any:
        """The cost; a tensor has the gradients of POT."""
        if jax_arrays.is_own(self.like):
            return self._like(np.array(solved.cost))
        if not is_tensor(self.like):
            return solved.cost
        cost = self._like(np.array(solved.cost))
        parts = (
            (self.given[0], self._like(solved.u - solved.u.mean())),
            (b, self._like(solved.v - solved.v.mean())),
            (self.given[2], plan),
        )
        for part, gradient in parts:
            if is_tensor(part) and part.requires_grad and len(part):
                if part is self.given[2] and self.is_sparse:
                    part, gradient = self._entries(part, solved)
                product = (part * gradient.to(part)).sum().to(cost)
                cost = cost + (product - product.detach())
        return cost

    def _sparse_tensor(self, flow: np.ndarray, ends: np.ndarray) -> Any:
        """The plan as a sparse tensor in COO, in the dtype and on the device of the masses."""
        import torch

        values = self._like(flow)
        if not is_tensor(values):
            values = tensor_of(values)
        places = tensor_of(np.ascontiguousarray(ends.T)).to(values.device)
        return torch.sparse_coo_tensor(places, values, self.shape).coalesce()

    def _entries(self, costs: Any, solved: _Solved) -> tuple[Any, Any]:
        """The stored costs of a sparse tensor, and what their pairs carry."""
        stored = costs if costs.is_sparse else costs.to_sparse_coo()
        stored = stored.coalesce()
        found, places = solved.found, stored.indices().cpu().numpy()
        flow = np.zeros(places.shape[1])
        if found is not None and found.size:
            keys = found.row_ind * self.shape[1] + found.col_ind
            wanted = places[0] * self.shape[1] + places[1]
            spots = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
            flow = np.where(keys[spots] == wanted, found.flow[spots], 0.0)
        return stored.values(), tensor_of(flow)

    def log(self, solved: _Solved) -> dict[str, Any]:
        return {
            "cost": solved.cost,
            "u": self._like(solved.u),
            "v": self._like(solved.v),
            "warning": MESSAGES[solved.code],
            "result_code": solved.code,
        }

    @property
    def _is_integer(self) -> bool:
        if is_tensor(self.like):
            return not self.like.is_floating_point()
        return np.asarray(_readable(self.like)).dtype.kind in "biu" if not self.is_sparse else False

    def _number(self, values: Any) -> Any:
        """An array in the dtype of the masses."""
        if is_tensor(self.like) or is_sparse(self.like):
            return values
        dtype = np.asarray(_readable(self.like)).dtype
        return values.astype(dtype) if dtype.kind in "biuf" else values

    def _like(self, values: np.ndarray) -> Any:
        """An array of float64 in the type, the dtype and on the device of the masses."""
        if is_tensor(self.like):
            return tensor_of(values).to(self.like)
        if jax_arrays.is_own(self.like):
            return jax_arrays.home_of(self.like).array(values.astype(self.like.dtype))
        return self._number(values)


def _readable(values: Any) -> Any:
    """An array, or what `_floats` can make one of; a tuple of arrays of a sparse tensor."""
    if is_tensor(values):
        return source_of(values)
    if any(hasattr(values, name) for name in PROTOCOLS) and not is_sparse(values):
        return as_array(values, "M, a and b")
    return values


def _floats(values: Any) -> np.ndarray:
    """An array of float64 on the host."""
    return np.asarray(array_of(np, _readable(values)), np.float64)


def _matrix_of(indptr: Any, indices: Any, data: Any, shape: tuple[int, int]) -> Any:
    """A sparse matrix of the arrays of a tensor. As in POT, its repeated entries are summed."""
    from scipy.sparse import csr_matrix

    arrays = (
        part.get() if hasattr(part, "get") and not isinstance(part, np.ndarray) else part
        for part in (data, indices, indptr)
    )
    return csr_matrix(tuple(arrays), shape=shape)


def _column(given: Any, k: int) -> Any:
    return given[:, k] if is_tensor(given) else None
