"""The page of all results: it is whole, stands alone, has every file, and its tables sort."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from bench import __main__ as bench

VOID = {"meta", "br"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FILES = sorted(bench.RESULTS.glob("*.json"))


class Reader(HTMLParser):
    """Checks that each element is closed where it belongs, and keeps what the tests ask for."""

    def __init__(self):
        super().__init__()
        self.open, self.sections, self.tables, self.drawings = [], [], 0, 0
        self.columns, self.cells = None, 0

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        assert not {"src", "onclick"} & given.keys(), "the page stands alone"
        assert tag not in ("link", "iframe", "img"), "the page stands alone"
        if tag == "section":
            self.sections.append(given["id"])
        self.tables += tag == "table"
        self.drawings += tag == "svg"
        if tag == "thead":
            self.columns = None
        if tag == "tr":
            self.cells = 0
        self.cells += tag in ("th", "td")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag == "tr":
            assert self.columns in (None, self.cells), "a row has as many cells as its head"
            self.columns = self.cells


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "benchmarks.html"
    assert bench.main(["report", "--out", str(file)]) == bench.DONE
    return file


def test_it_leads_back_to_a_site_beside_it(page_file, tmp_path):
    back = '<a href="index.html">'
    assert back not in page_file.read_text(encoding="utf-8")
    (tmp_path / "index.html").touch()
    file = tmp_path / "benchmarks.html"
    bench.main(["report", *map(str, FILES[:1]), "--out", str(file)])
    assert back in file.read_text(encoding="utf-8")


def test_every_file_of_results_is_there(page_file):
    text = page_file.read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    assert reader.sections == [file.stem for file in FILES]
    assert reader.tables >= len(FILES)
    assert reader.drawings > len(FILES) // 3
    assert "http" not in text.partition("<script>")[2], "no script from elsewhere"
    assert "NaN" not in re.sub("<script>.*</script>", "", text, flags=re.DOTALL)


def test_machines_versions_and_commands_are_named(page_file):
    text = page_file.read_text(encoding="utf-8")
    for file in FILES:
        data = json.loads(file.read_text())
        if data.get("suite") in bench.REPORTS:
            assert f"python -m bench {data['suite']} --out {file.name}" in text
            for run in data["runs"]:
                assert run.get("processor", "") in text
                assert run["sources_sha256"][:12] in text


def test_tables_are_those_of_the_reports(page_file, capsys):
    file = bench.RESULTS / "cpu-2cores.json"
    capsys.readouterr()
    assert bench.main(["report", str(file)]) == bench.DONE
    rows = [line for line in capsys.readouterr().out.split("\n") if line.startswith("| copter2")]
    cells = "".join(f"<td>{cell.strip()}</td>" for cell in rows[0].strip("|").split("|"))
    assert cells in page_file.read_text(encoding="utf-8")


def test_one_file_is_printed_and_several_are_not(capsys):
    assert bench.main(["report", *map(str, FILES[:2])]) == bench.BAD_USAGE
    assert "--out makes a page" in capsys.readouterr().err


def test_text_of_results_is_escaped(tmp_path):
    file = tmp_path / "odd.json"
    file.write_text(json.dumps({"what": "a <b> & `c`", "problems": [{"<x>": 1.5, "y": None}]}))
    out = tmp_path / "odd.html"
    assert bench.main(["report", str(file), "--out", str(out)]) == bench.DONE
    text = out.read_text()
    assert "a &lt;b&gt; &amp; <code>c</code>" in text
    assert "<th>&lt;x&gt;</th>" in text
    assert "<td>1.5</td><td></td>" in text


BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
CHECK = """<script>
const table = [...document.querySelectorAll('table')].find(t => t.tBodies[0].rows.length > 8);
const numbers = () => [...table.tBodies[0].rows].map(row => value(row.cells[1]));
const heads = table.tHead.rows[0].cells;
heads[1].click(); const up = numbers(); heads[1].click(); const down = numbers();
const rises = (x, y, sign) => y === '' || sign * y >= sign * x;
const sorted = (list, sign) => list.every((y, i) => i == 0 || rises(list[i - 1], y, sign));
const drawings = [...document.querySelectorAll('svg')];
const drawn = drawings.every(drawing => drawing.getBoundingClientRect().height > 50);
document.title = `sorted ${sorted(up, 1)} ${sorted(down, -1)} drawn ${drawn}`;
</script></body>"""


@pytest.mark.skipif(BROWSER is None, reason="no headless browser is installed")
def test_it_sorts_in_a_browser(page_file, tmp_path):
    file = tmp_path / "checked.html"
    file.write_text(page_file.read_text(encoding="utf-8").replace("</body>", CHECK))
    command = (BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", file.as_uri())
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert "<title>sorted true true drawn true</title>" in shown
