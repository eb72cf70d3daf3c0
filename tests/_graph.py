"""The definitions of graphs and executable graphs for the fake driver, in the form of cuda.core."""

from __future__ import annotations

import gc


class Node:
    def __init__(self, definition, handle):
        self.definition, self.handle = definition, handle

    @property
    def succ(self):
        return {
            node for node in self.definition.nodes() if self.handle in self.definition.driver.nodes[node.handle].after
        }


class Definition:
    """A GraphDefinition as in cuda.core, with nodes of the fake driver."""

    def __init__(self, driver, handle=0x6000):
        self.driver, self.handle = driver, handle

    def nodes(self):
        return {Node(self, handle) for handle, node in self.driver.nodes.items() if node.graph == self.handle}

    def instantiate(self):
        return Executable()


class Executable:
    handle, is_closed = 0x7000, False

    def upload(self):
        pass

    def launch(self):
        pass


def changed(driver):
    (node,) = driver.nodes.values()
    return node.executable[0x7000].arguments


class Thing:
    pass


def dropped():
    """Return whether the pending calls of this thread have run. Python runs pending calls between bytecodes."""
    for _ in range(100):
        pass
    gc.collect()
