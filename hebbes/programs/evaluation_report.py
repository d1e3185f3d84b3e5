"""The results of an evaluation, as tables or as one JSON object.

Files are compared within one environment: the same id, morphology, simulator options and `gymnasium_wrappers`. The
first file of an environment is compared with each of the others, and the variants of a file with its intact policy.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.morphologies import INTACT, shorten_morphology_name
from hebbes.evaluation.entries import EvaluationResult
from hebbes.options.evaluation import EvaluateConfig
from hebbes.statistics.comparison import Comparison, compare
from hebbes.statistics.intervals import make_json_estimate, make_json_number, make_json_summary, summarize
from hebbes.statistics.summary_table import (
    format_comparison_table,
    format_morphology_table,
    format_row,
    format_summary_table,
    summarize_runs,
)

Group: TypeAlias = Mapping[tuple[int, str], EvaluationResult]
"""The results in one environment, by number of the file and variant."""


def format_report(config: EvaluateConfig, evaluated: Sequence[EvaluationResult]) -> str:
    """The tables, or the JSON object if the config has `json`."""
    groups: dict[str, dict[tuple[int, str], EvaluationResult]] = {}
    for each in evaluated:
        number = config.path_weights.index(each.entry.path) + 1
        groups.setdefault(describe_environment(each.entry.environment), {})[number, each.entry.variant] = each
    if config.json:
        return json.dumps(_make_json_object(config, evaluated, groups))
    tables = [_format_group(config, label, group) for label, group in groups.items()]
    return "\n\n".join([*tables, *_format_morphology_tables(groups)])


def describe_environment(spec: EnvironmentSpec) -> str:
    """The environment's id, with its simulator options, its Gymnasium wrappers and its morphology."""
    options = [f"{name}={value}" for name, value in sorted(spec.env_kwargs.items())]
    wrappers = [f"{each.name}{dict(each.kwargs) or ''}" for each in spec.gymnasium_wrappers]
    damaged = [
        f"morphology {shorten_morphology_name(morphology)}" for morphology in spec.morphologies if morphology != INTACT
    ]
    return " ".join([spec.environment, *options, *wrappers, *damaged])


def _select_intact(group: Group) -> dict[int, EvaluationResult]:
    return {number: each for (number, variant), each in group.items() if not variant}


def _compare_returns(first: EvaluationResult, second: EvaluationResult) -> Comparison:
    return compare(first.returns, second.returns, make_generator(0, Purpose.BOOTSTRAP))


def _compare_files(group: Group) -> dict[tuple[int, int], Comparison]:
    """Comparisons of the first file with each of the others, by their numbers."""
    first, *others = _select_intact(group)
    return {(first, other): _compare_returns(group[first, ""], group[other, ""]) for other in others}


def _compare_with_intact(group: Group) -> dict[tuple[int, str], Comparison]:
    """Comparisons of each variant with the intact policy of its file."""
    return {
        (number, variant): _compare_returns(each, group[number, ""])
        for (number, variant), each in group.items()
        if variant
    }


def _format_group(config: EvaluateConfig, label: str, group: Group) -> str:
    first, last = config.all_seeds[0], config.all_seeds[-1]
    seeds = f"seed {first}" if first == last else f"seeds {first} to {last}"
    intact = _select_intact(group)
    backend = next(iter(intact.values())).entry.environment.backend
    episodes = f"{config.episodes} episodes" + (" each" if first != last else "")
    rows = {_format_row_name(*key): format_row(summarize(each.returns), each.faults) for key, each in group.items()}
    runs = summarize_runs([each.returns for each in intact.values()]) if len(intact) > 1 else None
    variants = {_format_row_name(*key): found for key, found in _compare_with_intact(group).items()}
    return "\n".join(
        [
            f"{label} on {backend}, {seeds}, {episodes}; 95 % intervals in brackets",
            format_summary_table({number: each.entry.path for number, each in intact.items()}, rows, runs),
            *(_format_comparison(*pair, found, group) for pair, found in _compare_files(group).items()),
            *([format_comparison_table(variants)] if variants else []),
        ]
    )


def _format_row_name(number: int, variant: str) -> str:
    return f"{number} {variant}".rstrip()


def _format_comparison(first: int, second: int, found: Comparison, group: Group) -> str:
    failed = [str(n) for n in (first, second) if not np.isfinite(group[n, ""].returns).all()]
    if failed:
        return f"{first} over {second}: left out, because of failed episodes of {' and '.join(failed)}"
    return (
        f"{first} over {second}: probability of improvement {found.probability_of_improvement}, "
        f"mean difference {found.mean_difference}"
    )


def _format_morphology_tables(groups: Mapping[str, Group]) -> list[str]:
    """A table for each environment that was played on several morphologies."""
    by_environment: dict[str, dict[str, dict[str, str]]] = {}
    for group in groups.values():
        for key, each in group.items():
            label = describe_environment(replace(each.entry.environment, morphologies=("none",)))
            mean = summarize(each.returns).mean
            row = by_environment.setdefault(label, {}).setdefault(_format_row_name(*key), {})
            row[shorten_morphology_name(each.entry.morphology)] = f"{mean}{'*' if each.entry.seen else ' '}"
    return [
        f"{label}, mean return by morphology; * seen in training\n{format_morphology_table(rows)}"
        for label, rows in by_environment.items()
        if len({morphology for row in rows.values() for morphology in row}) > 1
    ]


def _make_json_object(
    config: EvaluateConfig, evaluated: Sequence[EvaluationResult], groups: Mapping[str, Group]
) -> dict[str, Any]:
    return {
        "seeds": list(config.all_seeds),
        "episodes": config.episodes,
        "files": [_make_file_object(each) for each in evaluated],
        "runs": {
            label: _make_runs_object(_select_intact(group).values())
            for label, group in groups.items()
            if len(_select_intact(group)) > 1
        },
        "comparisons": [
            {
                "environment": label,
                "first": group[first, ""].entry.path,
                "second": group[second, ""].entry.path,
                **_make_comparison_object(found),
            }
            for label, group in groups.items()
            for (first, second), found in _compare_files(group).items()
        ],
        "interventions": [
            {"environment": label, "path": group[key].entry.path, "variant": key[1], **_make_comparison_object(found)}
            for label, group in groups.items()
            for key, found in _compare_with_intact(group).items()
        ],
    }


def _make_comparison_object(found: Comparison) -> dict[str, Any]:
    return {
        **make_json_estimate("probability_of_improvement", found.probability_of_improvement),
        **make_json_estimate("mean_difference", found.mean_difference),
    }


def _make_file_object(each: EvaluationResult) -> dict[str, Any]:
    statistics = summarize(each.returns)
    return {
        "path": each.entry.path,
        "variant": each.entry.variant,
        "environment": describe_environment(each.entry.environment),
        "morphology": each.entry.morphology,
        "morphology_in_training": each.entry.seen,
        "backend": each.entry.environment.backend,
        **make_json_summary(statistics),
        "failed": statistics.failed,
        "faults": dict(each.faults),
        "returns": [[make_json_number(value) for value in row] for row in each.returns],
    }


def _make_runs_object(runs: Iterable[EvaluationResult]) -> dict[str, Any]:
    statistics = summarize_runs([each.returns for each in runs])
    return {"count": statistics.units, **make_json_summary(statistics), "failed": statistics.failed}
