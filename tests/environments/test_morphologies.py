"""Morphologies: the files that are written, what the simulators make of them, and what is refused."""

import tempfile
from importlib.util import find_spec
from math import hypot
from pathlib import Path
from xml.etree import ElementTree

import gymnasium
import numpy as np
import pytest

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.make_batch_env import make_batch_env
from hebbes.environments.morphologies import SPECIES, provide_morphology_file
from hebbes.environments.part_spec import PartSpec

WITHOUT_BULLET = pytest.mark.skipif(find_spec("pybullet") is None, reason="PyBullet is not installed")
BULLET = pytest.param("AntBulletEnv-v0", marks=WITHOUT_BULLET)
ANTS = ["Ant-v5", BULLET]
SHORT_ANKLES = {
    "left": ("left_ankle_geom", [0, 0, 0, 0.1, 0.1, 0]),
    "right": ("fourth_ankle_geom", [0, 0, 0, 0.1, -0.1, 0]),
}


class BreaksOnce(gymnasium.Wrapper):
    """Raises in the first env step of any instance in this process."""

    broken = False

    def step(self, action):
        if not BreaksOnce.broken:
            BreaksOnce.broken = True
            raise RuntimeError("broken")
        return self.env.step(action)


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory, monkeypatch):
    """The folder for temporary files, which must be empty in the end."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture
def simulators(monkeypatch):
    """The unwrapped simulators that Gymnasium has made so far, in order."""
    found, make = [], gymnasium.make

    def make_and_note(*args, **options):
        found.append((env := make(*args, **options)).unwrapped)
        return env

    monkeypatch.setattr(gymnasium, "make", make_and_note)
    return found


def make_ant(environment, backend="gymnasium", morphology="none", seeds=(3,), **parts):
    return make_batch_env(
        EnvironmentSpec(environment, backend, **parts), list(seeds), threads=1, training=False, morphology=morphology
    )


def play(env, count, episode=0):
    """The first observations, those after each of some env steps, and the rewards."""
    rng, observations, rewards = np.random.default_rng(0), [env.start(episode)], []
    for _ in range(count):
        step = env.step(np.repeat(rng.uniform(-0.3, 0.3, (1, 8)), env.num_envs, axis=0), np.arange(env.num_envs))
        observations.append(step.observations)
        rewards.append(step.rewards)
    return np.array(observations), np.array(rewards)


def write_morphology(tmp_path, environment, *changes):
    """The package's morphology with some words replaced by others."""
    text = SPECIES[environment].installed.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    path = tmp_path / "mine.xml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("environment", ANTS)
@pytest.mark.parametrize("morphology", ["left", "right"])
def test_a_damage_changes_one_attribute_of_the_packages_file(environment, morphology):
    with provide_morphology_file(environment, morphology) as path:
        damaged = list(ElementTree.parse(path).iter())
    package = list(ElementTree.parse(SPECIES[environment].installed).iter())
    assert [each.tag for each in damaged] == [each.tag for each in package]
    (geom,) = [new for new, old in zip(damaged, package, strict=True) if new.attrib != old.attrib]
    capsule, ends = SHORT_ANKLES[morphology]
    old = {each.get("name"): each for each in package if each.tag == "geom"}[capsule]
    assert geom.attrib == {**old.attrib, "fromto": geom.get("fromto")}
    assert [float(number) for number in geom.get("fromto").split()] == ends
    assert [4 * number for number in ends] == [float(number) for number in old.get("fromto").split()]


@pytest.mark.parametrize(
    ("morphology", "short"), [("none", None), ("left", "left_ankle_geom"), ("right", "fourth_ankle_geom")]
)
def test_mujocos_ant_has_one_short_ankle(morphology, short, simulators):
    make_ant("Ant-v5", morphology=morphology)
    ankles = ("left_ankle_geom", "right_ankle_geom", "third_ankle_geom", "fourth_ankle_geom")
    model = simulators[0].model
    lengths = {ankle: 2 * model.geom(ankle).size[1] for ankle in ankles}
    assert lengths == pytest.approx({ankle: hypot(0.1, 0.1) * (1 if ankle == short else 4) for ankle in ankles})


