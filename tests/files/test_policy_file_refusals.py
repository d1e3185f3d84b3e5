"""Policy files that are damaged, foreign or forged are refused with one line that names the file."""

import os
import pickle
import random
from math import nan

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from hebbes.files.policy_file import read_policy_file, save_policy
from hebbes.files.weight_file import WeightFileError
from tests.files.saved_policies import (
    assert_same_policy,
    expect_refusal,
    json_values,
    make_saved_policy,
    make_setter,
    write_forged_file,
)
from tests.shape_checks import unchecked


@pytest.fixture(scope="module", autouse=True)
def as_for_users():
    """Our own checks refuse the files here, not those of the tests."""
    with unchecked():
        yield


def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path):
    path = tmp_path / "best.dat"
    save_policy(path, make_saved_policy())
    whole = path.read_bytes()
    for length in range(1, len(whole), 7):
        path.write_bytes(whole[:length])
        assert "truncated" in expect_refusal(path) or "not a hebbes file" in expect_refusal(path)


def test_a_flipped_bit_is_refused_wherever_it_lies(tmp_path):
    path = tmp_path / "best.dat"
    save_policy(path, make_saved_policy(buffers={"observation_mean": np.arange(3.0)}))
    whole = path.read_bytes()
    flip = random.Random(0)
    refused = 0
    for _ in range(400):
        damaged = bytearray(whole)
        damaged[flip.randrange(len(whole))] ^= 1 << flip.randrange(8)
        path.write_bytes(damaged)
        try:
            assert_same_policy(read_policy_file(path), make_saved_policy(buffers={"observation_mean": np.arange(3.0)}))
        except WeightFileError:
            refused += 1
    assert refused == 400


class Exploit:
    def __reduce__(self):
        return (os.mkdir, ("exploited",))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\x10\x00\x00", "truncated, or not a hebbes file"),
        (b"A plain text file.\n", "not a hebbes file"),
        (pickle.dumps(Exploit()), "not a hebbes file"),
        (save({"weights": np.zeros(3, np.float32)}), "not a hebbes file"),
        (save({"weights": np.zeros(3, np.float32)}, {"format": "pt"}), "not a hebbes file"),
        (save({"weights": np.zeros(3, np.float32)}, {"hebbes": "{"}), "the header is not JSON"),
        (save({"weights": np.zeros(3, np.float32)}, {"hebbes": "[" * 50_000}), "the header is not JSON"),
        (save({"weights": np.zeros(3, np.float32)}, {"hebbes": "[]"}), "the header is not a JSON object"),
        ((2**20 + 1).to_bytes(8, "little") + b" " * (2**20 + 1), "not a hebbes file"),
        ((50_000).to_bytes(8, "little") + b"[" * 50_000, "not a hebbes file"),
    ],
)
def test_a_foreign_file_is_refused_and_runs_nothing(tmp_path, monkeypatch, content, message):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "foreign.dat"
    path.write_bytes(content)
    assert expect_refusal(path) == message
    assert [child.name for child in tmp_path.iterdir()] == ["foreign.dat"]


def test_a_path_without_a_regular_file_and_a_file_too_large_are_refused(tmp_path):
    assert expect_refusal(tmp_path) == "a folder; give a file in it"
    assert expect_refusal(tmp_path / "missing.dat") == "no such file"
    with (tmp_path / "huge.dat").open("wb") as file:
        file.truncate(2**26 + 1)
    assert expect_refusal(tmp_path / "huge.dat") == (
        "the file has 67108865 bytes, more than 67108864; for larger policies raise MAX_FILE_BYTES in "
        "hebbes/files/policy_file.py"
    )
    (tmp_path / "loop.dat").symlink_to("loop.dat")
    assert expect_refusal(tmp_path / "loop.dat") == "no such file"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read_is_refused(tmp_path):
    (tmp_path / "secret.dat").touch(mode=0o200)
    (tmp_path / "secret.dat").write_bytes(b"x")
    assert expect_refusal(tmp_path / "secret.dat") == "Permission denied"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (make_setter("format_version", value=4), "format version 4, but this program reads up to 3; update hebbes"),
        (make_setter("format_version", value=True), "format_version True"),
        (make_setter("kind", value="checkpoint"), "not a policy file, but a file of kind 'checkpoint'"),
        (lambda header: header.pop("kind"), "not a policy file, but a file of kind None"),
        (make_setter("provenance", value=[]), "bad, missing or unknown entry 'provenance'"),
        (make_setter("extra", value=1), "bad, missing or unknown entry 'extra'"),
        (lambda header: header.pop("action_head"), "bad, missing or unknown entry 'action_head'"),
        (make_setter("action_head", value="softmax"), "unknown action head 'softmax'"),
        (
            make_setter("policy", "initialization", value="kaiming"),
            "initialization must be one of xavier, pytorch, got 'kaiming'",
        ),
        (make_setter("policy", "name", value="mpl"), "did you mean 'mlp'"),
        (make_setter("policy", "name", value=3), "the policy's name must be text, not 3"),
        (make_setter("policy", "name", value=["mlp"]), "the policy's name must be text, not ('mlp',)"),
        (
            make_setter("policy", "hidden_sizes", value=[1] * 400_000),
            "the description of policy and environment has 1200",
        ),
        (
            make_setter("policy", "hidden_sizes", value=[10**15]),
            "more parameters than a file of 67108864 bytes can hold",
        ),
        (make_setter("policy", "hidden_sizes", value=[10**4000] * 2), "hidden_sizes must be below 2^63"),
        (make_setter("policy", "depth", value=3), "does not describe a policy 'mlp'"),
        (make_setter("policy", "hidden_sizes", value=["4"]), "hidden_sizes"),
        (make_setter("policy", "hidden_sizes", value=[5]), r"weights of shape (20,), but the policy has 25 parameters"),
        (make_setter("policy", "observation_shape", value=None), "observation_shape must be a list of whole numbers"),
        (make_setter("environment", "wrappers", 0, "name", value="clip_actoin"), "did you mean 'clip_action'"),
        (make_setter("environment", "backend", value="unity"), "backend must be one of envpool, gymnasium"),
        (make_setter("environment", "imports", value=3), "imports must be a list of texts"),
    ],
)
def test_a_header_that_makes_no_sense_is_refused_even_when_signed(tmp_path, edit, message):
    assert message in expect_refusal(write_forged_file(tmp_path / "best.dat", make_saved_policy(), edit))


