"""Machine code of kernels, which an installation may have, so that no first call compiles them.

An archive has the programs for one architecture, made by one CUDA version: ``sm_90-cuda13.zip``
has those for devices of compute capability 9.0, made by a compiler of CUDA 13. The name of a
program is a hash of what the compiler was given: the source with its headers, the kernels, and the
options. So the code of a source that has changed since is not found, and the kernels are compiled
as if there were no archive. A program is a line of JSON, the compiler's names of the kernels in
their order, and then the machine code.

A device runs code for its own architecture, and for an older one with the same major number.
A driver runs code of its own CUDA version and of older ones.

`gpumatch.cuda.kernels.build` makes archives.
"""

from __future__ import annotations

import functools
import hashlib
import json
import lzma
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["FOLDER", "Program", "archives", "find", "key_of", "write"]

FOLDER = Path(__file__).parent / "archives"
_ARCHIVE = re.compile(r"sm_(\d+)(\d)-cuda(\d+)\.zip")
_OF_THEIR_OWN = {72, 87, 101, 110}
"""Architectures of modules such as Jetson, which run no code for others of their major number."""


class Program(NamedTuple):
    """Machine code, and the compiler's names of its kernels."""

    names: tuple[str, ...]
    code: bytes


def key_of(text: str, names: Sequence[str], options: Sequence[str]) -> str:
    """The name in an archive of these kernels of a source."""
    given = json.dumps([text, names, options])
    return hashlib.sha256(given.encode()).hexdigest()


def write(file: Path, programs: Mapping[str, Program]) -> None:
    """Write an archive of programs by their names in it. Equal programs make equal archives."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_LZMA) as archive:
        for key in sorted(programs):
            names, code = programs[key]
            member = zipfile.ZipInfo(key)
            member.compress_type = zipfile.ZIP_LZMA
            archive.writestr(member, json.dumps(names).encode() + b"\n" + code)


def find(key: str, *, capability: int, cuda: int) -> Program | None:
    """The program with this key; None if no archive has one that runs.

    Parameters
    ----------
    capability : int
        The device's compute capability: 90 for 9.0.
    cuda : int
        The major number of the newest CUDA version that the driver knows.
    """
    for file in _archives(FOLDER, capability, cuda):
        try:
            line, _, code = _opened(file).read(key).partition(b"\n")
        except (KeyError, OSError, EOFError, lzma.LZMAError, zipfile.BadZipFile):
            continue
        return Program(tuple(json.loads(line)), code)
    return None


def archives() -> list[str]:
    """What the installation has: the architecture and the CUDA version of each archive."""
    return sorted(file.stem for file in FOLDER.glob("*.zip") if _ARCHIVE.fullmatch(file.name))


@functools.cache
def _archives(folder: Path, capability: int, cuda: int) -> tuple[Path, ...]:
    """The archives whose code runs, the newest architecture first."""
    return tuple(file for *_, file in sorted(_that_run(folder, capability, cuda), reverse=True))


def _that_run(folder: Path, capability: int, cuda: int) -> Iterator[tuple[int, int, Path]]:
    for file in folder.glob("*.zip"):
        match = _ARCHIVE.fullmatch(file.name)
        if match is None:
            continue
        major, minor, made_by = map(int, match.groups())
        architecture = 10 * major + minor
        is_same = architecture == capability
        are_alone = _OF_THEIR_OWN.isdisjoint((architecture, capability))
        is_older = major == capability // 10 and architecture < capability and are_alone
        if made_by <= cuda and (is_same or is_older):
            yield architecture, made_by, file


@functools.cache
def _opened(file: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(file)
