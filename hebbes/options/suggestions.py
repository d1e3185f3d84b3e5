"""Suggestions for an option that does not exist."""

import difflib
from collections.abc import Sequence

NAMES_ELSEWHERE = {
    "environment": ("env_id", "env_name", "gym_id", "task"),
    "generations": ("iterations", "num_iterations", "epochs", "num_epochs", "num_generations"),
    "population_size": ("population", "pop_size", "pop"),
    "learning_rate": ("alpha", "step_size"),
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
"""By our name of an option, its names in other programs."""


def suggest_options(typed: str, known: Sequence[str]) -> list[str]:
    """At most three names of options that a user may have meant by `typed`.

    In this order: our name for another program's, names that begin with it, the most similar one, and names with the
    same words. Names that turn an option off (no_NAME) are suggested only for one that does.
    """
    off = "no_" if typed.startswith("no_") else ""
    names = [each.removeprefix(off) for each in known if each.startswith("no_") == bool(off)]
    name = typed.removeprefix(off)
    found = (
        [ours for ours, theirs in NAMES_ELSEWHERE.items() if name in theirs and ours in names]
        or difflib.get_close_matches(name, names, 1, cutoff=0.9)
        or [each for each in names if name and each.startswith(name)]
        or difflib.get_close_matches(name, names, 1, cutoff=0.75)
        or [each for each in names if _has_words(each, name)]
    )
    shortest = [each for each in found if not any(each.startswith(f"{other}_") for other in found)]
    return [f"{off}{each}" for each in shortest[:3]]


def _has_words(name: str, typed: str) -> bool:
    """Whether each typed word is the beginning of a word of the name."""
    return all(len(word) > 2 and any(each.startswith(word) for each in name.split("_")) for word in typed.split("_"))
