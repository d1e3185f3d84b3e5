"""Bodies: a simulated animal as its package has it, damaged, or described by a user's own XML file.

The damages are those of Najarro & Risi (NeurIPS 2020, arXiv 2007.02686): the ankle of one leg of the ant is shortened
from 0.4 to 0.1, which is one attribute of its XML. The file is written from the one of the installed package whenever
simulators are made, and removed once they have read it, so that however a program ends nothing is left behind.

A body of a user's own must have the joints and actuators of the package's: a policy would not fit another, and EnvPool
writes past its arrays for one of other parts.
"""

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias
from xml.etree import ElementTree

import gymnasium
import numpy as np
from jaxtyping import Float

INTACT = "none"
"""The body as the environment has it by itself."""

MAX_FILE_BYTES = 2**20

Anatomy: TypeAlias = Mapping[str, Sequence[str]]
"""Descriptions of the parts that a policy, or a simulator's arrays, are made for, by kind and in order."""


@dataclass(frozen=True)
class Species:
    """An animal whose body can be exchanged, in one simulator."""

    package: str
    file: str
    """The installed package's XML, by its path in the package."""
    damages: Mapping[str, tuple[str, str]]
    """Name of each damage -> name of the capsule that it shortens, and the capsule's ends, x y z twice."""
    anatomy: Callable[[Path], Anatomy]
    """Reads an XML file; ValueError where the simulator would not."""
    embodied: Callable[[Callable[..., gymnasium.Env], Path], gymnasium.Env]
    """Makes a copy, by a function that takes further options of the constructor, with the body in an XML file."""

    @property
    def installed(self) -> Path:
        """The package's XML file."""
        found = find_spec(self.package)
        if found is None or not found.submodule_search_locations:
            raise ValueError(f"bodies need the package {self.package}, which is not installed")
        return Path(found.submodule_search_locations[0], self.file)


def check_bodies(bodies: Sequence[str]) -> None:
    """Refuses no bodies, and one that is there twice."""
    if not bodies or len(set(bodies)) < len(bodies):
        raise ValueError(f"bodies must be at least one, each of them once, got {list(bodies)}")


@contextmanager
def body_file(environment: str, body: str) -> Iterator[Path | None]:
    """An XML file for simulators to be made from, there until the context ends; None for the intact body.

    Args:
        environment: today's id.
        body: `none`, a damage of the environment's species, or the path of an XML file.

    Raises:
        ValueError: the environment has no such body, or the file is not one of the species.
    """
    if body == INTACT:
        yield None
        return
    species = SPECIES.get(environment)
    if species is None:
        raise ValueError(f"bodies are for {' and '.join(SPECIES)}; {environment} has {INTACT!r} alone, got {body!r}")
    if body not in species.damages:
        yield _checked(species, body)
        return
    with TemporaryDirectory(prefix="hebbes-") as folder:
        path = Path(folder, f"{body}.xml")
        _damaged(species, *species.damages[body]).write(path)
        yield path


def _damaged(species: Species, capsule: str, ends: str) -> "ElementTree.ElementTree[Any]":
    """The installed body with one capsule of other ends."""
    tree = _parsed(species.installed)
    found = tree.findall(f".//geom[@name='{capsule}']")
    if len(found) != 1 or "fromto" not in found[0].attrib:
        raise ValueError(f"cannot damage the body in {species.installed}: it has no capsule {capsule!r}")
    found[0].set("fromto", ends)
    return tree


def _checked(species: Species, name: str) -> Path:
    """The file of a user's own body, if it is one of the species."""
    path = Path(name)
    if not path.is_file():
        known = ", ".join((INTACT, *species.damages))
        raise ValueError(f"bodies must be {known} or the path of an XML file; there is no file {name!r}")
    _parsed(path)
    try:
        found = species.anatomy(path)
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"bodies: {name} is no body that the simulator can load: {reason}") from error
    for kind, expected in species.anatomy(species.installed).items():
        for number, (here, there) in enumerate(zip_longest(found[kind], expected, fillvalue="absent"), 1):
            if here != there:
                raise ValueError(
                    f"bodies: {name} has other {kind} than {species.installed.name} of {species.package}: "
                    f"number {number} is {here}, not {there}"
                )
    return path.absolute()


