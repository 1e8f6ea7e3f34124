"""Factor on a GPU by cuDSS, which takes its pivots from the diagonal, after scaling.

cuDSS is NVIDIA's direct solver, called through nvmath-python. Both are imported when first asked
for. With static pivots it needs what `gpumatch.linalg.maximum_product_matching` gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpumatch.dispatch.registry import BackendName
from gpumatch.linalg.lu import ScaledSystem, matched_system
from gpumatch.linalg.product_matching import ProductMatching

__all__ = ["CuDSS", "cudss"]


class CuDSS(ScaledSystem):
    """A factorization that cuDSS holds on a GPU, until `free` or the end of a ``with``.

    Attributes
    ----------
    shape : (int, int)
    row_scale, col_scale : float64 arrays of length n
        The factors of rows and columns: powers of 2.
    matching : ProductMatching
    solver : nvmath.sparse.advanced.DirectSolver
        It has factored ``(Dr @ A @ Dc)[matching.row_perm]``.
    """

    def __init__(self, matrix: Any, matching: ProductMatching, options: Any) -> None:
        super().__init__(matrix, matching)
        nothing = np.zeros(matrix.shape[0], matrix.dtype)
        self.solver = _direct_solver()(self._scaled(), nothing, options=options)
        self.solver.plan()
        self.solver.factorize()

    def __enter__(self) -> CuDSS:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    def free(self) -> None:
        """Give the GPU's memory back; nothing can be solved after that."""
        self.solver.free()

    def _solve_scaled(self, right: np.ndarray, trans: str) -> np.ndarray:
        if trans != "N":
            raise ValueError(
                f"cuDSS solves with the matrix itself: trans must be 'N'; got {trans!r}"
            )
        x = np.empty_like(right)
        for own, column in zip(np.atleast_2d(x.T), np.atleast_2d(right.T)):
            self.solver.reset_operands(b=np.ascontiguousarray(column))
            own[:] = self.solver.solve()
        return x


def cudss(
    A: Any,
    *,
    options: Any = None,
    backend: BackendName = "auto",
    seed: int = 0,
    threads: int | None = None,
) -> CuDSS:
    """Factor a square matrix on a GPU by cuDSS, permuted and scaled beforehand.

    Parameters
    ----------
    A : square sparse matrix, tuple ``(indptr, indices, data, shape)``, or dense matrix
        As for `splu`, on the host.
    options
        Of ``nvmath.sparse.advanced.DirectSolver``.
    backend, seed, threads
        As for `maximum_product_matching`.

    Returns
    -------
    CuDSS
        Its ``solve(b)`` refines as that of `splu` does.

    Raises
    ------
    ImportError
        If nvmath-python is missing.
    ValueError, TypeError, SingularMatrixError
        As for `splu`.
    """
    _direct_solver()
    matrix, matching = matched_system(A, backend=backend, seed=seed, threads=threads)
    return CuDSS(matrix, matching, options)


def _direct_solver() -> Any:
    try:
        from nvmath.sparse.advanced import DirectSolver
    except ImportError as exc:
        raise ImportError(
            "cuDSS is called through nvmath-python: pip install 'nvmath-python[cu13]'"
        ) from exc
    return DirectSolver
