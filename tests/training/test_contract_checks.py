"""A user's class that breaks its contract is named in one line, before anything is written."""

import re
from pathlib import Path

import pytest
import unfit_classes

from hebbes.contracts.engine import EngineError
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.files.checkpoint import load_newest_checkpoint
from hebbes.files.policy_file import SavedPolicy, read_policy_file, save_policy
from hebbes.options.evaluation import EvaluateConfig
from hebbes.programs.evaluation_entries import load_entries
from hebbes.training.advice import TrainingError
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from tests.shape_checks import unchecked
from tests.training.scripted_runs import SETTINGS, change, make_scripted_config, train

UNFIT = {
    "--strategy collections:OrderedDict": "is not a strategy: it lacks grows, mean, ask, tell, state_dict, "
    "load_state_dict (see hebbes/contracts/strategy.py)",
    "--strategy unfit_classes:NoSettings": "is not a strategy: it lacks Settings, a dataclass of its options",
    "--strategy unfit_classes:SettingWithoutHelp": "its setting population_size has no help text",
    "--strategy unfit_classes:SettingWithoutDefault": "its setting population_size has no default",
    "--strategy unfit_classes:LacksMethods": "is not a strategy: it lacks grows, mean, tell, state_dict, "
    "load_state_dict",
    "--strategy unfit_classes:ConstructorRaises": "cannot be used: RuntimeError: scripted",
    "--strategy unfit_classes:AsksNothing": "cannot be used: ask must return a population "
    "(hebbes/contracts/population.py), got None, which lacks __len__, weights",
    "--strategy unfit_classes:TellsAsBefore": "tell must take (population, results) (see "
    "hebbes/contracts/strategy.py), its parameters are (population, fitness, weighted_noise_sum)",
    "--strategy unfit_classes:ShortMean": "mean must be float32 of shape (4,), got float32 of shape (1,)",
    "--strategy unfit_classes:NoState": "state_dict must return plain NumPy arrays by name, got None",
    "--strategy unfit_classes:GrowsAnew --num_interactions 9": "the same first members when it is asked for more",
    "--policy unfit_classes:ReadsRows --sampler low_rank": "cannot be used: AttributeError: 'LowRankWeights' object",
    "--wrappers unfit_classes:SeesMoreInTraining": "what is training_only must not change shapes, types or "
    "actions, because evaluations leave it out: ",
    "--policy collections:OrderedDict": "is not a policy: it lacks observation_shape, num_outputs, layout, "
    "check_buffers, initial_params, initial_state, act (inherit from hebbes.policies.base.StaticPolicy, or see "
    "hebbes/contracts/policy.py)",
    "--policy unfit_classes:NoDataclass": "is not a policy: it is not a dataclass",
    "--policy unfit_classes:LacksAct": "is not a policy: it lacks act (inherit from ",
    "--policy unfit_classes:PolicyRaises": "cannot be used: RuntimeError: scripted",
    "--policy unfit_classes:NoLayout": "layout must be a hebbes.contracts.policy.Layout, got {'weight': (2, 2)}",
    "--policy unfit_classes:FloatLayout": "its layout must have whole numbers in shapes, got (2.0, 2) for 'weight'",
    "--policy unfit_classes:LayoutRaises": "AttributeError: 'LayoutRaises' object has no attribute 'misspelt'",
    "--policy unfit_classes:ShortStart": "initial_params must be float32 of shape (4,), got float32 of shape (3,)",
    "--policy unfit_classes:StateOfNobody": "plain tuples, lists and dicts, got float64 of shape (7,)",
    "--policy unfit_classes:NamedState": "plain tuples, lists and dicts, got a Named",
    "--policy unfit_classes:FewOutputs": "act must return floats of shape (3, 2) for 3 members, got float32 of shape "
    "(3, 1)",
    "--policy unfit_classes:ActsMasked": "act must return floats of shape (3, 2) for 3 members, got a MaskedArray",
    "--policy unfit_classes:ActRaises": "cannot be used: RuntimeError: scripted",
    "--wrappers collections:OrderedDict": "is not a wrapper: it lacks num_envs, observation_space, action_space, "
    "seeds, start, step, close (inherit from hebbes.wrappers.base.BatchWrapper, or see ",
    "--wrappers unfit_classes:WrapsNothing": "is not a wrapper: it lacks num_envs, observation_space, action_space",
    "--wrappers unfit_classes:WrapperRaises": "cannot be used: RuntimeError: scripted",
    "--wrappers unfit_classes:StartRaises": "cannot be used: RuntimeError: scripted",
    "--gymnasium_wrappers collections:OrderedDict": "is not a gymnasium.Wrapper",
    "--gymnasium_wrappers unfit_classes:GymnasiumWrapperRaises": "cannot be used: RuntimeError: scripted",
}
SCRIPTED = ["--environment", "Scripted-v0", "--import", "tests.scripted", "--policy", "linear", "--popsize", "4"]


@pytest.mark.parametrize(("typed", "expected"), UNFIT.items())
def test_an_unfit_class_is_one_line_that_names_its_option(typed, expected, tmp_path, refusal):
    flag, name, *others = typed.split()
    line = refusal("train_static.py", *SCRIPTED, "--folder", tmp_path, flag, name, *others)
    assert expected in line
    assert flag.removeprefix("--") in line and name in line
    assert not list(tmp_path.iterdir())


