"""Merges the learning rules of a policy file by k-means, so that its synapses share fewer of them."""

from training.merging import MergeConfig, merge
from training.programs import convert

if __name__ == "__main__":
    convert(MergeConfig, merge, __doc__)
