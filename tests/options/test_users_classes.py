"""Options of a user's own classes are flags and keys of files, as ours are, wherever they come from."""

import re

import pytest
import yaml

from hebbes.options.command_line import parse_config
from hebbes.training.prepare import prepare
from hebbes.training.run_folder import choose_folder
from tests.options.users_classes import Louder, Plain, Scaled
from tests.training.scripted_runs import make_resumed_config, make_scripted_config, read_outcome, resume, train

MINE = "tests.options.users_classes"
CLASSES = {"strategy": f"{MINE}:Search", "policy": f"{MINE}:Scaled", "loggers": (f"{MINE}:Diary",)}
WRAPPERS = (f"{MINE}:Louder", f"{MINE}:Plain")
OWN = {"greed": 0.25, "gain": 3.0, "volume": 1.5, "steps": [2, 3], "word": "told", "times": 2}
"""An option of each class, and values other than the defaults."""


def parse(*arguments):
    return parse_config("static", ["--environment", "CartPole-v1", "--preset", "none", *arguments], "")


def parse_file(tmp_path, options):
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(options))
    return parse("--config", str(tmp_path / "mine.yaml"))


def get_refusal(*arguments):
    with pytest.raises(ValueError) as refused:
        parse(*arguments)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def make_flags():
    flags = ["--strategy", CLASSES["strategy"], "--policy", CLASSES["policy"], "--loggers", *CLASSES["loggers"]]
    flags += ["--wrappers", *WRAPPERS]
    for name, value in OWN.items():
        flags += [f"--{name}", *map(str, value if isinstance(value, list) else [value])]
    return flags


def check_all(config):
    assert config.settings.greed == 0.25
    assert config.policy_options["gain"] == 3.0
    assert [(each.name, dict(each.kwargs)) for each in config.list_named("wrapper")] == [
        (f"{MINE}:Louder", {"volume": 1.5, "steps": [2, 3]}),
        (f"{MINE}:Plain", {}),
    ]
    (logger,) = config.list_loggers()
    assert (logger.name, dict(logger.kwargs)) == (f"{MINE}:Diary", {"word": "told", "times": 2})


def test_they_are_flags():
    check_all(parse(*make_flags()))


def test_they_are_flags_with_their_owners_too():
    owners = {"greed": "Search", "gain": "Scaled", "volume": "Louder", "word": "Diary"}
    flags = [f"--{owners[flag[2:]]}.{flag[2:]}" if flag[2:] in owners else flag for flag in make_flags()]
    assert flags != make_flags()
    check_all(parse(*flags))


def test_they_are_keys_of_files_and_arguments_in_lists(tmp_path):
    check_all(parse_file(tmp_path, {**CLASSES, "loggers": list(CLASSES["loggers"]), "wrappers": list(WRAPPERS), **OWN}))
    louder = {f"{MINE}:Louder": {"volume": 1.5, "steps": [2, 3]}}
    listed = {"wrappers": [louder, f"{MINE}:Plain"], "loggers": [{f"{MINE}:Diary": {"word": "told", "times": 2}}]}
    named = {"strategy": CLASSES["strategy"], "policy": CLASSES["policy"], "greed": 0.25, "Scaled.gain": 3}
    check_all(parse_file(tmp_path, {**named, **listed}))


def test_a_later_flag_changes_one_argument_of_a_list(tmp_path):
    text = f"{MINE}:Louder: {{volume: 1.5, steps: [2, 3]}}"
    (spec,) = parse("--wrappers", text, "--volume", "4").list_named("wrapper")
    assert spec.kwargs == {"volume": 4.0, "steps": [2, 3]}
    listed = [{f"{MINE}:Louder": {"volume": 1.5, "steps": [2]}}]
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"wrappers": listed}))
    (spec,) = parse("--config", str(tmp_path / "mine.yaml"), "--Louder.volume", "4").list_named("wrapper")
    assert spec.kwargs == {"volume": 4.0, "steps": [2]}


def test_a_wrapper_without_options_has_arguments_in_the_list_alone():
    (spec,) = parse("--wrappers", f"{MINE}:Plain: {{level: 3}}").list_named("wrapper")
    assert spec.kwargs == {"level": 3}
    assert get_refusal("--wrappers", f"{MINE}:Plain", "--level", "3") == "unknown option --level"


