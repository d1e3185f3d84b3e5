"""Networks and learning rules, batched over the members of a population."""

if __name__ != "hebbes.policies":
    raise ImportError(
        f"import hebbes.policies, not {__name__}: the folder `policies` at the root is a link into the package"
    )
