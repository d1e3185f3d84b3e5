"""Which Atari games play alike on EnvPool and on Gymnasium: the same frames and rewards after the same random actions.

python -m benchmarks.atari_games
"""

import numpy as np
from envpool.registration import registry

from hebbes.contracts.environment import BatchEnv
from hebbes.environments.envpool_env import EnvPoolEnv
from hebbes.environments.gymnasium_env import GymnasiumEnv

ENV_STEPS = 80


def play(env: BatchEnv) -> list[bytes]:
    """The observations and rewards of the first env steps of an episode."""
    rng, live = np.random.default_rng(0), np.zeros(1, np.int64)
    seen = [env.start(0).tobytes()]
    for _ in range(ENV_STEPS):
        step = env.step(rng.integers(env.action_space.n, size=1), live)  # type: ignore[attr-defined]  # it is Discrete
        seen.append(step.observations.tobytes() + step.rewards.tobytes())
        if step.terminated[0] or step.truncated[0]:
            break
    env.close()
    return seen


def compare(game: str) -> str:
    """What there is to say about a game."""
    on_envpool = play(EnvPoolEnv(game, [0], {}, threads=1))
    try:
        on_gymnasium = play(GymnasiumEnv(game, [0], {}))
    except ValueError:
        return "not on Gymnasium"
    return "alike" if on_envpool == on_gymnasium else "different"


def main() -> None:
    """Prints the games that are not alike, and how many there are."""
    games = sorted(
        name for name, (family, *_) in registry.specs.items() if family == "envpool.atari" and name[-3:] == "-v5"
    )
    found = {game: compare(game) for game in games}
    for verdict in ("different", "not on Gymnasium"):
        named = [game for game, each in found.items() if each == verdict]
        print(f"{verdict}: {len(named)} of {len(found)}: {', '.join(named)}")


if __name__ == "__main__":
    main()
