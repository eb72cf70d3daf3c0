"""Tests of output files that cannot be written. The error of the command names the option and the reason."""

from types import SimpleNamespace

import pytest

from cuda_tma._command import record, reports
from cuda_tma._command.exit_status import Misuse


def test_a_recording_that_cannot_be_written(tmp_path):
    arguments = SimpleNamespace(record=str(tmp_path / "none" / "r.json"), schedules=1, seed=0, strict=False)
    with pytest.raises(Misuse, match=r"--record .*none/r\.json cannot be written: No such file or directory"):
        record.record(arguments, SimpleNamespace(judged=()), lambda launched: None)


def test_generated_sources_in_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Misuse, match=r"file/sources cannot be created: Not a directory"):
        reports._write_beside(tmp_path / "file" / "sources" / "k.cu", "text")
    reports._write_beside(tmp_path / "sources" / "k.cu", "text")
    assert (tmp_path / "sources" / "k.cu").read_text() == "text"
