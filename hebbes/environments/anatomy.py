"""Reads the anatomy in an XML file: what two morphologies must share, so that one policy can act in both."""

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
"""Kind of part -> a description of each, in order. Policies and the simulators' arrays depend on these parts."""

_BULLET_SHAPES = ("box", "capsule", "cylinder", "plane", "sphere")
"""Types of geoms that PyBullet makes. It leaves others out, with a warning."""

_NUMERIC = frozenset(
    ("pos", "quat", "axisangle", "euler", "size", "fromto", "axis", "range", "mass", "density", "friction", "rgba")
)
"""Attributes of geoms, joints and `<body>` elements that hold numbers."""


class _NoDoctype(ElementTree.TreeBuilder):
    """Refuses a DOCTYPE, because it could declare entities, a few of which can expand to gigabytes."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        raise ValueError(f"it declares a DOCTYPE, {name}, which is not allowed")


def read_xml_bytes(path: Path) -> bytes:
    """The bytes of an XML file; ValueError if it cannot be read or is larger than MAX_FILE_BYTES."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ValueError(f"morphologies: cannot read {path}: it has more than {MAX_FILE_BYTES} bytes")
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"morphologies: cannot read {path}: {error.strerror}") from error


def parse_xml(path: Path) -> "ElementTree.ElementTree[Any]":
    """The tree in an XML file; ValueError if it cannot be parsed."""
    text = read_xml_bytes(path)
    try:
        parser = ElementTree.XMLParser(target=_NoDoctype())  # noqa: S314  # no DOCTYPE
        return ElementTree.ElementTree(ElementTree.fromstring(text, parser))  # noqa: S314  # no DOCTYPE
    except (ElementTree.ParseError, ValueError, LookupError) as error:  # LookupError: an unknown encoding
        raise ValueError(f"morphologies: cannot read {path}: {error}") from error


def _format_numbers(values: Sequence[float] | Float[np.ndarray, " values"]) -> str:
    """Numbers as text, rounded to six digits, so that nearly equal ones compare equal."""
    return " ".join(f"{value + 0.0:.6g}" for value in np.round(np.asarray(values, np.float64), 6))


def read_mujoco_anatomy(path: Path) -> Anatomy:
    """The anatomy that MuJoCo makes of the file, with all its defaults, frames and includes."""
    mujoco: Any = importlib.import_module("mujoco")
    model = mujoco.MjModel.from_xml_path(str(path))
    joints = [model.joint(k) for k in range(model.njnt)]
    kinds = [mujoco.mjtJoint(int(joint.type[0])).name.removeprefix("mjJNT_").lower() for joint in joints]
    return {
        "joints": [
            f"{joint.name} ({kind}, axis {_format_numbers(joint.axis)})"
            for joint, kind in zip(joints, kinds, strict=True)
        ],
        "actuators": [
            f"of {mujoco.mjtTrn(int(kind)).name.removeprefix('mjTRN_').lower()} {int(target) + 1}"
            for kind, target in zip(model.actuator_trntype, model.actuator_trnid[:, 0], strict=True)
        ],
        "parts": [f"below part {int(parent)}" for parent in model.body_parentid],
    }


def read_bullet_anatomy(path: Path) -> Anatomy:
    """The anatomy that PyBullet finds in the file. It knows no includes, and gives a joint without a name its own name.

    ValueError where PyBullet would only warn, and leave out a shape or use other numbers.
    """
    root = parse_xml(path).getroot()
    for shape in root.iterfind("./worldbody//geom"):
        if shape.get("type") not in _BULLET_SHAPES:
            allowed = ", ".join(_BULLET_SHAPES)
            raise ValueError(f"geom {shape.get('name')} has the type {shape.get('type')}; PyBullet knows {allowed}")
    for element in root.iterfind("./worldbody//*"):
        _check_numbers(element)
    return {
        "joints": [
            f"{joint.get('name')} ({joint.get('type', 'hinge')}, axis {_format_numbers(_compute_unit_axis(joint))})"
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


def _compute_unit_axis(joint: "ElementTree.Element[Any]") -> Float[np.ndarray, " values"]:
    axis = np.array([float(value) for value in joint.get("axis", "0 0 1").split()])
    if not axis.any():
        raise ValueError(f"joint {joint.get('name')} has an axis of zeros, {joint.get('axis')!r}")
    return axis / np.linalg.norm(axis)
