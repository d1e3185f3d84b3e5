"""Batch wrappers of environments. They work over every back end."""

if __name__ != "hebbes.wrappers":  # the folder `wrappers` at the root is a link into the package
    raise ImportError(f"import hebbes.wrappers, not {__name__}; CHANGELOG.md lists the names that have changed")
