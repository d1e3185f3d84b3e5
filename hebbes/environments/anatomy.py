"""What a body's XML file holds, as far as two bodies must share it for one policy to act in both."""

import importlib
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, TypeAlias
from xml.etree import ElementTree

import numpy as np
from jaxtyping import Float

MAX_FILE_BYTES = 2**20

Anatomy: TypeAlias = Mapping[str, Sequence[str]]
"""Descriptions of the parts that a policy, or a simulator's arrays, are made for, by kind and in order."""

_BULLET_SHAPES = ("box", "capsule", "cylinder", "plane", "sphere")
"""Types of geoms that PyBullet makes; it leaves others out, with a warning."""

_NUMERIC = frozenset(
    ("pos", "quat", "axisangle", "euler", "size", "fromto", "axis", "range", "mass", "density", "friction", "rgba")
)
"""Attributes of geoms, joints and bodies that hold numbers."""


class _NoDoctype(ElementTree.TreeBuilder):
    """Refuses what could declare entities, a few of which can stand for gigabytes."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise ValueError(f"it declares a DOCTYPE, {name}, which is not taken")


def content(path: Path) -> bytes:
    """What an XML file holds; ValueError if it cannot be read or is larger than any body."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ValueError(f"bodies: cannot read {path}: it has more than {MAX_FILE_BYTES} bytes")
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"bodies: cannot read {path}: {error.strerror}") from error


def parsed(path: Path) -> "ElementTree.ElementTree[Any]":
    """The tree in an XML file; ValueError for what is none."""
    text = content(path)
    try:
        parser = ElementTree.XMLParser(target=_NoDoctype())  # noqa: S314  # no DOCTYPE
        return ElementTree.ElementTree(ElementTree.fromstring(text, parser))  # noqa: S314  # no DOCTYPE
    except (ElementTree.ParseError, ValueError, LookupError) as error:  # LookupError: an unknown encoding
        raise ValueError(f"bodies: cannot read {path}: {error}") from error


def _numbers(values: Sequence[float] | Float[np.ndarray, " values"]) -> str:
    """Numbers as they are told, equal where they are to six digits."""
    return " ".join(f"{value + 0.0:.6g}" for value in np.round(np.asarray(values, np.float64), 6))


def mujoco_anatomy(path: Path) -> Anatomy:
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


def bullet_anatomy(path: Path) -> Anatomy:
    """What PyBullet, which knows no includes, finds in the file; it makes a joint without a name one of its own.

    ValueError where it would warn, and go on without a shape or with other numbers.
    """
    root = parsed(path).getroot()
    for shape in root.iterfind("./worldbody//geom"):
        if shape.get("type") not in _BULLET_SHAPES:
            allowed = ", ".join(_BULLET_SHAPES)
            raise ValueError(f"geom {shape.get('name')} has the type {shape.get('type')}; PyBullet knows {allowed}")
    for element in root.iterfind("./worldbody//*"):
        _check_numbers(element)
    return {
        "joints": [
            f"{joint.get('name')} ({joint.get('type', 'hinge')}, axis {_numbers(_unit_axis(joint))})"
            for joint in root.iterfind("./worldbody//joint")
        ],
        "actuators": [f"of {motor.get('joint')}" for motor in root.iterfind("./actuator/*")],
        "parts": [str(part.get("name")) for part in root.iterfind("./worldbody//body") if part.get("name")],
    }


def _check_numbers(element: "ElementTree.Element[Any]") -> None:
    for attribute, text in element.items():
        if attribute not in _NUMERIC:
            continue
        try:
            finite = bool(text.split()) and all(isfinite(float(word)) for word in text.split())
        except ValueError:
            finite = False
        if not finite:
            where = f"{element.tag} {element.get('name')}"
            raise ValueError(f"{where} has the {attribute} {text!r}, which must be finite numbers")


def _unit_axis(joint: "ElementTree.Element[Any]") -> Float[np.ndarray, " values"]:
    axis = np.array([float(value) for value in joint.get("axis", "0 0 1").split()])
    if not axis.any():
        raise ValueError(f"joint {joint.get('name')} has an axis of zeros, {joint.get('axis')!r}")
    return axis / np.linalg.norm(axis)
