"""Files at the command line: what is read from them, in all commands alike."""

from __future__ import annotations

from tests.cli.outcomes import assert_rejected
from tests.io.stored_files import stored
from tests.io.test_matrix_market import text_of


def test_the_command_line_reads_the_same(gpumatch_cli, tmp_path):
    lines = "1 1 1.5D-3\n1 2 0.15000-101\n2 1 +2\n2 2 1\n"
    path = stored(tmp_path / "a.mtx", text_of(lines, sizes="2 2 4"))
    code, out, _ = gpumatch_cli("assign", path, "--pairs", "--json")
    assert code == 0
    assert '"objective": 1.0015' in out
    path = stored(tmp_path / "a.mtx", text_of(lines.replace("-3", "-3abc"), sizes="2 2 4"))
    for command in ("assign", "match", "dmperm", "scale"):
        outcome = gpumatch_cli(command, path)
        assert_rejected(outcome, "a.mtx: line 3: '1.5D-3abc' is not a real number")
