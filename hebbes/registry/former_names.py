"""Names in files and command lines of earlier versions, and the current names of the same things.

Names are mapped as text, before anything is imported or looked up.
"""

from collections.abc import Collection, Mapping
from typing import Any

SHORT_OPTIONS = {
    "popsize": "population_size",
    "lr": "learning_rate",
    "decay": "learning_rate_decay",
}
"""Names that the sources' programs give to options -> ours. They are accepted without a notice."""

FORMER_OPTIONS = {
    "popsize_max": "population_size_max",
    "lr_schedule": "learning_rate_schedule",
    "lr_min": "learning_rate_min",
    "sigma_lr": "sigma_learning_rate",
    "shape_lr": "shape_learning_rate",
    "normalisation": "normalization",
    "bodies": "morphologies",
}
"""Earlier names of this program's own -> current ones. They are accepted with a line of notice."""

MISSING_OPTIONS = {"early_stop_counts_grace": True}
"""Options that checkpoints of earlier versions lack, and the values with which these runs behaved as they did."""

FORMER_COLUMNS = {
    "unperturbed_return": "mean_policy_return",
    "unperturbed_rank": "mean_policy_rank",
    "lr": "learning_rate",
}
"""Earlier columns of metrics.csv -> current ones."""

FORMER_PACKAGES = ("contracts", "policies", "wrappers", "strategies", "rollouts", "reporting", "training")
"""Packages in which the code lay before it became one package. Users' own modules may still import from them."""

FORMER_CLASSES = {
    "policies.cnn:Cnn": "hebbes.policies.cnn:CNN",
    "policies.conv_lstm:ConvLstm": "hebbes.policies.conv_lstm:ConvLSTM",
    "policies.gru:Gru": "hebbes.policies.gru:GRU",
    "policies.hebbian:Hebbian": "hebbes.policies.hebbian:Hebbian",
    "policies.linear:Linear": "hebbes.policies.linear:Linear",
    "policies.lstm:Lstm": "hebbes.policies.lstm:LSTM",
    "policies.mlp:Mlp": "hebbes.policies.mlp:MLP",
    "policies.small:Small": "hebbes.policies.small:Small",
    "strategies.ars:Ars": "hebbes.strategies.ars:ARS",
    "strategies.cem:Cem": "hebbes.strategies.cem:CEM",
    "strategies.cma_es:CmaEs": "hebbes.strategies.cma_es:CMAES",
    "strategies.cr_fm_nes:CrFmNes": "hebbes.strategies.cr_fm_nes:CRFMNES",
    "strategies.ga:Ga": "hebbes.strategies.ga:GA",
    "strategies.one_plus_one:OnePlusOne": "hebbes.strategies.one_plus_one:OnePlusOne",
    "strategies.openai_es:OpenaiEs": "hebbes.strategies.openai_es:OpenAIES",
    "strategies.pgpe:Pgpe": "hebbes.strategies.pgpe:PGPE",
    "strategies.sep_cma_es:SepCmaEs": "hebbes.strategies.sep_cma_es:SepCMAES",
    "strategies.snes:Snes": "hebbes.strategies.snes:SNES",
    "strategies.xnes:Xnes": "hebbes.strategies.xnes:XNES",
    "wrappers.atari_42:Atari42": "hebbes.wrappers.atari_42:Atari42",
    "wrappers.bullet_distance:BulletDistance": "hebbes.wrappers.bullet_distance:BulletDistance",
    "wrappers.bullet_grace:BulletGrace": "hebbes.wrappers.bullet_grace:BulletGrace",
    "wrappers.channels_last:ChannelsLast": "hebbes.wrappers.channels_last:ChannelsLast",
    "wrappers.choose_action:ChooseAction": "hebbes.wrappers.choose_action:ChooseAction",
    "wrappers.clip_action:ClipAction": "hebbes.wrappers.clip_action:ClipAction",
    "wrappers.early_stop:EarlyStop": "hebbes.wrappers.early_stop:EarlyStop",
    "wrappers.fire_reset:FireReset": "hebbes.wrappers.fire_reset:FireReset",
    "wrappers.flatten_action:FlattenAction": "hebbes.wrappers.flatten_action:FlattenAction",
    "wrappers.frame_stack:FrameStack": "hebbes.wrappers.frame_stack:FrameStack",
    "wrappers.grayscale:Grayscale": "hebbes.wrappers.grayscale:Grayscale",
    "wrappers.one_hot:OneHot": "hebbes.wrappers.one_hot:OneHot",
    "wrappers.rescale_action:RescaleAction": "hebbes.wrappers.rescale_action:RescaleAction",
    "wrappers.resize:Resize": "hebbes.wrappers.resize:Resize",
    "wrappers.running_normalization:RunningNormalization": "hebbes.wrappers.running_normalization:RunningNormalization",
    "wrappers.scale:Scale": "hebbes.wrappers.scale:Scale",
    "wrappers.settle:Settle": "hebbes.wrappers.settle:Settle",
}
"""Full names of classes that files from before the package hold."""


