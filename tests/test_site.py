"""The site that `make docs` builds: what ends the build, what its pages fetch, and which names it shows."""

import os
import re
import shutil

import pytest

import hebbes
from tests.python_process import ROOT, run_python


def build(source, site, **status):
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return run_python("-m", "mkdocs", "build", "--strict", "--site-dir", site, cwd=source, env=environment, **status)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build(ROOT, folder)
    return folder


@pytest.mark.slow
def test_its_pages_fetch_nothing_from_the_network(site):
    fetched = r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=\"?((?:https?:)?//[^\s\">]*)"
    pages = list(site.glob("*.html"))
    assert len(pages) > 20
    assert {url for page in pages for url in re.findall(fetched, page.read_text())} == set()
    assert not re.findall(r"url\([\"']?(?:https?:)?//", "".join(css.read_text() for css in site.rglob("*.css")))


@pytest.mark.slow
def test_a_broken_link_a_missing_anchor_and_an_unlisted_page_end_the_build(tmp_path):
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path)
    (tmp_path / "hebbes").symlink_to(ROOT / "hebbes")
    (tmp_path / "docs" / "unlisted.md").write_text("[page](absent.md) [anchor](faq.md#absent)\n")
    done = build(tmp_path, tmp_path / "site", status=1)
    for said in ('not included in the "nav"', "'absent.md'", "'faq.md#absent'"):
        assert said in done.stderr


@pytest.mark.slow
def test_the_python_page_shows_all_public_names_and_nothing_private(site):
    page = (site / "python.html").read_text()
    shown = set(re.findall(r'id="(hebbes\.[\w.]+)"', page))
    assert {place.replace(":", ".") for place in hebbes._PLACES.values()} <= shown
    assert {"hebbes.contracts.policy.Policy", "hebbes.contracts.strategy.Strategy"} <= shown
    assert [name for name in shown if re.search(r"\._(?!_)", name)] == []
    assert "&gt;&gt;&gt;" in page and "<blockquote>" not in page  # examples are code
