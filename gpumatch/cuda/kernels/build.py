"""Compile kernels ahead, into archives of machine code that an installation brings.

    python -m gpumatch.cuda.kernels.build --arch 90 --arch 100 --out folder

This needs CuPy and NVRTC, but no GPU. What is compiled is each source below gpumatch/cuda, for all
types of its kernels. The file `machine_code.py` states what an archive is, and how its programs are
found.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import os
import pkgutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import gpumatch.cuda
from gpumatch.cuda.kernels import COMPILE_OPTIONS, Source, machine_code
from gpumatch.cuda.kernels.machine_code import Program

__all__ = ["ARCHITECTURES", "build", "main", "sources"]

ARCHITECTURES = (80, 86, 89, 90, 100, 120)
_CUPYS_OPTIONS = ("-ftz=true", "--device-as-default-execution-space")
"""What CuPy tells the compiler, too, so that machine code computes what compiled sources do."""


class _Job(NamedTuple):
    """A program to compile."""

    text: str
    names: tuple[str, ...]
    options: tuple[str, ...]

    @property
    def key(self) -> str:
        return machine_code.key_of(*self)


def sources() -> list[Source]:
    """Every source of kernels, once. This imports all modules of the package `cuda`, and CuPy."""
    found = []
    for module in pkgutil.walk_packages(gpumatch.cuda.__path__, "gpumatch.cuda."):
        names = vars(importlib.import_module(module.name))
        found += [thing for thing in names.values() if isinstance(thing, Source)]
    return list(dict.fromkeys(found))


def build(
    architectures: Sequence[int], folder: Path, files: Sequence[str] = (), workers: int = 0
) -> list[Path]:
    """Write the archives of these architectures.

    Parameters
    ----------
    architectures : sequence of int
        Compute capabilities: 90 for 9.0.
    folder : Path
        Where archives are written. It is made if it is not there.
    files : sequence of str
        The sources to compile; all if none is named.
    workers : int
        Processes that compile; as many as processors if it is 0.

    Returns
    -------
    list of Path
        The archives, in the order of the architectures.

    Raises
    ------
    ValueError
        If there is no source of a name in `files`.
    """
    from cupy_backends.cuda.libs import nvrtc

    unknown = {*files} - {source.file for source in sources()}
    if unknown:
        raise ValueError(f"files: there is no source {min(unknown)!r}")
    jobs = list(dict.fromkeys(_jobs(files)))
    cuda, _ = nvrtc.getVersion()
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    # A process that is forked from one with threads may hang.
    with ProcessPoolExecutor(workers or os.cpu_count(), get_context("spawn")) as pool:
        running = [pool.map(functools.partial(_compiled, each), jobs) for each in architectures]
        for architecture, programs in zip(architectures, running):
            file = folder / f"sm_{architecture}-cuda{cuda}.zip"
            machine_code.write(file, dict(zip((job.key for job in jobs), programs)))
            written.append(file)
    return written


def _jobs(files: Sequence[str]) -> Iterator[_Job]:
    for source in sources():
        if files and source.file not in files:
            continue
        for arguments in source.instances():
            for kernels in source.programs():
                names = tuple(kernel.format(**arguments) for kernel in kernels)
                yield _Job(source.text(), names, COMPILE_OPTIONS + source.options)


def _compiled(architecture: int, job: _Job) -> Program:
    from cupy_backends.cuda.libs import nvrtc

    program = nvrtc.createProgram(job.text, "kernels.cu", (), ())
    try:
        for name in job.names:
            nvrtc.addNameExpression(program, name)
        options = *job.options, *_CUPYS_OPTIONS, f"--gpu-architecture=sm_{architecture}"
        nvrtc.compileProgram(program, options)
        names = tuple(nvrtc.getLoweredName(program, name) for name in job.names)
        return Program(names, nvrtc.getCUBIN(program))
    finally:
        nvrtc.destroyProgram(program)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m gpumatch.cuda.kernels.build", allow_abbrev=False
    )
    add = parser.add_argument
    add("--arch", type=_architecture, action="append", help="90 or sm_90; by default, each of "
        f"{', '.join(map(str, ARCHITECTURES))}")  # fmt: skip
    add("--out", type=Path, default=machine_code.FOLDER, help="the folder of the archives")
    add("--only", action="append", default=[], metavar="FILE", help="a source to compile")
    add("--jobs", type=int, default=0, help="processes; by default, as many as processors")
    given = parser.parse_args(arguments)
    for file in build(given.arch or ARCHITECTURES, given.out, given.only, given.jobs):
        print(f"{file}: {file.stat().st_size / 1e6:.1f} MB")


def _architecture(text: str) -> int:
    return int(text.removeprefix("sm_"))


if __name__ == "__main__":
    main()
