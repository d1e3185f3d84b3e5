"""Merges the learning rules of a policy file by k-means, so that its synapses share fewer of them."""

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the program quietly while its modules are loaded

    from training.merging import MergeConfig, merge
    from training.programs import convert

    convert(MergeConfig, merge, __doc__)
