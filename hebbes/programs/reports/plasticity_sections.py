"""The weights of plastic networks within an episode, and their coefficients, as `evaluate_hebbian` plots them."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from hebbes.evaluation.entries import EvaluationResult
from hebbes.evaluation.weight_recording import WeightRecording, record_weights
from hebbes.options.evaluation import EvaluateConfig
from hebbes.policies.coefficients import read_coefficients_by_name
from hebbes.policies.hebbian import Hebbian
from hebbes.programs.reports.run_sections import ReportedRun
from hebbes.recording.standard_output import try_to_write
from hebbes.reporting.page.charts import make_histogram_chart, make_paths_chart
from hebbes.reporting.page.contents import Block, Chart, Section, Text
from hebbes.reporting.page.curve_charts import Line, make_curves_chart
from hebbes.reporting.plasticity_plots import NUM_BINS, project_on_principal_components
from hebbes.statistics.curves import RunCurve

_MAX_POINTS = 500


def make_plasticity_section(
    config: EvaluateConfig, best: Mapping[str, EvaluationResult], runs: Mapping[str, ReportedRun]
) -> tuple[Section, bool]:
    """The plastic ones among the best runs of the methods, and whether all could be recorded.

    It has no sections if none is plastic.
    """
    sections, is_complete = [], True
    for label, each in best.items():
        if not isinstance(each.entry.saved.policy, Hebbian):
            continue
        blocks: list[Block] = [Text(f"Of {runs[each.entry.path].name}.")]
        if not try_to_write(f"weights of {each.entry.path}", partial(_add_charts, blocks, config, each)):
            blocks.append(Text("Its weights could not be recorded."))
            is_complete = False
        sections.append(Section(label, blocks))
    return Section("Plasticity", [], sections), is_complete


def _add_charts(blocks: list[Block], config: EvaluateConfig, each: EvaluationResult) -> None:
    policy = each.entry.saved.policy
    assert isinstance(policy, Hebbian)
    recordings = record_weights(
        each.entry.saved,
        each.entry.environment,
        episodes=config.episodes,
        seed=config.seed,
        max_episode_steps=config.max_episode_steps,
    )
    blocks += [*_draw_weights(recordings), *_draw_changes(recordings), *_draw_coefficients(each, policy)]


def _draw_weights(recordings: Sequence[WeightRecording]) -> Iterator[Chart]:
    """The weights of each layer, in the plane in which all episodes together vary most."""
    for layer in range(len(recordings[0].trajectories)) if recordings else ():
        paths, shares = project_on_principal_components([each.trajectories[layer] for each in recordings])
        yield make_paths_chart(
            f"Weights of layer {layer + 1}",
            "Their first two principal components in each env step. Circles are starts, squares are ends.",
            (f"PC 1, {shares[0]:.0%} of variance", f"PC 2, {shares[1]:.0%} of variance"),
            {f"episode {number}": path for number, path in enumerate(paths, 1)},
        )


def _draw_changes(recordings: Sequence[WeightRecording]) -> Iterator[Chart]:
    """How fast the weights change in the first episode. Layers that never change are left out."""
    if not recordings:
        return
    env_steps, lines = recordings[0].updated_at.astype(np.float64), []
    for number, changes in enumerate(recordings[0].changes.T, 1):
        moved = changes > 0
        if moved.any():
            curve = RunCurve(env_steps[moved], changes[moved], gaps=env_steps[~moved])
            lines.append(Line(f"layer {number}", {"episode 1": curve}))
    if lines:
        title, labels = "Learning in episode 1", ("env step", "change of weight")
        description = "Mean absolute change of a layer's weights by each update. Gaps are updates that change nothing."
        yield make_curves_chart(title, description, labels, lines, max_points=_MAX_POINTS, is_log=True)


def _draw_coefficients(each: EvaluationResult, policy: Hebbian) -> Iterator[Chart]:
    """How the sets of coefficients are distributed, all on the same edges."""
    coefficients = read_coefficients_by_name(policy, each.entry.saved.weights)
    edges = np.histogram_bin_edges(np.concatenate(list(coefficients.values())), NUM_BINS)
    for name, values in coefficients.items():
        yield make_histogram_chart(f"Coefficient {name}", f"Of {len(values)} sets.", edges, values)
