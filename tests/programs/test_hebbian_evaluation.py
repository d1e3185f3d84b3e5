"""Evaluation of plastic networks: variants and morphologies, what is refused, what is reported and drawn."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.trial import find_spaces
from hebbes.evaluation.entries import Entry, EvaluationResult
from hebbes.evaluation.play import play
from hebbes.evaluation.weight_recording import record_weights
from hebbes.files.policy_file import SavedPolicy, save_policy
from hebbes.options.evaluation import EvaluateConfig
from hebbes.options.hebbian_evaluation import HebbianEvaluateConfig
from hebbes.policies.hebbian import Hebbian, compute_synaptic_weights
from hebbes.policies.linear import Linear
from hebbes.programs.evaluation_entries import load_entries
from hebbes.programs.evaluation_report import format_report
from hebbes.reporting.evaluation_plots import write_plots

SPEC = EnvironmentSpec(
    "Scripted-v0", "gymnasium", {"rewards": [0.0], "truncate_at": 6, "action_weight": 1.0}, ("tests.scripted",)
)
PLASTIC = Hebbian((2,), 2, hidden_sizes=(6, 4))


def make_plastic(policy=PLASTIC):
    weights = policy.initial_params(np.random.default_rng(0))
    return SavedPolicy(policy, "hebbian", weights, {}, "identity", SPEC, {})


@pytest.fixture
def files(tmp_path):
    """A plastic policy, one whose initial weights evolve too, and a static one."""
    paths = {name: str(tmp_path / f"{name}.dat") for name in ("plastic", "coevolved", "static")}
    save_policy(tmp_path / "plastic.dat", make_plastic())
    save_policy(tmp_path / "coevolved.dat", make_plastic(replace(PLASTIC, init_weights="coevolve")))
    save_policy(
        tmp_path / "static.dat",
        replace(make_plastic(), policy=Linear((2,), 2), policy_name="linear", weights=np.ones(4, np.float32)),
    )
    return paths


def make_config(*paths, owner=HebbianEvaluateConfig, **options):
    return owner(path_weights=paths, imports=("tests.scripted",), **options)


def play_entry(entry, episodes=4):
    return play(entry.saved, entry.environment, episodes=episodes, seed=0, threads=1).fitness


def test_every_value_of_an_intervention_is_a_variant_by_itself_on_the_same_start_states(files):
    options = {"freeze_at": (0, 50), "reset_weights_at": (3,), "lesion": (0.25, 0.2500001, 1.0)}
    entries = load_entries(make_config(files["plastic"], **options, init_weights=("zeros",)))
    returns = {entry.variant: play_entry(entry) for entry in entries}
    assert list(returns) == [
        "",
        "freeze_at 0",
        "freeze_at 50",
        "reset_weights_at 3",
        "lesion 0.25 (3 of 10 neurons)",  # 1.5 and 1, halves to even
        "lesion 0.2500001 (3 of 10 neurons)",
        "lesion 1 (10 of 10 neurons)",
        "init_weights zeros",
    ]
    assert np.array_equal(returns[""], play(make_plastic(), SPEC, episodes=4, seed=0, threads=1).fitness)
    assert np.array_equal(returns["freeze_at 50"], returns[""])  # the episode is over before
    assert (returns["lesion 1 (10 of 10 neurons)"] == 0).all()  # no output, no reward
    for changed in ("freeze_at 0", "reset_weights_at 3", "lesion 0.25 (3 of 10 neurons)", "init_weights zeros"):
        assert not np.array_equal(returns[changed], returns[""])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"freeze_at": (-1,)}, r"freeze_at must be >= 0, got \[-1\]"),
        ({"reset_weights_at": (4, -2)}, r"reset_weights_at must be >= 0, got \[4, -2\]"),
        ({"lesion": (1.5,)}, r"lesion must be in \[0, 1\], got \[1.5\]"),
        ({"lesion": (float("nan"),)}, r"lesion must be in \[0, 1\], got \[nan\]"),
        ({"freeze_at": (3, 3)}, "freeze_at names a value twice, got 3 3"),
        ({"episodes": 10**9}, r"episodes must be in \[1, 1000000\], got 1000000000"),
        ({"plot_layers": (1,)}, "plot_layers needs plots"),
        ({"plots": ""}, "plots must name a folder"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_config("a.dat", **options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("static", {"freeze_at": (3,)}, "freeze_at is for hebbian policies, and there is none in .*static.dat$"),
        ("static", {"plots": "a"}, "plots is for hebbian policies, and there is none in .*static.dat$"),
        ("coevolved", {"init_weights": ("uni",)}, ".*coevolved.dat: init_weights cannot change from coevolve to uni"),
        ("plastic", {"lesion": (0.05,)}, ".*plastic.dat: lesion: got 0.05, which silences no neuron"),
        ("plastic", {"plots": __file__}, "plots .*evaluation.py: File exists"),
        ("plastic", {"plots": f"{__file__}/a/b"}, "plots .*evaluation.py/a/b: Not a directory"),
        ("plastic", {"plots": "a" * 300}, "plots a*: File name too long"),
        ("plastic", {"plots": "a", "plot_layers": (4,)}, "plot_layers must be in 1 to 3 for .*plastic.dat, got .4."),
    ],
)
def test_options_that_are_not_for_a_file_are_refused(files, name, options, message):
    with pytest.raises(ValueError, match=message):
        load_entries(make_config(files[name], **options))


def test_a_folder_for_plots_that_nothing_can_be_written_to_is_refused(files, tmp_path, monkeypatch):
    asked = make_config(files["plastic"], plots=str(tmp_path / "plots"))
    load_entries(asked)
    assert (tmp_path / "plots").is_dir()
    monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path / "plots")  # root may write anywhere
    with pytest.raises(ValueError, match=r"plots .*/plots: nothing can be written to this folder"):
        load_entries(asked)


@pytest.mark.parametrize("owner", [EvaluateConfig, HebbianEvaluateConfig])
def test_a_policy_plays_on_the_given_morphologies_or_those_of_its_training(owner, tmp_path, monkeypatch):
    found = find_spaces(SPEC)
    monkeypatch.setattr("hebbes.programs.evaluation_entries.find_spaces", lambda _: found)  # it has one morphology
    path = str(tmp_path / "a.dat")
    save_policy(tmp_path / "a.dat", replace(make_plastic(), environment=replace(SPEC, morphologies=("none", "right"))))
    for damage, expected in [
        ((), [("none", True), ("right", True)]),
        (("left",), [("left", False)]),
        (("all", "my.xml", "left"), [("none", True), ("left", False), ("right", True), ("my.xml", False)]),
    ]:
        entries = load_entries(make_config(path, owner=owner, damage=damage))
        assert [(entry.morphology, entry.seen) for entry in entries] == expected
        assert [entry.environment.morphologies for entry in entries] == [(morphology,) for morphology, _ in expected]


def make_result(path, morphology, returns, variant="", trained=("none",)):
    bare, options = replace(SPEC, env_kwargs={}, morphologies=trained), {"morphologies": list(trained)}
    saved = replace(make_plastic(), environment=bare, provenance={"options": options})
    environment = replace(saved.environment, morphologies=(morphology,))
    return EvaluationResult(Entry(path, saved, environment, variant), np.array([returns], np.float64), {})


def test_report_of_variants_and_morphologies():
    found = [
        make_result("a.dat", "none", [4, 4], trained=("none", "right")),
        make_result("a.dat", "none", [1, 1], "freeze_at 0", ("none", "right")),
        make_result("a.dat", "right", [3, 3], trained=("none", "right")),
        make_result("b.dat", "none", [2, 2]),
        make_result("b.dat", "right", [9, 9]),
        make_result("b.dat", "left", [5, np.nan]),
    ]
    text = format_report(make_config("a.dat", "b.dat", episodes=2), found)
    first, second, third, morphologies = [part.splitlines() for part in text.split("\n\n")]
    assert [line.split()[0] for line in first[4:7]] == ["1", "1", "2"]
    assert first[5].split()[:5] == ["1", "freeze_at", "0", "1.00", "[1.00,"]
    both, seen = "hebbian morphologies=none right", "hebbian morphologies=none"
    assert [line.partition("  ")[0] for line in (first[7], first[9])] == [f"{both}, 1 run", f"{seen}, 1 run"]
    (pair,) = (line for line in first if line.startswith(f"{both} over {seen}, by episode"))
    assert pair.endswith("  1.00 [1.00, 1.00]  2.00 [2.00, 2.00]")
    assert first[-2:] == [
        "versus the intact policy  probability of improvement       mean difference",
        "1 freeze_at 0                      0.00 [0.00, 0.00]  -3.00 [-3.00, -3.00]",
    ]
    assert second[0].startswith("Scripted-v0 morphology right on gymnasium")
    assert any("over" in line and line.endswith("0.00 [0.00, 0.00]  -6.00 [-6.00, -6.00]") for line in second)
    assert third[1] == "2  b.dat"
    assert morphologies == [
        "Scripted-v0, mean return by morphology; * seen in training",
        "                             none               right  left",
        "1              4.00 [4.00, 4.00]*  3.00 [3.00, 3.00]*    -",
        "1 freeze_at 0  1.00 [1.00, 1.00]*                  -     -",
        "2              2.00 [2.00, 2.00]*  9.00 [9.00, 9.00]     -",
    ]


def test_json_of_variants_and_morphologies():
    found = [
        make_result("a.dat", "right", [4, 4]),
        make_result("a.dat", "right", [1, 3], "lesion 0.5 (5 of 10 neurons)"),
    ]
    plain = json.loads(format_report(make_config("a.dat", json=True, episodes=2), found))
    keys = ("path", "variant", "morphology", "morphology_in_training", "mean")
    assert [tuple(file[key] for key in keys) for file in plain["files"]] == [
        ("a.dat", "", "right", False, 4),
        ("a.dat", "lesion 0.5 (5 of 10 neurons)", "right", False, 2),
    ]
    (compared,) = plain["interventions"]
    assert (compared["path"], compared["variant"]) == ("a.dat", "lesion 0.5 (5 of 10 neurons)")
    assert (compared["probability_of_improvement"], compared["mean_difference"]) == (0, -2)
    assert plain["comparisons"] == []


def test_a_recorded_episode_is_the_one_that_is_played():
    saved = make_plastic()
    (recording,) = record_weights(saved, SPEC, episodes=1, seed=0, max_episode_steps=4)
    assert [each.shape for each in recording.trajectories] == [(4, 12), (4, 24), (4, 8)]
    assert recording.changes.shape == (3, 3) and recording.updated_at.tolist() == [1, 2, 3]
    acted = []

    class Observed(Hebbian):
        def act(self, weights, observations, previous_rewards, state, buffers):
            outputs = super().act(weights, observations, previous_rewards, state, buffers)
            acted.append(compute_synaptic_weights(state))
            return outputs

    observed = replace(saved, policy=Observed((2,), 2, hidden_sizes=(6, 4)))
    play(observed, SPEC, episodes=1, seed=0, threads=1, max_episode_steps=4)
    for layer in range(3):
        weights = np.array([each[layer][0].ravel() for each in acted])
        assert np.array_equal(recording.trajectories[layer], weights)
        assert recording.changes[:, layer] == pytest.approx(np.abs(np.diff(weights, axis=0)).mean(axis=1))


def make_results_on_morphologies(entries, *lost):
    """Results of every entry on two morphologies, with a return of 1 on none and 2 on left; `lost` names lost files."""
    return [
        EvaluationResult(
            replace(entry, environment=replace(entry.environment, morphologies=(morphology,))),
            np.full((1, 2), float(number)),
            {},
            lost=entry.path in lost,
        )
        for entry in entries
        for number, morphology in enumerate(("none", "left"), 1)
    ]


def write_all_plots(options, evaluated):
    return write_plots(
        evaluated,
        Path(options.plots),
        layers=options.plot_layers,
        num_episodes=options.episodes,
        seed=options.seed,
        max_episode_steps=options.max_episode_steps,
    )


def test_a_static_file_plays_with_the_variants_of_a_plastic_one_and_is_in_the_plot(files, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr("hebbes.reporting.evaluation_plots.make_returns_figure", lambda *what: drawn.append(what))
    monkeypatch.setattr("hebbes.reporting.evaluation_plots.write_figure", lambda figure, png: None)
    options = make_config(files["static"], files["plastic"], freeze_at=(3,), plots=str(tmp_path), episodes=2)
    entries = load_entries(options)
    played_by = [(entry.path, entry.variant) for entry in entries]
    assert played_by == [(files["static"], ""), (files["plastic"], ""), (files["plastic"], "freeze_at 3")]
    assert [path.name for path in write_all_plots(options, make_results_on_morphologies(entries))] == [
        "2_plastic_weights.png",
        "2_plastic_coefficients.png",
        "return_by_morphology.png",
    ]
    ((title, morphologies, rows),) = drawn
    assert title == "Scripted-v0"
    assert morphologies == ["none", "left"]
    names = [f"1 {files['static']}", f"2 {files['plastic']}", f"2 {files['plastic']} freeze_at 3"]
    assert list(rows) == names
    for bars in rows.values():
        assert {morphology: (mean.value, is_seen) for morphology, (mean, is_seen) in bars.items()} == {
            "none": (1, True),
            "left": (2, False),
        }


def test_plots_are_written_for_every_file_and_for_morphologies(files, tmp_path):
    folder = tmp_path / "plots" / "new"
    options = make_config(files["plastic"], files["coevolved"], plots=str(folder), plot_layers=(1, 3), episodes=2)
    written = list(write_all_plots(options, make_results_on_morphologies(load_entries(options))))
    assert [path.name for path in written] == [
        *("1_plastic_weights.png", "1_plastic_coefficients.png"),
        *("2_coevolved_weights.png", "2_coevolved_coefficients.png", "return_by_morphology.png"),
    ]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)


@pytest.mark.slow
def test_a_file_that_was_lost_or_cannot_be_drawn_costs_no_other_plot(files, tmp_path, monkeypatch):
    paths = files["plastic"], files["coevolved"]
    options = make_config(*paths, plots=str(tmp_path), episodes=2)
    entries = load_entries(options)
    written = [path.name for path in write_all_plots(options, make_results_on_morphologies(entries, files["plastic"]))]
    assert written == ["2_coevolved_weights.png", "2_coevolved_coefficients.png", "return_by_morphology.png"]

    def record_none(saved, *rest, **named):
        return [] if saved.policy == PLASTIC else record_weights(saved, *rest, **named)

    monkeypatch.setattr("hebbes.reporting.evaluation_plots.record_weights", record_none)
    plots, found = write_all_plots(options, make_results_on_morphologies(entries)), []
    with pytest.raises(ValueError, match=r"^\S*plastic.dat: no episode could begin$"):
        found.extend(path.name for path in plots)
    assert found == ["2_coevolved_weights.png", "2_coevolved_coefficients.png", "return_by_morphology.png"]
    found.clear()
    monkeypatch.undo()
    (tmp_path / "1_plastic_weights.png").mkdir()
    plots = write_all_plots(options, make_results_on_morphologies(entries))
    with pytest.raises(ValueError, match=r"1_plastic_weights\.png"):
        found.extend(path.name for path in plots)
    assert found == ["2_coevolved_weights.png", "2_coevolved_coefficients.png", "return_by_morphology.png"]
