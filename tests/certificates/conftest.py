"""The second checker, compiled once."""

import pytest

from tests.certificates.proof_problems import COMPILER, second_checker


@pytest.fixture(scope="session")
def second(tmp_path_factory):
    """The second checker: what it says of files and options, and its exit status."""
    if COMPILER is None:
        pytest.skip("there is no C compiler")
    return second_checker(tmp_path_factory.mktemp("standalone"))
