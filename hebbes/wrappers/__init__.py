"""Batch wrappers of environments. They work over every back end."""

if __name__ != "hebbes.wrappers":
    raise ImportError(
        f"import hebbes.wrappers, not {__name__}: the folder `wrappers` at the root is a link into the package"
    )
