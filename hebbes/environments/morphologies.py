"""Bodies: a simulated animal as its package has it, damaged, or described by a user's own XML file.

The damages are those of Najarro & Risi (NeurIPS 2020, arXiv 2007.02686): the ankle of one leg of the ant is shortened
from 0.4 to 0.1, which is one attribute of its XML. The file is written from the one of the installed package whenever
simulators are made, and removed once they have read it, so that however a program ends nothing is left behind.

A body of a user's own must have the joints and actuators of the package's: a policy would not fit another, and EnvPool
writes past its arrays for one of other parts. It is named by the absolute path of its file and the sha256 of what the
file and those that it names hold, `/home/me/mine.xml@9f86...`, and refused once one of them holds something else. Sums
recorded before 2026-11-22 are of the file alone, and still taken: a change of what such a body includes goes unnoticed.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from xml.etree import ElementTree

import gymnasium

from hebbes.environments.anatomy import Anatomy, bullet_anatomy, mujoco_anatomy, parsed
from hebbes.environments.morphology_checksum import body_sum, sum_alone
from hebbes.registry.lookup import did_you_mean

INTACT = "none"
"""The body as the environment has it by itself."""


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


_WITH_SUM = re.compile(r"(?P<path>.+)@(?P<sum>[0-9a-f]{64})", re.DOTALL)


def pinned(body: str) -> str:
    """A body as runs and policy files keep it: the path of a file made absolute, with its `body_sum`.

    Names of bodies, and what is no file, stay as they are.
    """
    if body == INTACT or any(body in species.damages for species in SPECIES.values()) or not Path(body).is_file():
        return body
    path = Path(body).resolve()
    if {",", ":"} & set(str(path)):
        raise ValueError(f"bodies must be files whose absolute path has neither comma nor colon, got {str(path)!r}")
    return f"{path}@{body_sum(path)}"


def identity(body: str) -> str:
    """What two bodies that are the same have in common: their name, or the sha256 of their file wherever it lies."""
    found = _WITH_SUM.fullmatch(body)
    return found["sum"] if found else body


def short_name(body: str) -> str:
    """A body as tables and figures name it: `mine.xml@9f86d081`, the file with the first digits of its sha256."""
    found = _WITH_SUM.fullmatch(body)
    return f"{Path(found['path']).name}@{found['sum'][:8]}" if found else body


def check_bodies(bodies: Sequence[str]) -> None:
    """Refuses no bodies, and one that is there twice, be it in two files."""
    if not bodies or len({identity(body) for body in bodies}) < len(bodies):
        raise ValueError(f"bodies must be at least one, each of them once, got {list(bodies)}")


@contextmanager
def body_file(environment: str, body: str) -> Iterator[Path | None]:
    """An XML file for simulators to be made from, there until the context ends; None for the intact body.

    Args:
        environment: today's id.
        body: `none`, a damage of the environment's species, or the path of an XML file, as `pinned` gives it or bare.

    Raises:
        ValueError: the environment has no such body, or the file is not one of the species, or has changed.
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
    tree = parsed(species.installed)
    found = tree.findall(f".//geom[@name='{capsule}']")
    if len(found) != 1 or "fromto" not in found[0].attrib:
        raise ValueError(f"cannot damage the body in {species.installed}: it has no capsule {capsule!r}")
    found[0].set("fromto", ends)
    return tree


def _checked(species: Species, body: str) -> Path:
    """The file of a user's own body, if it is one of the species and what it was."""
    recorded = _WITH_SUM.fullmatch(body)
    path = Path(name := recorded["path"] if recorded else body)
    if not path.is_file():
        known = ", ".join((INTACT, *species.damages))
        hint = did_you_mean(name, (INTACT, *species.damages)) or ","
        raise ValueError(f"no body and no file {name!r}{hint} known: {known}, or the path of an XML file")
    if recorded and recorded["sum"] != sum_alone(path):
        _check_unchanged(path, recorded["sum"])
    parsed(path)
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


def _check_unchanged(path: Path, recorded: str) -> None:
    """Refuses a file that, with those that it names, is another body than was recorded."""
    if (now := body_sum(path)) != recorded:
        what = " or a file that it names" if now != sum_alone(path) else ""
        raise ValueError(
            f"bodies: {path}{what} has changed since the training: its sha256 was {recorded[:8]}..., is {now[:8]}...; "
            "put it back, or name its path in --bodies of a new run or --damage of an evaluation"
        )


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
    "AntBulletEnv-v0": Species("pybullet_data", "mjcf/ant.xml", _SHORT_ANKLES, bullet_anatomy, _by_attribute),
    "Ant-v5": Species("gymnasium.envs.mujoco", "assets/ant.xml", _SHORT_ANKLES, mujoco_anatomy, _by_argument),
}
"""The environments, by today's id, whose body can be exchanged."""
