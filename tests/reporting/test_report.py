"""The program `report` on real runs."""

import re
import shutil

import pytest

from hebbes.evaluation.evaluate import evaluate
from hebbes.files.policy_file import read_policy_file
from hebbes.policies.coefficients import read_coefficients_by_name
from hebbes.programs.reports import plasticity_sections
from hebbes.programs.reports.curve_sections import SCORE, limit_points
from hebbes.recording.metrics import read_metrics
from hebbes.reporting.page.contents import Chart, Table, Text, Video
from hebbes.reporting.page.write_page import make_page
from tests.programs.commands import run_command
from tests.reporting.reports import make_report, write_report

pytestmark = pytest.mark.slow
"""The runs that all of them need are trained first."""


@pytest.fixture(scope="module")
def report(runs):
    """The sections of a report on all runs, by title."""
    sections, is_complete = make_report(runs)
    assert is_complete
    return {section.title: section for section in sections}


def list_blocks(section, kind):
    """The blocks of this class in a section and its parts, by title or caption."""
    blocks = [*section.blocks, *(block for part in section.sections for block in part.blocks)]
    found = [block for block in blocks if isinstance(block, kind)]
    return {getattr(block, "caption", None) or getattr(block, "title", ""): block for block in found}


def test_a_report_on_all_kinds_of_runs_has_all_sections(report):
    names = ["Runs", "Configuration", "Learning curves", "Diagnostics", "Sweeps", "Evaluation", "Plasticity"]
    assert list(report) == names
    assert len(make_page("a", "b", list(report.values()))) < 5_000_000


def test_runs_are_listed_with_state_and_commands(report):
    table, commands = report["Runs"].blocks
    assert [row[0] for row in table.rows] == ["1", "2", "3", "4", "5"]  # trials are in their own section
    cells = [dict(zip(table.header, row, strict=True)) for row in table.rows]
    assert {row["state"] for row in cells} == {"ended"}
    assert any("<script>alert(1)</script>" in row["run"] for row in cells)
    assert "numpy" in commands.text


def test_options_that_differ_are_set_side_by_side(report):
    tables = list_blocks(report["Configuration"], Table)
    methods = tables["Options in which methods differ, CartPole-v1"]
    cells = {row[0]: row[1:] for row in methods.rows}
    assert set(cells["strategy"]) == {"cem", "openai_es"} and set(cells["policy"]) == {"linear", "hebbian"}
    assert all(len(set(values)) > 1 for values in cells.values())
    others = tables["Other options that differ between runs"]
    assert {"seed", "run_name"} <= set(others.header) and "strategy" not in others.header
    assert "threads" in [name for name, _ in tables["Options with one value in all runs that have them"].rows]


def test_learning_curves_show_each_run_and_the_average_of_each_method(report, runs):
    points = list_blocks(report["Learning curves"], Chart)["Learning in CartPole-v1"].data["points"]
    scores = [read_metrics(runs / "CartPole-v1" / f"seed{seed}" / "metrics.csv")[SCORE] for seed in (1, 2)]
    drawn = {
        run: [y for y, name in zip(points["y"], points["run"], strict=True) if name == run] for run in points["run"]
    }
    found = [values for run, values in drawn.items() if "seed" in run]
    assert found == [pytest.approx(each) for each in scores]
    assert {line for line, run in zip(points["line"], points["run"], strict=True) if not run} >= {"cem (1 run)"}


def test_hybrids_have_their_own_diagnostics(report):
    (group,) = (part for part in report["Diagnostics"].sections if part.title == "Gradients and evolution")
    assert {"critic_loss, Pendulum-v1", "q_mean, Pendulum-v1"} <= {chart.title for chart in group.blocks}


def test_curves_are_thinned_to_keep_the_page_small(runs, tmp_path):
    assert [limit_points(curves) for curves in (0, 1, 20, 10_000)] == [500, 500, 250, 20]
    shutil.copytree(runs / "CartPole-v1" / "seed1", tmp_path / "long")
    columns, *_, last = (tmp_path / "long" / "metrics.csv").read_text().splitlines()
    cells = last.split(",")[2:]
    rows = [",".join([str(number), str(50 * number), str(number % 7), *cells[1:]]) for number in range(1, 3001)]
    (tmp_path / "long" / "metrics.csv").write_text("\n".join([columns, *rows, ""]))
    sections, _ = make_report(tmp_path / "long", episodes=0)
    (chart,) = (chart for chart in list_blocks(sections[-1], Chart).values() if chart.title == columns.split(",")[2])
    points = chart.data["points"]["x"]
    assert (len(points), points[0], points[-1]) == (500, 50, 150_000)


def test_the_statistics_are_those_of_the_evaluation(report, runs):
    tables = list_blocks(report["Evaluation"], Table)
    rows = {row[0]: row[1:] for row in tables["Returns of each run in CartPole-v1, over episodes"].rows}
    (mine,) = (cells for name, cells in rows.items() if name.endswith("seed1"))
    path = runs / "CartPole-v1" / "seed1" / "best.dat"
    assert mine[0] == str(evaluate(path, episodes=3, threads=1).summary.mean)
    compared = tables["Comparisons in CartPole-v1"]
    assert len(compared.rows) == 3 and {row[1] for row in compared.rows} == {"run", "episode"}


