"""The policies that the options of an evaluation name, read and checked before anything is played."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path

from hebbes.environments.ids import endless, resolve
from hebbes.environments.quiet_simulators import has_display
from hebbes.environments.spec import spec_to_json
from hebbes.evaluation.entries import Entry
from hebbes.evaluation.play import environment_for
from hebbes.execution.episode import Agent
from hebbes.files.policy_file import SavedPolicy, check_fits, load_policy
from hebbes.files.torch_file import is_legacy, legacy_weights
from hebbes.files.weight_file import refusals
from hebbes.options.evaluation import EvaluateConfig
from hebbes.options.reference_options import ReferenceOptions, reference_training
from hebbes.reporting.evaluation_plots import make_plots_folder
from hebbes.reporting.video import check_video_path
from hebbes.training.assembly import spaces
from hebbes.training.contract_checks import try_policy
from hebbes.training.memory_check import check_evaluation


def load_entries(config: EvaluateConfig) -> list[Entry]:
    """Each file on each body, intact and then its variants; ValueError if one cannot be played or filmed."""
    if config.video is not None:
        check_video_path(Path(config.video))
    loaded = _legacy(config) if config.policy is not None else _self_describing(config)
    by_path = dict(zip(config.path_weights, loaded, strict=True))
    config.check_policies({path: saved.policy for path, saved in by_path.items()})
    entries = [entry for path, saved in by_path.items() for entry in _entries(config, path, saved)]
    if config.render and not has_display():
        raise ValueError("render needs a display, and neither DISPLAY nor WAYLAND_DISPLAY is set; --video needs none")
    if config.plots_folder is not None:
        make_plots_folder(config.plots_folder)
    _check_memory(config, entries)
    specs, cap = [entry.environment for entry in entries], config.max_episode_steps
    for notice in {endless(spec.environment, spec.env_kwargs, cap) for spec in specs} - {""}:
        print(notice, file=sys.stderr)
    return entries


def _check_memory(config: EvaluateConfig, entries: Sequence[Entry]) -> None:
    """Says what the dearest of the entries needs; ValueError where one does not fit."""
    if config.render:
        return
    checked: dict[str, str] = {}
    for entry in entries:
        spec = entry.environment
        label = json.dumps(spec_to_json(spec))
        if label not in checked:
            agent = Agent(entry.saved.policy, entry.saved.action_head)
            timed = config.episode_timeout is not None
            checked[label] = check_evaluation(
                agent, spec, episodes=config.episodes, threads=config.threads, timed=timed
            )
    for notice in dict.fromkeys(filter(None, checked.values())):
        print(notice, file=sys.stderr)


def _entries(config: EvaluateConfig, path: str, saved: SavedPolicy) -> Iterator[Entry]:
    environment = environment_for(saved.environment, backend=config.backend, training_wrappers=config.training_wrappers)
    for name in ("render", "video"):
        if getattr(config, name) and environment.backend != "gymnasium":
            raise ValueError(f"{name} needs the gymnasium back end, got {environment.backend}")
    variants = config.variants(path, saved.policy)
    for body in config.bodies(environment.bodies):
        on_body = replace(environment, bodies=(body,))
        observation_space, action_space = spaces(on_body)
        check_fits(Path(path), saved, observation_space, action_space)
        with refusals(Path(path)):
            try_policy(saved.policy_name, saved.policy, saved.weights, saved.buffers, observation_space)
        for variant, policy in variants.items():
            yield Entry(path, replace(saved, policy=policy), on_body, variant)


def _self_describing(config: EvaluateConfig) -> Iterator[SavedPolicy]:
    """What the files hold, in the environment that the options name."""
    notices = set()
    for path in config.path_weights:
        saved = load_policy(Path(path), config.imports)
        imports = tuple(dict.fromkeys((*saved.environment.imports, *config.imports)))
        environment = replace(saved.environment, imports=imports)
        if config.environment is not None:
            named = resolve(config.environment, imports)
            notices.add(named.notice)
            kept = environment.env_kwargs if named.environment == environment.environment else {}
            env_kwargs = {**kept, **named.env_kwargs}
            environment = replace(
                environment, environment=named.environment, env_kwargs=env_kwargs, imports=named.imports
            )
        yield replace(saved, environment=environment)
    for notice in notices - {None}:
        print(notice, file=sys.stderr)


def _legacy(config: EvaluateConfig) -> Iterator[SavedPolicy]:
    """The weights that torch.save wrote, in the policy and the environment of the options."""
    assert config.environment is not None  # policy needs it
    given = config.given(fields(ReferenceOptions)) | {"policy": config.policy, "import": list(config.imports)}
    trained, environment, agent = reference_training("static", config.environment, given)
    for path in config.path_weights:
        if not is_legacy(Path(path)):
            load_policy(Path(path), config.imports)  # raises for a file that is neither
            raise ValueError(f"policy is for files that torch.save wrote; {path} says itself what it holds")
        weights = legacy_weights(Path(path), agent.policy)
        yield SavedPolicy(agent.policy, trained.policy, weights, {}, agent.action_head, environment, {})
