"""Options that describe the network and the environment of a file of the reference.

The code of Najarro & Risi (NeurIPS 2020, arXiv 2007.02686) saves bare numbers. The network and its environment follow
from that code's conventions, which depend only on the id. The shared presets hold those of CarRacing and of PyBullet's
walkers. In Atari games that wait for FIRE it is pressed. In all other environments actions are clipped. Options that
were tuned here say nothing about such a file, so no other preset is read.
"""

from collections.abc import Iterable
from dataclasses import Field, dataclass
from typing import Any

from hebbes.contracts.option import get_flag_name, option
from hebbes.contracts.plain_values import make_list
from hebbes.training.owners import list_all_owners, name_options


def copy_training_option(name: str, choices: tuple[str, ...] = ()) -> Any:
    """An option of training with None as its default, which means that the reference's conventions decide."""
    # policies that share a name of an option mean the same by it
    metadata = name_options(list_all_owners("hebbian"))[name][0].field.metadata
    copied = {each: metadata[each] for each in ("range", "choices", "read") if metadata.get(each)}
    if choices:
        copied["choices"] = choices
    text = metadata["help"].partition(" (default")[0]
    return option(
        None,
        f"{text} (for files that torch.save wrote; default: as in Najarro & Risi's code)",
        flag=name,
        **copied,
    )


@dataclass(frozen=True, kw_only=True)
class ReferenceOptions:
    """Options for what a file of the reference does not say about its network's size and its environment."""

    hidden_sizes: tuple[int, ...] | None = copy_training_option("hidden_sizes")
    action_bounds: str | None = copy_training_option("action_bounds")
    resize: tuple[int, ...] | None = copy_training_option("resize")
    grayscale: bool | None = copy_training_option("grayscale")
    frame_stack: int | None = copy_training_option("frame_stack")
    settle_steps: int | None = copy_training_option("settle_steps")
    fire_reset: bool | None = copy_training_option("fire_reset")
    early_stop_negative_streak: int | None = copy_training_option("early_stop_negative_streak")
    early_stop_grace_steps: int | None = copy_training_option("early_stop_grace_steps")
    gymnasium_wrappers: tuple[Any, ...] | None = copy_training_option("gymnasium_wrappers")
    wrappers: tuple[Any, ...] | None = copy_training_option("wrappers")

    def collect_given(self, among: Iterable[Field]) -> dict[str, Any]:
        """The values of the fields that were given, by flag, as YAML holds them."""
        found = {get_flag_name(each): getattr(self, each.name) for each in among}
        return {name: make_list(value) for name, value in found.items() if value is not None}
