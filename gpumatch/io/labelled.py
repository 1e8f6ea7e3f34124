"""A sparse matrix whose rows and columns have labels."""

from __future__ import annotations

from scipy.sparse import csr_array

__all__ = ["LabelledArray"]


class LabelledArray(csr_array):
    """A `scipy.sparse.csr_array` that keeps the labels of a file.

    What is computed from it, such as a part or the transpose, has none.

    Attributes
    ----------
    row_labels, col_labels : list of str, or None
        What the file calls each row and each column. `maximum_matching` and `assign` give their
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