def test_the_line_says_where_in_the_users_module_it_was_raised(tmp_path):
    raised = Path(unfit_classes.__file__).read_text().splitlines().index("class ActRaises(Linear):") + 3
    with pytest.raises(ValueError, match=rf"scripted \(.*unfit_classes.py, line {raised}\)$"):
        prepare(make_scripted_config(tmp_path, policy="unfit_classes:ActRaises"))


@pytest.mark.parametrize("engine", ["in_process", "workers"])
def test_a_wrapper_that_raises_ends_the_run_in_one_line_with_its_last_generation_saved(engine, tmp_path):
    wrapper = {"unfit_classes:StepRaises": {"fail_at": 12}}  # in generation 3, whose episodes have five env steps
    (run,) = prepare(make_scripted_config(tmp_path, wrappers=(wrapper,), engine=engine, eval_every=100))
    with pytest.raises(EngineError) as stopped:
        execute(run)
    raised = (
        r"wrappers 'unfit_classes:StepRaises' cannot be used: scripted in two lines \(.*unfit_classes.py, line \d+\)"
    )
    assert re.fullmatch(raised, str(stopped.value))
    assert load_newest_checkpoint(run.folder / "checkpoint")[0].progress.units == 2


def test_a_wrapper_may_forward_what_it_has_not(tmp_path):
    train(make_scripted_config(tmp_path, wrappers=("unfit_classes:ByForwarding",), generations=1))


def test_a_users_strategy_is_tried_without_a_trace_in_the_run(tmp_path):
    config = make_scripted_config(tmp_path, generations=2)
    ours = read_policy_file(train(config) / "latest.dat", ["tests.scripted"])
    theirs = train(change(config, strategy="hebbes.strategies.openai_es:OpenAIES", **SETTINGS, run_name="again"))
    assert (read_policy_file(theirs / "latest.dat", ["tests.scripted"]).weights == ours.weights).all()


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("TellsNothing", "metrics must be a mapping of names to numbers, got None"),
        ("TellsText", "metrics must be numbers, got 'large' for 'sigma'"),
        ("TellsAnotherMetric", "a row must have the first row's columns; missing [], new ['another']"),
        ("TellRaises", "tell raised RuntimeError: scripted"),
        (
            "AsksNothingLater",
            "ask must return a population (hebbes/contracts/population.py), got a list, which lacks weights",
        ),
        ("TellsHugeNumber", "metrics must be numbers, got an int of 1329 bits for 'sigma'"),
        ("TellsComma", "metrics must have names without commas and line breaks, got 'a,b'"),
        ("TellsColumnOfOurs", "the metric 'generation' needs another name"),
        ("TellsColumnOfTheLoop", "the metric 'return_mean' needs another name"),
        ("MeanShrinks", "mean must be float32 of shape (4,), got float32 of shape (3,)"),
        ("MeanBecomesList", "mean must be float32 of shape (4,), got a list"),
        ("MeanRaises", "mean raised AttributeError"),
        ("StateOfNone", "state_dict must return plain NumPy arrays by name, got None for 'own'"),
        ("StateOfSet", "state_dict must return plain NumPy arrays by name, got a set for 'own'"),
        (
            "StateOfText",
            "array 'own' cannot be saved: it must be a plain array of numbers with at most 64 bits, got d",
        ),
        ("StateOfObjects", "array of numbers with at most 64 bits, got dtype object"),
        ("StateOfComplexNumbers", "at most 64 bits, got dtype complex128"),
        ("StateOfLongDoubles", "at most 64 bits, got dtype float128"),
        ("StateOfRecords", "at most 64 bits, got dtype [('a', '<f4')]"),
        ("StateOfMasked", "state_dict must return plain NumPy arrays by name, got a MaskedArray for 'own'"),
        ("StateOfManyArrays", "the state has too many arrays"),
        ("StateRaises", "state_dict raised ZeroDivisionError"),
        ("StateIsList", "state_dict must return plain NumPy arrays by name, got a list"),
    ],
)
def test_what_a_strategy_answers_wrongly_ends_the_run_with_its_last_generation_saved(strategy, expected, tmp_path):
    options = {"population_size": 4, "checkpoint_every": 100, "eval_every": 100}
    (run,) = prepare(make_scripted_config(tmp_path, strategy=f"unfit_classes:{strategy}", **options))
    with pytest.raises(TrainingError) as stopped:
        execute(run)
    first_line = str(stopped.value).partition("\n")[0]
    assert first_line.startswith(f"strategy 'unfit_classes:{strategy}': ") and expected in first_line
    assert load_newest_checkpoint(run.folder / "checkpoint")[0].progress.units == 2


@unchecked()
def test_a_file_with_an_unfit_policy_is_refused_by_its_name(tmp_path):
    fit = unfit_classes.ActRaises((2,), 2)
    spec = EnvironmentSpec("Scripted-v0", "gymnasium", {"truncate_at": 3}, ("tests.scripted",))
    weights = fit.initial_params(None)
    path = tmp_path / "a.dat"
    save_policy(path, SavedPolicy(fit, "unfit_classes:ActRaises", weights, {}, "identity", spec, {}))
    config = EvaluateConfig((str(path),), imports=("tests.scripted", "unfit_classes"))
    with pytest.raises(ValueError, match=r"a.dat: policy 'unfit_classes:ActRaises' cannot be used: RuntimeError: scri"):
        load_entries(config)
