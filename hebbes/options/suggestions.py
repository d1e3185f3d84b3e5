"""The flags that somebody may have meant who typed one that does not exist."""

import difflib
from collections.abc import Sequence

ELSEWHERE = {
    "environment": ("env_id", "env_name", "gym_id", "task"),
    "generations": ("iterations", "num_iterations", "epochs", "num_epochs", "num_generations"),
    "popsize": ("population", "population_size", "pop_size"),
    "lr": ("learning_rate", "alpha", "step_size"),
    "sigma": ("std", "noise", "noise_std", "stddev"),
    "weight_decay": ("wd", "l2"),
    "threads": ("workers", "num_workers", "processes", "cores", "cpus", "jobs", "num_threads", "n_jobs"),
    "seed": ("random_seed", "rng_seed"),
    "folder": ("output", "out", "output_dir", "outdir", "log_dir", "save_dir", "logdir", "dir"),
    "run_name": ("name", "exp_name", "experiment"),
    "init_from": ("weights", "load", "model", "pretrained", "path_weights"),
    "path_weights": ("model", "checkpoint", "policy_file", "file", "load"),
    "strategy": ("algorithm", "algo"),
    "resume": ("checkpoint", "continue", "restore"),
    "print_every": ("verbose", "log_every", "log_interval"),
    "hidden_sizes": ("layers", "hidden_layers", "num_hidden", "net_arch"),
    "max_env_steps": ("steps", "timesteps", "total_timesteps", "num_steps", "max_steps"),
    "max_episode_steps": ("steps", "max_steps", "episode_length", "horizon"),
    "episodes": ("num_episodes", "n_episodes", "trials", "eval_episodes"),
}
"""What other programs call our options."""


def suggest_flags(typed: str, flags: Sequence[str]) -> list[str]:
    """At most three of the flags `--name`: ours for another's name, those begun, the nearest, or those with its words.

    Flags that turn an option off are suggested only to those who typed one.
    """
    off = "--no_" if typed.startswith("--no_") else "--"
    names = [flag.removeprefix(off) for flag in flags if flag.startswith(off)]
    if off == "--":
        names = [name for name in names if not name.startswith("no_")]
    name = typed.removeprefix(off)
    found = (
        [ours for ours, theirs in ELSEWHERE.items() if name in theirs and ours in names]
        or difflib.get_close_matches(name, names, 1, cutoff=0.9)
        or [each for each in names if name and each.startswith(name)]
        or difflib.get_close_matches(name, names, 1, cutoff=0.75)
        or [each for each in names if _has_words(each, name)]
    )
    shortest = [each for each in found if not any(each.startswith(f"{other}_") for other in found)]
    return [f"{off}{each}" for each in shortest[:3]]


def _has_words(name: str, typed: str) -> bool:
    """Whether each word typed begins a word of the name."""
    return all(len(word) > 2 and any(each.startswith(word) for each in name.split("_")) for word in typed.split("_"))
