"""What the tests of all commands use."""

from __future__ import annotations

import pytest
from scipy.io import mmwrite
from scipy.sparse import coo_array

from gpumatch import cli
from tests.cli.outcomes import MATRIX


@pytest.fixture
def gpumatch_cli(capsys):
    """Runs the command line; gives exit code, stdout, stderr."""

    def run(*arguments):
        code = cli.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "matrix.mtx"
    mmwrite(path, coo_array(MATRIX))
    return str(path)
