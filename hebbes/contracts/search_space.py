"""Search spaces: the values of an option that a sweep tries. An option declares its own, see `option(search=...)`."""

from dataclasses import dataclass
from math import floor, log10
from typing import Any, Protocol, TypeAlias


class Trial(Protocol):
    """What draws the values of a trial, as Optuna's `Trial` does."""

    def suggest_float(self, name: str, low: float, high: float, *, log: bool = False) -> float:
        """A number from low to high."""

    def suggest_int(self, name: str, low: int, high: int, *, log: bool = False) -> int:
        """A whole number from low to high, both included."""

    def suggest_categorical(self, name: str, choices: tuple[Any, ...]) -> Any:
        """One of the choices."""


@dataclass(frozen=True)
class Uniform:
    """Numbers from low to high, whole ones if both bounds are."""

    low: float
    high: float

    is_log = False

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"the lower bound must be below the upper one, got {self.low} and {self.high}")

    def suggest(self, trial: Trial, name: str) -> float:
        """A value for the option of this name."""
        if isinstance(self.low, int) and isinstance(self.high, int):
            return trial.suggest_int(name, self.low, self.high, log=self.is_log)
        return trial.suggest_float(name, self.low, self.high, log=self.is_log)

    def contains(self, value: Any) -> bool:
        """Whether a trial can have this value."""
        return value is not None and self.low <= value <= self.high

    def round(self, value: float) -> float:
        """The value with three digits, of itself or of the width of a narrow space, unless it is then outside."""
        if isinstance(value, int) or not value:
            return value
        rounded = round(value, 2 - floor(log10(min(abs(value), self.high - self.low))))
        return rounded if self.contains(rounded) else value

    def __str__(self) -> str:
        """For people: 0.01 to 1, log."""
        return f"{self.low:g} to {self.high:g}{', log' * self.is_log}"


@dataclass(frozen=True)
class LogUniform(Uniform):
    """Numbers from low to high, uniform in their logarithm."""

    is_log = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low > 0:
            raise ValueError(f"the lower bound of a logarithmic scale must be > 0, got {self.low}")


@dataclass(frozen=True)
class Choice:
    """One of some values."""

    values: tuple[Any, ...]

    def __post_init__(self) -> None:
        if len(set(self.values)) < max(2, len(self.values)):
            raise ValueError(f"a choice needs two values or more, all different, got {list(self.values)}")

    def suggest(self, trial: Trial, name: str) -> Any:
        """A value for the option of this name."""
        return trial.suggest_categorical(name, self.values)

    def contains(self, value: Any) -> bool:
        """Whether a trial can have this value."""
        return value in self.values

    def round(self, value: Any) -> Any:
        """The value as it was typed."""
        return value

    def __str__(self) -> str:
        """For people: 16, 32 or 64."""
        return f"{', '.join(map(str, self.values[:-1]))} or {self.values[-1]}"


SearchSpace: TypeAlias = Uniform | Choice
"""The values of one option."""
