"""A signal waits while a unit is recorded, so that loggers and the checkpoint have the same rows."""

import signal
import threading

import pytest

from hebbes.execution.parents_signals import PARENTS_SIGNALS, delay_signals
from hebbes.files.checkpoint import load_newest_checkpoint
from hebbes.recording.loggers import Loggers
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from tests.training.scripted_runs import make_scripted_config


@pytest.mark.parametrize("number", PARENTS_SIGNALS)
def test_the_first_is_handled_after_the_block_and_the_second_at_once(number):
    handled = []
    signal.signal(number, lambda *_: handled.append(len(done)))
    done = []
    with delay_signals():
        signal.raise_signal(number)
        done.append("first")
    with delay_signals():
        signal.raise_signal(number)
        signal.raise_signal(number)
        done.append("second")
    assert handled == [1, 1, 2]


def test_one_that_is_ignored_stays_ignored_and_an_error_passes():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with pytest.raises(OSError, match="full"), delay_signals():
        signal.raise_signal(signal.SIGHUP)
        raise OSError("full")
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def test_other_threads_handle_none():
    entered = []

    def enter():
        with delay_signals():
            entered.append(True)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert entered


@pytest.fixture
def ctrl_c():
    """Ctrl-C raises KeyboardInterrupt here, even if the tests run in the background of a shell, which turns it off."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.usefixtures("ctrl_c")
def test_after_ctrl_c_a_resume_gives_loggers_no_row_twice(tmp_path, monkeypatch):
    rows = []

    def write(loggers, row):
        rows.append(row["generation"])
        if len(rows) == 3:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Loggers, "write", write)
    (run,) = prepare(make_scripted_config(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        execute(run)
    assert rows == [1, 2, 3]
    assert load_newest_checkpoint(run.folder / "checkpoint")[0].progress.units == 3


def test_a_second_signal_interrupts_a_logger_that_hangs_and_the_run_is_saved(tmp_path, monkeypatch):
    def hang(loggers, row):
        if row["generation"] == 3:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            raise AssertionError("not interrupted")

    monkeypatch.setattr(Loggers, "write", hang)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    (run,) = prepare(make_scripted_config(tmp_path, checkpoint_every=100, eval_every=100))
    with pytest.raises(KeyboardInterrupt):
        execute(run)
    assert load_newest_checkpoint(run.folder / "checkpoint")[0].progress.units == 2
