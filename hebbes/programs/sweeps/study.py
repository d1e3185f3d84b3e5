"""The trials of a sweep, in a storage of Optuna that several processes share.

A trial is a run in a folder of its own, which its process has locked. So a trial that is unfinished while its folder is
not locked has lost its process, and is taken up again, with its settings and its checkpoint. Trials are taken under the
lock of the sweep's folder, by one process at a time.

Their settings are sampled by the tree-structured Parzen estimator (Bergstra et al. 2011), with a seed for each trial,
so that a sweep by one process can be repeated. Trials are pruned by Hyperband (Li et al. 2018, JMLR 18), in
Optuna's asynchronous form. By its bracket, a trial may end at a ninth and at a third of the budget, or not early.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any
from uuid import uuid4

import optuna
from optuna.exceptions import OptunaError
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from hebbes.contracts.randomness import Purpose, derive_simulator_seed
from hebbes.contracts.yaml_text import format_yaml
from hebbes.files.atomic_file import write_atomically
from hebbes.files.folder_lock import is_locked
from hebbes.files.option_file import read_yaml
from hebbes.options.method import has_default
from hebbes.programs.sweeps.sweep_options import SWEEP_YAML, TRIAL, SearchedOption, describe_sweep
from hebbes.training.config import TrainConfig

STUDY = "hebbes"
"""The name of the study. A storage holds one sweep."""
REDUCTION = 3
STARTUP_TRIALS = 5
"""Trials of a bracket that are drawn at random before the sampler learns. Optuna's 10 suit sweeps of 100 trials."""
SECONDS_TO_WAIT = 60
"""For another process's write to SQLite."""


class StorageError(RuntimeError):
    """The storage of a sweep cannot be read or written any more."""


@contextmanager
def convert_storage_errors() -> Iterator[None]:
    """Turns what Optuna and its database raise into a StorageError of one line."""
    try:
        yield
    except (OptunaError, SQLAlchemyError, ImportError) as error:
        cause = error.__cause__ if isinstance(error.__cause__, SQLAlchemyError) else error
        raise StorageError(str(cause).partition("\n")[0]) from error


