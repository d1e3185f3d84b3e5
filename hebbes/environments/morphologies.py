"""Morphologies: a simulated animal as its package has it, damaged, or as a user's own XML file describes it.

The damages are those of Najarro & Risi (NeurIPS 2020, arXiv 2007.02686): the ankle of one leg of the ant is shortened
from 0.4 to 0.1, which is one attribute of its XML. Whenever simulators are made, a temporary file is written from the
installed package's. It is removed once they have read it, so that nothing is left behind unless a process is killed
in that moment.

A user's own morphology must have the same joints, actuators and parts as the package's. A policy would not fit other
ones, and with other parts EnvPool writes past the end of its arrays. Its name is the absolute path of its file and a
sha256 of that file and all files that it names: `/home/me/mine.xml@9f86...`. If one of them changes, the morphology is
refused.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias
from xml.etree import ElementTree

from hebbes.contracts.errors import join_lines
from hebbes.contracts.suggestion import suggest_name
from hebbes.environments.anatomy import Anatomy, parse_xml, read_bullet_anatomy, read_mujoco_anatomy
from hebbes.environments.morphology_checksum import compute_morphology_checksum

MakeEnv: TypeAlias = Callable[..., Any]
"""Makes a simulator, a `gymnasium.Env`, from options of its constructor."""

INTACT = "none"
"""The environment's own morphology."""


@dataclass(frozen=True)
class Species:
    """An animal whose morphology can be exchanged, in one simulator."""

    package: str
    file: str
    """Path of the XML file within the installed package."""
    damages: Mapping[str, tuple[str, str]]
    """Name of each damage -> the capsule that it shortens, and the capsule's new ends (x y z, twice)."""
    read_anatomy: Callable[[Path], Anatomy]
    """Reads the anatomy in an XML file; ValueError if the simulator could not load it."""
    make_with_morphology: Callable[[MakeEnv, Path], Any]
    """Makes a simulator with the morphology in an XML file."""

    @property
    def installed(self) -> Path:
        """The installed package's XML file."""
        found = find_spec(self.package)
        if found is None or not found.submodule_search_locations:
            raise ValueError(f"morphologies need the package {self.package}, which is not installed")
        return Path(found.submodule_search_locations[0], self.file)


_WITH_CHECKSUM = re.compile(r"(?P<path>.+)@(?P<sum>[0-9a-f]{64})", re.DOTALL)


def pin_morphology(morphology: str) -> str:
    """A morphology as runs and policy files keep it: for a file its absolute path and checksum.

    Names of morphologies stay as they are, and so does anything that is not a file.
    """
    names = {INTACT, *(name for species in SPECIES.values() for name in species.damages)}
    try:
        is_file = morphology not in names and Path(morphology).is_file()
    except OSError as error:
        raise ValueError(f"a morphology must be a name or a file, got {morphology!r}: {error.strerror}") from error
    if not is_file:
        return morphology
    path = Path(morphology).resolve()
    if {",", ":"} & set(str(path)):
        raise ValueError(
            f"morphologies must be files whose absolute path has neither comma nor colon, got {str(path)!r}"
        )
    return f"{path}@{compute_morphology_checksum(path)}"


def identify_morphology(morphology: str) -> str:
    """A text that is equal for equal morphologies: the name, or the checksum of the file, wherever the file is."""
    found = _WITH_CHECKSUM.fullmatch(morphology)
    return found["sum"] if found else morphology


def shorten_morphology_name(morphology: str) -> str:
    """A morphology as tables and plots name it: `mine.xml@9f86d081`, the file and the first digits of its checksum."""
    found = _WITH_CHECKSUM.fullmatch(morphology)
    return f"{Path(found['path']).name}@{found['sum'][:8]}" if found else morphology


def check_morphologies(morphologies: Sequence[str]) -> None:
    """Raises ValueError if there are none, or if two are the same, even in different files."""
    if not morphologies or len({identify_morphology(morphology) for morphology in morphologies}) < len(morphologies):
        raise ValueError(f"morphologies must be at least one, each of them once, got {list(morphologies)}")


