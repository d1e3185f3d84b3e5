"""Pages without a browser: what is written, and what is refused."""

import json
import re
from base64 import b64decode
from hashlib import sha256
from math import nan

import pytest

from hebbes.reporting.page import write_page as module
from hebbes.reporting.page.charts import make_intervals_chart, make_scatter_chart
from hebbes.reporting.page.contents import Section, Table, Text, Video
from hebbes.reporting.page.write_page import check_page_path, make_page
from hebbes.statistics.intervals import Estimate

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&{{ 7 * 7 }}"


@pytest.fixture(scope="module")
def page():
    """A page with a hostile text in every place."""
    chart = make_scatter_chart(HOSTILE, HOSTILE, (HOSTILE, HOSTILE), {HOSTILE: (HOSTILE, 1.0)})
    blocks = [Text(HOSTILE), Text(HOSTILE, HOSTILE), Table(HOSTILE, ("a", HOSTILE), [(HOSTILE, HOSTILE)]), chart]
    blocks += [Table(HOSTILE, ("a",), [(HOSTILE,)], is_folded=True), Video(HOSTILE, b"\0video")]
    return make_page(HOSTILE, HOSTILE, [Section(HOSTILE, blocks, [Section(HOSTILE, blocks[:1])])])


def read_policy(page):
    text = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1].replace("&#39;", "'")
    return dict(rule.split(" ", 1) for rule in text.split("; "))


@pytest.fixture(scope="module")
def body(page):
    """The page without our scripts."""
    return re.sub(r'<script type="module">.*?</script>', "", page, flags=re.DOTALL)


def test_no_text_becomes_markup_or_script(page, body):
    scripts = re.findall(r"<script[^>]*>", page)
    assert scripts == ['<script type="application/json" id="charts">', *['<script type="module">'] * 2]
    assert "<img" not in body and "onerror=alert(1)&gt;" in body and "{{ 7 * 7 }}" in body


def test_the_charts_are_json_that_cannot_end_its_element(page):
    data = re.search(r'id="charts">(.*?)</script>', page, re.DOTALL)[1]
    chart = json.loads(data)["chart-0"]
    assert "<" not in data and chart["data"]["points"]["name"] == [HOSTILE]


def test_the_policy_names_each_script_and_the_style_by_its_hash(page):
    policy = read_policy(page)
    scripts = re.findall(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    for rule, texts in {"script-src": scripts, "style-src": styles}.items():
        found = [b64decode(each.removeprefix("'sha256-").removesuffix("'")) for each in policy.pop(rule).split()]
        assert found == [sha256(text.encode()).digest() for text in texts]
    data, none = dict.fromkeys(("img-src", "media-src"), "data:"), "'none'"
    assert policy == {**data, **dict.fromkeys(("default-src", "base-uri", "form-action"), none)}


def test_everything_is_in_the_page(page, body):
    addresses = re.findall(r'\b(?:src|href)="([^"]*)"', body)
    assert [each[:21] for each in addresses if not each.startswith("#")] == ["data:video/mp4;base64"]
    assert len(page) < 1_200_000


def test_headings_are_in_order_and_tables_have_captions(body):
    assert re.findall(r"<h(\d)", body) == ["1", "2", "3"]
    assert body.count("<table>") == body.count("<table><caption>") > 2
    assert '<html lang="en">' in body and 'href="#contents"' in body and 'id="contents"' in body


def test_only_columns_of_numbers_are_aligned_as_numbers():
    rows = [("1", "2", "a", "-"), ("b", "-3 [1, 2]", "4", "5"), ("c", "a remark")]
    assert Table("t", ("", "x", "y", "z"), rows).numeric_columns == {1, 3}


def test_what_cannot_be_written_is_refused_before_any_work(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"^output must name a \.html file, got .*a\.pdf"):
        check_page_path("output", tmp_path / "a.pdf")
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == "vl_convert" else True)
    with pytest.raises(ValueError, match=r"needs the package vl-convert-python; .*pip install '\.\[report\]'"):
        check_page_path("output", tmp_path / "a.html")


def test_a_chart_has_a_layer_for_intervals_only_if_there_are_any():  # Vega warns of layers without data
    for low, count in ((0.0, 3), (nan, 2)):
        chart = make_intervals_chart(
            "t", "d", "return", {"a": Estimate(1.0, low, low + 2), "b": Estimate(1.0, nan, nan)}
        )
        assert len(chart.spec["layer"]) == count


def test_a_value_that_is_not_finite_is_only_in_the_table():
    failed = Estimate(nan, nan, nan)
    estimates, runs = {"a": Estimate(1.0, 0.0, 2.0), "b": failed}, {"a": {"a/1": 1.0}, "b": {"b/1": 3.0, "b/2": nan}}
    chart = make_intervals_chart("t", "d", "return", estimates, runs=runs)
    assert (chart.data["estimates"]["name"], chart.data["runs"]["run"]) == (["a"], ["a/1"])
    assert [row[0] for row in chart.table.rows] == ["a", "b"]
    assert make_intervals_chart("t", "d", "return", {"b": failed}) == Table(
        "t", ("", "return", "95 % interval from", "to"), [("b", "-", "-", "-")]
    )
