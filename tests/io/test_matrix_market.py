"""Matrix Market files: what each token is read as, at every door, and which are refused."""

from __future__ import annotations

import gzip
import io as bytesio
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpumatch import io
from gpumatch.io import matrix_market, slices
from gpumatch.io.slices import matrix_market_rows
from tests.io.stored_files import UNHURRIED, stored


def text_of(lines, field="real", sizes="3 3 1", layout="coordinate", symmetry="general"):
    return f"%%MatrixMarket matrix {layout} {field} {symmetry}\n{sizes}\n" + lines


def of_rows(path):
    return matrix_market_rows(path, lambda nrows: slice(0, nrows))


DOORS = {"read": io.read, "read_costs": io.read_costs, "rows": of_rows}
EVERY_DOOR = pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)

FORTRAN = {
    "1.5D-3": 1.5e-3,
    "1.5d+3": 1.5e3,
    "-.5D2": -50.0,
    "0.15000-101": 0.15e-101,
    "0.15000+101": 0.15e101,
    "5.-3": 5e-3,
    "+1.5e+00": 1.5,
    "+7": 7.0,
    "1.E5": 1e5,
    "-Inf": -np.inf,
    "+infinity": np.inf,
    "1e-400": 0.0,
}


@EVERY_DOOR
@pytest.mark.parametrize("token", FORTRAN)
def test_reals_as_fortran_and_c_write_them(tmp_path, door, token):
    path = stored(tmp_path / "a.mtx", text_of(f"1 2 {token}\n"))
    assert door(path).data.tolist() == [FORTRAN[token]]
    twice = text_of(f"1 2 {token} {token}\n", "complex")
    assert door(stored(tmp_path / "a.mtx", twice)).data.tolist() == [complex(*[FORTRAN[token]] * 2)]


NO_REALS = [
    *("1,5", "1.5abc", "1.5 7", "1.5e", "1.5e+", "--5", "+-5", ".", "-", "e5", "1.5e2.5", "1e2e3"),
    *("1.5-", "1-2-3", "0x10", "1_000", "nan(1)", "infin", "i", "1.5 %", "1.5\f", "1\r2", "1\v"),
    *("1.5\xa0", "1.2.3", "1..5", "1D", "1D5D", "5'", '"5"', "٣", "1/2", "1.5f", "1e5-3"),
]


@EVERY_DOOR
@pytest.mark.parametrize("token", NO_REALS)
def test_what_is_no_real_is_refused_with_its_line(tmp_path, door, token):
    for field, lines in (("real", token), ("complex", f"1 {token}"), ("complex", f"{token} 1")):
        text = text_of(f"1 1 1 1\n\n2 2 {lines}\n" if field == "complex" else f"\n\n2 2 {lines}\n")
        text = text.replace("real", field)
        with pytest.raises(ValueError, match=r"a\.mtx: line 5: (.* is not a real|has . fields)"):
            door(stored(tmp_path / "a.mtx", text))


@EVERY_DOOR
@pytest.mark.parametrize(
    ("field", "line", "says"),
    [
        ("integer", "1 1 5 6", "has 4 fields, expected an index, an index, an integer"),
        ("integer", "1 1 5x", "'5x' is not an integer"),
        ("integer", "1 1 5.0", "'5.0' is not an integer"),
        ("integer", "1 1 inf", "'inf' is not an integer"),
        ("unsigned-integer", "1 1 -5", "'-5' is not an unsigned integer"),
        ("pattern", "1 1 5", "has 3 fields, expected an index, an index"),
        ("pattern", "1 1x", "'1x' is not an index"),
        ("pattern", "1", "has 1 fields"),
        ("real", "1 1.5 7", "'1.5' is not an index"),
        ("real", "1 1-5", "has 2 fields"),
        ("real", "1 1inf", "has 2 fields"),
        ("real", "1e0 1 5", "'1e0' is not an index"),
        ("real", "1 1\n5", "has 2 fields"),
        ("real", "% late", "has 2 fields"),
        ("complex", "1 1 5", "has 3 fields"),
        ("complex", "1 1 (1 2)", "'(1' is not a real number"),
    ],
)
def test_every_field_of_a_line_is_checked(tmp_path, door, field, line, says):
    path = stored(tmp_path / "a.mtx", text_of(line + "\n", field))
    with pytest.raises(ValueError, match=re.escape(f"a.mtx: line 3: {says}")):
        door(path)


