"""For the tests of files: small ones, and what is to be read from them."""

from __future__ import annotations

import io

import numpy as np
import scipy.sparse as sp
from hypothesis import settings

PATTERN = "%%MatrixMarket matrix coordinate pattern general\n"
REAL = "%%MatrixMarket matrix coordinate real general\n"
SMALL = (PATTERN + "2 3 2\n1 3\n2 1\n").encode()
UNHURRIED = settings(deadline=None, max_examples=50)


def same(matrix, expected):
    """Same shape, canonical CSR pattern (stored zeros included) and values."""
    assert isinstance(matrix, sp.csr_array)
    assert matrix.has_canonical_format
    expected = sp.csr_array(expected)
    expected.sum_duplicates()
    assert matrix.shape == expected.shape
    np.testing.assert_array_equal(matrix.indptr, expected.indptr)
    np.testing.assert_array_equal(matrix.indices, expected.indices)
    np.testing.assert_array_equal(matrix.data, expected.data)


def stored(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def npy(array, **changes):
    """An array's file, with some of its header replaced."""
    file = io.BytesIO()
    np.save(file, array)
    content = file.getvalue()
    for old, new in changes.items():
        content = content.replace(old.encode(), new.encode())
    return content
