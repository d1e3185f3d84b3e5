"""Runs of a few generations on a scripted environment, for the tests of training."""

from hebbes.files.checkpoint import load_newest_checkpoint
from hebbes.options.command_line import resolve_config
from hebbes.options.resuming import resume_config
from hebbes.options.texts import format_options
from hebbes.recording.metrics import read_metrics
from hebbes.training.owners import find_owner, find_trainer
from hebbes.training.prepare import prepare
from hebbes.training.run import execute

SETTINGS = {"population_size": 8, "learning_rate": 0.05, "optimizer": "adam"}
"""Options of the strategy openai_es."""

OPTIONS = {
    "environment": "Scripted-v0",
    "import": ("tests.scripted",),
    "env_kwargs": {"rewards": [0.0], "truncate_at": 5, "action_weight": 1.0},
    "policy": "linear",
    "observation_normalization": True,
    "generations": 9,
    "threads": 1,
    "run_name": "run",
    "checkpoint_every": 2,
    "eval_every": 1,
    "eval_episodes": 2,
    "test_episodes": 0,
}


def make_config(trainer="static", /, **options):
    """The config of a new run with these options, by the names that a command line has. No preset is read."""
    return resolve_config(trainer, format_options({"preset": "none", **options}))


def make_scripted_config(folder, trainer="static", /, **options):
    """The config of nine generations, whose return is the sum of the actions and of a number drawn at the start.

    Options are given by name. With another strategy, they do not include those of openai_es.
    """
    given = {**OPTIONS, **SETTINGS, "folder": str(folder), **options}
    evolves = find_trainer(trainer).method_kind == "strategy"
    dropped = SETTINGS if "strategy" in options else () if evolves else {*SETTINGS, "observation_normalization"}
    return make_config(trainer, **{name: given[name] for name in given if name in options or name not in dropped})


def change(config, **options):
    """The config with other options, by name. A strategy that is replaced takes its options along, a policy too."""
    dropped = set()
    for owner in config.owners:
        if owner.kind in options:
            dropped |= {each.short_name for each in owner.options}
    if "policy" in options:
        dropped -= {each.short_name for each in find_owner("policy", options["policy"]).options}
    kept = {name: value for name, value in config.as_options().items() if name not in dropped}
    return make_config(config.trainer, **{**kept, **options})


def train(config):
    """Trains; returns the folder of the run."""
    (run,) = prepare(config)
    execute(run)
    return run.folder


def meddle(run, action):
    """Calls `action(context, rollouts)` after each evaluation of the run. It may change the rollouts, or raise."""
    evaluate = run.engine.evaluate

    def evaluate_and_meddle(population, context):
        rollouts = evaluate(population, context)
        action(context, rollouts)
        return rollouts

    run.engine.evaluate = evaluate_and_meddle


def make_resumed_config(folder, trainer="static", /, **options):
    """The config that resumes the run in a folder until its generation 9, with other options by name."""
    given = {"resume": str(folder), "import": ("tests",), "generations": 9, **options}
    return resume_config(trainer, format_options(given))


def resume(folder, trainer="static", /, **options):
    """Resumes the run in a folder, see `make_resumed_config`; returns the folder."""
    return train(make_resumed_config(folder, trainer, **options))


def describe_snapshot(snapshot):
    """A policy in a checkpoint, so that equal ones are equal, NaN too."""
    arrays = {"weights": snapshot.weights, **snapshot.buffers}
    bits = {name: (array.dtype.str, array.tobytes()) for name, array in arrays.items()}
    return snapshot.units, snapshot.env_steps, str(snapshot.score), bits


def read_outcome(folder):
    """All that must be equal, bit for bit, after an interruption: state, policies, and metrics without times."""
    checkpoint, _ = load_newest_checkpoint(folder / "checkpoint")
    metrics, state, progress = read_metrics(folder / "metrics.csv"), checkpoint.state, checkpoint.progress
    snapshots = {"best": progress.best, "latest": checkpoint.latest}
    return {
        **{name: (array.dtype.str, array.tobytes()) for name, array in state.arrays.items()},
        **{f"column {name}": column.tobytes() for name, column in metrics.items() if "second" not in name},
        **{name: (folder / name).read_bytes() for name in ("best.dat", "latest.dat")},
        "counts": (progress.units, progress.env_steps, state.values),
        "segments": {name: segment.sha256 for name, segment in state.segments.items()},
        "snapshots": {name: describe_snapshot(each) for name, each in snapshots.items() if each},
    }