@EVERY_DOOR
def test_signs_of_integers_and_indices(tmp_path, door):
    for field, dtype in (("integer", np.int64), ("unsigned-integer", np.uint64)):
        matrix = door(stored(tmp_path / "a.mtx", text_of("+2 03 +007\n", field)))
        assert (matrix.dtype, matrix.toarray().tolist()) == (dtype, [[0] * 3, [0, 0, 7], [0] * 3])
    with pytest.raises(ValueError, match="line 3: Integer out of range"):
        door(stored(tmp_path / "a.mtx", text_of(f"1 1 {2**63}\n", "integer")))
    matrix = door(stored(tmp_path / "a.mtx", text_of(f"1 1 {2**63}\n", "unsigned-integer")))
    assert int(matrix[0, 0]) == 2**63


@EVERY_DOOR
@pytest.mark.parametrize("end", ["\n", "\r\n", " \t\r\n"], ids=repr)
@pytest.mark.parametrize("last", [True, False])
def test_blanks_and_line_ends_do_not_matter(tmp_path, door, end, last):
    lines = ["  1\t2   1.5 ", "", "   ", "2 1 2.5D0", "3 3 -1"]
    text = text_of("", sizes=f"3 3 3{end}%".rstrip("%")) + end.join(lines) + end * last
    matrix = door(stored(tmp_path / "a.mtx", text))
    assert matrix.toarray().tolist() == [[0, 1.5, 0], [2.5, 0, 0], [0, 0, -1]]


@EVERY_DOOR
def test_long_comments_and_long_lines(tmp_path, door):
    comment = "%" + "1 1 1 " * 2**15 + "\n"
    text = text_of("1 2 " + " " * 2**15 + "7\n").replace("\n", "\n" + comment + " \n%\n", 1)
    assert door(stored(tmp_path / "a.mtx", text)).data.tolist() == [7]
    for wrong in ("7x", "7\f", "7" * 60_000 + "x"):
        with pytest.raises(ValueError, match=r"line 6: '7.* is not a real|line of more than"):
            door(stored(tmp_path / "a.mtx", text.replace("7\n", wrong + "\n")))
    with pytest.raises(ValueError, match="line 7: has 1 fields"):
        door(stored(tmp_path / "a.mtx", text + "\f\n"))


@EVERY_DOOR
def test_the_line_of_an_index_is_named(tmp_path, door):
    text = text_of("1 1 1\n\n2 4 1D0\n", sizes="3 3 2").replace("\n", "\n% one\n\n", 1)
    with pytest.raises(ValueError, match=r"a\.mtx: line 7: Column index out of bounds"):
        door(stored(tmp_path / "a.mtx", text))


@EVERY_DOOR
@pytest.mark.parametrize("sizes", ["3 3", "3 3 1 1", "3 3 1.0", "3 3 +1", "3 3 1x", "3,3,1"])
def test_sizes_are_three_integers(tmp_path, door, sizes):
    with pytest.raises(ValueError, match=r"a\.mtx: "):
        door(stored(tmp_path / "a.mtx", text_of("1 1 1\n", sizes=sizes)))


@EVERY_DOOR
@pytest.mark.parametrize("count", [0, 1, 3])
def test_counts_that_disagree(tmp_path, door, count):
    with pytest.raises(ValueError, match=r"promises|Truncated|Too many"):
        door(stored(tmp_path / "a.mtx", text_of("1 1 1\n2 2 1\n", sizes=f"3 3 {count}")))


@pytest.mark.parametrize("door", [io.read, io.read_costs])
def test_arrays_are_checked_too(tmp_path, door):
    path = tmp_path / "a.mtx"
    text = text_of("1D1\n+2\n\n3-1\n4\n", sizes="2 2", layout="array")
    found = door(stored(path, text))
    assert np.asarray(found.todense() if door is io.read else found).tolist() == [[10, 0.3], [2, 4]]
    for token in ("3x", "3 4", "3,5", "1 1 3"):
        with pytest.raises(ValueError, match=r"a\.mtx: line 6: "):
            door(stored(path, text.replace("3-1", token)))
    with pytest.raises(ValueError, match="promises no entries, but has 1"):
        door(stored(path, text_of("5\n", sizes="0 2", layout="array")))


@EVERY_DOOR
@pytest.mark.parametrize(
    ("field", "symmetry", "line", "full"),
    [
        ("real", "symmetric", "2 1 1.5D0", [[0, 1.5], [1.5, 0]]),
        ("real", "skew-symmetric", "2 1 +.5", [[0, -0.5], [0.5, 0]]),
        ("integer", "skew-symmetric", "2 1 +3", [[0, -3], [3, 0]]),
        ("complex", "hermitian", "2 1 1D0 2-0", [[0, 1 - 2j], [1 + 2j, 0]]),
        ("complex", "hermitian", "2 2 3 0", [[0, 0], [0, 3]]),
        ("pattern", "symmetric", "2 1", [[0, 1], [1, 0]]),
    ],
)
def test_symmetries(tmp_path, door, field, symmetry, line, full):
    text = text_of(line + "\n", field, "2 2 1", symmetry=symmetry)
    assert door(stored(tmp_path / "a.mtx", text)).toarray().tolist() == full


