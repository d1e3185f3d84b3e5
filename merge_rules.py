"""Merges the learning rules of a policy file by k-means, so that its synapses share fewer of them."""

from training.startup import begin

if __name__ == "__main__":
    begin()

    from training.merging import MergeConfig, merge
    from training.programs import convert

    convert(MergeConfig, merge, __doc__)
