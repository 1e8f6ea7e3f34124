"""The bytes of a file, which is not trusted: decompressed only up to a limit.

Whatever is wrong becomes a ValueError that names the file.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

__all__ = [
    "MAX_BYTES",
    "compression",
    "content_of",
    "content_of_stream",
    "naming",
    "opened",
    "suffix_of",
]

MAX_BYTES = 2**32


@contextlib.contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn whatever readers raise on broken input into a ValueError that names the file.

    They raise anything from EOFError to zlib.error. Only a failed system call is left as it is.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(f"{path}: {str(error) or type(error).__name__}") from error


_OPEN: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    "": open,
}


_MARKS = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz"}
"""What compressed files begin with."""


def compression(path: Path) -> str:
    """The ending that says how the file is compressed, empty where it is not."""
    suffix = path.suffix.lower()
    return suffix if suffix in _OPEN else ""


def suffix_of(path: Path) -> str:
    """The ending that says the format, in lower case, without that of the compression."""
    name = path.name.lower()
    if name.endswith(".tar.gz"):
        return ".tar.gz"
    return Path(name.removesuffix(compression(path))).suffix


def opened(path: Path) -> Any:
    """The file, open for reading what it holds, decompressed."""
    return _OPEN[compression(path)](path, "rb")


def content_of(path: Path, max_bytes: int) -> bytes:
    """What the file holds, decompressed; of an archive NAME.tar.gz, its NAME/NAME.mtx."""
    with opened(path) as file:
        content = _read_all(file, max_bytes)
    if suffix_of(path) == ".tar.gz":
        content = _archived_matrix(content, path.name[: -len(".tar.gz")])
    if not content:
        raise ValueError("the file is empty")
    return content


def content_of_stream(file: BinaryIO, max_bytes: int) -> bytes:
    """What an open file still holds, decompressed if it begins as a compressed file does."""
    content = _read_all(file, max_bytes)
    for mark, suffix in _MARKS.items():
        if content.startswith(mark):
            with _OPEN[suffix](io.BytesIO(content), "rb") as inflated:
                content = _read_all(inflated, max_bytes)
            break
    if not content:
        raise ValueError("it is empty")
    return content


def _read_all(file: BinaryIO, max_bytes: int) -> bytes:
    """What the open file still holds; a ValueError once it is more than `max_bytes`."""
    content = io.BytesIO()
    while chunk := file.read(2**20):
        if content.tell() + len(chunk) > max_bytes:
            raise ValueError(f"more than max_bytes = {max_bytes} bytes of content")
        content.write(chunk)
    return content.getvalue()


def _archived_matrix(archive: bytes, name: str) -> bytes:
    """The content of NAME/NAME.mtx; nothing is written to disk, so no member can escape to it."""
    wanted = f"{name}/{name}.mtx"
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
        for member in tar:
            # A negative size makes tarfile read the same headers without end. A sparse member can
            # unfold to any size.
            if not 0 <= member.size <= len(archive) or member.issparse():
                raise ValueError(f"member {member.name!r} has an impossible size")
            if member.name == wanted:
                file = tar.extractfile(member) if member.isreg() else None
                if file is None:
                    raise ValueError(f"member {wanted!r} is not a regular file")
                return file.read()
    raise ValueError(f"the archive has no member {wanted!r}")
