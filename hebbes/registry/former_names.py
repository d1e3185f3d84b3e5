"""Names that files of earlier versions hold, and what stands for them today. They are mapped as text, before any import."""

from hebbes.registry.tables import TABLES

_PACKAGES = {"policy": "policies", "strategy": "strategies", "wrapper": "wrappers"}


def _former_class_name(kind: str, stem: str) -> str:
    """The full name of a class of ours from before the package: "policies.mlp:Mlp"."""
    return f"{_PACKAGES[kind]}.{stem}:{''.join(word.capitalize() for word in stem.split('_'))}"


CLASSES = {_former_class_name(kind, stem): name for kind, table in TABLES.items() for stem, name in table.items()}
"""Full names of classes from before they moved into the package, and today's."""


def current_class_name(name: str) -> str:
    """Today's full name of a class that a file names; the name itself where it never changed."""
    return CLASSES.get(name, name)
