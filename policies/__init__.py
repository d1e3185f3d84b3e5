"""Networks, batched over members; a policy is named by the stem of its file."""
