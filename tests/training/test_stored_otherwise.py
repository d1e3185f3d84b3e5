"""What a user's parts return may be stored in other ways than ours, which changes nothing."""

import numpy as np

from hebbes.contracts.policy import Layout
from hebbes.files.checkpoint import load_newest_checkpoint
from hebbes.policies.linear import Linear
from hebbes.strategies.openai_es import OpenAIES
from tests.shape_checks import unchecked
from tests.training.scripted_runs import make_scripted_config, train


class NumPySizes(Linear):
    """The sizes in its layout are NumPy's numbers."""

    @property
    def layout(self):
        return Layout({name: tuple(map(np.int64, shape)) for name, shape in super().layout.shapes.items()})


class FortranRows(OpenAIES):
    """Its weights are stored column by column."""

    def ask(self, generation):
        return _InColumns(super().ask(generation))


class _InColumns:
    def __init__(self, population):
        self._population = population

    def __len__(self):
        return len(self._population)

    def __getattr__(self, name):
        return getattr(self._population, name)

    def weights(self, ids):
        return np.asfortranarray(self._population.weights(ids))


@unchecked()
def test_sizes_of_numpy_and_rows_in_fortran_order(tmp_path):
    own = {"strategy": f"{__name__}:FortranRows", "policy": f"{__name__}:NumPySizes"}
    folders = [
        train(make_scripted_config(tmp_path / name, generations=2, **options))
        for name, options in (("own", own), ("ours", {"strategy": "openai_es"}))
    ]
    first, second = (load_newest_checkpoint(folder / "checkpoint")[0].latest.weights for folder in folders)
    assert np.array_equal(first, second)
