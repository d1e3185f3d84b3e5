"""OpenAI-ES: gradient ascent on the fitness smoothed by Gaussian noise.

Salimans, Ho, Chen, Sidor & Sutskever 2017, "Evolution Strategies as a Scalable Alternative to Reinforcement Learning",
arXiv 1703.03864, algorithm 1, with the defaults of Najarro & Risi's static-weight code (NeurIPS 2020,
arXiv 2007.02686). The defaults depart from the paper in three ways, all of them settings: centred ranks are divided by
their deviation; learning rate and sigma decay down to floors; and a member's fitness loses `weight_penalty` times its
mean squared weight before the ranking. From that code they depart in ranking ties by their mean.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Float64

from contracts.policy import Layout
from contracts.population import Population
from contracts.strategy import Combine
from strategies.low_rank import LowRankPopulation, mean_squares
from strategies.optimizers import Adam, Optimizer, Sgd
from strategies.populations import GaussianPopulation
from strategies.shaping import SHAPINGS

PENALTY_BLOCK = 16
"""Members whose weights are made at once for the weight penalty; bounds the memory that it takes."""


@dataclass(frozen=True)
class OpenaiEsSettings:
    """Hyperparameters; every field is a flag of the command line and a key of a preset."""

    popsize: int = field(default=200, metadata={"help": "perturbed members per generation, even (antithetic pairs)"})
    sampler: str = field(
        default="antithetic",
        metadata={
            "help": "noise in opposite pairs: antithetic, every weight its own; low_rank, two factors for each matrix",
            "choices": ("antithetic", "low_rank"),
        },
    )
    rank: int = field(default=1, metadata={"help": "rank of the noise on a matrix with sampler low_rank"})
    sigma: float = field(default=0.1, metadata={"help": "standard deviation of the noise on the weights"})
    sigma_decay: float = field(default=0.999, metadata={"help": "factor on sigma per generation, in (0, 1]"})
    sigma_min: float = field(default=0.01, metadata={"help": "floor of the decaying sigma"})
    lr: float = field(default=0.2, metadata={"help": "learning rate: factor on the gradient, or Adam's step size"})
    decay: float = field(default=0.995, metadata={"help": "factor on the learning rate per generation, in (0, 1]"})
    lr_min: float = field(default=0.001, metadata={"help": "floor of the decaying learning rate"})
    optimizer: str = field(
        default="sgd", metadata={"help": "what turns gradients into steps", "choices": ("sgd", "adam")}
    )
    momentum: float = field(default=0.0, metadata={"help": "momentum of sgd, in [0, 1)"})
    adam_beta1: float = field(default=0.9, metadata={"help": "Adam's decay of the first moment, in [0, 1)"})
    adam_beta2: float = field(default=0.999, metadata={"help": "Adam's decay of the second moment, in [0, 1)"})
    fitness_shaping: str = field(
        default="centered_rank_normalized",
        metadata={"help": "how fitness becomes utilities", "choices": tuple(SHAPINGS)},
    )
    weight_decay: float = field(default=0.0, metadata={"help": "coefficient of the pull of the mean towards zero"})
    weight_penalty: float = field(
        default=0.01, metadata={"help": "fitness that a member loses per unit of its mean squared weight"}
    )

    def __post_init__(self) -> None:
        if self.popsize < 2 or self.popsize % 2:
            raise ValueError(f"popsize must be an even number >= 2 (antithetic pairs), got {self.popsize}")
        if self.rank < 1:
            raise ValueError(f"rank must be >= 1, got {self.rank}")
        for name in ("sigma", "lr"):
            if not 0 < getattr(self, name) < np.inf:
                raise ValueError(f"{name} must be a finite number > 0, got {getattr(self, name)}")
        for name in ("sigma_decay", "decay"):
            if not 0 < getattr(self, name) <= 1:
                raise ValueError(f"{name} must be in (0, 1], got {getattr(self, name)}")
        for name in ("momentum", "adam_beta1", "adam_beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be in [0, 1), got {getattr(self, name)}")
        for name in ("sigma_min", "lr_min", "weight_decay", "weight_penalty"):
            if not 0 <= getattr(self, name) < np.inf:
                raise ValueError(f"{name} must be a finite number >= 0, got {getattr(self, name)}")


def decayed(value: float, factor: float, floor: float) -> float:
    """The value after one more generation; a value that starts below the floor stays where it is."""
    return max(value * factor, min(value, floor))


def _optimizer(settings: OpenaiEsSettings, num_params: int) -> Optimizer:
    if settings.optimizer == "adam":
        return Adam(num_params, settings.adam_beta1, settings.adam_beta2)
    return Sgd(num_params, settings.momentum)


class OpenaiEs:
    """A Gaussian of fixed shape whose mean follows the natural gradient of the expected utility."""

    Settings: ClassVar[type[OpenaiEsSettings]] = OpenaiEsSettings
    grows: ClassVar[bool] = False

    def __init__(self, settings: OpenaiEsSettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        self._settings = settings
        self._seed = seed
        self._mean = np.array(initial_mean, np.float64)
        self._optimizer = _optimizer(settings, len(initial_mean))
        self._sigma, self._lr = settings.sigma, settings.lr
        self._layout: Layout | None = None

    def take_layout(self, layout: Layout) -> None:
        """Says which parameters are matrices, which low-rank noise has to know."""
        if layout.num_params != len(self._mean):
            raise ValueError(f"a layout of {layout.num_params} parameters for {len(self._mean)}")
        self._layout = layout

    @property
    def mean(self) -> Float32[np.ndarray, " params"]:
        """The unperturbed policy's parameters."""
        return self._mean.astype(np.float32)

    def ask(self, generation: int, num_members: int | None = None) -> Population:
        """Antithetic pairs around the mean, then the mean itself; FloatingPointError if sigma has become too small."""
        mean = self.mean
        if (mean + np.float32(self._sigma) == mean).all():
            raise FloatingPointError(
                f"sigma {self._sigma:.3g} changes no weight in float32 any more, the largest being "
                f"{np.abs(mean).max():.3g}; sigma_min may be too small or lr too large"
            )
        described = mean, self._sigma, self._seed, generation, self._settings.popsize
        if self._settings.sampler == "low_rank":
            if self._layout is None:
                raise ValueError("sampler low_rank needs the policy's layout: call take_layout before ask")
            return LowRankPopulation(*described, self._layout, self._settings.rank)
        return GaussianPopulation(*described)

    def tell(
        self, population: Population, fitness: Float64[np.ndarray, " members"], combine: Combine
    ) -> dict[str, float]:
        """One step of the mean, then one decay of the learning rate and of sigma."""
        settings = self._settings
        penalised = fitness[: settings.popsize] - self._penalties(population)
        utilities = SHAPINGS[settings.fitness_shaping](penalised)
        noise_sum = combine(population, np.append(utilities, 0.0))
        gradient = noise_sum / (settings.popsize * self._sigma)  # algorithm 1, line 5
        step = self._optimizer.step(gradient - settings.weight_decay * self._mean, self._lr)
        self._mean = self._mean + step
        figures = {
            "sigma": self._sigma,
            "lr": self._lr,
            "update_norm": float(np.linalg.norm(step)),
            "mean_norm": float(np.linalg.norm(self._mean)),
        }
        self._lr = decayed(self._lr, settings.decay, settings.lr_min)
        self._sigma = decayed(self._sigma, settings.sigma_decay, settings.sigma_min)
        return figures

    def _penalties(self, population: Population) -> Float64[np.ndarray, " members"]:
        penalties = np.zeros(self._settings.popsize)
        if self._settings.weight_penalty > 0:
            for start in range(0, len(penalties), PENALTY_BLOCK):
                block = range(start, min(start + PENALTY_BLOCK, len(penalties)))
                squares = mean_squares(population.weights(block))
                penalties[block.start : block.stop] = self._settings.weight_penalty * squares
        return penalties

    def state_dict(self) -> dict[str, np.ndarray]:
        """Mean, optimizer state, learning rate and sigma."""
        optimizer = {f"optimizer.{name}": array for name, array in self._optimizer.state_dict().items()}
        return {"mean": self._mean, "lr": np.array(self._lr), "sigma": np.array(self._sigma), **optimizer}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from what `state_dict` returned."""
        if state["mean"].shape != self._mean.shape:
            raise ValueError(f"a mean of shape {state['mean'].shape} for {len(self._mean)} parameters")
        self._mean = np.array(state["mean"], np.float64)
        self._lr, self._sigma = float(state["lr"]), float(state["sigma"])
        prefix = "optimizer."
        self._optimizer.load_state_dict({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})
