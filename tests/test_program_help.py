"""The programs' help, which is quick, and the pages that are made from the options."""

import re

import pytest

from hebbes.options.pages import MARK, PAGES
from hebbes.registry.lookup import list_names
from hebbes.training.owners import list_all_owners
from tests.python_process import ROOT, run_python


@pytest.mark.parametrize("name", PAGES)
def test_the_made_pages_are_those_of_today(name):
    page = (ROOT / "docs" / name).read_text()
    assert page.partition(MARK)[2].strip() == PAGES[name]().strip(), "python -m hebbes.options.pages docs"


def test_the_page_of_flags_has_the_options_of_every_trainer():
    listed = re.findall(r"^\| `--(\w+)`", (ROOT / "docs" / "flags.md").read_text(), re.MULTILINE)
    owners = [owner for trainer in list_names("trainer") for owner in list_all_owners(trainer)]
    assert {each.short_name for owner in owners for each in owner.options} == set(listed)


@pytest.mark.parametrize(
    "script", ["train_static.py", "train_hebbian.py", "train_hybrid.py", "evaluate_static.py", "evaluate_hebbian.py"]
)
def test_help_loads_no_simulator_and_no_compiler(script):
    heavy = {"numba", "torch", "scipy", "gymnasium", "envpool", "safetensors", "matplotlib", "cv2"}
    program = (
        "import runpy, sys\n"
        f"sys.argv = [{script!r}, '--help']\n"
        "try:\n"
        f"    runpy.run_path({script!r}, run_name='__main__')\n"
        "except SystemExit as ended:\n"
        f"    print(ended.code, sorted({heavy} & set(sys.modules)), file=sys.stderr)\n"
    )
    done = run_python("-c", program)
    assert done.stderr == "0 []\n"
    assert done.stdout.startswith(f"usage: python {script} [--OPTION VALUE ...]\n")
