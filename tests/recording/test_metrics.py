"""metrics.csv: what is read is what was written, and a row is in the file as soon as it is written."""

import os
from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hebbes.recording.metrics import MetricsWriter, cut_metrics, read_last_row, read_metrics
from tests.recording.events import limit_file_size


@given(values=st.lists(st.floats(), min_size=1, max_size=5))
def test_every_float_comes_back_bit_for_bit(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("metrics") / "metrics.csv"
    with MetricsWriter(path) as writer:
        for value in values:
            writer.write({"generation": 1, "return_mean": value})
    np.testing.assert_array_equal(read_metrics(path)["return_mean"], values)


def test_the_file_is_a_plain_table_flushed_row_by_row(tmp_path):
    path = tmp_path / "metrics.csv"
    writer = MetricsWriter(path)
    writer.write({"generation": 1, "sigma": np.float64(0.1), "eval_return": nan, "env_steps": np.int64(64000)})
    assert path.read_text() == "generation,sigma,eval_return,env_steps\n1,0.1,,64000\n"
    writer.write({"env_steps": 128000, "eval_return": -2.0, "generation": 2, "sigma": 0.25})
    assert path.read_text().splitlines()[2] == "2,0.25,-2.0,128000"
    writer.close()


def test_a_row_with_other_columns_is_refused_and_not_written(tmp_path):
    with MetricsWriter(tmp_path / "metrics.csv") as writer:
        writer.write({"generation": 1, "sigma": 0.1})
        with pytest.raises(ValueError, match=r"missing \['sigma'\], new \['learning_rate'\]"):
            writer.write({"generation": 2, "learning_rate": 0.1})
    assert read_metrics(tmp_path / "metrics.csv")["generation"].tolist() == [1]


def test_a_resume_drops_later_rows_of_an_interrupted_run_and_a_torn_last_line(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("generation,learning_rate\n1,0.5\n2,0.25\n3,\x00\n4,0.0")
    cut_metrics(path, "generation", 2)
    with MetricsWriter(path) as writer:
        writer.write({"generation": 3, "learning_rate": 7.0})
    assert path.read_text() == "generation,learning_rate\n1,0.5\n2,0.25\n3,7.0\n"


@pytest.mark.parametrize("text", [None, "", "generation,sigma\n", "generation,sigma\n3,0.5\n4,0.5\n"])
def test_a_file_that_began_after_the_checkpoint_begins_again(tmp_path, text):
    path = tmp_path / "metrics.csv"
    if text is not None:
        path.write_text(text)
    assert cut_metrics(path, "generation", 2) == [f"{path} lacks the rows before generation 3"]
    with MetricsWriter(path) as writer:
        writer.write({"generation": 3, "sigma": 1.0})
    assert path.read_text() == "generation,sigma\n3,1.0\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("precious\n", "no undamaged row of generation 2"),
        ("generation,sigma\n1,0.5\n", "no undamaged row of generation 2"),
        ("generation,sigma\n1,0.5\n2,0.", "no undamaged row of generation 2"),
        ("generation,sigma\n1,0.\x005\n2,0.5\n", "could not convert"),
        ("generation,sigma\n1,0.5\n1,0.5\n2,0.5\n", "lacks rows before generation 2"),
        ("generation,sigma\n0,0.5\n2,0.5\n", "lacks rows before generation 2"),
        ("1,0.5\n2,0.5\n", "lacks rows before generation 2"),
        ("generation,sigma\n1\n2,0.5\n", "row 1 has 1 cells, expected 2"),
        ("generation,sigma,sigma\n1,0.5,0.5\n2,0.5,0.5\n", "two columns have the same name"),
        (f"generation,sigma\n{'9' * 6000},0.5\n", "no undamaged row of generation 2"),
    ],
)
def test_a_file_with_damaged_rows_is_refused_and_left_alone(tmp_path, text, complaint):
    path = tmp_path / "metrics.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"metrics.csv.*{complaint}.*; move it away$"):
        cut_metrics(path, "generation", 2)
    assert path.read_text() == text


def test_a_pipe_is_refused_and_not_read(tmp_path):
    os.mkfifo(tmp_path / "metrics.csv")
    with pytest.raises(ValueError, match=r"metrics.csv is not a file; move it away"):
        cut_metrics(tmp_path / "metrics.csv", "generation", 2)


def test_a_pipe_has_no_last_row(tmp_path):
    os.mkfifo(tmp_path / "metrics.csv")
    assert read_last_row(tmp_path / "metrics.csv") == {}