@WITHOUT_BULLET
@pytest.mark.parametrize(
    ("morphology", "short"), [("none", None), ("left", "front_left_foot"), ("right", "right_back_foot")]
)
def test_bullets_ant_has_one_short_ankle_even_after_a_fault(morphology, short, simulators, monkeypatch):
    monkeypatch.setattr(BreaksOnce, "broken", False)
    env = make_ant("AntBulletEnv-v0", morphology=morphology, gymnasium_wrappers=(PartSpec(f"{__name__}:BreaksOnce"),))
    env.start(0)
    assert env.step(np.zeros((1, 8)), np.array([0])).faults
    env.start(1)
    assert len(simulators) == 2
    simulator, robot = simulators[1]._p, simulators[1].robot
    (number,) = robot.objects
    lengths = {shape[1]: shape[3][0] for shape in simulator.getVisualShapeData(number)}
    links = {simulator.getJointInfo(number, k)[12].decode(): k for k in range(simulator.getNumJoints(number))}
    feet = {name: lengths[links[name]] for name in robot.foot_list}
    assert feet == pytest.approx({name: hypot(0.1, 0.1) * (1 if name == short else 4) for name in robot.foot_list})
    env.close()


@pytest.mark.parametrize("morphology", ["none", "left", "right", "mine"])
def test_envpools_ant_is_gymnasiums_in_every_morphology(morphology, simulators, tmp_path):
    if morphology == "mine":
        morphology = write_morphology(tmp_path, "Ant-v5", ("0.0 0.0 0.0 -0.4 0.4 0.0", "0.0 0.0 0.0 -0.2 0.2 0.0"))
    pool, single = make_ant("Ant-v5", "envpool", morphology), make_ant("Ant-v5", morphology=morphology)
    (first, *observations), rewards = play(pool, 2)
    single.start(0)
    simulators[0].set_state(np.concatenate([[0, 0], first[0, :13]]), first[0, 13:27])
    rng = np.random.default_rng(0)
    for observation, reward in zip(observations, rewards, strict=True):
        step = single.step(rng.uniform(-0.3, 0.3, (1, 8)), np.array([0]))
        np.testing.assert_allclose(observation, step.observations, atol=1e-4)
        assert reward == pytest.approx(step.rewards, abs=1e-5)
    if morphology != "none":
        (start, *others), _ = play(make_ant("Ant-v5", "envpool"), 2)
        np.testing.assert_array_equal(first[:, :27], start[:, :27])
        assert np.abs(others[-1] - observations[-1]).max() > 0.1


