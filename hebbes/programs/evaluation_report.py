"""What an evaluation found: tables for a person, or one JSON object; one shape for any number of files and seeds.

Files are compared within one environment: the same id, body, options of the simulator and `gymnasium_wrappers`. The
first file of an environment is compared with each of the others, and a file's variants with its intact policy.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float64

from hebbes.contracts.randomness import Purpose, stream
from hebbes.environments.morphologies import INTACT, short_name
from hebbes.environments.spec import EnvironmentSpec
from hebbes.evaluation.entries import Evaluated
from hebbes.options.evaluation import EvaluateConfig
from hebbes.statistics.comparison import Comparison, compare
from hebbes.statistics.intervals import as_json, json_estimate, json_number, summarize
from hebbes.statistics.summary_table import body_table, comparison_table, row_of, runs_summary, summary_table

Group: TypeAlias = Mapping[tuple[int, str], Evaluated]
"""What was played in one environment, by number of the file and variant."""


def report(config: EvaluateConfig, evaluated: Sequence[Evaluated]) -> str:
    """The tables, or the object that `--json` prints."""
    groups: dict[str, dict[tuple[int, str], Evaluated]] = {}
    for each in evaluated:
        number = config.path_weights.index(each.entry.path) + 1
        groups.setdefault(environment_label(each.entry.environment), {})[number, each.entry.variant] = each
    if config.json:
        return json.dumps(_object(config, evaluated, groups))
    tables = [_text(config, label, group) for label, group in groups.items()]
    return "\n\n".join([*tables, *_body_tables(groups)])


def environment_label(spec: EnvironmentSpec) -> str:
    """The environment's id, with the options, wrappers and body that make it another one."""
    options = [f"{name}={value}" for name, value in sorted(spec.env_kwargs.items())]
    wrappers = [f"{each.name}{dict(each.kwargs) or ''}" for each in spec.gymnasium_wrappers]
    damaged = [f"body {short_name(body)}" for body in spec.bodies if body != INTACT]
    return " ".join([spec.environment, *options, *wrappers, *damaged])


def _intact(group: Group) -> dict[int, Evaluated]:
    return {number: each for (number, variant), each in group.items() if not variant}


def _compared(first: Evaluated, second: Evaluated) -> Comparison:
    return compare(first.played.returns, second.played.returns, stream(0, Purpose.BOOTSTRAP))


def _between_files(group: Group) -> dict[tuple[int, int], Comparison]:
    """The first file beside each of the others, by their numbers."""
    intact = _intact(group)
    first, *others = intact
    return {(first, other): _compared(intact[first], intact[other]) for other in others}


def _with_intact(group: Group) -> dict[tuple[int, str], Comparison]:
    """Each variant beside the intact policy of its file."""
    return {
        (number, variant): _compared(each, group[number, ""]) for (number, variant), each in group.items() if variant
    }


def _text(config: EvaluateConfig, label: str, group: Group) -> str:
    first, last = config.all_seeds[0], config.all_seeds[-1]
    seeds = f"seed {first}" if first == last else f"seeds {first} to {last}"
    intact = _intact(group)
    backend = next(iter(intact.values())).entry.environment.backend
    episodes = f"{config.episodes} episodes" + (" each" if first != last else "")
    rows = {_row_name(*key): row_of(summarize(each.played.returns), each.played.faults) for key, each in group.items()}
    runs = runs_summary([each.played.returns for each in intact.values()]) if len(intact) > 1 else None
    variants = {_row_name(*key): found for key, found in _with_intact(group).items()}
    return "\n".join(
        [
            f"{label} on {backend}, {seeds}, {episodes}; 95 % intervals in brackets",
            summary_table({number: each.entry.path for number, each in intact.items()}, rows, runs),
            *(_line(*pair, found, intact) for pair, found in _between_files(group).items()),
            *([comparison_table(variants)] if variants else []),
        ]
    )


def _row_name(number: int, variant: str) -> str:
    return f"{number} {variant}".rstrip()


def _line(first: int, second: int, found: Comparison, intact: Mapping[int, Evaluated]) -> str:
    failed = [str(n) for n in (first, second) if not np.isfinite(intact[n].played.returns).all()]
    if failed:
        return f"{first} over {second}: left out, because of failed episodes of {' and '.join(failed)}"
    return (
        f"{first} over {second}: probability of improvement {found.probability_of_improvement}, "
        f"mean difference {found.mean_difference}"
    )


def _body_tables(groups: Mapping[str, Group]) -> list[str]:
    """A table for each environment that was played on several bodies."""
    by_environment: dict[str, dict[str, dict[str, str]]] = {}
    for group in groups.values():
        for key, each in group.items():
            label = environment_label(replace(each.entry.environment, bodies=("none",)))
            mean = summarize(each.played.returns).mean
            row = by_environment.setdefault(label, {}).setdefault(_row_name(*key), {})
            row[short_name(each.entry.body)] = f"{mean}{'*' if each.entry.seen else ' '}"
    return [
        f"{label}, mean return by body; * seen in training\n{body_table(rows)}"
        for label, rows in by_environment.items()
        if len({body for row in rows.values() for body in row}) > 1
    ]


def _object(config: EvaluateConfig, evaluated: Sequence[Evaluated], groups: Mapping[str, Group]) -> dict[str, Any]:
    return {
        "seeds": list(config.all_seeds),
        "episodes": config.episodes,
        "files": [_file_object(each) for each in evaluated],
        "runs": {
            label: _runs_object([each.played.returns for each in _intact(group).values()])
            for label, group in groups.items()
            if len(_intact(group)) > 1
        },
        "comparisons": [
            {
                "environment": label,
                "first": _intact(group)[first].entry.path,
                "second": _intact(group)[second].entry.path,
                **_comparison_object(found),
            }
            for label, group in groups.items()
            for (first, second), found in _between_files(group).items()
        ],
        "interventions": [
            {"environment": label, "path": group[key].entry.path, "variant": key[1], **_comparison_object(found)}
            for label, group in groups.items()
            for key, found in _with_intact(group).items()
        ],
    }


def _comparison_object(found: Comparison) -> dict[str, Any]:
    return {
        **json_estimate("probability_of_improvement", found.probability_of_improvement),
        **json_estimate("mean_difference", found.mean_difference),
    }


def _file_object(each: Evaluated) -> dict[str, Any]:
    figures = summarize(each.played.returns)
    return {
        "path": each.entry.path,
        "variant": each.entry.variant,
        "environment": environment_label(each.entry.environment),
        "body": each.entry.body,
        "body_in_training": each.entry.seen,
        "backend": each.entry.environment.backend,
        **as_json(figures),
        "failed": figures.failed,
        "faults": dict(each.played.faults),
        "returns": [[json_number(value) for value in row] for row in each.played.returns],
    }


def _runs_object(returns_by_run: Sequence[Float64[np.ndarray, "seeds episodes"]]) -> dict[str, Any]:
    figures = runs_summary(returns_by_run)
    return {"count": figures.units, **as_json(figures), "failed": figures.failed}
