"""The checksum of a morphology covers every file that MuJoCo reads. MuJoCo itself shows which files those are."""

import hashlib
import os
import shutil
from pathlib import Path
from tempfile import gettempdir

import mujoco
import pytest

from hebbes.environments import morphology_checksum as module
from hebbes.environments.morphologies import SPECIES, pin_morphology, provide_morphology_file
from hebbes.environments.morphology_checksum import compute_morphology_checksum, find_named_files
from tests.python_process import run_python

OBJ = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n"
BALL = '<worldbody><geom type="sphere" size="1"/></worldbody>'
SOLID = '<worldbody><geom type="mesh" mesh="x"/></worldbody>'
MESH = '<asset><mesh name="x" file="x.obj"/></asset>'
HELD = '<worldbody><body name="b"><geom type="mesh" mesh="x"/></body></worldbody>'
INCLUDE = '<include file="s/a.xml"/>'

LAYOUTS = {
    "include": {"main.xml": '<include file="a.xml"/>', "a.xml": BALL},
    "include of another name": {"main.xml": '<include file="a.txt"/>', "a.txt": BALL},
    "include next to the main file": {"main.xml": INCLUDE, "s/a.xml": '<include file="b.xml"/>', "b.xml": BALL},
    "include next to the including file": {"main.xml": INCLUDE, "s/a.xml": '<include file="b.xml"/>', "s/b.xml": BALL},
    "include that is in both places": {
        "main.xml": INCLUDE,
        "s/a.xml": '<include file="b.xml"/>',
        "b.xml": BALL,
        "s/b.xml": BALL,
    },
    "include from above": {"main.xml": '<include file="../above/a.xml"/>', "../above/a.xml": BALL},
    "include by its absolute path": {"main.xml": '<include file="{top}/far/a.xml"/>', "far/a.xml": BALL},
    "include by a path of Windows": {"main.xml": '<include file="s\\a.xml"/>', "s/a.xml": BALL},
    "meshdir of Windows": {"main.xml": '<compiler meshdir="m\\n"/>' + MESH + SOLID, "m/n/x.obj": OBJ},
    "include below the worldbody": {
        "main.xml": '<worldbody><body><include file="a.xml"/></body></worldbody>',
        "a.xml": '<geom type="sphere" size="1"/>',
    },
    "mesh": {"main.xml": MESH + SOLID, "x.obj": OBJ},
    "meshdir": {"main.xml": '<compiler meshdir="m"/>' + MESH + SOLID, "m/x.obj": OBJ},
    "meshdir after the mesh": {"main.xml": MESH + '<compiler meshdir="m"/>' + SOLID, "m/x.obj": OBJ},
    "absolute meshdir": {"main.xml": '<compiler meshdir="{top}/m"/>' + MESH + SOLID, "m/x.obj": OBJ},
    "assetdir": {"main.xml": '<compiler assetdir="m"/>' + MESH + SOLID, "m/x.obj": OBJ},
    "two compilers": {
        "main.xml": '<compiler meshdir="n"/><compiler meshdir="m"/>' + MESH + SOLID,
        "m/x.obj": OBJ,
        "n/x.obj": OBJ,
    },
    "strippath": {
        "main.xml": '<compiler strippath="true"/><asset><mesh name="x" file="q/x.obj"/></asset>' + SOLID,
        "x.obj": OBJ,
    },
    "mesh of an included file": {"main.xml": INCLUDE + SOLID, "s/a.xml": MESH, "s/x.obj": OBJ},
    "mesh of an included file next to the main one": {"main.xml": INCLUDE + SOLID, "s/a.xml": MESH, "x.obj": OBJ},
    "mesh in both places": {"main.xml": INCLUDE + SOLID, "s/a.xml": MESH, "s/x.obj": OBJ, "x.obj": OBJ},
    "meshdir of an included file": {
        "main.xml": INCLUDE + SOLID,
        "s/a.xml": '<compiler meshdir="m"/>' + MESH,
        "m/x.obj": OBJ,
    },
    "model": {
        "main.xml": '<asset><model name="k" file="s/k.xml"/></asset>'
        '<worldbody><body><attach model="k" body="b" prefix="p"/></body></worldbody>',
        "s/k.xml": '<compiler meshdir="m"/>' + MESH + HELD,
        "s/m/x.obj": OBJ,
    },
    "height field": {
        "main.xml": '<asset><hfield name="h" file="h.bin" size="1 1 1 1"/></asset>'
        '<worldbody><geom type="hfield" hfield="h"/></worldbody>',
        "h.bin": "\2\0\0\0\2\0\0\0" + 16 * "\0",
    },
}


def write_files(top, files):
    """Writes the files and returns the path of the main one."""
    for name, text in files.items():
        path = top / "body" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = text.replace("{top}", str(top / "body"))
        path.write_text(f"<mujoco>{text}</mujoco>" if "<" in text else text)
    return top / "body" / "main.xml"


def can_load(path):
    try:
        mujoco.MjModel.from_xml_path(str(path))
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_change_of_any_file_that_mujoco_reads_changes_the_checksum(layout, tmp_path):
    main = write_files(tmp_path, LAYOUTS[layout])
    assert can_load(main)
    before, read = compute_morphology_checksum(main), 0
    for path in [path for path in tmp_path.rglob("*") if path.is_file()]:
        whole = path.read_bytes()
        path.write_text("nonsense" if "mujoco" not in str(whole) else "<mujoco><nonsense/></mujoco>")
        os.utime(path, (0, 0))  # MuJoCo reads a file again only if its time has changed
        if not can_load(main):
            read += 1
            assert compute_morphology_checksum(main) != before
        path.write_bytes(whole)
    assert read >= 2
    assert compute_morphology_checksum(main) == before


