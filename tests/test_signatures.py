"""Tests that each signature of a compiled function appears once in ``help()`` and editors."""

import inspect
import pydoc

import pytest

import cuda_tma

COMPILED = {
    "create_tensor_map": cuda_tma.create_tensor_map,
    "create_tensor_maps": cuda_tma.create_tensor_maps,
    "launch": cuda_tma.launch,
    "prepare": cuda_tma.prepare,
    "from_bytes": cuda_tma.TensorMapDescriptor.from_bytes,
    "replace_address": cuda_tma.TensorMapDescriptor.replace_address,
    "upload": cuda_tma.TensorMapArray.upload,
    "as_tensor_map": cuda_tma.StridedMemoryView.as_tensor_map,
}


@pytest.mark.parametrize("name", COMPILED)
def test_help_shows_the_signature_once(name):
    # Python 3.13 divides a long signature into lines.
    shown = "".join(pydoc.plain(pydoc.render_doc(COMPILED[name])).split())
    assert shown.count(f"{name}{inspect.signature(COMPILED[name])}".replace(" ", "")) == 1
    assert inspect.getdoc(COMPILED[name])[0].isupper()


def test_help_shows_how_to_make_a_prepared_launch():
    shown = pydoc.plain(pydoc.render_doc(cuda_tma.PreparedLaunch))
    assert str(inspect.signature(cuda_tma.PreparedLaunch)) == "(kernel, config, *args)"
    assert shown.count("PreparedLaunch(kernel, config, *args)") == 1
    assert inspect.getdoc(cuda_tma.PreparedLaunch).startswith("A kernel with")