@contextmanager
def provide_morphology_file(environment: str, morphology: str) -> Iterator[Path | None]:
    """The XML file to make simulators from, which exists until the context ends; None for the intact morphology.

    Args:
        environment: the current id.
        morphology: `none`, a damage of the environment's species, or the path of an XML file, with a checksum (as from
            `pin_morphology`) or without.

    Raises:
        ValueError: the environment has no such morphology, the file does not fit the species, or the file has changed.
    """
    if morphology == INTACT:
        yield None
        return
    species = SPECIES.get(environment)
    if species is None:
        raise ValueError(
            f"{environment} has only the morphology {INTACT!r}, got {morphology!r}; {' and '.join(SPECIES)} have others"
        )
    if morphology not in species.damages:
        yield _check_users_file(species, morphology)
        return
    with TemporaryDirectory(prefix="hebbes-") as folder:
        path = Path(folder, f"{morphology}.xml")
        _damage_morphology(species, *species.damages[morphology]).write(path)
        yield path


def _damage_morphology(species: Species, capsule: str, ends: str) -> "ElementTree.ElementTree[Any]":
    """The XML tree of the installed morphology, with other ends for one capsule."""
    tree = parse_xml(species.installed)
    found = tree.findall(f".//geom[@name='{capsule}']")
    if len(found) != 1 or "fromto" not in found[0].attrib:
        raise ValueError(f"cannot damage the morphology in {species.installed}: it has no capsule {capsule!r}")
    found[0].set("fromto", ends)
    return tree


def _check_users_file(species: Species, morphology: str) -> Path:
    """The absolute path of a user's own morphology; ValueError if it does not fit the species or has changed."""
    recorded = _WITH_CHECKSUM.fullmatch(morphology)
    path = Path(name := recorded["path"] if recorded else morphology)
    if not path.is_file():
        known = ", ".join((INTACT, *species.damages))
        hint = suggest_name(name, (INTACT, *species.damages)) or ","
        raise ValueError(f"no morphology and no file {name!r}{hint} known: {known}, or the path of an XML file")
    if recorded and (now := compute_morphology_checksum(path)) != recorded["sum"]:
        raise ValueError(
            f"morphologies: {path} or a file that it names has changed since the training: its sha256 was "
            f"{recorded['sum'][:8]}..., is {now[:8]}...; put it back, or give its path to --morphologies of a new run "
            "or to --damage"
        )
    parse_xml(path)
    try:
        found = species.read_anatomy(path)
    except ValueError as error:
        reason = join_lines(error)
        raise ValueError(f"morphologies: {name} is not a morphology that the simulator can load: {reason}") from error
    for kind, expected in species.read_anatomy(species.installed).items():
        for number, (here, there) in enumerate(zip_longest(found[kind], expected, fillvalue="absent"), 1):
            if here != there:
                raise ValueError(
                    f"morphologies: {name} has other {kind} than {species.installed.name} of {species.package}: "
                    f"number {number} is {here}, not {there}"
                )
    return path.absolute()


def _make_with_argument(make: MakeEnv, path: Path) -> Any:
    """Passes the file as an option. MuJoCo's environments read it in the constructor."""
    return make(xml_file=str(path))


def _make_with_attribute(make: MakeEnv, path: Path) -> Any:
    """Sets the file's absolute path. PyBullet's robots look in their own folder for any other, in the first reset."""
    env = make()
    env.unwrapped.robot.model_xml = str(path)
    return env


_SHORT_ANKLES = {
    "left": ("left_ankle_geom", "0.0 0.0 0.0 0.1 0.1 0.0"),
    "right": ("fourth_ankle_geom", "0.0 0.0 0.0 0.1 -0.1 0.0"),
}

SPECIES = {
    "AntBulletEnv-v0": Species(
        "pybullet_data", "mjcf/ant.xml", _SHORT_ANKLES, read_bullet_anatomy, _make_with_attribute
    ),
    "Ant-v5": Species(
        "gymnasium.envs.mujoco", "assets/ant.xml", _SHORT_ANKLES, read_mujoco_anatomy, _make_with_argument
    ),
}
"""Current id -> species, for the environments whose morphology can be exchanged."""
