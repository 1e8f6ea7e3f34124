"""The entry points of pyproject.toml, for other packages to find, whatever is installed."""

from __future__ import annotations

import importlib.metadata
import sys
import tempfile
import tomllib
import weakref
from pathlib import Path

ROOT = Path(__file__).parents[1]


def write_to(folder: Path) -> None:
    """Write what makes a folder on the path a place where gpumatch is installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    info = folder / f"gpumatch-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: gpumatch\nVersion: {project['version']}\n")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def show() -> None:
    """Let this process find them where gpumatch runs from its sources, with nothing installed."""
    try:
        importlib.metadata.distribution("gpumatch")
    except importlib.metadata.PackageNotFoundError:
        folder = tempfile.TemporaryDirectory()
        write_to(Path(folder.name))
        sys.path.append(folder.name)
        weakref.finalize(sys.modules[__name__], folder.cleanup)
