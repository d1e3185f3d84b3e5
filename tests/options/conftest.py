"""What the tests of options share."""

import pytest

from hebbes.options import presets as preset_files


@pytest.fixture
def presets(tmp_path, monkeypatch):
    """A folder that replaces our presets; yields a function that writes one into it."""
    monkeypatch.setattr(preset_files, "PRESETS", tmp_path / "presets")
    (tmp_path / "presets" / "static").mkdir(parents=True)
    return lambda name, text: (tmp_path / "presets" / "static" / name).write_text(text)