class _NoDoctype(ElementTree.TreeBuilder):
    """Refuses what could declare entities, a few of which can stand for gigabytes."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise ValueError(f"it declares a DOCTYPE, {name}, which is not taken")


def _parsed(path: Path) -> "ElementTree.ElementTree[Any]":
    """The tree in an XML file; ValueError for what is none."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ValueError(f"it has more than {MAX_FILE_BYTES} bytes")
        return ElementTree.parse(path, ElementTree.XMLParser(target=_NoDoctype()))  # noqa: S314  # no DOCTYPE
    except OSError as error:
        raise ValueError(f"bodies: cannot read {path}: {error.strerror}") from error
    except (ElementTree.ParseError, ValueError, LookupError) as error:  # LookupError: an unknown encoding
        raise ValueError(f"bodies: cannot read {path}: {error}") from error


def _numbers(values: Sequence[float] | Float[np.ndarray, " values"]) -> str:
    """Numbers as they are told, equal where they are to six digits."""
    return " ".join(f"{value + 0.0:.6g}" for value in np.round(np.asarray(values, np.float64), 6))


def _mujoco_anatomy(path: Path) -> Anatomy:
    """What MuJoCo makes of the file, whatever defaults, frames and includes it uses."""
    mujoco: Any = importlib.import_module("mujoco")
    model = mujoco.MjModel.from_xml_path(str(path))
    joints = [model.joint(k) for k in range(model.njnt)]
    kinds = [mujoco.mjtJoint(int(joint.type[0])).name.removeprefix("mjJNT_").lower() for joint in joints]
    return {
        "joints": [
            f"{joint.name} ({kind}, axis {_numbers(joint.axis)})" for joint, kind in zip(joints, kinds, strict=True)
        ],
        "actuators": [
            f"of {mujoco.mjtTrn(int(kind)).name.removeprefix('mjTRN_').lower()} {int(target) + 1}"
            for kind, target in zip(model.actuator_trntype, model.actuator_trnid[:, 0], strict=True)
        ],
        "parts": [f"below part {int(parent)}" for parent in model.body_parentid],
    }


def _bullet_anatomy(path: Path) -> Anatomy:
    """What PyBullet, which knows no includes, finds in the file; it makes a joint without a name one of its own."""
    root = _parsed(path).getroot()
    axes = [(joint, joint.get("axis", "0 0 1").split()) for joint in root.iterfind("./worldbody//joint")]
    return {
        "joints": [
            f"{joint.get('name')} ({joint.get('type', 'hinge')}, axis {_numbers(_unit(axis))})" for joint, axis in axes
        ],
        "actuators": [f"of {motor.get('joint')}" for motor in root.iterfind("./actuator/*")],
        "parts": [str(part.get("name")) for part in root.iterfind("./worldbody//body") if part.get("name")],
    }


def _unit(axis: Sequence[str]) -> Float[np.ndarray, " values"]:
    vector = np.array([float(value) for value in axis])
    return vector / np.linalg.norm(vector)


def _by_argument(make: Callable[..., gymnasium.Env], path: Path) -> gymnasium.Env:
    """MuJoCo environments take the file as an option, and read it in the constructor."""
    return make(xml_file=str(path))


def _by_attribute(make: Callable[..., gymnasium.Env], path: Path) -> gymnasium.Env:
    """PyBullet's robots join the name with the folder of their own, unless it is absolute, in the first reset."""
    env = make()
    env.unwrapped.robot.model_xml = str(path)  # type: ignore[attr-defined]
    return env


_SHORT_ANKLES = {
    "left": ("left_ankle_geom", "0.0 0.0 0.0 0.1 0.1 0.0"),
    "right": ("fourth_ankle_geom", "0.0 0.0 0.0 0.1 -0.1 0.0"),
}

SPECIES = {
    "AntBulletEnv-v0": Species("pybullet_data", "mjcf/ant.xml", _SHORT_ANKLES, _bullet_anatomy, _by_attribute),
    "Ant-v5": Species("gymnasium.envs.mujoco", "assets/ant.xml", _SHORT_ANKLES, _mujoco_anatomy, _by_argument),
}
"""The environments, by today's id, whose body can be exchanged."""
