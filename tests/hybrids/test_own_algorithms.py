"""A user's own algorithm that breaks its contract ends the run in one line that names it."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

import hebbes
from hebbes.files.checkpoint import load_newest_checkpoint
from hebbes.hybrids.aes_rl import AES, AESRL
from hebbes.hybrids.algorithm import Algorithm
from hebbes.hybrids.td3 import TD3
from hebbes.options.command_line import parse_config
from hebbes.training.advice import TrainingError

SCRIPTED = {
    **{"environment": "tests.scripted:Scripted-v0", "hidden_sizes": [8], "start_steps": 3, "batch_size": 4, "seed": 1},
    **{"replay_size": 1000, "eval_every": 1000, "test_episodes": 0, "threads": 1, "max_env_steps": 40},
    **{"env_kwargs": {"truncate_at": 3}, "import": [__name__], "checkpoint_every": 1000},
}


class WithoutSettings(Algorithm):
    unit = "try"


class WithoutUnit(Algorithm):
    Settings = TD3.Settings


class SettingsOfNoClass(TD3):
    Settings = 3


class Raises(TD3):
    def advance(self, progress, engine):
        if progress.units == 2:
            raise RuntimeError("scripted")
        return super().advance(progress, engine)


class RaisesOSError(TD3):
    def advance(self, progress, engine):
        if progress.units == 2:
            raise ConnectionRefusedError(111, "scripted")
        return super().advance(progress, engine)


class OfTheWrongLength(TD3):
    episodes = 0

    def advance(self, progress, engine):
        self.episodes = progress.units + 1
        return super().advance(progress, engine)

    @property
    def actor(self):
        return super().actor[: -1 if self.episodes >= 3 else None]


class OfNaN(OfTheWrongLength):
    @property
    def actor(self):
        return TD3.actor.fget(self) * np.float32(np.nan if self.episodes >= 3 else 1)


class OfDoubles(TD3):
    @property
    def actor(self):
        return super().actor.astype(np.float64)


class WithoutState(OfTheWrongLength):
    actor = TD3.actor

    def get_state(self):
        return super().get_state() if self.episodes < 3 else {}


class StateOfNothing(OfTheWrongLength):
    actor = TD3.actor
    spoilt: ClassVar = {"arrays": None}

    def get_state(self):
        state = super().get_state()
        for name, value in self.spoilt.items() if self.episodes >= 3 else ():
            object.__setattr__(state, name, value)  # past the constructor, whose arguments the tests check
        return state


class SegmentsOfArrays(StateOfNothing):
    spoilt: ClassVar = {"segments": {"a": np.zeros(3)}}


class TellsTexts(TD3):
    def advance(self, progress, engine):
        result = super().advance(progress, engine)
        return replace(result, notices=["text"]) if progress.units == 2 else result


class MeasuresNothing(TD3):
    class Settings(TD3.Settings):
        def count_members(self):
            raise KeyError("members")


class StateRaises(WithoutState):
    def get_state(self):
        return self.absent if self.episodes >= 3 else super().get_state()


class NeverHasState(WithoutState):
    def get_state(self):
        return {}


class StateRaisesAtOnce(WithoutState):
    def get_state(self):
        return self.absent


class AESWithMetrics(AES):
    own_metrics = (*AES.own_metrics, "extra")
    extra: ClassVar = {}

    def _update(self, individual, fitness, mean_fitness):
        return {**super()._update(individual, fitness, mean_fitness), **self.extra}


class Undeclared(AESRL):
    class Distribution(AESWithMetrics):
        extra: ClassVar = {"extra": 1.0, "another": 1.0}


class OfText(AESRL):
    class Distribution(AESWithMetrics):
        extra: ClassVar = {"extra": "large"}


class NameOfOurs(AESRL):
    class Distribution(AESWithMetrics):
        own_metrics = (*AES.own_metrics, "is_rl")
        extra: ClassVar = {"is_rl": 1.0}


@pytest.mark.parametrize("algorithm", ["WithoutSettings", "WithoutUnit", "SettingsOfNoClass"])
def test_one_that_lacks_what_all_have_is_refused(algorithm):
    flags = ["--environment", "Pendulum-v1", "--algorithm", f"{__name__}:{algorithm}"]
    with pytest.raises(ValueError, match=rf"algorithm '{__name__}:{algorithm}' (is not an algorithm|cannot be used)"):
        parse_config("hybrid", flags, "")


@pytest.mark.parametrize(
    ("algorithm", "line"),
    [
        ("Raises", "advance raised RuntimeError: scripted"),
        ("RaisesOSError", "advance raised ConnectionRefusedError: [Errno 111] scripted"),
        ("OfTheWrongLength", "actor must be float32 of shape (42,), got float32 of shape (41,)"),
        ("OfNaN", "actor must be finite"),
        ("WithoutState", "get_state must return a TrainerState (hebbes/contracts/trainer.py), got a dict"),
        ("StateOfNothing", "arrays of get_state must be a mapping of names, got None"),
        ("SegmentsOfArrays", "segments of get_state must be Segments, got float64 of shape (3,) for 'a'"),
        ("TellsTexts", "notices must be Notices (hebbes/contracts/notices.py)"),
        ("StateRaises", "get_state raised AttributeError: 'StateRaises' object has no attribute 'absent'"),
        ("Undeclared", "_update must return the metrics of own_metrics"),
        ("OfText", "metrics must be numbers, got 'large' for 'extra'"),
        ("NameOfOurs", "the metric 'is_rl' needs another name"),
    ],
)
def test_what_one_answers_wrongly_ends_the_run_with_its_units_saved(algorithm, line, tmp_path):
    own = {"algorithm": f"{__name__}:{algorithm}", "folder": str(tmp_path), "run_name": "own"}
    is_td3 = issubclass(globals()[algorithm], TD3)
    own |= {} if is_td3 else {"mean_scale": 1.0, "actor_workers": 1}
    with pytest.raises(TrainingError) as stopped:
        hebbes.train({**SCRIPTED, **own}, trainer="hybrid")
    first_line = str(stopped.value).partition("\n")[0]
    assert first_line.startswith(f"algorithm '{__name__}:{algorithm}': ") and line in first_line
    saved = load_newest_checkpoint(tmp_path / "Scripted-v0" / "own" / "checkpoint")[0]
    assert not is_td3 or saved.progress.units == 2


@pytest.mark.parametrize(
    ("algorithm", "line"), [("NeverHasState", "got a dict"), ("StateRaisesAtOnce", "raised AttributeError: ")]
)
def test_one_without_a_state_is_refused_before_anything_is_written(algorithm, line, tmp_path):
    own = {"algorithm": f"{__name__}:{algorithm}", "folder": str(tmp_path)}
    with pytest.raises(ValueError, match=rf"^algorithm '{__name__}:{algorithm}': get_state .*{line}.*$"):
        hebbes.train({**SCRIPTED, **own}, trainer="hybrid")
    assert not [*tmp_path.glob("*/*")]


def test_one_whose_settings_cannot_be_measured_is_refused(tmp_path):
    own = {"algorithm": f"{__name__}:MeasuresNothing", "folder": str(tmp_path)}
    with pytest.raises(ValueError, match=r"algorithm '.*:MeasuresNothing' cannot be used: KeyError: 'members'"):
        hebbes.train({**SCRIPTED, **own}, trainer="hybrid")


def test_one_whose_actor_no_file_can_hold_is_refused(tmp_path):
    with pytest.raises(
        ValueError, match=r":OfDoubles' cannot be used: actor must be float32 of shape \(42,\), got float64"
    ):
        hebbes.train(
            {**SCRIPTED, "algorithm": f"{__name__}:OfDoubles", "folder": str(tmp_path / "runs")}, trainer="hybrid"
        )
    assert not (tmp_path / "runs").exists()
