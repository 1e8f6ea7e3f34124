"""What Deveci et al. (Euro-Par 2013) print: Tables 1 and 2, and the speedups of Figure 5.

Seconds on a Tesla C2050 and on two quad-core Xeons of 2.27 GHz. The columns are called as the
contenders of `bench.suites.deveci2013` are.
"""

from __future__ import annotations

SETS = ("O_S1", "O_Hardest20", "RCP_S1", "RCP_Hardest20")
SIZES = dict(zip(SETS, (28, 20, 50, 20)))

_ORDER = ("apfb-gpubfs", "apfb-gpubfs-wr", "apsb-gpubfs", "apsb-gpubfs-wr")
_COLUMNS1 = [f"{name} {launch}" for name in _ORDER for launch in ("mt", "ct")]
_TABLE1 = """
O_S1 2.96 1.89 2.12 1.34 3.68 2.88 2.98 2.27
O_Hardest20 4.28 2.70 3.21 1.93 5.23 4.14 4.20 3.13
RCP_S1 3.66 3.24 1.13 1.05 3.52 3.33 2.22 2.14
RCP_Hardest20 7.27 5.79 3.37 2.85 12.06 10.75 8.17 7.41
"""
_COLUMNS2 = ("apfb-gpubfs-wr ct", "p-dbfs", "pfp", "hk")
_TABLE2 = """
roadNet-CA 0.34 0.53 0.95 2.48 0.39 1.88 3.05 4.89
delaunay_n23 0.96 1.26 2.68 1.11 0.90 5.56 3.27 14.34
coPapersDBLP 0.42 6.27 3.11 1.62 0.38 1.25 0.29 1.26
kron_g500-logn21 0.99 1.50 5.37 4.73 3.71 4.01 64.29 16.08
amazon-2008 0.11 0.18 6.11 1.85 0.41 1.37 61.32 4.69
delaunay_n24 1.98 2.41 6.43 2.22 1.86 12.84 6.92 35.24
as-Skitter 0.49 1.89 7.79 3.56 3.27 5.74 472.63 29.63
amazon0505 0.18 22.70 9.05 1.87 0.24 15.23 17.59 2.23
wikipedia-20070206 1.09 5.24 11.98 6.52 1.05 5.99 9.74 5.73
Hamrle3 1.36 2.70 0.04 12.61 3.85 7.39 37.71 57.00
hugetrace-00020 7.90 393.13 15.95 15.02 1.52 9.97 8.68 38.27
hugebubbles-00000 13.16 3.55 19.81 5.56 1.80 10.91 10.03 38.97
wb-edu 33.82 8.61 3.38 20.35 17.43 20.10 9.49 51.14
rgg_n_2_24_s0 3.68 2.25 25.40 0.12 2.20 12.50 5.72 31.78
patents 0.88 0.84 92.03 16.18 0.91 0.97 101.76 18.30
italy_osm 5.86 1.20 1.02 122.00 0.70 3.97 6.24 18.34
soc-LiveJournal1 3.32 14.35 243.91 21.16 3.73 7.14 343.94 20.71
ljournal-2008 2.37 10.30 360.31 17.66 6.90 7.58 176.69 23.45
europe_osm 57.53 11.21 14.15 1911.56 7.21 37.93 68.18 197.03
com-livejournal 4.58 22.46 2879.36 34.28 5.88 17.19 165.32 29.40
"""


def _parsed(text: str) -> dict[str, list[float]]:
    lines = (line.split() for line in text.strip().splitlines())
    return {name: [float(value) for value in values] for name, *values in lines}


TABLE1 = {name: dict(zip(_COLUMNS1, values)) for name, values in _parsed(_TABLE1).items()}
"""Geometric mean of seconds, by set and contender."""

TABLE2 = {
    name: (dict(zip(_COLUMNS2, values[:4])), dict(zip(_COLUMNS2, values[4:])))
    for name, values in _parsed(_TABLE2).items()
}
"""Seconds on O_Hardest20, by matrix: of the original and of the permuted one, by contender."""

FIGURE5 = dict(zip(SETS, (3.61, 3.96, 3.54, 9.29)))
"""The speedup "of at least" so much that the text gives for each set: the lower of its two bars."""

STAND_INS = {
    **dict.fromkeys(("delaunay_n23", "delaunay_n24"), "delaunay_n*"),
    "rgg_n_2_24_s0": "rgg_n_*",
    "kron_g500-logn21": "kron_g500-*",
    "hugetrace-00020": "hugetrace-*",
    "hugebubbles-00000": "hugebubbles-*",
    **dict.fromkeys(("roadNet-CA", "italy_osm", "europe_osm"), "road-*"),
    "Hamrle3": "uniform-*",
}
"""Which generated graphs stand for a matrix of Table 2, where it was not measured itself."""
