"""LU factorization with pivots that are chosen beforehand.

A maximum product matching permutes and scales the matrix so that its diagonal has entries of about
1, and nothing is much larger. SuperLU then takes its pivots from the diagonal, nearly always, and
so keeps the order of columns that it has chosen for little fill. The factors of the scaling are
rounded to powers of 2, so scaling rounds nothing. Iterative refinement takes off what small pivots
have cost.

References
----------
Li, Demmel, *SuperLU_DIST: a scalable distributed-memory sparse direct solver for unsymmetric linear
systems*, ACM TOMS 29(2), 2003; Arioli, Demmel, Duff, *Solving sparse linear systems with sparse
backward error*, SIAM J. Matrix Anal. Appl. 10(2), 1989.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gpumatch.bipartite import BipartiteGraph
from gpumatch.dispatch.by_device import cover_for
from gpumatch.dispatch.registry import BackendName
from gpumatch.interop.tensors import is_tensor, source_of
from gpumatch.linalg.entries import usable_csr
from gpumatch.linalg.ordering import check_square
from gpumatch.linalg.product_matching import ProductMatching, maximum_product_matching
from gpumatch.linalg.refinement import NEVER, Equations, Sides, exponents, refined, times_power
from gpumatch.numeric.arrays import array_of, as_array, is_sparse
from gpumatch.results.tensors import like_sides

__all__ = [
    "LU",
    "ScaledSystem",
    "SingularMatrixError",
    "checked_sides",
    "factorized",
    "in_columns",
    "in_double",
    "matched_system",
    "splu",
]

_GREATEST = 400  # exponent of scaled right-hand sides: more room below it than above
_PIVOT_THRESHOLD = 0.01  # of the largest entry of its column, from which the diagonal is a pivot


class SingularMatrixError(RuntimeError):
    """The matrix is singular whatever the values of its entries.

    Attributes
    ----------
    rows, cols : int arrays
        A Hall violator: all entries of `rows` lie in `cols`, and `cols` are fewer.
    """

    def __init__(self, rows: Any, cols: Any) -> None:
        super().__init__(
            f"the matrix is singular whatever its values: {rows.size} rows have entries in "
            f"{cols.size} columns only"
        )
        self.rows, self.cols = rows, cols

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.rows, self.cols)


class ScaledSystem:
    """A matrix that some solver has factored, permuted and scaled beforehand, with refinement.

    Attributes
    ----------
    shape : (int, int)
    row_scale, col_scale : float64 arrays of length n
        The factors of rows and columns: powers of 2. One beyond the range of float64 is inf or 0.
    row_power, col_power : int32 arrays of length n
        Their exponents, always in range.
    matching : ProductMatching
        It puts row ``matching.row_perm[k]`` of the scaled matrix at place k.
    """

    def __init__(self, matrix: Any, matching: ProductMatching) -> None:
        self.matching = matching
        self._matrix = matrix
        self.row_power, self.col_power = (
            np.rint(scale / np.log(2)).astype(np.int32)
            for scale in (matching.row_log_scale, matching.col_log_scale)
        )
        self._order = matching.row_perm
        self._equations: dict[str, Equations] = {}

    def _scaled(self) -> Any:
        """The matrix to be factored, in CSR."""
        matrix = self._matrix
        scaled = matrix.copy()
        power = np.repeat(self.row_power, np.diff(matrix.indptr)) + self.col_power[matrix.indices]
        with np.errstate(all="ignore"):
            scaled.data = times_power(matrix.data, power)
        return scaled[self._order]

    def _solve_scaled(self, right: np.ndarray, trans: str) -> np.ndarray:
        """The solver's solution of a system with that matrix; sides are of its type."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, int]:
        return self._matrix.shape

    @property
    def row_scale(self) -> Any:
        return _power_of_2(self.row_power)

    @property
    def col_scale(self) -> Any:
        return _power_of_2(self.col_power)

    def solve(self, b: Any, trans: str = "N") -> Any:
        """Solve a system with the matrix.

        Parameters
        ----------
        b : array of shape (n,) or (n, k)
            The right-hand sides.
        trans : {"N", "T", "H"}
            The system: ``A @ x == b``, that with the transposed, or with its conjugate.

        Returns
        -------
        array like b
            Each column is refined by itself, until its backward error, the greatest ``|b - A x| /
            (|A| |x| + |b|)`` of an equation, is that of rounding or does not get smaller. What is
            not finite in a column of b spoils no other, and is no error.

        Raises
        ------
        ValueError
            If `trans` or the shape of `b` is wrong.
        """
        if trans not in _SYSTEMS:
            raise ValueError(f"trans must be one of {tuple(_SYSTEMS)}; got {trans!r}")
        right = checked_sides(b, self._matrix)
        x = self.solve_sides(Sides.of(in_columns(right)), trans).reshape(right.shape)
        return like_sides(x, b)

    def solve_sides(self, right: Sides, trans: str = "N") -> np.ndarray:
        """Solve for right-hand sides that may be beyond the range of float64."""
        if trans not in self._equations:
            powers = self.row_power, self.col_power
            powers = powers if trans == "N" else powers[::-1]
            self._equations[trans] = Equations(_SYSTEMS[trans](self._matrix), *powers)
        with np.errstate(all="ignore"):
            return refined(
                self._equations[trans], right, lambda sides: self._solve_once(sides, trans)
            )

    def _solve_once(self, right: Sides, trans: str) -> tuple[np.ndarray, np.ndarray]:
        """The solution from the factors, and what of it is beyond the range of float64."""
        powers = self.row_power[:, None], self.col_power[:, None]
        of_sides, of_unknowns = powers if trans == "N" else powers[::-1]
        power = right.power + of_sides
        greatest = (exponents(right.values) + power).max(axis=0, initial=NEVER)
        down = np.where(greatest > NEVER / 2, _GREATEST - greatest, 0)
        scaled = times_power(right.values, power + down)
        if trans == "N":
            x = self._solve_parts(scaled[self._order], trans)
        else:
            x = np.empty_like(scaled)
            x[self._order] = self._solve_parts(scaled, trans)
        unknowns = times_power(x, of_unknowns - down)
        return unknowns, np.isinf(unknowns) & np.isfinite(x)

    def _solve_parts(self, right: np.ndarray, trans: str) -> np.ndarray:
        """The solution; the parts of complex sides of a real matrix one after the other."""
        if right.dtype.kind == "c" and self._matrix.dtype.kind != "c":
            real, imaginary = right.real.copy(), right.imag.copy()
            return self._solve_scaled(real, trans) + 1j * self._solve_scaled(imaginary, trans)
        return self._solve_scaled(right, trans)


