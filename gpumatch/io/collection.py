"""Matrices of the SuiteSparse Matrix Collection: found on this machine, or downloaded once.

References
----------
T. Davis, Y. Hu: The University of Florida sparse matrix collection. ACM TOMS 38(1), 2011.
"""

from __future__ import annotations

import difflib
import functools
import os
import re
import tomllib
from pathlib import Path
from typing import Any

from scipy.sparse import csr_array

from gpumatch.io.contents import MAX_BYTES
from gpumatch.io.files import read

__all__ = ["manifest", "suitesparse"]

COLLECTION_URL = "https://sparse.tamu.edu/MM/"
_PACKAGE = Path(__file__).parents[1]


def suitesparse(name: str, *, max_bytes: int = MAX_BYTES) -> csr_array:
    """Read a matrix of the SuiteSparse Matrix Collection, downloading it once.

    The matrix is looked for as Name.mtx, Name.mtx.gz and Name.tar.gz in the folder that the
    environment variable GPUMATCH_DATA names, in its subfolder `matrices`, in `datasets` of the
    source checkout from which gpumatch is imported, if any, and in the cache folder. If it is in
    none of them, pooch downloads it into the cache (``pip install gpumatch[data]``).

    Parameters
    ----------
    name
        "Group/Name", as in "HB/west0067".
    max_bytes
        As for `read`.

    Raises
    ------
    ValueError
        The name is not of that form, the file is malformed, or it is not what `manifest` says of
        it: rows, columns, entries, and the hash of what was downloaded.
    FileNotFoundError
        The matrix is in none of the folders and could not be downloaded: no network, no pooch, or
        no such matrix. The message names the file and the folder to put it in.

    Examples
    --------
    >>> suitesparse("HB/ash219").shape
    (219, 85)
    """
    if not re.fullmatch(r"[A-Za-z0-9][\w.+-]*/[A-Za-z0-9][\w.+-]*", name, re.ASCII):
        raise ValueError(f"{name!r} is not of the form Group/Name{_similar(name)}")
    path = found(name) or _download(name)
    matrix = read(path, max_bytes=max_bytes)
    _check_published(name, path, matrix)
    return matrix


@functools.cache
def manifest() -> dict[str, dict[str, Any]]:
    """What is known of matrices of the collection: "Group/Name" -> rows, columns, entries, ...

    `entries` counts both triangles of a symmetric matrix, and stored zeros. `sprank` (structural
    rank over the entries) and `sha256` (of Name.tar.gz) are there if they were seen, `sets` if a
    paper measured on the matrix.

    Examples
    --------
    >>> manifest()["Hamrle/Hamrle3"]["entries"]
    5514242
    """
    installed = _PACKAGE / "_manifest.toml"
    path = installed if installed.exists() else _checkout_datasets() / "manifest.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _checkout_datasets() -> Path:
    return _PACKAGE.parent / "datasets"


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "gpumatch"


def found(name: str) -> Path | None:
    """The file of the matrix "Group/Name" on this machine, None where there is none."""
    group, _, matrix = name.rpartition("/")
    data = os.environ.get("GPUMATCH_DATA")
    folders = [Path(data), Path(data, "matrices")] if data else []
    folders += [_checkout_datasets(), _cache() / group]
    files = (
        folder / f"{matrix}{end}" for folder in folders for end in (".mtx", ".mtx.gz", ".tar.gz")
    )
    return next((file for file in files if file.is_file()), None)


def _download(name: str) -> Path:
    archive = f"{name}.tar.gz"
    try:
        import pooch

        hashes = {archive: manifest().get(name, {}).get("sha256")}
        store = pooch.create(_cache(), COLLECTION_URL, registry=hashes)
        return Path(store.fetch(archive))
    except (ImportError, OSError) as exc:  # the errors of requests are OSErrors
        error = f"{exc}: pip install 'gpumatch[data]'" if isinstance(exc, ImportError) else exc
        folder = os.environ.get("GPUMATCH_DATA") or _cache() / name.split("/")[0]
        raise FileNotFoundError(
            f"{name} is not on this machine and could not be downloaded ({error}): "
            f"put {COLLECTION_URL}{archive} into {folder}{_similar(name)}"
        ) from exc


def _similar(name: str) -> str:
    """A question after the name that may have been meant, if this one is not known."""
    known = manifest()
    close = [] if name in known else difflib.get_close_matches(name, known, 1)
    close = close or [whole for whole in known if whole.endswith(f"/{name}")]
    return f"; did you mean {close[0]}?" if close else ""


def _check_published(name: str, path: Path, matrix: csr_array) -> None:
    known = manifest().get(name)
    if known is None:
        return
    published = (known["rows"], known["columns"], known["entries"])
    if (*matrix.shape, matrix.nnz) != published:
        raise ValueError(
            f"{path}: rows, columns, entries are {(*matrix.shape, matrix.nnz)}, "
            f"but those published of {name} are {published}"
        )
