"""The page of departures from the sources names files that are there, and can be found."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "fidelity.md").read_text()


def test_the_files_that_it_names_exist():
    named = set(re.findall(r"`((?:\w+/)+[\w.-]*)`", PAGE))
    assert len(named) > 15
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_the_architecture_leads_to_it():
    assert "(fidelity.md)" in (ROOT / "docs" / "architecture.md").read_text()
