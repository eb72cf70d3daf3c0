"""Tests of the demangling of names when a library lacks the demangler, or when the demangling process cannot start or
does not end."""

import ctypes
import subprocess

import pytest

from cuda_tma._compile import plain_names

EXPRESSION = f"_Z1fI{plain_names._EXPRESSION}Lj1ELj2EEEvv"


@pytest.fixture
def fresh():
    plain_names._demangler.cache_clear()
    yield
    plain_names._demangler.cache_clear()


@pytest.mark.parametrize("error", [OSError, AttributeError])
def test_without_a_library_there_is_no_demangler(fresh, monkeypatch, error):
    def missing(name):
        raise error

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert plain_names._demangler() is None


@pytest.mark.parametrize("error", [OSError(11, "no process"), subprocess.TimeoutExpired("python", 1)])
def test_a_name_is_not_demangled_if_its_process_fails(monkeypatch, error):
    def fail(*arguments, **settings):
        raise error

    monkeypatch.setattr(subprocess, "run", fail)
    assert plain_names._called_apart("libstdc++.so.6", str.upper, EXPRESSION) is None
    assert plain_names._called_apart("libstdc++.so.6", str.upper, "_Z1fv") == "_Z1FV"