def test_a_file_that_names_no_other_keeps_its_checksum():
    for species in SPECIES.values():
        assert (
            compute_morphology_checksum(species.installed) == hashlib.sha256(species.installed.read_bytes()).hexdigest()
        )


def test_a_moved_morphology_keeps_its_checksum_but_not_with_swapped_meshes(tmp_path):
    two = '<asset><mesh name="x" file="x.obj"/><mesh name="y" file="y.obj"/></asset>'
    main = write_files(tmp_path, {"main.xml": two + SOLID, "x.obj": OBJ, "y.obj": OBJ.replace("1 0 0", "2 0 0")})
    before = compute_morphology_checksum(main)
    shutil.copytree(main.parent, tmp_path / "elsewhere")
    assert compute_morphology_checksum(tmp_path / "elsewhere" / "main.xml") == before
    (main.parent / "x.obj").rename(main.parent / "z.obj")
    (main.parent / "y.obj").rename(main.parent / "x.obj")
    (main.parent / "z.obj").rename(main.parent / "y.obj")
    assert compute_morphology_checksum(main) != before


@pytest.mark.parametrize("files", [{"a.xml": '<include file="b.xml"/>', "b.xml": '<include file="a.xml"/>'}, {}])
def test_circles_and_files_that_are_missing_are_the_simulators_to_refuse(files, tmp_path):
    main = write_files(tmp_path, {"main.xml": '<include file="a.xml"/>', **files})
    assert {str(path) for path in find_named_files(main)} == set(files)
    with (
        pytest.raises(
            ValueError, match=r"^morphologies: .*main.xml is not a morphology that the simulator can load: .*a\.xml"
        ),
        provide_morphology_file("Ant-v5", pin_morphology(str(main))),
    ):
        pass


def test_what_is_too_much_or_no_ordinary_file_is_refused(tmp_path, monkeypatch):
    main = write_files(tmp_path, {"main.xml": '<include file="a.xml"/>', "a.xml": "<!-- --><compiler/>"})
    (main.parent / "a.xml").write_text(f"<mujoco><!--{'x' * 2**20}--></mujoco>")
    with pytest.raises(ValueError, match=r"cannot read .*a\.xml: it has more than 1048576 bytes"):
        compute_morphology_checksum(main)
    (main.parent / "a.xml").unlink()
    os.mkfifo(main.parent / "a.xml")
    with pytest.raises(ValueError, match=r"a\.xml, which an XML file names, is not an ordinary file"):
        compute_morphology_checksum(main)
    (main.parent / "a.xml").unlink()
    (main.parent / "a.xml").write_text('<!DOCTYPE m [<!ENTITY x "xxxxxxxx">]><mujoco/>')
    with pytest.raises(ValueError, match=r"a\.xml: it declares a DOCTYPE"):
        compute_morphology_checksum(main)
    main = write_files(tmp_path, {"main.xml": MESH + SOLID, "x.obj": OBJ})
    monkeypatch.setattr(module, "MAX_BYTES", 10)
    with pytest.raises(ValueError, match="names files of more than 10 bytes"):
        compute_morphology_checksum(main)
    many = "".join(f'<mesh file="{number}.obj"/>' for number in range(module.MAX_PLACES))
    main.write_text(f"<mujoco>{many[: 2**20 - 100].rpartition('<')[0]}</mujoco>")
    monkeypatch.setattr(module, "MAX_PLACES", 10_000)
    with pytest.raises(ValueError, match="name too many others"):
        compute_morphology_checksum(main)
    chain = {f"{number}.xml": f'<include file="{number + 1}.xml"/>' for number in range(module.MAX_XML_FILES)}
    with pytest.raises(ValueError, match="includes more than 100 files"):
        compute_morphology_checksum(write_files(tmp_path, {"main.xml": '<include file="0.xml"/>', **chain}))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become a user who may not read")
def test_a_file_that_may_not_be_read_is_refused(tmp_path):
    main = write_files(tmp_path, {"main.xml": MESH + SOLID, "x.obj": OBJ})
    (main.parent / "x.obj").chmod(0)
    for folder in main.parents:
        if folder.is_relative_to(gettempdir()) and folder != Path(gettempdir()):
            folder.chmod(folder.stat().st_mode | 0o055)
    program = (
        "import os, sys; from pathlib import Path; from hebbes.environments import morphology_checksum as sums\n"
        "os.setuid(65534)\n"
        "try:\n    sums.compute_morphology_checksum(Path(sys.argv[1]))\nexcept ValueError as error:\n    print(error)\n"
    )
    done = run_python("-c", program, main)
    found = f"morphologies: cannot read {main.parent / 'x.obj'}, which {main} names: Permission denied\n"
    assert done.stdout == found, done.stderr


@pytest.fixture
def ant(tmp_path):
    """A morphology of the ant whose defaults are in another file."""
    text = SPECIES["Ant-v5"].installed.read_text()
    start, end = text.index("<default>"), text.index("</default>") + len("</default>")
    (tmp_path / "defaults.xml").write_text(f"<mujoco>{text[start:end]}</mujoco>")
    (tmp_path / "mine.xml").write_text(f'{text[:start]}<include file="defaults.xml"/>{text[end:]}')
    return tmp_path / "mine.xml"


def test_a_changed_include_is_noticed(ant):
    recorded = pin_morphology(str(ant))
    with provide_morphology_file("Ant-v5", recorded) as path:
        assert path == ant
    defaults = ant.with_name("defaults.xml")
    assert "armature" in defaults.read_text()
    defaults.write_text(defaults.read_text().replace('armature="1"', 'armature="2"'))
    changed = rf"^morphologies: {ant} or a file that it names has changed since the training: "
    with pytest.raises(ValueError, match=changed), provide_morphology_file("Ant-v5", recorded):
        pass