@EVERY_DOOR
@pytest.mark.parametrize(
    ("symmetry", "value"), [("skew-symmetric", "3 0"), ("hermitian", "3 1"), ("hermitian", "3 nan")]
)
def test_a_diagonal_that_is_not_its_own_mirror_image(tmp_path, door, symmetry, value):
    text = text_of(f"2 2 {value}\n", "complex", "2 2 1", symmetry=symmetry)
    with pytest.raises(ValueError, match=rf"{symmetry}, but has .* on its diagonal in row 2"):
        door(stored(tmp_path / "a.mtx", text))


@EVERY_DOOR
def test_entries_of_one_place_are_summed_exactly(tmp_path, door):
    big = f"1 1 {2**62}\n1 1 {2**62 - 1}\n1 1 0\n"
    assert (
        int(door(stored(tmp_path / "a.mtx", text_of(big, "integer", "1 1 3")))[0, 0]) == 2**63 - 1
    )
    too_big = f"1 1 {2**62}\n" * 2
    with pytest.raises(ValueError, match=rf"add up to {2**63}, which is too large for int64"):
        door(stored(tmp_path / "a.mtx", text_of(too_big, "integer", "1 1 2")))
    path = stored(tmp_path / "a.mtx", text_of(too_big, "unsigned-integer", "1 1 2"))
    assert int(door(path)[0, 0]) == 2**63


# Any text ---------------------------------------------------------------------------------------

FLOAT = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eEdD][+-]?\d+|[+-]\d+)?|[+-]?(inf|infinity|nan)", re.I)


def expected_value(token):
    """What a token is by Python's float and Fortran's rules; None if it is no number."""
    if not token.isascii() or not FLOAT.fullmatch(token):
        return None
    token = token.lower().replace("d", "e")
    return float(token if "n" in token else re.sub(r"(?<=[\d.])(?=[+-])", "e", token))


TOKEN_BYTES = st.text(alphabet="0123456789+-.eEdDinfa_,x\x0b ", min_size=1, max_size=12)
NUMBERS = st.one_of(
    TOKEN_BYTES,
    st.floats().map(repr),
    st.floats().map(lambda value: repr(value).replace("e", "D")),
    st.tuples(st.floats(0, 1), st.integers(-400, 400)).map(lambda of: f"{of[0]:.5f}{of[1]:+d}"),
)


@UNHURRIED
@given(st.lists(NUMBERS, min_size=1, max_size=8), st.sampled_from(["\n", "\r\n", " \n"]))
@example(["1e5", "1d5", "1-5"], "\n")
def test_a_token_is_what_it_is_by_itself_or_refused(tokens, end):
    lines = end.join(f"1 {number} {token}" for number, token in enumerate(tokens, 1))
    text = text_of(lines, sizes=f"1 {len(tokens)} {len(tokens)}").encode()
    wanted = [expected_value(token.strip(" ")) for token in tokens]
    if None in wanted:
        with pytest.raises(ValueError, match=f"line {3 + wanted.index(None)}: "):
            matrix_market.parse_matrix_market(text, 2**20)
    else:
        found = matrix_market.parse_matrix_market(text, 2**20)
        np.testing.assert_array_equal(found.data, np.array(wanted))


@pytest.mark.parametrize("size", [1, 7, 64])
def test_pieces_are_as_the_whole(tmp_path, monkeypatch, size):
    monkeypatch.setattr(matrix_market, "PIECE", size)
    monkeypatch.setattr(slices, "PIECE", size)
    lines = [f"{k} {k} {k}.5{'D' if k == 7 else 'e'}-{k}\n" + "\n" * (k % 3) for k in range(1, 30)]
    text = text_of("".join(lines), sizes="29 29 29")
    path = stored(tmp_path / "a.mtx.gz", gzip.compress(text.encode()))
    for door in (io.read, of_rows):
        assert door(path).data.tolist() == [float(f"{k}.5e-{k}") for k in range(1, 30)]
    wrong = text.replace("20.5e", "20.5f")
    number = wrong[: wrong.index("20.5f")].count("\n") + 1
    path = stored(tmp_path / "a.mtx", wrong)
    for door in (io.read, of_rows):
        with pytest.raises(ValueError, match=f"line {number}: '20.5f-20' is not a real"):
            door(path)


MUTATED = text_of("1 1 1.5\n2 3 -2D1\n3 2 7\n", sizes="3 3 3").encode()


@UNHURRIED
@given(st.data())
def test_any_bytes_are_a_matrix_or_a_value_error(data):
    content = bytearray(MUTATED)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content)))
        content[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    try:
        matrix = io.read(bytesio.BytesIO(bytes(content)), max_bytes=2**20)
    except ValueError:
        return
    assert matrix.shape[0] <= 2**17