def test_the_first_rows_may_be_lost(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("generation,sigma\n3,0.5\n4,0.5\n")
    assert cut_metrics(path, "generation", 4) == [f"{path} lacks the rows before generation 3"]
    assert read_metrics(path)["generation"].tolist() == [3, 4]


def test_a_row_with_other_columns_after_a_resume_leaves_what_rows_lack_empty(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("generation,learning_rate\n1,0.5\n")
    with MetricsWriter(path) as writer:
        writer.write({"generation": 2, "sigma": 1.0, "nodes": 3})
        writer.write({"sigma": 2.0, "nodes": 4, "generation": 3})
    assert path.read_text() == "generation,learning_rate,sigma,nodes\n1,0.5,,\n2,,1.0,3\n3,,2.0,4\n"
    assert [each.name for each in tmp_path.iterdir()] == ["metrics.csv"]


def test_rows_are_kept_if_columns_change_again_after_a_resume_from_an_earlier_checkpoint(tmp_path):
    path = tmp_path / "metrics.csv"

    def write_rows(column, generations, resumed_after):
        cut_metrics(path, "generation", resumed_after)
        with MetricsWriter(path) as writer:
            for generation in generations:
                writer.write({"generation": generation, column: 1.0})

    write_rows("sigma", (1, 2, 3, 4), 0)
    write_rows("nodes", (5,), 4)
    cut_metrics(path, "generation", 2)
    assert read_metrics(path)["generation"].tolist() == [1, 2]
    write_rows("nodes", (3, 4), 2)
    write_rows("sigma", (5, 6), 4)
    found = read_metrics(path)
    assert found["generation"].tolist() == [1, 2, 3, 4, 5, 6]
    assert np.isnan(found["sigma"]).tolist() == [False, False, True, True, False, False]


def test_rows_wait_while_columns_cannot_be_added(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("generation,learning_rate\n1,0.5\n")
    with MetricsWriter(path) as writer:
        with limit_file_size(path.stat().st_size):  # no room for the wider header
            for write in (lambda: writer.write({"generation": 2, "sigma": 1.0}), writer.sync):
                with pytest.raises(OSError, match="too large"):
                    write()
                assert path.read_text() == "generation,learning_rate\n1,0.5\n"
        writer.write({"generation": 3, "sigma": 2.0})
        writer.sync()
    assert path.read_text() == "generation,learning_rate,sigma\n1,0.5,\n2,,1.0\n3,,2.0\n"


def test_columns_are_added_once_if_an_attempt_fails_after_it(tmp_path, monkeypatch):
    path = tmp_path / "metrics.csv"
    path.write_text("generation\n1\n")
    with MetricsWriter(path) as writer:
        with monkeypatch.context() as patched:
            patched.setattr("hebbes.files.atomic_file.sync_folder", lambda folder: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                writer.write({"generation": 2, "nodes": 3})
        writer.write({"generation": 3, "nodes": 4})
    assert path.read_text() == "generation,nodes\n1,\n2,3\n3,4\n"


def test_rows_that_the_disk_refuses_are_written_once_there_is_room(tmp_path):
    path = tmp_path / "metrics.csv"
    with MetricsWriter(path) as writer:
        writer.write({"generation": 1})
        with limit_file_size(path.stat().st_size + 1):  # room for half a row
            for generation in (2, 3):
                with pytest.raises(OSError, match="too large"):
                    writer.write({"generation": generation})
                assert path.read_text() == "generation\n1\n"
        writer.sync()
    assert path.read_text() == "generation\n1\n2\n3\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "no rows yet"),
        ("a,a\n1,2\n", "two columns have the same name"),
        ("a,b\n1,2\n3\n", "row 2 has 1 cells, expected 2"),
        ("a\nx\n", "could not convert"),
    ],
)
def test_a_file_that_is_not_a_table_of_numbers_is_refused_by_name(tmp_path, text, complaint):
    path = tmp_path / "metrics.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=complaint) as error:
        read_metrics(path)
    assert str(path) in str(error.value)


def test_columns_of_an_earlier_version_get_current_names_when_the_run_writes_them(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("generation,unperturbed_return,lr\n1,2.5,0.1\n")
    assert read_metrics(path).keys() == {"generation", "mean_policy_return", "learning_rate"}
    cut_metrics(path, "generation", 1)
    with MetricsWriter(path) as writer:
        writer.write({"generation": 2, "mean_policy_return": 3.5, "learning_rate": 0.2})
    assert path.read_text() == "generation,mean_policy_return,learning_rate\n1,2.5,0.1\n2,3.5,0.2\n"


@pytest.mark.parametrize("others", [{}, {"learning_rate": 1.0}, {"mean_policy_return": 2.0, "unperturbed_return": 1.0}])
def test_a_users_own_column_with_a_former_name_stays(others, tmp_path):
    path = tmp_path / "metrics.csv"
    for generation in (1, 2, 3):
        cut_metrics(path, "generation", generation - 1)
        with MetricsWriter(path) as writer:
            writer.write({"generation": generation, "lr": 0.5, **others})
    assert [each.name for each in tmp_path.iterdir()] == ["metrics.csv"]
    assert list(read_metrics(path)["lr"]) == [0.5, 0.5, 0.5]


def test_a_last_line_that_is_not_finished_is_left_out(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("generation,env_steps\n5,51\n6,61\n7,7")
    assert read_metrics(path)["env_steps"].tolist() == [51, 61]


@pytest.mark.parametrize("text", [None, "", "generation,env_steps\n", "generation,env_steps\n1,2"])
def test_a_run_without_rows_has_no_metrics(tmp_path, text):
    if text is not None:
        (tmp_path / "metrics.csv").write_text(text)
    with pytest.raises(ValueError, match="has no rows yet"):
        read_metrics(tmp_path / "metrics.csv")


def test_rows_are_on_the_disk_once_synced(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    with MetricsWriter(tmp_path / "metrics.csv") as writer:
        writer.write({"generation": 1})
        writer.sync()
    assert synced[-1] == (tmp_path / "metrics.csv").stat().st_size > 0
