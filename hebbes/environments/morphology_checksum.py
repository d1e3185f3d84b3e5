"""The sha256 of a body: of its XML file, and of every file that the XML may mean by a name in it.

MuJoCo takes a name as it is where it is absolute. The XML of an `<include>` is looked for in the folder of the main
file, and if it is not there, in that of the including one. Other files are looked for there too, below the `assetdir`,
`meshdir` or `texturedir` of a `<compiler>`, with `strippath` by the last part of their names. A `<model>` is a main
file of its own. `mju_getXMLDependencies` is of another opinion than the compiler (MuJoCo 4.0.0: with `strippath`, with
two compilers, for a mesh that lies with an included file). So the sum covers a file at each place where its name may
point to. What is at none of them is for the simulator to miss. PyBullet knows no includes, but the sum does not ask who
reads.
"""

import hashlib
from collections.abc import Mapping, Sequence
from itertools import product
from os.path import normpath
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any, TypeAlias
from xml.etree import ElementTree

from hebbes.environments.anatomy import content, parsed

MAX_XML_FILES, MAX_PLACES, MAX_BYTES = 100, 100_000, 2**28
"""More than any animal has: XML files, places to look for files, bytes of the others."""

Documents: TypeAlias = Mapping[Path, Sequence["ElementTree.Element[Any]"]]
"""The elements of each XML file, by its path from the folder of the main one."""

_FOLDERS = ("assetdir", "meshdir", "texturedir")


def sum_alone(path: Path) -> str:
    """The sha256 of the file alone, which bodies were recorded by before their sum covered the files that they name."""
    return hashlib.sha256(content(path)).hexdigest()


def body_sum(path: Path) -> str:
    """The sha256 of the body in an XML file, wherever it lies; that of the file alone where it names no others.

    ValueError for a file that cannot be read, is no XML, or is too much.
    """
    found = hashlib.sha256(content(path))
    size = 0
    for named in sorted(named_files(path)):
        file = path.parent / named
        try:
            size += file.stat().st_size
            if size > MAX_BYTES:
                raise ValueError(f"bodies: {path} names files of more than {MAX_BYTES} bytes")
            with file.open("rb") as opened:
                digest = hashlib.file_digest(opened, "sha256").hexdigest()
        except OSError as error:
            raise ValueError(f"bodies: cannot read {file}, which {path} names: {error.strerror}") from error
        found.update(f"\n{digest} {named}".encode())
    return found.hexdigest()


def named_files(path: Path) -> set[Path]:
    """The files that an XML file may mean by the names in it and in those that it includes, from its folder."""
    main = Path(path.name)
    documents = {main: list(parsed(path).iter())}
    while included := _places(path.parent, documents, {"include", "model"}, {""}) - set(documents):
        if len(documents) + len(included) > MAX_XML_FILES:
            raise ValueError(f"bodies: {path} includes more than {MAX_XML_FILES} files")
        documents |= {named: list(parsed(path.parent / named).iter()) for named in included}
    elements = [element for document in documents.values() for element in document]
    folders = {element.get(name, "").replace("\\", "/") for element in elements for name in _FOLDERS}
    return _places(path.parent, documents, {element.tag for element in elements}, folders) - {main}


def _places(top: Path, documents: Documents, tags: set[str], folders: set[str]) -> set[Path]:
    """The files there are that elements with these tags may name, from the folder `top`."""
    names = {
        value.replace("\\", "/")  # as MuJoCo does
        for document in documents.values()
        for element in document
        if element.tag in tags
        for attribute, value in element.items()
        if attribute.startswith("file")  # file, fileup, filefront, ...
    }
    names |= {Path(name).name for name in names}
    beside = {document.parent for document in documents}
    if len(beside) * len(folders) * len(names) > MAX_PLACES:
        raise ValueError(f"bodies: files in {top} name too many others: there are over {MAX_PLACES} places to look")
    places = {Path(normpath(Path(*parts))) for parts in product(beside, folders, names)}
    return {place for place in places if _is_file(top / place)}


def _is_file(path: Path) -> bool:
    """Whether there is one; ValueError for what a simulator would wait for, or read without end."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    if not (S_ISREG(mode) or S_ISDIR(mode)):
        raise ValueError(f"bodies: {path}, which an XML file names, is no ordinary file")
    return S_ISREG(mode)