class LU(ScaledSystem):
    """An LU factorization, with the interface of SciPy's `SuperLU`.

    With the permutations ``Pr`` and ``Pc`` that SciPy makes of `perm_r` and `perm_c`, and the
    diagonal matrices ``Dr`` and ``Dc`` of the scaling, ``Pr @ Dr @ A @ Dc @ Pc`` is ``L @ U``.

    Attributes
    ----------
    shape : (int, int)
    nnz : int
        Entries that SuperLU stores of ``L`` and ``U``.
    perm_r, perm_c : int arrays of length n
        The place of each row and of each column.
    row_scale, col_scale : float64 arrays of length n
        The diagonals of ``Dr`` and ``Dc``: powers of 2. A factor beyond the range of float64 is inf
        or 0.
    row_power, col_power : int32 arrays of length n
        Their exponents, always in range.
    L, U : csc_array
        Lower triangular with ones on the diagonal, and upper triangular.
    matching : ProductMatching

    Notes
    -----
    The factors are SuperLU's, on the host. So all attributes are arrays of NumPy and SciPy, even if
    the matrix was a tensor; what `solve` returns is like the right-hand sides, which may be on a
    device.

    It can be pickled. What is unpickled is factored again.
    """

    def __init__(self, matrix: Any, matching: ProductMatching, **superlu: Any) -> None:
        from scipy.sparse.linalg import splu

        super().__init__(matrix, matching)
        self._options = superlu
        self._lu = splu(self._scaled().tocsc(), **superlu)

    @property
    def nnz(self) -> int:
        return int(self._lu.nnz)

    @property
    def perm_r(self) -> Any:
        places = np.empty_like(self._lu.perm_r)
        places[self._order] = self._lu.perm_r
        return places

    @property
    def perm_c(self) -> Any:
        return self._lu.perm_c

    @property
    def L(self) -> Any:
        return self._lu.L

    @property
    def U(self) -> Any:
        return self._lu.U

    def __getstate__(self) -> dict[str, Any]:
        """All but the factors, which SuperLU cannot hand out: unpickling factors again."""
        return {**self.__dict__, "_lu": None, "_equations": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from scipy.sparse.linalg import splu

        self.__dict__.update(state)
        self._lu = splu(self._scaled().tocsc(), **self._options)

    def __repr__(self) -> str:
        return f"LU({self.shape[0]} rows, {self.nnz} entries in L and U)"

    def _solve_scaled(self, right: np.ndarray, trans: str) -> np.ndarray:
        return self._lu.solve(right, trans)


def splu(
    A: Any,
    permc_spec: str | None = None,
    diag_pivot_thresh: float | None = None,
    relax: int | None = None,
    panel_size: int | None = None,
    options: dict[str, Any] | None = None,
    *,
    backend: BackendName = "auto",
    seed: int = 0,
    threads: int | None = None,
) -> LU:
    """Factor a square matrix, permuted and scaled by a maximum product matching beforehand.

    Parameters
    ----------
    A : square sparse matrix, tuple ``(indptr, indices, data, shape)``, or dense matrix
        Real or complex; solved in double precision.
    permc_spec, relax, panel_size, options
        As for `scipy.sparse.linalg.splu`.
    diag_pivot_thresh : float, optional
        As for SciPy's, but by default 0.01: the diagonal is a pivot unless another entry of its
        column is 100 times as large. With 0 it always is, unless it is 0.
    backend, seed, threads
        As for `maximum_product_matching`.

    Returns
    -------
    LU

    Raises
    ------
    ValueError, TypeError
        If A is not square, a value is not finite, or an argument is wrong.
    SingularMatrixError
        A RuntimeError: the matrix is structurally singular. It has the rows that show it.
    RuntimeError
        SciPy's, if the matrix is singular otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from gpumatch.linalg import splu
    >>> A = np.array([[1e-20, 1.0], [1.0, 1.0]])
    >>> splu(A, diag_pivot_thresh=0.0).solve(np.array([1.0, 2.0]))
    array([1., 1.])
    """
    matrix, matching = matched_system(A, backend=backend, seed=seed, threads=threads)
    threshold = _PIVOT_THRESHOLD if diag_pivot_thresh is None else diag_pivot_thresh
    return LU(
        matrix,
        matching,
        permc_spec=permc_spec,
        diag_pivot_thresh=threshold,
        relax=relax,
        panel_size=panel_size,
        options={"Equil": False, **(options or {})},
    )


def factorized(A: Any) -> Callable[[Any], Any]:
    """A function that solves ``A @ x == b`` for b, as SciPy's `factorized` gives it.

    Parameters
    ----------
    A : as for `splu`

    Examples
    --------
    >>> import numpy as np
    >>> from gpumatch.linalg import factorized
    >>> solve = factorized(np.array([[0.0, 2.0], [4.0, 0.0]]))
    >>> solve(np.array([2.0, 4.0]))
    array([1., 1.])
    """
    return splu(A).solve


def matched_system(
    A: Any, *, backend: BackendName, seed: int, threads: int | None
) -> tuple[Any, ProductMatching]:
    """A square matrix in double precision, and its maximum product matching with all rows.

    Raises
    ------
    ValueError, TypeError, SingularMatrixError
        As for `splu`.
    """
    matrix = usable_csr(A)
    check_square(BipartiteGraph((matrix.indptr, matrix.indices, matrix.shape)))
    matrix = in_double(matrix)
    matching = maximum_product_matching(matrix, backend=backend, seed=seed, threads=threads)
    if matching.size < matrix.shape[0]:
        raise SingularMatrixError(*_violator(matrix, matching))
    return matrix, matching


def checked_sides(b: Any, matrix: Any) -> np.ndarray:
    """Right-hand sides for a matrix, in the precision of their solutions."""
    if is_sparse(b) or (is_tensor(b) and isinstance(source_of(b), tuple)):
        raise TypeError(
            "b must be dense, because solutions are; got a sparse matrix: b.toarray(), or "
            "b.to_dense() of a tensor"
        )
    right = array_of(np, as_array(source_of(b) if is_tensor(b) else b, "b"))
    if right.dtype.kind not in "biufc":
        raise TypeError(f"b must hold numbers; got dtype {right.dtype}")
    if right.ndim not in (1, 2) or right.shape[0] != matrix.shape[0]:
        raise ValueError(
            f"b must have {matrix.shape[0]} rows and one or two dimensions; got shape {right.shape}"
        )
    is_complex = "c" in (right.dtype.kind, matrix.dtype.kind)
    return right.astype(np.complex128 if is_complex else np.float64)


def in_columns(right: np.ndarray) -> np.ndarray:
    """Right-hand sides of one or two dimensions, in two."""
    return right.reshape(right.shape[0], math.prod(right.shape[1:]))


def in_double(matrix: Any) -> Any:
    """The matrix in float64 or complex128."""
    return matrix.astype(np.complex128 if matrix.dtype.kind == "c" else np.float64)


def _violator(matrix: Any, matching: ProductMatching) -> tuple[Any, Any]:
    """Rows with entries in fewer columns, and these columns."""
    graph = BipartiteGraph((matrix.indptr, matrix.indices, matrix.shape))
    in_rows, in_cols = cover_for(graph)(graph, matching.row_to_col, matching.col_to_row)
    return (~in_rows).nonzero()[0], in_cols.nonzero()[0]


def _power_of_2(power: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(1.0, power)


_SYSTEMS: dict[str, Callable[[Any], Any]] = {
    "N": lambda matrix: matrix,
    "T": lambda matrix: matrix.T,
    "H": lambda matrix: matrix.conj().T,
}
