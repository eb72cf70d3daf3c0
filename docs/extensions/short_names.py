"""Short names in docstrings and signatures. A public name such as ``TensorMapDescriptor`` appears without its module.
The short name links to ``cuda_tma.TensorMapDescriptor``, or to the name in its own module.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

MODULES = ("cuda_tma", "cuda_tma.simulate", "cuda_tma.params")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("missing-reference", _resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Element) -> nodes.Element | None:
    if node.get("refdomain") != "py":
        return None
    domain = env.domains.python_domain
    name = node["reftarget"]
    for whole in (name, *(f"{module}.{name}" for module in MODULES)):
        if whole in domain.objects:
            return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", whole, node, content)
    return None
