"""PyBullet's walkers, read in few calls instead of some fifty: the same bits in less time (docs/measurements.md).

`pybullet_envs_gymnasium` asks PyBullet for every link, joint and motor on its own, in Python, which takes longer than
the simulation. PyBullet's `getLinkStates`, `getJointStates` and `setJointMotorControlArray` do it for all of them at
once. The package's formulas are kept operation by operation, in its precision and order of sums, so that no bit
changes. A test compares them. Another version of the package may have other formulas, and is left as it is.
"""

from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Float

_PACKAGE, _VERSION = "pybullet_envs_gymnasium", "0.6.0"
_ROBOTS = ("Ant", "HalfCheetah", "Hopper", "Humanoid", "Walker2D")
"""Classes of the package's `robot_locomotors`. Those derived from them have formulas of their own."""


def accelerate_walker(env: gymnasium.Env) -> gymnasium.Env:
    """The environment itself. A walker of `pybullet_envs_gymnasium` becomes faster, with the same numbers."""
    if str(getattr(env.spec, "entry_point", "")).startswith(f"{_PACKAGE}.gym_locomotion_envs"):
        robot: Any = env.unwrapped.robot  # type: ignore[attr-defined]
        if type(robot).__name__ in _ROBOTS and version(_PACKAGE) == _VERSION:
            walker = _Walker(robot)
            robot.calc_state, robot.apply_action = walker.compute_state, walker.apply_action
    return env


class _Walker:
    """Replaces two methods of a robot, which keeps all that they compute."""

    def __init__(self, robot: Any) -> None:
        self._robot = robot
        self._bullet: Any = import_module("pybullet")  # here, because few environments need it
        self._num_parts = 0

    def apply_action(self, action: Float[np.ndarray, " joints"]) -> None:
        """Sets the motors' torques, as the package's `apply_action` does."""
        robot = self._robot
        assert np.isfinite(action).all()
        clipped = np.minimum(np.maximum(action, -1), 1)
        if hasattr(robot, "motors"):  # the humanoid, whose torques are rounded to the action's type
            joints = [motor.jointIndex for motor in robot.motors]
            powers = [power * robot.power for power in robot.motor_power]
            torques = [float(power * value) for power, value in zip(powers, clipped, strict=True)]
        else:
            joints = self._joints
            powers = [robot.power * joint.power_coef for joint in robot.ordered_joints]
            torques = [power * value for power, value in zip(powers, clipped.tolist(), strict=True)]
        control, client = self._bullet.TORQUE_CONTROL, self._client
        self._bullet.setJointMotorControlArray(self._body, joints, control, forces=torques, physicsClientId=client)

    def compute_state(self) -> Float[np.ndarray, " state"]:
        """The observation, as the package's `calc_state` computes it."""
        robot = self._robot
        if len(robot.parts) != self._num_parts:  # the floor becomes one of them after the first reset
            self._find_parts()
        joints = self._read_joints()
        robot.joint_speeds = joints[1::2]
        robot.joints_at_limit = np.count_nonzero(np.abs(joints[0::2]) > 0.99)
        self._read_positions()
        x, y, z = robot.body_xyz
        roll, pitch, yaw = robot.body_rpy
        if robot.initial_z is None:
            robot.initial_z = z
        to_target = np.array([robot.walk_target_y - y, robot.walk_target_x - x])
        robot.walk_target_theta = np.arctan2(to_target[0], to_target[1])
        robot.walk_target_dist = np.sqrt(to_target.dot(to_target))
        angle = robot.walk_target_theta - yaw
        cos, sin = np.cos(-yaw), np.sin(-yaw)
        turn = np.array([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]])
        vx, vy, vz = np.dot(turn, self._read_velocity())
        torso = [z - robot.initial_z, np.sin(angle), np.cos(angle), 0.3 * vx, 0.3 * vy, 0.3 * vz, roll, pitch]
        state = np.concatenate([np.array(torso, np.float32), joints, robot.feet_contact])
        return np.minimum(np.maximum(state, -5), 5)

    def _find_parts(self) -> None:
        """Reads which links and joints there are."""
        robot = self._robot
        self._num_parts = len(robot.parts)
        self._client = robot._p._client
        self._joints = [joint.jointIndex for joint in robot.ordered_joints]
        self._limits = [(joint.lowerLimit, joint.upperLimit) for joint in robot.ordered_joints]
        parts = [(part.bodies[part.bodyIndex], part.bodyPartIndex) for part in robot.parts.values()]
        self._body, self._torso = robot.robot_body.bodies[robot.robot_body.bodyIndex], robot.robot_body.bodyPartIndex
        self._torso_place = parts.index((self._body, self._torso))
        self._links = [link for _, link in parts if link >= 0]
        self._bases = [(place, body) for place, (body, link) in enumerate(parts) if link < 0]

    def _read_joints(self) -> Float[np.ndarray, " two_per_joint"]:
        """Of each joint the position, with -1 and 1 for its limits, and a tenth of its velocity."""
        states = self._bullet.getJointStates(self._body, self._joints, self._client)
        pairs = [
            (2 * (state[0] - lower) / (upper - lower) - 1.0, 0.1 * state[1])
            for state, (lower, upper) in zip(states, self._limits, strict=True)
        ]
        return np.array(pairs, np.float32).ravel()

    def _read_positions(self) -> None:
        """Reads where the torso is, and the mean position of all parts."""
        bullet, client, robot = self._bullet, self._client, self._robot
        poses = list(bullet.getLinkStates(self._body, self._links, physicsClientId=client))
        for place, body in self._bases:
            poses.insert(place, bullet.getBasePositionAndOrientation(body, client))
        position, orientation = poses[self._torso_place][:2]
        robot.body_real_xyz, robot.body_rpy = np.array(position), bullet.getEulerFromQuaternion(orientation)
        positions = np.array([pose[0] for pose in poses]).ravel()
        x, y = (np.add.reduce(positions[axis::3]) / len(poses) for axis in (0, 1))
        robot.body_xyz = x, y, position[2]

    def _read_velocity(self) -> Sequence[float]:
        """The torso's, in m/s."""
        if self._torso < 0:
            return self._bullet.getBaseVelocity(self._body, self._client)[0]
        states = self._bullet.getLinkState(self._body, self._torso, computeLinkVelocity=1, physicsClientId=self._client)
        return states[6]
