"""The program `report`, which writes all that is known about runs into one web page."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hebbes.contracts.errors import say
from hebbes.contracts.option import check_options, option
from hebbes.evaluation.arguments import IMPORT_HELP, MAX_EPISODES
from hebbes.execution.engine_options import resolve_num_threads
from hebbes.options.program_options import parse_options
from hebbes.programs.exit_status import end_cleanly_on_signals, report_errors_in_one_line
from hebbes.recording.console import Console
from hebbes.recording.standard_output import make_printable, reserve_stdout_for_results, try_to_write
from hebbes.reporting.page.write_page import check_page_path, write_page

if TYPE_CHECKING:
    from hebbes.evaluation.entries import Entry
    from hebbes.options.evaluation import EvaluateConfig
    from hebbes.programs.reports.run_sections import ReportedRun
    from hebbes.reporting.page.contents import Section, Text


@dataclass(frozen=True)
class ReportConfig:
    """Options of a report."""

    runs: tuple[str, ...] = option((), "folders of runs, of several seeds, of several runs, or of a sweep")
    output: str = option("report.html", "the .html file to write, also -o")
    episodes: int = option(
        20, "episodes that the best policy of each run plays; with 0 none is played", range=f"in [0, {MAX_EPISODES}]"
    )
    seed: int = option(0, "seed of the start states; episode k depends only on the seed and k", range=">= 0")
    threads: int = option(-1, "threads or worker processes; -1 means all cores")
    video: bool = option(False, "film the first episode of the best run of each method, and show it in the page")
    imports: tuple[str, ...] = option((), IMPORT_HELP, flag="import")

    def __post_init__(self) -> None:
        check_options(self)
        if not self.runs or not all(self.runs):
            raise ValueError("runs must name folders of runs")
        if self.video and not self.episodes:
            raise ValueError("video needs episodes >= 1, got 0")
        resolve_num_threads(self.threads)
        check_page_path("output", Path(self.output))


def report(description: str) -> None:
    """Parses the options, writes the page and prints its path. The status is 1 if something is missing in the page."""
    with end_cleanly_on_signals():
        with report_errors_in_one_line():
            config = ReportConfig(**parse_options(ReportConfig, sys.argv[1:], description, "runs"))
        with reserve_stdout_for_results() as results:
            with Console(sys.stderr) as console, report_errors_in_one_line():
                sections, is_complete = make_sections(config, console)
                with console.phase("writing"):
                    try:
                        title = make_printable(", ".join(config.runs))
                        write_page(Path(config.output), "Report on runs", title, sections)
                    except OSError as error:
                        raise ValueError(f"output {config.output}: {error.strerror}") from error
            line = f"report  {config.output}"
            printed = try_to_write("output", lambda: print(line, file=results, flush=True))
        if not (printed and is_complete):
            sys.exit(1)


def make_sections(config: ReportConfig, console: Console) -> "tuple[list[Section], bool]":
    """The sections of the page, and whether nothing is missing that was asked for.

    ValueError if there are no runs, or if a package cannot be imported.
    """
    from hebbes.programs.list_runs import label_runs
    from hebbes.programs.reports.curve_sections import make_diagnostics_section, make_learning_section
    from hebbes.programs.reports.run_sections import make_options_section, make_runs_section, read_runs
    from hebbes.programs.reports.sweep_sections import is_trial, make_sweep_section
    from hebbes.registry.lookup import import_users_module
    from hebbes.reporting.video import check_encoder
    from hebbes.training.run_status import read_status
    from hebbes.training.saved_runs import find_run_folders

    if config.video:
        check_encoder("--video")
    for package in config.imports:
        import_users_module("--import", package)
    with console.phase("reading runs"):
        named = [os.path.realpath(path) for path in config.runs]
        found = {os.path.realpath(folder): folder for path in config.runs for folder in find_run_folders(Path(path))}
        # a trial that is named itself is a run as others are
        of_sweeps = [folder for place, folder in found.items() if is_trial(folder) and place not in named]
        listed = label_runs([read_status(folder) for folder in found.values() if folder not in of_sweeps])
        listed_trials = label_runs([read_status(folder) for folder in of_sweeps])
        runs, trials = read_runs(listed), read_runs(listed_trials)
        if not runs and not trials:
            first = (*listed, *listed_trials)[0]
            raise ValueError(f"no run can be read: {first.folder}: {first.reason}")
        sections = [make_runs_section(listed, runs)] if listed else []
        if runs:
            sections += [make_options_section(runs), make_learning_section(runs), make_diagnostics_section(runs)]
        sections += [make_sweep_section(trials, listed_trials)] if listed_trials else []
    played, is_complete = _play(config, runs, console)
    return [*sections, *played], is_complete


def _report_lacking(runs: "Sequence[ReportedRun]") -> "list[Text]":
    """Says which runs have no best policy, on standard error and in the page."""
    from hebbes.reporting.page.contents import Text

    for run in runs:
        say(f"not played  {make_printable(str(run.saved.folder))}: it has no best policy")
    return [Text(f"Runs that have no best policy: {', '.join(run.name for run in runs)}.")] if runs else []


def _play(config: ReportConfig, runs: "Sequence[ReportedRun]", console: Console) -> "tuple[list[Section], bool]":
    """The sections on what the best policies of the runs do, and whether all could be played and filmed."""
    from hebbes.options.evaluation import EvaluateConfig
    from hebbes.programs.evaluation_run import play_all
    from hebbes.programs.reports.evaluation_sections import (
        choose_best_runs,
        make_evaluation_section,
        make_video_section,
    )
    from hebbes.programs.reports.plasticity_sections import make_plasticity_section
    from hebbes.reporting.page.contents import Section, Text
    from hebbes.training.saved_runs import BEST

    if not config.episodes:
        return [], True
    by_path = {str(path): run for run in runs if (path := run.saved.folder / BEST).exists()}
    notes = _report_lacking([run for run in runs if run not in by_path.values()])
    if not by_path:
        return [Section("Evaluation", notes)] if notes else [], True
    evaluation = EvaluateConfig(
        path_weights=tuple(by_path),
        episodes=config.episodes,
        seed=config.seed,
        threads=config.threads,
        imports=config.imports,
    )
    with console.phase("reading policies"):
        entries, refused = _load_playable(evaluation)
    for line in refused.values():
        say(make_printable(line))
    names = ", ".join(by_path[path].name for path in refused)
    notes += [Text(f"Policies that cannot be played: {names}.")] if refused else []
    if not entries:
        return [Section("Evaluation", notes)], False
    evaluation = replace(evaluation, path_weights=tuple(path for path in by_path if path not in refused))
    evaluated = play_all(evaluation, entries, console)
    best = choose_best_runs(evaluation, evaluated, by_path)
    section = make_evaluation_section(evaluation, evaluated, by_path)
    sections = [replace(section, blocks=[*section.blocks, *notes])]
    with console.phase("recording weights"):
        plasticity, is_recorded = make_plasticity_section(evaluation, best, by_path)
        sections += [plasticity] if plasticity.sections else []
    is_filmed = True
    if config.video:
        with console.phase("filming"):
            videos, is_filmed = make_video_section(evaluation, best, by_path)
            sections.append(videos)
    is_complete = is_recorded and is_filmed and not refused
    return sections, is_complete and not any(each.lost for each in evaluated)


def _load_playable(evaluation: "EvaluateConfig") -> "tuple[list[Entry], dict[str, str]]":
    """The entries of the policy files that can be played, and the others with the reasons."""
    from hebbes.programs.evaluation_entries import load_entries

    with suppress(ValueError):
        return load_entries(evaluation), {}
    entries, refused = [], {}
    for path in evaluation.path_weights:
        try:
            entries += load_entries(replace(evaluation, path_weights=(path,)))
        except ValueError as error:
            refused[path] = str(error)
    return entries, refused