def read_policy(folder):
    saved = read_policy_file(folder / "best.dat", ())
    return saved.policy, saved.weights


def test_plastic_policies_have_their_figures(report, runs):
    (part,) = report["Plasticity"].sections
    titles = [chart.title for chart in part.blocks if isinstance(chart, Chart)]
    assert titles[:3] == ["Weights of layer 1", "Weights of layer 2", "Learning in episode 1"]
    coefficients = read_coefficients_by_name(*read_policy(runs / "CartPole-v1" / "hebbian"))
    drawn = {chart.title: chart.data["bars"]["y"] for chart in part.blocks if "bars" in getattr(chart, "data", ())}
    assert {title: sum(counts) for title, counts in drawn.items()} == {
        f"Coefficient {name}": len(values) for name, values in coefficients.items()
    }


def test_sweeps_show_their_trials_by_their_last_evaluation(report):
    (part,) = report["Sweeps"].sections
    (table,) = (block for block in part.blocks if isinstance(block, Table))
    results = [float(row[-2]) for row in table.rows]
    assert sorted(row[0] for row in table.rows) == ["trial0", "trial1", "trial2"]
    assert results == sorted(results, reverse=True)
    charts = [chart.title for chart in part.blocks if isinstance(chart, Chart)]
    assert "sigma" in charts and set(charts[1:]) == set(table.header[1:-2])
    sigma = next(chart for chart in part.blocks if getattr(chart, "title", "") == "sigma")
    assert sorted(sigma.data["points"]["y"]) == pytest.approx(sorted(results), rel=1e-2)


def test_a_trial_that_is_named_is_a_run(runs):
    sections, _ = make_report(runs / "CartPole-v1" / "sweeps" / "sweep" / "trial0", episodes=0)
    assert [section.title for section in sections] == ["Runs", "Configuration", "Learning curves", "Diagnostics"]


def test_videos_are_in_the_page_whatever_is_next_to_it(runs, tmp_path):
    (tmp_path / "report.mp4").mkdir()
    sections, is_complete = make_report(
        runs / "CartPole-v1" / "seed1", video=True, output=str(tmp_path / "report.html")
    )
    (video,) = sections[-1].blocks
    assert is_complete and isinstance(video, Video) and b"ftyp" in video.data[:32]


def damage(folder):
    """Cuts the end of each checkpoint of a run off."""
    for path in (folder / "checkpoint").iterdir():
        path.write_bytes(path.read_bytes()[:-5])


def test_the_command_writes_the_page_and_damaged_runs_do_not_stop_it(runs, tmp_path):
    for name in ("good", "damaged"):
        shutil.copytree(runs / "CartPole-v1" / "seed1", tmp_path / name)
    damage(tmp_path / "damaged")
    done = run_command("report", tmp_path, "-o", tmp_path / "a.html", "--episodes", 0)
    assert (done.returncode, done.stdout) == (0, f"report  {tmp_path / 'a.html'}\n"), done.stderr
    assert re.search(r"<td>damaged</td><td colspan[^>]*>[^<]*damaged: ", (tmp_path / "a.html").read_text())
    shutil.rmtree(tmp_path / "good")
    with pytest.raises(ValueError, match=r"no run can be read: .*truncated or damaged"):
        make_report(tmp_path)


def test_policies_that_cannot_be_played_are_named_in_the_page_and_the_others_are_played(runs, tmp_path, capsys):
    for name in ("good", "bad"):
        shutil.copytree(runs / "CartPole-v1" / "seed1", tmp_path / name)
    path = tmp_path / "bad" / "best.dat"
    path.write_bytes(path.read_bytes()[:-5])
    for named, run_names in (((tmp_path,), ["good"]), ((tmp_path / "bad",), [])):
        sections, is_complete = make_report(*named)
        (section,) = [each for each in sections if each.title == "Evaluation"]
        said = section.blocks[-1].text
        assert re.fullmatch(r"Policies that cannot be played: (\d  )?bad\.", said) and not is_complete
        tables = list_blocks(section, Table).values()
        assert [row[0].split()[-1] for table in tables for row in table.rows] == run_names
        assert re.search("bad/best.dat: .*truncated", capsys.readouterr().err)


def test_runs_without_a_best_policy_are_named_in_the_page(runs, tmp_path, capsys):
    for name in ("good", "lacking"):
        shutil.copytree(runs / "CartPole-v1" / "seed1", tmp_path / name)
    (tmp_path / "lacking" / "best.dat").unlink()
    for named, played in (((tmp_path,), 1), ((tmp_path / "lacking",), 0)):
        sections, _ = make_report(*named)
        (section,) = [each for each in sections if each.title == "Evaluation"]
        assert re.fullmatch(r"Runs that have no best policy: (\d  )?lacking\.", section.blocks[-1].text)
        assert len(list_blocks(section, Table)) >= played
        assert capsys.readouterr().err.startswith(f"not played  {tmp_path / 'lacking'}: it has no best policy\n")


