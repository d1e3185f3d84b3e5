"""metrics.csv: what is written is what is read, and a row is on disk as soon as it is written."""

from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporting.metrics import MetricsWriter, read_metrics


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
        with pytest.raises(ValueError, match=r"missing \['sigma'\], new \['lr'\]"):
            writer.write({"generation": 2, "lr": 0.1})
    assert read_metrics(tmp_path / "metrics.csv")["generation"].tolist() == [1]


def test_the_metrics_of_another_run_are_never_overwritten(tmp_path):
    (tmp_path / "metrics.csv").write_text("precious\n")
    with pytest.raises(FileExistsError):
        MetricsWriter(tmp_path / "metrics.csv")
    assert (tmp_path / "metrics.csv").read_text() == "precious\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("", "no metrics"), ("a,b\n1,2\n3\n", "row 2 has 1 cells, expected 2"), ("a\nx\n", "could not convert")],
)
def test_a_file_that_is_no_table_of_numbers_is_refused_by_name(tmp_path, text, complaint):
    path = tmp_path / "metrics.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=complaint) as error:
        read_metrics(path)
    assert str(path) in str(error.value)
