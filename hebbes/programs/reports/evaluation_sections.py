"""What the best policies of a report's runs do when they are played: returns, comparisons of methods, videos."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from hebbes.evaluation.entries import EvaluationResult
from hebbes.options.evaluation import EvaluateConfig
from hebbes.programs.evaluation_report import (
    Group,
    Methods,
    compare_all_methods,
    explain_missing_comparison,
    group_by_environment,
    name_unit,
    select_intact,
    warn_of_equal_seeds,
)
from hebbes.programs.reports.run_sections import ReportedRun
from hebbes.recording.standard_output import try_to_write
from hebbes.reporting.method_plots import choose_thresholds, format_method_label
from hebbes.reporting.page.charts import make_intervals_chart
from hebbes.reporting.page.contents import Block, Chart, Section, Table, Text, Video
from hebbes.reporting.page.curve_charts import Line, make_curves_chart
from hebbes.reporting.video import film_episode
from hebbes.statistics.curves import compute_profile
from hebbes.statistics.summary_table import FEW_RUNS, SUMMARY_COLUMNS, format_row, summarize_runs


def make_evaluation_section(
    config: EvaluateConfig, evaluated: Sequence[EvaluationResult], runs: Mapping[str, ReportedRun]
) -> Section:
    """The returns of the policies. `runs` has the run of each policy file."""
    sections = []
    for label, group in group_by_environment(config, evaluated).items():
        methods = _find_methods(group, runs)
        played = {runs[each.entry.path].name: each for each in select_intact(group).values()}
        rows = [(name, *format_row(each.summary, each.faults)) for name, each in played.items()]
        means = {name: each.summary.mean for name, each in played.items()}
        blocks: list[Block] = [
            make_intervals_chart(
                f"Return of each run, {label}", "Mean of the episodes; the interval is over episodes.", "return", means
            ),
            Table(f"Returns of each run in {label}, over episodes", ("run", *SUMMARY_COLUMNS), rows),
            *_show_methods(methods, label),
            *_compare_methods(methods, label),
        ]
        sections.append(Section(label, blocks))
    intro = (
        f"best.dat of each run, on the same start states ({config.episodes} episodes, seed {config.seed}). Intervals "
        "are 95 % bootstrap intervals. best.dat was chosen by its score in training, on other start states."
    )
    return Section("Evaluation", [Text(intro)], sections)


def _find_methods(group: Group, runs: Mapping[str, ReportedRun]) -> Methods:
    """The methods of the runs, whose results are called as the runs are."""
    found: dict[str, dict[str, EvaluationResult]] = {}
    for each in select_intact(group).values():
        run = runs[each.entry.path]
        found.setdefault(run.method, {})[run.name] = each
    return found


def _show_methods(methods: Methods, label: str) -> Iterator[Block]:
    """The methods over their runs, if any has several runs."""
    if all(len(runs) == 1 for runs in methods.values()):
        return
    summaries = {method: summarize_runs([each.returns for each in runs.values()]) for method, runs in methods.items()}
    rows = [
        (format_method_label(method, each.units), *format_row(each, {}, "runs")) for method, each in summaries.items()
    ]
    circles = {
        method: {name: float(each.returns.mean()) for name, each in runs.items()} for method, runs in methods.items()
    }
    estimates = {method: each.iqm for method, each in summaries.items()}
    note = "Interquartile mean of the runs; the interval is over runs. Circles: each run."
    yield make_intervals_chart(f"Return of each method, {label}", note, "return", estimates, runs=circles)
    yield Table(f"Returns of each method in {label}, each run as one value", ("method", *SUMMARY_COLUMNS), rows)
    if any(1 < len(runs) < FEW_RUNS for runs in methods.values()):
        yield Text(f"With fewer than {FEW_RUNS} runs of a method, an interval over them is not reliable.")
    yield from map(Text, warn_of_equal_seeds(methods))


def _compare_methods(methods: Methods, label: str) -> Iterator[Block]:
    """Each method over each other one, and their performance profiles."""
    if len(methods) < 2:
        return
    rows, probabilities = [], {}
    for number, ((one, other), found) in enumerate(compare_all_methods(methods).items(), 1):
        name = f"{number}  {one} over {other}"
        failure = explain_missing_comparison(methods, one, other)
        probabilities[name] = found.probability_of_improvement
        cells = [failure] if failure else [str(found.probability_of_improvement), str(found.mean_difference)]
        rows.append((name, name_unit(methods, one, other), *cells))
    note = "How often the first method has the higher return: over runs, or over episodes where each has one run."
    what = "probability of improvement"
    yield make_intervals_chart(f"Comparisons, {label}", note, what, probabilities, are_probabilities=True)
    yield Table(f"Comparisons in {label}", ("method over method", "by", what, "mean difference"), rows)
    yield from _draw_profiles(methods, label)


def _draw_profiles(methods: Methods, label: str) -> Iterator[Chart]:
    scores = {method: np.array([each.returns.mean() for each in runs.values()]) for method, runs in methods.items()}
    has_several = any(len(each) > 1 for each in scores.values())
    if not has_several or not all(np.isfinite(each).all() for each in scores.values()):
        return
    thresholds = choose_thresholds(scores)
    lines = [Line(method, average=compute_profile(each, thresholds)) for method, each in scores.items()]
    title, labels = f"Performance profiles, {label}", ("threshold of the return", "share of runs above it")
    note = "With 95 % intervals over runs."
    yield make_curves_chart(title, note, labels, lines, max_points=len(thresholds))


def choose_best_runs(
    config: EvaluateConfig, evaluated: Sequence[EvaluationResult], runs: Mapping[str, ReportedRun]
) -> dict[str, EvaluationResult]:
    """The run with the highest mean return of each method in each environment, by what a heading calls it."""
    found = {}
    for label, group in group_by_environment(config, evaluated).items():
        for method, results in _find_methods(group, runs).items():
            if played := [each for each in results.values() if np.isfinite(each.returns).all()]:
                found[f"{method} in {label}"] = max(played, key=lambda each: each.returns.mean())
    return found


def make_video_section(
    config: EvaluateConfig, best: Mapping[str, EvaluationResult], runs: Mapping[str, ReportedRun]
) -> tuple[Section, bool]:
    """The first episode of the best run of each method, and whether all could be filmed."""
    blocks: list[Block] = []
    with TemporaryDirectory() as folder:
        for number, (label, each) in enumerate(best.items()):
            path, title = Path(folder) / f"{number}.mp4", f"{label}: first episode of {runs[each.entry.path].name}"
            entry, cap = each.entry, config.max_episode_steps
            film = partial(film_episode, path, entry.saved, entry.environment, seed=config.seed, max_episode_steps=cap)
            is_filmed = try_to_write(f"video of {each.entry.path}", film)
            blocks.append(Video(title, path.read_bytes()) if is_filmed else Text(f"{title} could not be filmed."))
    return Section("Videos", blocks), all(isinstance(block, Video) for block in blocks)
