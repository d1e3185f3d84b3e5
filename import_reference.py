"""Turns the coefficients that Najarro & Risi's code saved into a policy file."""

from training.startup import begin

if __name__ == "__main__":
    begin()

    from training.programs import convert
    from training.reference_import import ImportConfig, import_reference

    convert(ImportConfig, import_reference, __doc__)