class Study:
    """A sweep: the options of its trials, what they vary, and the storage of their results."""

    def __init__(self, url: str, folder: Path, config: TrainConfig, searched: Sequence[SearchedOption]):
        """Opens or makes the study in the storage; ValueError if it is that of another sweep.

        Nobody else may have the lock of the sweep's folder. Trials have the options of `config`, and vary `searched`.
        """
        facts = describe_sweep(config, searched)
        self.folder, self.config, self.searched, self._budget = folder, config, searched, facts["max_env_steps"]
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        is_sqlite = url.startswith("sqlite")
        arguments = {"connect_args": {"timeout": SECONDS_TO_WAIT}} if is_sqlite else {}
        try:
            self._storage = optuna.storages.RDBStorage(url, engine_kwargs=arguments)
        except RuntimeError as error:  # the tables of another version of Optuna
            raise ValueError(str(error).partition("\n")[0]) from error
        names = optuna.get_all_study_names(self._storage)
        if names not in ([], [STUDY]):
            raise ValueError(f"it holds the study {next(name for name in names if name != STUDY)!r}, not a sweep")
        least = max(1, self._budget // REDUCTION**2)
        pruner = optuna.pruners.HyperbandPruner(least, self._budget, REDUCTION)
        self._study = optuna.create_study(
            study_name=STUDY, storage=self._storage, direction="maximize", pruner=pruner, load_if_exists=True
        )
        self._check_facts(json.loads(json.dumps(facts)))

    def _check_facts(self, facts: Mapping[str, Any]) -> None:
        """ValueError if the study has been made with other facts, or in another folder; a new study gets these.

        An option that only one version of the program knows must have its default.
        """
        known, path = self._study.user_attrs.get("sweep"), self.folder / SWEEP_YAML
        if known is None:
            if self.trials or any(self.folder.glob(f"{TRIAL}*")):
                raise ValueError(f"it lacks the trials of the sweep in {self.folder}")
            known = {"id": uuid4().hex, **facts}
            write_atomically(path, format_yaml(known).encode())
            self._study.set_user_attr("sweep", known)
        for name in dict.fromkeys((*facts, *known)):
            there, here = known.get(name, "none"), facts.get(name, "none")
            is_new = name not in facts.keys() & known.keys() and has_default(name, known.get(name, facts.get(name)))
            if name != "id" and there != here and not is_new:
                differs = f"{name} is {there} there, and {here} here"
                raise ValueError(f"it is that of another sweep: {differs}; give another run_name for a new sweep")
        if not path.exists() or read_yaml(path).get("id") != known["id"]:
            raise ValueError(f"it is that of a sweep in another folder than {self.folder}")

    @property
    def trials(self) -> list[FrozenTrial]:
        """All trials."""
        return self._study.get_trials(deepcopy=False)

    @property
    def results(self) -> dict[str, Any]:
        """What `save_result` has saved."""
        return {
            name.removeprefix("result "): value
            for name, value in self._study.user_attrs.items()
            if name.startswith("result ")
        }

    def save_result(self, name: str, value: Any) -> None:
        """Saves a value that is no trial's."""
        self._study.set_user_attr(f"result {name}", value)

    def find_trial_folder(self, number: int) -> Path:
        """The folder of a trial's run."""
        return self.folder / f"{TRIAL}{number}"

    def take_trial(self, start: Mapping[str, Any], most: int) -> optuna.Trial | None:
        """A trial that lost its process or, if there are fewer than `most`, a new one; None if all are taken.

        `start` has the settings of the first trial, where the search space contains them.
        """
        trials = self.trials
        if not trials:
            self._study.enqueue_trial(dict(start))
        free = {each.number for each in trials if not is_busy(self.find_trial_folder(each.number))}
        for each in self.trials:  # read again, because a process ends its trial before it frees the folder
            if each.state == TrialState.RUNNING and each.number in free:
                number = self._storage.get_study_id_from_name(STUDY), each.number
                self._storage.set_trial_state_values(
                    self._storage.get_trial_id_from_study_id_trial_number(*number), TrialState.WAITING
                )
        if len(trials) >= most and all(each.state != TrialState.WAITING for each in self.trials):
            return None
        return self._study.ask()

    def sample(self, trial: optuna.Trial) -> None:
        """Gives a trial a value for each option that trials vary. One that is taken up again keeps its values."""
        seed = derive_simulator_seed(self.config.run.seed, Purpose.SWEEP, member=trial.number)
        self._study.sampler = optuna.samplers.TPESampler(n_startup_trials=STARTUP_TRIALS, seed=seed)
        for each in self.searched:
            each.space.suggest(trial, each.name)

    def report(self, trial: optuna.Trial, value: float, env_steps: int) -> bool:
        """Saves the return of an evaluation; returns whether it has pruned the trial, before the end of its budget."""
        if env_steps in self.trials[trial.number].intermediate_values:  # before its process was lost
            return False
        trial.report(value, env_steps)
        is_pruned = env_steps < self._budget and trial.should_prune()
        if is_pruned:
            self.prune(trial)
        return is_pruned

    def prune(self, trial: optuna.Trial) -> None:
        """Ends a trial before its budget."""
        self._study.tell(trial, state=TrialState.PRUNED)

    def complete(self, trial: optuna.Trial, value: float) -> None:
        """Ends a trial at its budget with the return of its last evaluation.

        If that is NaN, because episodes failed, the trial is pruned.
        """
        if isfinite(value):
            self._study.tell(trial, value)
        else:
            self.prune(trial)

    @property
    def best_trials(self) -> list[FrozenTrial]:
        """The completed trials, the best first."""
        completed = [each for each in self.trials if each.state == TrialState.COMPLETE]
        return sorted(completed, key=lambda each: each.values[0], reverse=True)


def is_busy(folder: Path) -> bool:
    """Whether a process works on the run in a folder."""
    return folder.is_dir() and is_locked(folder)
