"""The results of an evaluation, as tables or as one JSON object.

Files are compared within one environment (`describe_played_environment`). They are runs of the methods by which they
were trained. Each method is compared with each of the others, and the variants of a file with its intact policy.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from hebbes.environments.morphologies import INTACT, shorten_morphology_name
from hebbes.evaluation.entries import Entry, EvaluationResult
from hebbes.evaluation.episode_cap import describe_played_environment
from hebbes.files.policy_file import SavedPolicy, list_policy_options
from hebbes.options.evaluation import EvaluateConfig
from hebbes.options.method import START, Method, find_method, group_by_method
from hebbes.recording.standard_output import make_printable
from hebbes.statistics.comparison import Comparison, compare, compare_methods
from hebbes.statistics.intervals import make_json_estimate, make_json_number, make_json_summary
from hebbes.statistics.summary_table import (
    format_comparison_table,
    format_morphology_table,
    format_row,
    format_summary_table,
    summarize_runs,
)

Group: TypeAlias = Mapping[tuple[int, str], EvaluationResult]
"""The results in one environment, by number of the file and variant."""

Methods: TypeAlias = Mapping[str, Mapping[str, EvaluationResult]]
"""Label of each method -> the results of its intact policies, by what a file is called, such as its number."""


def format_report(config: EvaluateConfig, evaluated: Sequence[EvaluationResult]) -> str:
    """The tables, or the JSON object if the config has `json`."""
    groups = group_by_environment(config, evaluated)
    if config.json:
        return json.dumps(_make_json_object(config, evaluated, groups))
    tables = [_format_group(config, label, group) for label, group in groups.items()]
    return "\n\n".join([*tables, *_format_morphology_tables(config, groups)])


def group_by_environment(config: EvaluateConfig, evaluated: Sequence[EvaluationResult]) -> Mapping[str, Group]:
    """Description of each environment -> the results in it."""
    groups: dict[str, dict[tuple[int, str], EvaluationResult]] = {}
    for each in evaluated:
        number = config.path_weights.index(each.entry.path) + 1
        groups.setdefault(_describe(config, each.entry), {})[number, each.entry.variant] = each
    return groups


def _describe(config: EvaluateConfig, entry: Entry) -> str:
    return describe_played_environment(entry.saved, entry.environment, config.max_episode_steps)


def select_intact(group: Group) -> dict[int, EvaluationResult]:
    """The results of the intact policies, by number of the file."""
    return {number: each for (number, variant), each in group.items() if not variant}


def _find_methods(group: Group) -> Methods:
    """The methods that the files name, whose results are called by their numbers."""
    intact = list(select_intact(group).items())
    found = group_by_method([_find_method(each.entry.saved) for _, each in intact])
    return {
        make_printable(label): {str(number): each for number, each in (intact[place] for place in places)}
        for label, places in found.items()
    }


def _find_method(saved: SavedPolicy) -> Method:
    """The method by which a policy was trained: its options, and those of the policy itself.

    The latter differ in files that were merged by earlier versions. Those of even earlier ones lack the former.
    """
    trained, start = saved.provenance.get("options"), saved.provenance.get(START)
    options = trained if isinstance(trained, dict) else {}
    own = list_policy_options(saved.policy)
    return find_method({"policy": saved.policy_name, **options, **own} | ({START: start} if start else {}))


def compare_all_methods(methods: Methods) -> dict[tuple[str, str], Comparison]:
    """Comparisons of each method with each of those after it."""
    returns = {label: np.stack([each.returns for each in runs.values()]) for label, runs in methods.items()}
    return {(one, other): compare_methods(returns[one], returns[other]) for one, other in combinations(methods, 2)}


def _compare_with_intact(group: Group) -> dict[tuple[int, str], Comparison]:
    """Comparisons of each variant with the intact policy of its file."""
    return {
        (number, variant): compare(each.returns, group[number, ""].returns)
        for (number, variant), each in group.items()
        if variant
    }


def _format_group(config: EvaluateConfig, label: str, group: Group) -> str:
    first, last = config.all_seeds[0], config.all_seeds[-1]
    seeds = f"seed {first}" if first == last else f"seeds {first} to {last}"
    intact = select_intact(group)
    backend = next(iter(intact.values())).entry.environment.backend
    episodes = f"{config.episodes} episode{'s' * (config.episodes > 1)}" + (" each" if first != last else "")
    names = {number: make_printable(each.entry.path) for number, each in intact.items()}
    rows = {_format_row_name(*key): format_row(each.summary, each.faults) for key, each in group.items()}
    methods = _find_methods(group) if len(intact) > 1 else {}
    returns = {label: {name: each.returns for name, each in runs.items()} for label, runs in methods.items()}
    pairs: dict[str, Comparison | str] = {}
    for (one, other), found in compare_all_methods(methods).items():
        name = f"{one} over {other}, by {name_unit(methods, one, other)}"
        pairs[name] = explain_missing_comparison(methods, one, other) or found
    variants = {_format_row_name(*key): found for key, found in _compare_with_intact(group).items()}
    return "\n".join(
        [
            f"{label} on {backend}, {seeds}, {episodes}; 95 % intervals in brackets",
            format_summary_table(names, rows, returns),
            *warn_of_equal_seeds(methods),
            *([format_comparison_table("method over method", pairs)] if pairs else []),
            *([format_comparison_table("versus the intact policy", variants)] if variants else []),
        ]
    )


def warn_of_equal_seeds(methods: Methods) -> Iterator[str]:
    """A line for each method with files of the same seed of training, such as two files of one run."""
    for label, runs in methods.items():
        seeds = [_find_training_seed(each.entry.saved.provenance) for each in runs.values()]
        if equal := [
            name for name, seed in zip(runs, seeds, strict=True) if seed is not None and seeds.count(seed) > 1
        ]:
            yield f"{label}: not all runs are independent, because files {', '.join(equal)} share seeds of training"


def _find_training_seed(provenance: Mapping[str, Any]) -> Any:
    """The seed of the training of a policy, or of the one from which its rules were merged. None: unknown."""
    while isinstance(source := provenance.get("merged_from"), dict):
        provenance = source
    return provenance.get("seed")


def _format_row_name(number: int, variant: str) -> str:
    return f"{number} {variant}".rstrip()


def name_unit(methods: Methods, one: str, other: str) -> str:
    """The unit of the probability of improvement, see `compare_methods`."""
    return "episode" if len(methods[one]) == len(methods[other]) == 1 else "run"


def explain_missing_comparison(methods: Methods, one: str, other: str) -> str:
    """Why two methods cannot be compared. Empty if they can."""
    failed = [name for name, each in {**methods[one], **methods[other]}.items() if not np.isfinite(each.returns).all()]
    return f"left out, because of failed episodes of {', '.join(failed)}" if failed else ""


def _format_morphology_tables(config: EvaluateConfig, groups: Mapping[str, Group]) -> list[str]:
    """A table for each environment that was played on several morphologies."""
    by_environment: dict[str, dict[str, dict[str, str]]] = {}
    for group in groups.values():
        for key, each in group.items():
            intact = replace(each.entry.environment, morphologies=(INTACT,))
            label = _describe(config, replace(each.entry, environment=intact))
            row = by_environment.setdefault(label, {}).setdefault(_format_row_name(*key), {})
            mean, mark = each.summary.mean, "*" if each.entry.seen else " "
            row[shorten_morphology_name(each.entry.morphology)] = f"{mean}{mark}"
    return [
        f"{label}, mean return by morphology; * seen in training\n{format_morphology_table(rows)}"
        for label, rows in by_environment.items()
        if len({morphology for row in rows.values() for morphology in row}) > 1
    ]


def _make_json_object(
    config: EvaluateConfig, evaluated: Sequence[EvaluationResult], groups: Mapping[str, Group]
) -> dict[str, Any]:
    methods = {label: _find_methods(group) for label, group in groups.items()}
    return {
        "seeds": list(config.all_seeds),
        "episodes": config.episodes,
        "files": [_make_file_object(config, each) for each in evaluated],
        "methods": [
            {"environment": label, "method": method, **_make_method_object(list(runs.values()))}
            for label, found in methods.items()
            for method, runs in found.items()
        ],
        "comparisons": [
            {
                "environment": label,
                "first": first,
                "second": second,
                "unit": name_unit(methods[label], first, second),
                **_make_comparison_object(found),
            }
            for label in groups
            for (first, second), found in compare_all_methods(methods[label]).items()
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


def _make_file_object(config: EvaluateConfig, each: EvaluationResult) -> dict[str, Any]:
    return {
        "path": each.entry.path,
        "variant": each.entry.variant,
        "environment": _describe(config, each.entry),
        "morphology": each.entry.morphology,
        "morphology_in_training": each.entry.seen,
        "backend": each.entry.environment.backend,
        **make_json_summary(each.summary),
        "failed": each.summary.failed,
        "faults": dict(each.faults),
        "returns": [[make_json_number(value) for value in row] for row in each.returns],
    }


def _make_method_object(runs: Sequence[EvaluationResult]) -> dict[str, Any]:
    statistics = summarize_runs([each.returns for each in runs])
    return {
        "count": statistics.units,
        "paths": [each.entry.path for each in runs],
        "values": [make_json_number(float(each.returns.mean())) for each in runs],
        **make_json_summary(statistics),
        "failed": statistics.failed,
    }