def test_a_wrapper_listed_twice_has_its_own_arguments_each_also_after_a_round(tmp_path):
    entries = [f"{MINE}:Louder", {f"{MINE}:Louder": {"volume": 3.0}}]
    config = parse_file(tmp_path, {"wrappers": entries})
    for each in (config, parse_file(tmp_path, config.as_options())):
        first, second = each.list_named("wrapper")
        assert (first.kwargs.get("volume", 1.0), second.kwargs["volume"]) == (1.0, 3.0)


def test_two_classes_of_one_name_have_arguments_in_the_list_alone(tmp_path, monkeypatch):
    (tmp_path / "others.py").write_text(f"from {MINE} import Louder as Base\nclass Louder(Base):\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    listed = [{f"{MINE}:Louder": {"volume": 2.0}}, {"others:Louder": {"volume": 3.0}}]
    config = parse_file(tmp_path, {"wrappers": listed})
    assert [spec.kwargs for spec in config.list_named("wrapper")] == [{"volume": 2.0}, {"volume": 3.0}]
    assert get_refusal("--wrappers", f"{MINE}:Louder", "others:Louder", "--volume", "3") == "unknown option --volume"


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("--strategy {mine}:Search --greed 2", "greed must be in [0, 1], got 2.0"),
        ("--policy {mine}:Scaled --gain -3", "gain must be a finite number > 0, got -3.0"),
        ("--policy {mine}:Scaled --gain x", "gain must be a number, got 'x'"),
        ("--wrappers {mine}:Louder --volume 0", "volume must be a finite number > 0, got 0.0"),
        ("--wrappers {mine}:Louder --Louder.volume 0", "volume must be a finite number > 0, got 0.0"),
        ("--wrappers {mine}:Louder --steps 1 0", "steps must be >= 1, got [1, 0]"),
        ("--loggers {mine}:Diary --times -1", "times must be >= 0, got -1"),
        (
            "--policy {mine}:Scaled --hidden_sizes 3",
            "hidden_sizes is not an option of policy Scaled; it belongs to",
        ),
        (
            "--strategy {mine}:Search --elite_share .1",
            "elite_share is not an option of strategy Search; it belongs",
        ),
        ("--gain 3", "unknown option --gain"),
        ("--strategy {mine}:Searc", f"strategy '{MINE}:Searc': module '{MINE}' has no class 'Searc'"),
        ("--loggers {mine}:Louder", f"logger '{MINE}:Louder' is not a logger: it lacks write"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_option(typed, line):
    assert get_refusal(*typed.format(mine=MINE).split()).startswith(line)


def test_a_mistake_in_an_argument_of_a_list_names_it():
    for text, line in [
        ("{volume: -1}", "volume must be a finite number > 0, got -1.0"),
        ("{steps: [x]}", "steps must be a whole number, got 'x'"),
    ]:
        assert get_refusal("--wrappers", f"{MINE}:Louder: {text}").startswith(line)


def test_a_name_of_two_chosen_parts_is_refused_with_both_full_names(tmp_path):
    both = ["--strategy", CLASSES["strategy"], "--loggers", f"{MINE}:Greedy"]
    expected = "greed is an option of strategy Search and logger Greedy: give --Search.greed or --Greedy.greed"
    assert get_refusal(*both, "--greed", "0.3") == expected
    config = parse(*both, "--Search.greed", "0.3", "--Greedy.greed", "4")
    assert config.settings.greed == 0.3
    (logger,) = config.list_loggers()
    assert logger.kwargs["greed"] == 4
    options = config.as_options()
    assert (options["Search.greed"], options["Greedy.greed"]) == (0.3, 4) and "greed" not in options
    assert parse_file(tmp_path, options).as_options() == options
    with pytest.raises(ValueError, match=r"mine.yaml: greed is an option of strategy Search and logger Greedy: give"):
        parse_file(tmp_path, {"strategy": CLASSES["strategy"], "loggers": [f"{MINE}:Greedy"], "greed": 0.3})


@pytest.mark.parametrize(
    ("kind", "name", "other"),
    [
        ("strategy", "Seeded", "run.seed"),
        ("policy", "Threaded", "engine.threads"),
        ("wrappers", "Capped", "training.max_episode_steps"),
        ("loggers", "Quiet", "run.quiet"),
        ("loggers", "Helpful", "help"),
    ],
)
def test_the_name_of_an_option_of_every_run_is_refused_with_its_owner(kind, name, other):
    expected = (
        f"{kind.removesuffix('s')} {name}: its option {other.rpartition('.')[2]} needs another name, because every run "
        f"has an option of this name, --{other}"
    )
    assert get_refusal(f"--{kind}", f"{MINE}:{name}") == expected


def test_the_default_name_of_a_run_has_no_colon():
    assert choose_folder(parse("--strategy", CLASSES["strategy"])).name.startswith(
        CLASSES["strategy"].replace(":", ".")
    )


def test_an_option_that_files_would_lose_is_refused():
    expected = "logger Scored: its option measured needs another name, because files of options keep a score under it"
    assert get_refusal("--loggers", f"{MINE}:Scored") == expected


def test_the_full_name_of_an_option_of_ours_always_works(tmp_path):
    assert parse("--openai_es.sigma", "0.3").settings.sigma == 0.3
    assert parse_file(tmp_path, {"openai_es.sigma": 0.3}).settings.sigma == 0.3
    (tmp_path / "mine.yaml").write_text("sigma: 0.2\n")
    assert parse("--config", str(tmp_path / "mine.yaml"), "--openai_es.sigma", "0.3").settings.sigma == 0.3
    line = "openai_es.sigma is not an option of strategy snes; it belongs to openai_es"
    assert get_refusal("--strategy", "snes", "--openai_es.sigma", "0.3") == line
    with pytest.raises(ValueError, match=r"mine.yaml: sigma is given twice, as openai_es.sigma too$"):
        parse_file(tmp_path, {"sigma": 0.2, "openai_es.sigma": 0.3})


@pytest.fixture
def options(tmp_path):
    own = {**OWN, "steps": tuple(OWN["steps"])}
    return {**CLASSES, "wrappers": WRAPPERS, **own, "population_size": 8, "optimizer": "adam"}


def test_they_are_written_to_the_config_and_survive_a_resume(options, tmp_path):
    whole = train(make_scripted_config(tmp_path / "whole", **options))
    folder = train(make_scripted_config(tmp_path, **options, generations=4))
    written = yaml.safe_load((folder / "config.yaml").read_text())
    assert {name.removeprefix("Diary."): value for name, value in written.items()}.items() >= OWN.items()
    check_all(make_resumed_config(folder))
    with pytest.raises(ValueError, match=re.escape("gain cannot change when a run is resumed: it is 3.0 in")):
        make_resumed_config(folder, gain=4)
    assert make_resumed_config(folder, gain=3).policy_options["gain"] == 3.0
    assert read_outcome(resume(folder)) == read_outcome(whole)
    assert (folder / "diary.txt").read_text() == "toldtold\n" * 9


@pytest.mark.slow
def test_a_logger_may_be_added_and_changed_in_a_resume(tmp_path):
    folder = train(make_scripted_config(tmp_path, generations=2))
    resume(folder, generations=4, loggers=CLASSES["loggers"], word="new")
    assert (folder / "diary.txt").read_text() == "new\n" * 2
    resume(folder, generations=5, loggers=({f"{MINE}:Diary": {"word": "newer"}},))
    assert (folder / "diary.txt").read_text() == "new\nnew\nnewer\n"


def test_the_classes_get_their_options(tmp_path):
    from hebbes.training.prepare import prepare

    (run,) = prepare(make_scripted_config(tmp_path, policy=f"{MINE}:Scaled", gain=3, wrappers=WRAPPERS, volume=1.5))
    assert isinstance(run.task.agent.policy, Scaled) and run.task.agent.policy.gain == 3
    assert [each.name for each in run.task.environment.wrappers][-2:] == [
        f"{each.__module__}:{each.__name__}" for each in (Louder, Plain)
    ]


@pytest.mark.parametrize(("kind", "needed"), [("strategy", True), ("policy", True), ("loggers", False)])
def test_workers_may_need_all_but_the_loggers(kind, needed, tmp_path):
    (run,) = prepare(make_scripted_config(tmp_path, **{kind: CLASSES[kind]}))
    assert (MINE in run.task.modules) == needed
    run.engine.close()


def test_a_logger_has_no_part_in_evaluating_members():
    logged, searched = parse("--loggers", *CLASSES["loggers"]), parse("--strategy", CLASSES["strategy"])
    assert (logged.trusted_modules, logged.modules_of_members) == ([MINE], ())
    assert (searched.trusted_modules, searched.modules_of_members) == ([MINE], (MINE,))