def find_current_class_name(name: Any) -> Any:
    """The current full name of a class that a file names; anything else as it is."""
    return FORMER_CLASSES.get(name, name) if isinstance(name, str) else name


def rename_classes(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a file, with the current names of the classes in them."""
    renamed = dict(options)
    for option in ("policy", "strategy"):
        if option in renamed:
            renamed[option] = find_current_class_name(renamed[option])
    for option in ("wrappers", "gymnasium_wrappers"):
        if isinstance(renamed.get(option), list | tuple):
            renamed[option] = type(renamed[option])(map(_rename_in_entry, renamed[option]))
    return renamed


def _rename_in_entry(entry: Any) -> Any:
    """A wrapper's name, or the mapping of its name to its arguments."""
    if isinstance(entry, dict):
        return {find_current_class_name(name): arguments for name, arguments in entry.items()}
    return find_current_class_name(entry)


def rename_arguments(wrapper_name: str, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a wrapper as today's class takes them.

    `resize` took a height and a width. `early_stop` counted the rewards within its grace period if nothing else was
    said.
    """
    name = wrapper_name.rpartition(".")[2] if wrapper_name.startswith("hebbes.wrappers.") else wrapper_name
    renamed = dict(kwargs)
    if name in ("resize", "resize:Resize") and {"height", "width"} <= renamed.keys():
        renamed["size"] = [renamed.pop("height"), renamed.pop("width")]
    if name in ("early_stop", "early_stop:EarlyStop") and renamed.get("grace_steps"):
        renamed.setdefault("counts_grace", True)
    return renamed


def rename_saved_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options in a checkpoint of an earlier version: with the classes, wrappers' arguments and values of today."""
    lack = {name: value for name, value in MISSING_OPTIONS.items() if name.replace("stop_", "stop.") not in options}
    renamed = rename_classes({**lack, **options})
    for name in ("wrappers", "gymnasium_wrappers"):
        if name in renamed:
            renamed[name] = [_rename_arguments_in_entry(entry) for entry in renamed[name]]
    return renamed


def _rename_arguments_in_entry(entry: Any) -> Any:
    if isinstance(entry, dict):
        return {name: rename_arguments(name, arguments) for name, arguments in entry.items()}
    return entry


def find_current_option_name(name: str, known: Collection[str]) -> str:
    """The current name of an option, if that is among the known ones; otherwise the name itself.

    A known name stays as it is: a user's own class may have an option with an earlier name of one of ours.
    """
    current = FORMER_OPTIONS.get(name) or SHORT_OPTIONS.get(name, name)
    return name if name in known or current not in known else current


def check_names(options: Mapping[str, Any], known: Collection[str], source: str) -> None:
    """Raises ValueError if an option is given twice, under two of its names."""
    for name in options:
        current = find_current_option_name(name, known)
        if current != name and current in options:
            raise ValueError(f"{source}{current} is given twice, as {name} too")


def rename_options(options: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """The options under their current names, as far as those are known."""
    return {find_current_option_name(name, known): value for name, value in options.items()}
