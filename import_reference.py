"""Turns the coefficients that Najarro & Risi's code saved into a policy file."""

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the program quietly while its modules are loaded

    from training.programs import convert
    from training.reference_import import ImportConfig, import_reference

    convert(ImportConfig, import_reference, __doc__)
