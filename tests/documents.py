"""The documents, and how tests read them.

A `python` block is a doctest; one that names cupy or cuda needs a GPU, and one that names torch
needs torch. A `console` block is a session: commands after `$`, each followed by what it prints.
A `sh` block is not run; what it asks of `python -m bench` is parsed.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import sys
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest

import bench.__main__
import graphs.__main__
from gpumatch import cli

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
ALGORITHMS = ROOT / "docs" / "algorithms" / "README.md"
DOCUMENTS = [
    README,
    *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "datasets/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
EVERY_DOCUMENT = pytest.mark.parametrize(
    "document", DOCUMENTS, ids=[str(path.relative_to(ROOT)) for path in DOCUMENTS]
)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
COMMANDS = {
    "gpumatch": cli.main,
    "python -m graphs": graphs.__main__.main,
    "python -m bench": bench.__main__.main,
}


class Block(NamedTuple):
    """A fenced block: its language, its text, and the document's line that it begins on."""

    language: str
    text: str
    line: int


def blocks(document, language):
    text = document.read_text(encoding="utf-8")
    found = re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    every = [Block(m[1], m[2], text.count("\n", 0, m.start(2))) for m in found]
    return [block for block in every if block.language == language]


def prose(document):
    """The document without its fenced blocks."""
    return re.sub(
        r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )


def cells(line):
    """The cells of a line of a Markdown table, plain."""
    parts = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [part.strip().replace("`", "").replace("\\|", "|") for part in parts]


def table(document, header):
    """The rows of the table that has this header."""
    _, found, below = document.read_text(encoding="utf-8").partition(header + "\n")
    assert found, f"{document.name} has no table {header}"
    lines = below.splitlines()[1:]
    return [cells(line) for line in takewhile(lambda line: line[:1] == "|", lines)]


def output_of(line):
    """What a command prints, and its exit code where the line ends in `; echo $?`.

    What `printf` gives to the command is its standard input.
    """
    command, asks, _ = line.partition("; echo $?")
    given = b""
    if command.startswith("printf "):
        text, _, command = command.partition(" | ")
        given = shlex.split(text)[1].encode().decode("unicode_escape").encode()
    name = next(name for name in COMMANDS if command.startswith(name + " "))
    printed = io.StringIO()
    with (
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(given))),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
    ):
        code = COMMANDS[name](shlex.split(command.removeprefix(name)))
    assert asks or code == 0, f"{command}: exit code {code}\n{printed.getvalue()}"
    return printed.getvalue() + (f"{code}\n" if asks else "")
