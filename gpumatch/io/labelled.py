"""A sparse matrix whose rows and columns have labels."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array

from gpumatch.io.canonical import Duplicates, canonical_csr
from gpumatch.io.contents import MAX_BYTES

__all__ = ["LabelledArray"]


class LabelledArray(csr_array):
    """A `scipy.sparse.csr_array` that keeps the labels of a file, or of pairs.

    What is computed from it, such as a part or the transpose, has none.

    Attributes
    ----------
    row_labels, col_labels : list of str, or None
        What each row and each column is called. `maximum_matching` and `assign` give their
        pairs, covers and unmatched in these labels, as in the nodes of a networkx graph.
    """

    row_labels: list[str] | None = None
    col_labels: list[str] | None = None

    @classmethod
    def of(cls, matrix: csr_array, row_labels: list[str], col_labels: list[str]) -> LabelledArray:
        """The matrix with labels; it shares its arrays."""
        labelled = cls((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape)
        labelled.has_canonical_format = True
        labelled.row_labels, labelled.col_labels = row_labels, col_labels
        return labelled

    @classmethod
    def from_pairs(
        cls,
        rows: Iterable[Hashable],
        cols: Iterable[Hashable],
        values: Any = None,
        *,
        duplicates: Duplicates = "error",
    ) -> LabelledArray:
        """The matrix of pairs of labels, such as the columns of a data frame.

        Parameters
        ----------
        rows, cols
            The two labels of each pair: of one length, and hashable. Rows and columns are in the
            order in which their labels first occur.
        values : array, optional
            The number of each pair, such as its cost or score; 1 by default.
        duplicates : {"error", "sum", "min", "max", "last"}
            What becomes of a pair that occurs again.

        Raises
        ------
        ValueError
            If the lengths differ, or a pair occurs again.
        TypeError
            If a value is no real number.

        Examples
        --------
        >>> import gpumatch as gm
        >>> ours, theirs, scores = ["a", "a", "b"], ["x", "y", "x"], [0.9, 0.8, 0.7]
        >>> S = gm.io.LabelledArray.from_pairs(ours, theirs, scores)
        >>> gm.assign(S, maximize=True).edges()
        [('a', 'y'), ('b', 'x')]
        """
        (row_ids, row_labels), (col_ids, col_labels) = map(_numbered, (rows, cols))
        given = np.ones(len(row_ids), np.int64) if values is None else np.asarray(values)
        if not len(row_ids) == len(col_ids) == given.size or given.ndim != 1:
            raise ValueError(
                f"rows, cols and values must be of one length; got {len(row_ids)}, {len(col_ids)} "
                f"and shape {given.shape}"
            )
        if given.dtype.kind not in "biuf":
            raise TypeError(f"values must be real numbers; got dtype {given.dtype}")
        if duplicates not in ("error", "sum", "min", "max", "last"):
            raise ValueError(f"duplicates must be error, sum, min, max or last; got {duplicates!r}")
        shape = len(row_labels), len(col_labels)
        entries = coo_array((given, (row_ids, col_ids)), shape=shape)

        def repeated(again: int, before: int) -> str:
            pair = row_labels[row_ids[again]], col_labels[col_ids[again]]
            hint = "duplicates can be sum, min, max or last"
            return f"pair {again} is {pair}, as is pair {before}: {hint}"

        return cls.of(
            canonical_csr(entries, MAX_BYTES, duplicates, repeated), row_labels, col_labels
        )


def _numbered(labels: Iterable[Hashable]) -> tuple[list[int], list[Any]]:
    """The number of each label, and the labels by number."""
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(label, len(numbers)) for label in labels], list(numbers)