def test_runs_of_one_seed_are_called_as_elsewhere_in_the_page(runs, tmp_path):
    for name in ("a", "b", "c"):
        shutil.copytree(runs / "CartPole-v1" / "seed1", tmp_path / name)
    (tmp_path / "a" / "best.dat").unlink()
    sections, _ = make_report(tmp_path)
    (section,) = [each for each in sections if each.title == "Evaluation"]
    texts = [block.text for part in section.sections for block in part.blocks if isinstance(block, Text)]
    assert any("because files 2  b, 3  c share seeds of training" in text for text in texts)


def test_profiles_need_several_runs_of_a_method(runs, report):
    profiles = "Performance profiles, CartPole-v1"
    assert profiles in list_blocks(report["Evaluation"], Chart)
    sections, _ = make_report(runs / "CartPole-v1" / "seed1", runs / "CartPole-v1" / "hebbian")
    charts = list_blocks(sections[-2], Chart)
    assert sections[-2].title == "Evaluation" and "Comparisons, CartPole-v1" in charts and profiles not in charts


def test_options_of_single_methods_in_several_environments_are_shown(runs):
    folders = [runs / "CartPole-v1" / "seed1", next(runs.glob("Pendulum-v1/*"))]
    sections, _ = make_report(*folders, episodes=0)
    (section,) = [each for each in sections if each.title == "Configuration"]
    others = list_blocks(section, Table)["Other options that differ between runs"]
    assert "environment" in others.header and [row[others.header.index("environment")] for row in others.rows] == [
        "CartPole-v1",
        "Pendulum-v1",
    ]


def test_a_run_that_is_named_in_two_ways_counts_once(runs, tmp_path):
    (tmp_path / "link").symlink_to(runs / "CartPole-v1" / "seed1")
    sections, _ = make_report(tmp_path / "link", runs / "CartPole-v1" / "seed1", episodes=0)
    (table,) = list_blocks(sections[0], Table).values()
    assert len(table.rows) == 1


def test_weights_that_cannot_be_recorded_cost_their_charts_and_not_the_page(runs, monkeypatch, capsys):
    def fail(*_, **__):
        raise ValueError("the weights are not finite")

    monkeypatch.setattr(plasticity_sections, "record_weights", fail)
    sections, is_complete = make_report(runs)
    (part,) = sections[-1].sections
    assert [block.text for block in part.blocks][1:] == ["Its weights could not be recorded."] and not is_complete
    assert re.search("^no weights of .*best.dat: the weights are not finite$", capsys.readouterr().err, re.MULTILINE)


def test_damaged_trials_of_a_sweep_are_listed(runs, tmp_path):
    (tmp_path / "sweep.yaml").write_text("sigma: search 0.01 to 0.5, log\n")
    for number in range(2):
        shutil.copytree(runs / "CartPole-v1" / "seed1", tmp_path / f"trial{number}")
    damage(tmp_path / "trial1")
    write_report(tmp_path / "a.html", tmp_path, episodes=0)
    page = (tmp_path / "a.html").read_text()
    assert re.search(r"Trials that cannot be read.*trial1.*truncated or damaged", page, re.DOTALL)
    (tmp_path / "sweep.yaml").write_text("sigma: [")
    sections, _ = make_report(tmp_path, episodes=0)
    assert "sweep.yaml" in sections[-1].sections[0].blocks[0].text
    damage(tmp_path / "trial0")
    with pytest.raises(ValueError, match=r"no run can be read: .*trial0: .*truncated or damaged"):
        make_report(tmp_path, episodes=0)


def test_bad_input_is_one_line_and_status_2(runs, tmp_path, refusal):
    (tmp_path / "empty").mkdir()
    cases = [
        ([tmp_path / "empty"], "empty holds no run"),
        ([tmp_path / "nothing"], "nothing is not there"),
        ([runs, "--import", "no_such"], "--import: cannot import 'no_such': "),
        ([runs, "-o", tmp_path / "no" / "a.html"], "the folder .* does not exist"),
        ([runs, "-o", tmp_path / "a.pdf"], "output must name a .html file"),
        ([runs, "--episodes", 0, "--video"], "video needs episodes >= 1"),
        ([runs, "--episodes", 0, "--threads", 0], "threads must be"),
        ([], "runs must name folders of runs"),
    ]
    for arguments, expected in cases:
        line = refusal("report", *arguments)
        assert re.search(expected, line), line


def test_without_what_films_it_is_said_before_any_episode(runs, monkeypatch):
    monkeypatch.setattr("hebbes.reporting.video.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="--video needs the package av, which is not installed: pip install av"):
        make_report(runs / "CartPole-v1" / "seed1", video=True)


def test_a_run_that_cannot_be_filmed_is_said_in_the_page(runs, monkeypatch, capsys):
    def fail(*_, **__):
        raise ValueError("no rendering")

    monkeypatch.setattr("hebbes.programs.reports.evaluation_sections.film_episode", fail)
    sections, is_complete = make_report(runs / "CartPole-v1" / "seed1", video=True)
    assert not is_complete and "could not be filmed" in sections[-1].blocks[0].text
    assert "no rendering" in capsys.readouterr().err
