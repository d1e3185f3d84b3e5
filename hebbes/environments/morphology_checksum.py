"""Computes the checksum of a morphology: the sha256 of its XML file and of every file that a name in it may refer to.

MuJoCo takes an absolute name as it is. It looks for the XML of an `<include>` in the folder of the main file, then in
that of the including file. It looks for other files there too, below the `assetdir`, `meshdir` or `texturedir` of a
`<compiler>`; with `strippath` it uses only the last part of their names. A `<model>` is a main file of its own.
`mju_getXMLDependencies` does not always agree with the compiler (MuJoCo 4.0.0: with `strippath`, with two compilers,
for a mesh in the folder of an included file). So the checksum covers a file at every place that its name may refer to.
If it is at none of them, the simulator will report that. PyBullet knows no includes, but the checksum is the same for
both simulators.
"""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import product
from os.path import normpath
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any, TypeAlias
from xml.etree import ElementTree

from hebbes.environments.anatomy import parse_xml, read_xml_bytes

MAX_XML_FILES, MAX_PLACES, MAX_BYTES = 100, 100_000, 2**28
"""Limits, larger than any animal needs: XML files, places to look for files, bytes of the other files."""

Documents: TypeAlias = Mapping[Path, Sequence["ElementTree.Element[Any]"]]
"""Path of each XML file, relative to the folder of the main one -> its elements."""

_FOLDERS = ("assetdir", "meshdir", "texturedir")


def compute_morphology_checksum(path: Path) -> str:
    """The sha256 of the morphology in an XML file, which does not depend on where the file is.

    ValueError for a file that cannot be read, is not XML, or is too large.
    """
    found = hashlib.sha256(read_xml_bytes(path))
    size = 0
    for named in sorted(find_named_files(path)):
        file = path.parent / named
        try:
            size += file.stat().st_size
            if size > MAX_BYTES:
                raise ValueError(f"morphologies: {path} names files of more than {MAX_BYTES} bytes")
            with file.open("rb") as opened:
                digest = hashlib.file_digest(opened, "sha256").hexdigest()
        except OSError as error:
            raise ValueError(f"morphologies: cannot read {file}, which {path} names: {error.strerror}") from error
        found.update(f"\n{digest} {named}".encode())
    return found.hexdigest()


def find_named_files(path: Path) -> set[Path]:
    """The files that names in an XML file, and in those that it includes, may refer to; relative to its folder."""
    main = Path(path.name)
    documents = {main: list(parse_xml(path).iter())}
    while included := _find_existing_files(path.parent, documents, {"include", "model"}, {""}) - set(documents):
        if len(documents) + len(included) > MAX_XML_FILES:
            raise ValueError(f"morphologies: {path} includes more than {MAX_XML_FILES} files")
        documents |= {named: list(parse_xml(path.parent / named).iter()) for named in included}
    elements = [element for document in documents.values() for element in document]
    folders = {element.get(name, "").replace("\\", "/") for element in elements for name in _FOLDERS}
    return _find_existing_files(path.parent, documents, {element.tag for element in elements}, folders) - {main}


def _find_existing_files(top: Path, documents: Documents, tags: set[str], folders: set[str]) -> set[Path]:
    """The existing files that elements with these tags may name, relative to the folder `top`."""
    names = {
        value.replace("\\", "/")  # as MuJoCo does
        for document in documents.values()
        for element in document
        if element.tag in tags
        for attribute, value in element.items()
        if attribute.startswith("file")  # file, fileup, filefront, ...
    }
    names |= {Path(name).name for name in names}
    parents = {document.parent for document in documents}
    if len(parents) * len(folders) * len(names) > MAX_PLACES:
        raise ValueError(
            f"morphologies: files in {top} name too many others: there are over {MAX_PLACES} places to look"
        )
    places = {Path(normpath(Path(*parts))) for parts in product(parents, folders, names)}
    return {place for place in places if _is_file(top / place)}


def _is_file(path: Path) -> bool:
    """Whether a file exists; ValueError for a special file, for which a simulator could wait, or read forever."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    if not (S_ISREG(mode) or S_ISDIR(mode)):
        raise ValueError(f"morphologies: {path}, which an XML file names, is not an ordinary file")
    return S_ISREG(mode)
