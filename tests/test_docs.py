"""The pages of docs name files, functions and classes that are there, and can be found. README is short and true."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import hebbes
from hebbes.registry.tables import ALGORITHMS, STRATEGIES
from tests.python_process import ROOT

PAGES = sorted(ROOT.glob("docs/*.md"))
README = (ROOT / "README.md").read_text()
FILE = r"(?:hebbes|tests|benchmarks|examples|docs)/[\w./-]*"


def read_definitions(path: Path) -> set[str]:
    """The functions, classes and constants of a module, and `Class.method`."""
    tree = ast.parse(path.read_text())
    names = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


def list_reliability_tests(text: str) -> list[str]:
    """The tests of tests/reliability/ that a page names without their folder."""
    return re.findall(r"`((?:test|thorough)_\w+\.py)`", text)


def test_the_page_on_reliability_names_its_tests():
    assert len(list_reliability_tests((ROOT / "docs" / "reliability.md").read_text())) > 8


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_files_that_it_names_exist(page):
    text = page.read_text()
    named = {*re.findall(rf"`({FILE})", text), *(f"tests/reliability/{name}" for name in list_reliability_tests(text))}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_functions_that_it_names_are_in_the_file_that_it_names(page):
    named = re.findall(r"`(hebbes/[\w/]+\.py): ([\w.]+)`", page.read_text())
    assert [(file, name) for file, name in named if name not in read_definitions(ROOT / file)] == []


def test_the_architecture_names_functions_and_leads_to_the_departures():
    text = (ROOT / "docs" / "architecture.md").read_text()
    assert len(re.findall(r"`hebbes/[\w/]+\.py: ", text)) > 8
    assert "(fidelity.md)" in text


def test_every_room_is_in_the_architecture():
    text = (ROOT / "docs" / "architecture.md").read_text()
    subpackages = {path.name for path in (ROOT / "hebbes").iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert subpackages == set(re.findall(r"^\|[^|]*\| `(\w+)/` \|", text, re.MULTILINE))


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 140
    assert len(README.split()) < 1200


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_files_that_it_links_to_exist(page):
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text())
    assert links and [link for link in links if not (ROOT / link).exists()] == []


def test_the_scores_in_the_readme_are_those_of_the_presets():
    rows = re.findall(
        r"^\| (\S+-v\d)(, plastic)?(?: \([^)]*\))? \| `(\w+)` \| (\S+) \| (\d+) \|$", README, re.MULTILINE
    )
    assert len(rows) == len(re.findall(r"^\| \S+-v\d.*\d \|$", README, re.MULTILINE)) > 10
    for environment, plastic, strategy, score, num_seeds in rows:
        preset = f"hebbes/presets/{'hebbian' if plastic else 'static'}/{environment}.yaml"
        options = yaml.safe_load((ROOT / preset).read_text())
        measured = re.match(rf"(?:median )?{score} (?:of|on each of) seeds (\d+)-(\d+)[ ,]", str(options["measured"]))
        assert measured and int(measured[2]) - int(measured[1]) + 1 == int(num_seeds), preset
        assert options.get("strategy", "openai_es") == strategy


def test_the_readme_names_all_strategies_and_algorithms():
    table = README[README.index("## Strategies") : README.index("## Environments")]
    assert {*STRATEGIES, *ALGORITHMS} <= set(re.findall(r"`(\w+)`", table))


def test_the_citation_has_the_version_of_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (citation["version"], citation["license"]) == (hebbes.__version__, project["license"])
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
