"""Networks and learning rules, batched over the members of a population."""

if __name__ != "hebbes.policies":  # the folder `policies` at the root is a link into the package
    raise ImportError(f"import hebbes.policies, not {__name__}; CHANGELOG.md lists the names that have changed")