def check_faithful_or_refused(path):
    """Asserts that a file is refused with one line, or that the loaded policy can be saved and loaded unchanged."""
    try:
        loaded = read_policy_file(path)
    except WeightFileError as error:
        assert "\n" not in str(error)
        return
    again = path.with_name("again.dat")
    save_policy(again, loaded)
    assert_same_policy(read_policy_file(again), loaded)


FUZZ = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FUZZ
@given(data=st.data(), value=json_values, how=st.sampled_from(["replace", "remove", "add"]))
def test_whatever_a_signed_header_says_the_answer_is_a_policy_or_one_line(tmp_path, data, value, how):
    def edit(header):
        part, key = header, data.draw(st.sampled_from([name for name in header if name != "sha256"]))
        while isinstance(part[key], (dict, list)) and part[key] and data.draw(st.booleans()):
            part = part[key]
            key = data.draw(st.sampled_from(sorted(part) if isinstance(part, dict) else range(len(part))))
        if how == "replace":
            part[key] = value
        elif how == "remove":
            del part[key]
        elif isinstance(part, dict):
            part[data.draw(st.text(max_size=5))] = value
        else:
            part.append(value)

    check_faithful_or_refused(write_forged_file(tmp_path / "best.dat", make_saved_policy(), edit))


@FUZZ
@given(data=st.data(), inserted=st.text(max_size=6) | st.sampled_from(["NaN", "1e999", "9" * 5000, "[" * 2000, "{}"]))
def test_a_header_of_other_text_is_refused(tmp_path, data, inserted):
    def splice(text):
        start = data.draw(st.integers(0, len(text)))
        return text[:start] + inserted + text[start + data.draw(st.integers(0, 5)) :]

    check_faithful_or_refused(write_forged_file(tmp_path / "best.dat", make_saved_policy(), respell=splice))


@FUZZ
@given(data=st.data(), inserted=st.binary(max_size=12))
def test_other_bytes_anywhere_in_a_file_are_refused(tmp_path, data, inserted):
    path = write_forged_file(tmp_path / "best.dat", make_saved_policy())
    whole = path.read_bytes()
    start = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:start] + inserted + whole[start + data.draw(st.integers(0, 12)) :])
    if path.read_bytes() != whole:
        expect_refusal(path)


@FUZZ
@given(length=st.none() | st.integers(0, 2**64 - 1) | st.integers(0, 300), content=st.binary(max_size=300))
def test_random_bytes_are_refused(tmp_path, length, content):
    start = b"" if length is None else length.to_bytes(8, "little")
    (tmp_path / "noise.dat").write_bytes(start + content)
    expect_refusal(tmp_path / "noise.dat")


def test_a_header_with_numbers_that_json_lacks_is_refused(tmp_path):
    path = write_forged_file(
        tmp_path / "best.dat", make_saved_policy(), make_setter("provenance", "score", value=nan), resign=False
    )
    assert "not JSON compliant" in expect_refusal(path)


def test_a_header_with_a_repeated_entry_is_refused(tmp_path):
    def repeat_entry(text):
        return text.replace('"seed":7', '"seed":8,"seed":7')

    path = write_forged_file(tmp_path / "best.dat", make_saved_policy(), respell=repeat_entry)
    assert expect_refusal(path) == "the header is not as it was written"


def test_an_edited_header_is_refused_unless_signed(tmp_path):
    path = write_forged_file(
        tmp_path / "best.dat", make_saved_policy(), make_setter("provenance", "score", value=9000.0), resign=False
    )
    assert expect_refusal(path) == "damaged: the checksum does not match"


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"weights": np.zeros(20)}, "float32, not F64"),
        ({"weights": np.full(20, np.inf, np.float32)}, "not finite"),
        ({"weights": np.zeros((4, 5), np.float32)}, "weights of shape (4, 5)"),
        ({"weights": np.zeros(20, np.float32), "other": np.zeros(1)}, "not ['other', 'weights']"),
        ({"buffers.weights": np.zeros(20, np.float32)}, "not ['buffers.weights']"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_even_when_signed(tmp_path, arrays, message):
    assert message in expect_refusal(write_forged_file(tmp_path / "best.dat", make_saved_policy(), arrays=arrays))
