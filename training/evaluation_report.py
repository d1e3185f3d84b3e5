"""What an evaluation found: tables for a person, or one JSON object; one shape for any number of files and seeds.

Files are compared within one environment: the same id, options of the simulator, `gymnasium_wrappers` and bodies. The
first file of an environment is compared with each of the others.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64

from contracts.randomness import Purpose, stream
from rollouts.bodies import INTACT
from rollouts.environments import EnvironmentSpec
from training.comparison import Comparison, compare
from training.evaluation import Played, summarise
from training.evaluation_options import Entry, EvaluateConfig
from training.statistics import as_json, json_estimate, json_number
from training.summary_table import row_of, runs_summary, summary_table


@dataclass(frozen=True)
class Evaluated:
    """A policy and what its episodes brought."""

    entry: Entry
    played: Played


def report(config: EvaluateConfig, evaluated: Sequence[Evaluated]) -> str:
    """The tables, or the object that `--json` prints."""
    groups: dict[str, dict[int, Evaluated]] = {}
    for position, each in enumerate(evaluated, 1):
        groups.setdefault(environment_label(each.entry.environment), {})[position] = each
    if config.json:
        return json.dumps(_object(config, groups))
    return "\n\n".join(_text(config, label, group) for label, group in groups.items())


def environment_label(spec: EnvironmentSpec) -> str:
    """The environment's id, with the options, wrappers and bodies that make it another one."""
    options = [f"{name}={value}" for name, value in sorted(spec.env_kwargs.items())]
    wrappers = [f"{each.name}{dict(each.kwargs) or ''}" for each in spec.gymnasium_wrappers]
    bodies = [] if spec.bodies == (INTACT,) else [f"in the bodies {', '.join(spec.bodies)}"]
    return " ".join([spec.environment, *options, *wrappers, *bodies])


def comparisons(group: Mapping[int, Evaluated]) -> dict[tuple[int, int], Comparison]:
    """The first file of an environment beside each of the others, by their positions."""
    first, *others = group
    return {
        (first, other): compare(group[first].played.returns, group[other].played.returns, stream(0, Purpose.BOOTSTRAP))
        for other in others
    }


def _text(config: EvaluateConfig, label: str, group: Mapping[int, Evaluated]) -> str:
    first, last = config.all_seeds[0], config.all_seeds[-1]
    seeds = f"seed {first}" if first == last else f"seeds {first} to {last}"
    backend = next(iter(group.values())).entry.environment.backend
    episodes = f"{config.episodes} episodes" + (" each" if first != last else "")
    rows = [row_of(summarise(each.played.returns), each.played.faults) for each in group.values()]
    runs = runs_summary([each.played.returns for each in group.values()]) if len(group) > 1 else None
    return "\n".join(
        [
            f"{label} on {backend}, {seeds}, {episodes}; 95 % intervals in brackets",
            summary_table({position: each.entry.path for position, each in group.items()}, rows, runs),
            *(_compared(*pair, found, group) for pair, found in comparisons(group).items()),
        ]
    )


def _compared(first: int, second: int, found: Comparison, group: Mapping[int, Evaluated]) -> str:
    failed = [str(n) for n in (first, second) if not np.isfinite(group[n].played.returns).all()]
    if failed:
        return f"{first} over {second}: left out, because of failed episodes of {' and '.join(failed)}"
    return (
        f"{first} over {second}: probability of improvement {found.probability_of_improvement}, "
        f"mean difference {found.mean_difference}"
    )


def _object(config: EvaluateConfig, groups: Mapping[str, Mapping[int, Evaluated]]) -> dict[str, Any]:
    files = {position: each for group in groups.values() for position, each in group.items()}
    return {
        "seeds": list(config.all_seeds),
        "episodes": config.episodes,
        "files": [_file_object(files[position]) for position in sorted(files)],
        "runs": {
            label: _runs_object([each.played.returns for each in group.values()])
            for label, group in groups.items()
            if len(group) > 1
        },
        "comparisons": [
            {
                "environment": label,
                "first": group[first].entry.path,
                "second": group[second].entry.path,
                **json_estimate("probability_of_improvement", found.probability_of_improvement),
                **json_estimate("mean_difference", found.mean_difference),
            }
            for label, group in groups.items()
            for (first, second), found in comparisons(group).items()
        ],
    }


def _file_object(each: Evaluated) -> dict[str, Any]:
    figures = summarise(each.played.returns)
    return {
        "path": each.entry.path,
        "environment": environment_label(each.entry.environment),
        "backend": each.entry.environment.backend,
        **as_json(figures),
        "failed": figures.failed,
        "faults": dict(each.played.faults),
        "returns": [[json_number(value) for value in row] for row in each.played.returns],
    }


def _runs_object(returns_by_run: Sequence[Float64[np.ndarray, "seeds episodes"]]) -> dict[str, Any]:
    figures = runs_summary(returns_by_run)
    return {"count": figures.units, **as_json(figures), "failed": figures.failed}