@pytest.mark.parametrize("backend", ["envpool", "gymnasium"])
def test_a_users_copy_of_the_packages_file_is_the_intact_morphology(backend, tmp_path):
    mine = write_morphology(tmp_path, "Ant-v5")
    for found, expected in zip(
        play(make_ant("Ant-v5", backend, mine), 30), play(make_ant("Ant-v5", backend), 30), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_a_pool_that_is_built_again_has_the_same_morphology():
    pool = make_ant("Ant-v5", "envpool", "right", seeds=(3, 4))
    expected = play(pool, 20)
    play(pool, 5, episode=2)
    for found, before in zip(play(pool, 20), expected, strict=True):
        np.testing.assert_array_equal(found, before)


@pytest.mark.parametrize("environment", ANTS)
def test_morphologies_start_alike_and_then_differ(environment):
    trajectories = [
        play(make_ant(environment, morphology=morphology), 20)[0][:, 0, :27] for morphology in ("none", "left", "right")
    ]
    joints = slice(13, 27) if environment == "Ant-v5" else slice(8, 24)
    for first, second in ((0, 1), (0, 2), (1, 2)):
        one, other = trajectories[first], trajectories[second]
        np.testing.assert_array_equal(one[0, joints], other[0, joints])
        assert np.abs(one[-1] - other[-1]).max() > 0.05


@pytest.mark.parametrize("environment", ANTS)
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            [('name="hip_2"', 'name="hip_9"'), ('joint="hip_2"', 'joint="hip_9"')],
            r"other joints .*number \d is hip_9 .*, not hip_2",
        ),
        (
            [('axis="1 1 0" name="ankle_2"', 'axis="1 0 0" name="ankle_2"')],
            r"ankle_2 \(hinge, axis 1 0 0\), not ankle_2",
        ),
        ([('type="hinge"', 'type="slide"')], r"other joints .*is hip_1 \(slide, axis 0 0 1\), not hip_1 \(hinge"),
        ([('joint="hip_4"', 'joint="hip_1"')], r"other actuators .*number 1 is"),
        ([("</actuator>", '<motor joint="hip_1"/></actuator>')], "other actuators .*number 9 is .*, not absent"),
        (
            [('<body name="aux_1"', '<body name="x"><geom type="sphere" size="0.1"/></body><body name="aux_1"')],
            "other parts",
        ),
        ([("<worldbody>", "<!-- --><worldbody>&x;")], "cannot read .*undefined entity"),
        ([("<mujoco", '<!DOCTYPE m [<!ENTITY x "xxxxxxxx">]><mujoco')], "declares a DOCTYPE, m, which is not allowed"),
        ([("<mujoco", f"<!--{'x' * 2**20}--><mujoco")], "more than 1048576 bytes"),
        ([("</mujoco>", "")], "cannot read .*no element found"),
    ],
)
def test_a_morphology_of_another_species_is_refused(environment, changes, reason, tmp_path):
    path = write_morphology(tmp_path, environment, *changes)
    with pytest.raises(ValueError, match=reason) as refusal, provide_morphology_file(environment, path):
        pass
    assert path in str(refusal.value)


@pytest.mark.parametrize("environment", ANTS)
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (('type="sphere"', 'type="cube"'), "cube"),
        (('size="0.25"', 'size="abc"'), "size"),
        (
            ('axis="-1 1 0" name="ankle_1"', 'axis="0 0 0" name="ankle_1"'),
            "(ankle_1 has an axis of zeros|axis too small)",
        ),
    ],
)
def test_what_the_simulator_cannot_load_is_refused(environment, change, reason, tmp_path, recwarn):
    path = write_morphology(tmp_path, environment, change)
    with pytest.raises(ValueError, match=rf"mine.xml is not a morphology that the simulator can load: .*{reason}"):
        make_ant(environment, morphology=path)
    assert not [warning for warning in recwarn if warning.category is RuntimeWarning]


@pytest.mark.parametrize("backend", ["envpool", "gymnasium"])
def test_other_refusals(backend, tmp_path):
    with pytest.raises(
        ValueError, match=r"no morphology and no file 'lefd', did you mean 'left'\? known: none, left, right, or"
    ):
        make_ant("Ant-v5", backend, "lefd").start(0)
    with pytest.raises(ValueError, match="no morphology and no file"):
        make_ant("Ant-v5", backend, str(tmp_path)).start(0)
    with pytest.raises(
        ValueError,
        match="HalfCheetah-v5 has only the morphology 'none', got 'left'; AntBulletEnv-v0 and Ant-v5 have others",
    ):
        make_ant("HalfCheetah-v5", backend, "left").start(0)


def test_the_morphology_is_set_in_one_place():
    with pytest.raises(ValueError, match="morphologies has 'left' and env_kwargs has an xml_file"):
        make_ant("Ant-v5", morphology="left", env_kwargs={"xml_file": "ant.xml"})


def test_a_package_whose_file_has_no_such_capsule_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(
        type(SPECIES["Ant-v5"]),
        "installed",
        Path(write_morphology(tmp_path, "Ant-v5", ('name="left_ankle_geom"', 'name="ankle"'))),
    )
    with pytest.raises(ValueError, match="has no capsule 'left_ankle_geom'"), provide_morphology_file("Ant-v5", "left"):
        pass
