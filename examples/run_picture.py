"""One picture of a run: its learning curve, and a frame of what its best policy does.

    python -m examples.run_picture weights/HalfCheetah-v5/RUN [--env_step 60] [--output FILE.png]

The frame is from the first episode of an evaluation with seed 0. No display is needed.
"""

import argparse
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

import hebbes
from hebbes.evaluation.loaded_policy import LoadedPolicy
from hebbes.files.atomic_file import check_place
from hebbes.recording.metrics import METRICS_CSV, read_metrics
from hebbes.reporting.figure import COLORS, SUFFIXES, add_title, make_figure, style_axes, write_figure


def main() -> None:
    """Plays the policy up to the env step, and draws the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder of a run")
    parser.add_argument("--env_step", type=int, default=60, help="when the frame is taken (default 60)")
    parser.add_argument("--output", type=Path, default=Path("run.png"), help="image file (default run.png)")
    arguments = parser.parse_args()
    try:
        check_place("--output", arguments.output, SUFFIXES)
        policy = hebbes.load_policy(arguments.run / "best.dat")
        metrics = read_metrics(arguments.run / METRICS_CSV)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    figure = make_figure(8, 2.8)
    curve, picture = figure.subplots(1, 2, width_ratios=(1.8, 1))
    style_axes(curve)
    evaluated = ~np.isnan(metrics["eval_return"])
    curve.plot(metrics["env_steps"][evaluated] / 1e6, metrics["eval_return"][evaluated], color=COLORS[0])
    curve.set(xlabel="env steps of training, millions", ylabel="return of the mean policy")
    picture.imshow(render_frame(policy, arguments.env_step))
    picture.set_axis_off()
    add_title(figure, policy.environment)
    write_figure(figure, arguments.output)


def render_frame(policy: LoadedPolicy, env_step: int) -> UInt8[np.ndarray, "h w 3"]:
    """The image after this many env steps of the first episode, or at its end if it is shorter."""
    env = policy.make_env(seed=0, render_mode="rgb_array")
    try:
        observation, info = env.reset()
        session = policy.start(seed=0, episode=info["episode"])
        for _ in range(env_step):
            observation, reward, terminated, truncated, _ = env.step(session.act(observation))
            session.reward(reward)
            if terminated or truncated:
                break
        frame = env.render()
        assert frame is not None  # the render mode is rgb_array
        return frame
    finally:
        env.close()


if __name__ == "__main__":
    main()
