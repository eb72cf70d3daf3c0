"""Tests of calls of NVRTC that fail: an error names the result, and each program is destroyed."""

from types import SimpleNamespace

import pytest

from cuda_tma import _compile_kernel
from cuda_tma._compile import nvrtc

RESULTS = SimpleNamespace(NVRTC_SUCCESS=0)


class Library(SimpleNamespace):
    """A fake of the bindings of NVRTC that records the destroyed programs."""

    nvrtcResult = RESULTS

    def nvrtcCreateProgram(self, source, name, count, headers, names):
        assert (count, headers, names) == (0, None, None)
        return self.result, (source, name)

    def nvrtcDestroyProgram(self, program):
        self.destroyed.append(program)


def test_a_result_other_than_success_is_an_error():
    fake = SimpleNamespace(nvrtcResult=RESULTS)
    assert nvrtc._require(fake, (0, "value")) == "value" and nvrtc._require(fake, (0,)) is None
    with pytest.raises(RuntimeError, match="NVRTC failed: 6"):
        nvrtc._require(fake, (6, "value"))


@pytest.mark.parametrize("error", [None, ValueError])
def test_a_program_is_destroyed_after_its_use(error):
    fake = Library(result=0, destroyed=[])
    asked = SimpleNamespace(source="s", file="k.cu")
    try:
        with nvrtc._program(fake, asked) as program:
            assert program == (b"s", b"k.cu") and fake.destroyed == []
            if error is not None:
                raise error
    except ValueError:
        assert error is ValueError
    assert fake.destroyed == [(b"s", b"k.cu")]


def test_a_program_that_was_not_made_is_not_destroyed():
    fake = Library(result=1, destroyed=[])
    with (
        pytest.raises(RuntimeError, match="NVRTC failed: 1"),
        nvrtc._program(fake, SimpleNamespace(source="", file="")),
    ):
        pass
    assert fake.destroyed == []


@pytest.mark.parametrize(("capability", "target"), [((8, 9), "sm_89"), ((9, 0), "sm_90a"), ((10, 0), "sm_100a")])
def test_the_target_of_the_current_device(monkeypatch, capability, target):
    monkeypatch.setattr(_compile_kernel, "Device", lambda: SimpleNamespace(compute_capability=capability))
    assert _compile_kernel._current_target() == target


def test_an_error_of_the_device_is_raised_if_there_is_a_driver(monkeypatch):
    def fail():
        raise OSError("no device")

    monkeypatch.setattr(_compile_kernel, "Device", fail)
    monkeypatch.setattr(_compile_kernel, "require_driver", lambda: None)
    with pytest.raises(OSError, match="no device"):
        _compile_kernel._current_target()
