"""What a program prints on a file or a pipe."""

import io
import sys

import pytest

from hebbes.recording.console import Console, fill_lines
from tests.python_process import run_python


def test_a_file_gets_messages_as_they_are_and_no_control_characters(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    stream = io.StringIO()
    with Console(stream) as console, console.phase("training"):
        console.print_message("[bold]Pong-v5[/bold]")
    assert stream.getvalue() == "[bold]Pong-v5[/bold]\n"


def test_a_quiet_console_prints_notices_alone_and_a_silent_one_nothing(capsys):
    stream = io.StringIO()
    with Console(stream, quiet=True) as console:
        console.print_message("lost")
        console.print_notice("a member failed")
        console.make_silent().print_notice("lost too")
    assert stream.getvalue() == ""
    assert capsys.readouterr().err == "a member failed\n"


def test_a_notice_has_its_place_among_the_messages(capsys):
    stream = io.StringIO()
    with Console(stream) as console:
        console.print_message("1")
        console.print_notice("2")
    assert stream.getvalue() == "1\n2\n"
    assert capsys.readouterr().err == ""


def test_a_stream_that_can_no_longer_be_written_does_not_end_the_program():
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(28, "No space left on device")

    with Console(Full()) as console:
        console.print_message("lost")
        console.print_message("lost too")


def test_a_stream_of_the_callers_own_needs_no_more_than_write_and_flush():
    class Tee:
        lines = ""

        def write(self, text):
            self.lines += text

        def flush(self):
            pass

    stream, closed = Tee(), io.StringIO()
    closed.close()
    for each in (stream, closed):
        with Console(each) as console, console.phase("training"):
            console.print_message("done")
    assert stream.lines == "done\n"


@pytest.mark.parametrize("is_there", [True, False])
def test_a_script_may_have_closed_its_standard_output_or_have_none(is_there, monkeypatch):
    stdout = io.StringIO() if is_there else None
    if stdout is not None:
        stdout.close()
    for name in ("stdout", "__stdout__"):
        monkeypatch.setattr(sys, name, stdout)
    with Console() as console:
        console.print_message("done")


def test_what_an_encoding_lacks_is_escaped():
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    Console(stream).print_message("weights/走る")
    stream.seek(0)
    assert stream.read() == "weights/\\u8d70\\u308b\n"


def test_lines_are_filled_with_whole_texts():
    assert fill_lines(["a" * 4, "b" * 4, "c" * 30, "d"], 20) == ["aaaa   bbbb", "c" * 30, "d"]


def test_it_is_imported_quickly():
    code = "import sys, hebbes.recording.console; print([name for name in sys.argv[1:] if name in sys.modules])"
    heavy = ["numpy", "numba", "gymnasium", "matplotlib"]
    done = run_python("-c", code, *heavy)
    assert done.stdout == "[]\n"
