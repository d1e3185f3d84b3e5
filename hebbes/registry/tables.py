"""Tables of the names that options, presets and files use, and of the classes that they stand for.

A new part, such as a policy, strategy, algorithm or wrapper, needs one file and one line here.
"""

POLICIES = {
    "cnn": "hebbes.policies.cnn:CNN",
    "conv_lstm": "hebbes.policies.conv_lstm:ConvLSTM",
    "gru": "hebbes.policies.gru:GRU",
    "hebbian": "hebbes.policies.hebbian:Hebbian",
    "linear": "hebbes.policies.linear:Linear",
    "lstm": "hebbes.policies.lstm:LSTM",
    "mlp": "hebbes.policies.mlp:MLP",
    "small": "hebbes.policies.small:Small",
}

STRATEGIES = {
    "ars": "hebbes.strategies.ars:ARS",
    "cem": "hebbes.strategies.cem:CEM",
    "cma_es": "hebbes.strategies.cma_es:CMAES",
    "cr_fm_nes": "hebbes.strategies.cr_fm_nes:CRFMNES",
    "ga": "hebbes.strategies.ga:GA",
    "one_plus_one": "hebbes.strategies.one_plus_one:OnePlusOne",
    "openai_es": "hebbes.strategies.openai_es:OpenAIES",
    "pgpe": "hebbes.strategies.pgpe:PGPE",
    "sep_cma_es": "hebbes.strategies.sep_cma_es:SepCMAES",
    "snes": "hebbes.strategies.snes:SNES",
    "xnes": "hebbes.strategies.xnes:XNES",
}

WRAPPERS = {
    "atari_42": "hebbes.wrappers.atari_42:Atari42",
    "channels_last": "hebbes.wrappers.channels_last:ChannelsLast",
    "choose_action": "hebbes.wrappers.choose_action:ChooseAction",
    "clip_action": "hebbes.wrappers.clip_action:ClipAction",
    "crop": "hebbes.wrappers.crop:Crop",
    "early_stop": "hebbes.wrappers.early_stop:EarlyStop",
    "fire_reset": "hebbes.wrappers.fire_reset:FireReset",
    "flatten_action": "hebbes.wrappers.flatten_action:FlattenAction",
    "frame_stack": "hebbes.wrappers.frame_stack:FrameStack",
    "grayscale": "hebbes.wrappers.grayscale:Grayscale",
    "one_hot": "hebbes.wrappers.one_hot:OneHot",
    "rescale_action": "hebbes.wrappers.rescale_action:RescaleAction",
    "resize": "hebbes.wrappers.resize:Resize",
    "running_normalization": "hebbes.wrappers.running_normalization:RunningNormalization",
    "scale": "hebbes.wrappers.scale:Scale",
    "settle": "hebbes.wrappers.settle:Settle",
}

SIMULATOR_WRAPPERS = {
    "bullet_distance": "hebbes.wrappers.bullet_distance:BulletDistance",
    "bullet_grace": "hebbes.wrappers.bullet_grace:BulletGrace",
}
"""Wrappers of single simulators, which are classes of `gymnasium.Wrapper`."""

ENGINES = {
    "in_process": "hebbes.execution.in_process:InProcess",
    "ray": "hebbes.execution.ray_engine:RayEngine",
    "workers": "hebbes.execution.workers:Workers",
}

LOGGERS = {
    "tensorboard": "hebbes.recording.tensorboard:TensorBoard",
    "wandb": "hebbes.recording.wandb:WandB",
}

ALGORITHMS = {
    "acem_rl": "hebbes.hybrids.acem_rl:ACEMRL",
    "aes_rl": "hebbes.hybrids.aes_rl:AESRL",
    "cem_rl": "hebbes.hybrids.cem_rl:CEMRL",
    "one_plus_one_rl": "hebbes.hybrids.one_plus_one_rl:OnePlusOneRL",
    "p_cem_rl": "hebbes.hybrids.p_cem_rl:PCEMRL",
    "td3": "hebbes.hybrids.td3:TD3",
}
"""Methods of the trainer `hybrid`."""

TRAINERS = {
    "static": "hebbes.training.evolution:Evolution",
    "hebbian": "hebbes.training.evolution:HebbianEvolution",
    "hybrid": "hebbes.training.hybrid:Hybrid",
}
"""Trainers by the name of their program and of their folder in hebbes/presets/."""

ENVIRONMENTS = {"TMaze-v0": "hebbes.environments.t_maze:TMaze"}
"""Gymnasium ids of our own."""

TABLES = {
    "policy": POLICIES,
    "strategy": STRATEGIES,
    "wrapper": {**WRAPPERS, **SIMULATOR_WRAPPERS},
    "engine": ENGINES,
    "logger": LOGGERS,
    "trainer": TRAINERS,
    "algorithm": ALGORITHMS,
}
"""Kind of class, as `find_class` takes it -> its table."""

GYMNASIUM_WRAPPERS = {
    *("AtariPreprocessing", "ClipAction", "ClipReward", "DelayObservation", "DiscretizeAction"),
    *("DiscretizeObservation", "DtypeObservation", "FilterObservation", "FlattenObservation"),
    *("FrameStackObservation", "GrayscaleObservation", "MaxAndSkipObservation", "OrderEnforcing"),
    *("RecordEpisodeStatistics", "RepeatAction", "RescaleAction"),
    *("RescaleObservation", "ReshapeObservation", "ResizeObservation", "StickyAction"),
    *("TimeAwareObservation", "TimeLimit"),
}
"""Wrappers of Gymnasium that act only on their environment. Others write files, open windows or call functions."""
