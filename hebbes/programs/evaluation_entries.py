"""The policies of an evaluation, which are read and checked before anything is played."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from hebbes.contracts.errors import say
from hebbes.environments.environment_spec import spec_to_json
from hebbes.environments.quiet_simulators import has_display
from hebbes.environments.trial import find_spaces
from hebbes.evaluation.entries import Entry, load_in_environment
from hebbes.evaluation.episode_cap import advise_episode_cap, find_longest_episode
from hebbes.evaluation.play import make_evaluation_spec
from hebbes.execution.engine_options import EngineOptions
from hebbes.execution.episode import Agent
from hebbes.files.policy_file import SavedPolicy, check_fits, read_policy_file
from hebbes.files.torch_file import is_torch_file, read_torch_weights
from hebbes.files.weight_file import wrap_file_errors
from hebbes.options.evaluation import EvaluateConfig
from hebbes.options.hebbian_evaluation import HebbianEvaluateConfig
from hebbes.options.reference_options import ReferenceOptions
from hebbes.programs.reference_training import make_reference_training
from hebbes.reporting.evaluation_plots import make_plots_folder
from hebbes.reporting.video import check_has_images, check_video_path
from hebbes.training.contract_checks import try_policy
from hebbes.training.memory_check import check_evaluation_memory


def load_entries(config: EvaluateConfig) -> list[Entry]:
    """Each file on each morphology, first intact, then its variants; ValueError if one cannot be played or filmed."""
    if config.video is not None:
        check_video_path("--video", Path(config.video))
    loaded = _load_torch_files(config) if config.policy is not None else _load_policy_files(config)
    by_path = dict(zip(config.path_weights, loaded, strict=True))
    config.check_policies({path: saved.policy for path, saved in by_path.items()})
    entries = [entry for path, saved in by_path.items() for entry in _make_entries(config, path, saved)]
    if config.video is not None:
        check_has_images("--video", entries[0].environment)
    if config.render and not has_display():
        raise ValueError("render needs a display, and neither DISPLAY nor WAYLAND_DISPLAY is set; --video needs none")
    if isinstance(config, HebbianEvaluateConfig) and config.plots is not None:
        make_plots_folder(Path(config.plots))
    _check_memory(config, entries)
    cap = config.max_episode_steps
    for notice in dict.fromkeys(advise_episode_cap(each.saved, each.environment, cap) for each in entries):
        if notice:
            say(notice)
    return entries


def _check_memory(config: EvaluateConfig, entries: Sequence[Entry]) -> None:
    """Prints how much memory the entries need; ValueError if an entry does not fit into it."""
    if config.render:
        return
    options = EngineOptions(threads=config.threads, episode_timeout=config.episode_timeout)
    notices: dict[str, str] = {}
    for entry in entries:
        label = f"{json.dumps(spec_to_json(entry.environment))} {entry.saved.policy!r}"
        if label not in notices:
            agent = Agent(entry.saved.policy, entry.saved.action_head)
            notices[label] = check_evaluation_memory(agent, entry.environment, options, config.episodes)
    for notice in dict.fromkeys(filter(None, notices.values())):
        say(notice)


def _make_entries(config: EvaluateConfig, path: str, saved: SavedPolicy) -> Iterator[Entry]:
    environment = make_evaluation_spec(
        saved.environment, backend=config.backend, training_wrappers=config.training_wrappers
    )
    for name in ("render", "video"):
        if getattr(config, name) and environment.backend != "gymnasium":
            raise ValueError(f"{name} needs the gymnasium back end, got {environment.backend}")
    longest = find_longest_episode(saved, environment, config.max_episode_steps)
    variants = config.make_variants(path, saved.policy, longest)
    for morphology in config.choose_morphologies(environment.morphologies):
        on_morphology = replace(environment, morphologies=(morphology,))
        with wrap_file_errors(Path(path)):
            observation_space, action_space = find_spaces(on_morphology)
            check_fits(Path(path), saved, observation_space, action_space)
            observation = np.zeros(observation_space.shape or (), observation_space.dtype)
            try_policy(saved.policy_name, saved.policy, saved.weights, saved.buffers, observation)
        for variant, policy in variants.items():
            yield Entry(path, replace(saved, policy=policy), on_morphology, variant)


def _load_policy_files(config: EvaluateConfig) -> Iterator[SavedPolicy]:
    """The policies that the files describe, in the environment that the options name, if they name one."""
    notices: dict[str, None] = {}
    for path in config.path_weights:
        saved, notice = load_in_environment(path, config.environment, config.imports)
        notices |= {notice: None} if notice else {}
        yield saved
    for notice in notices:
        say(notice)


def _load_torch_files(config: EvaluateConfig) -> Iterator[SavedPolicy]:
    """The weights that torch.save wrote, in the policy and the environment that the options describe."""
    assert config.environment is not None  # policy needs it
    given = config.collect_given(fields(ReferenceOptions)) | {"policy": config.policy, "import": list(config.imports)}
    trained, environment, agent = make_reference_training("static", config.environment, given)
    for path in config.path_weights:
        if not is_torch_file(Path(path)):
            read_policy_file(Path(path), config.imports)  # raises for a file that neither program wrote
            raise ValueError(f"policy is for files that torch.save wrote; {path} describes its policy itself")
        weights = read_torch_weights(Path(path), agent.policy)
        yield SavedPolicy(agent.policy, trained.choices.policy, weights, {}, agent.action_head, environment, {})
