"""Damage to files that a checksum must find."""


def flip_last_bit(path):
    *start, last = path.read_bytes()
    path.write_bytes(bytes([*start, last ^ 1]))
