"""The necessary statements of a random pipeline. Without a necessary statement, two accesses are unordered, or a thread
waits forever.

A statement can be unnecessary, for example a wait for a free stage if there are more stages than tiles. The tests never
omit an unnecessary statement.
"""

from __future__ import annotations

from .shape import Pipeline

_WARPS = ("WARP", "LATE", "COUNTED")


def faults_of(of: Pipeline) -> list[str]:
    """Return the names of the necessary statements of a pipeline in `pipeline.cu`."""
    if of.items < of.workers:
        return []
    return [*_of_stages(of), *_of_consumers(of), *_of_ends(of)]


def _chosen(given: dict[str, object]) -> list[str]:
    return [name for name, matters in given.items() if matters]


def _of_stages(of: Pipeline) -> list[str]:
    reads, written = of.consumer == "LOADS", of.producer in ("CP_ASYNC", "STORES")
    # The pipeline fills a stage a second time.
    again = of.turns > of.stages
    ring = again and not of.together
    told_narrowly = (of.remote and reads and ring and of.release != "HEADER") or of.finish == "PEER_STORES"
    return _chosen(
        {
            "INIT_FENCE": of.copies,
            "INIT_BARRIER": True,
            "FULL_WAIT": True,
            "EMPTY_WAIT": ring,
            "WRITE_FENCE": written and not reads,
            "ARRIVE": written,
            "COPY_WAIT": of.producer == "CP_ASYNC" and (of.groups or not reads),
            "RELEASE_FENCE": of.copies and reads and again,
            "RELEASE_BARRIER": reads and again and (of.together or of.release in (*_WARPS, "GROUP")),
            "ARRIVE_EMPTY": ring,
            "RELEASE_SCOPE": told_narrowly,
            "ACQUIRE_SCOPE": told_narrowly,
            "FULL_COUNT": True,
            "EMPTY_COUNT": ring,
            "TX_BYTES": of.copies or of.producer == "ST_ASYNC",
            "PARITY": not of.together,
        }
    )


def _of_consumers(of: Pipeline) -> list[str]:
    again, staged, one = of.turns > of.stages, of.epilogue.startswith("STAGED"), of.reads_once
    return _chosen(
        {
            "STORE_READ": one and again,
            "PRODUCT_WAIT": of.consumer == "WGMMA" and again,
            "PRODUCT_FENCE": of.consumer == "WGMMA",
            "REUSE_WAIT": staged and of.turns > of.buffers,
            "REUSE_BARRIER": staged and of.turns > of.buffers,
            "STORE_FENCE": staged,
            "STORE_BARRIER": staged,
            "LAST_WAIT": staged or (one and of.delay),
            "EXCHANGE_BARRIER": of.exchange != "ALONE",
            "EXCHANGE_AGAIN": of.exchange != "ALONE" and of.turns > 1 and not _meet_anyway(of),
        }
    )


def _meet_anyway(of: Pipeline) -> bool:
    """Return whether another barrier between two iterations also orders the threads that exchange sums."""
    by_warps = of.release in _WARPS or (of.release == "HEADER" and of.copies)
    in_warps = of.exchange == "LANES" or of.consumers == 32
    return of.together or of.release == "GROUP" or of.epilogue.startswith("STAGED") or (by_warps and in_warps)


def _of_ends(of: Pipeline) -> list[str]:
    told, handed = of.finish != "NO_PEER", of.handoff != "NO_HANDOFF"
    others = handed and of.grid > 1
    left_alone = of.remote and not told and not handed
    return _chosen(
        {
            "PEER_BARRIER": of.finish == "PEER_BULK",
            "PEER_WAIT": told or of.handoff == "LAST_LOADED",
            "PEER_FENCE": of.finish == "PEER_BULK",
            "CLUSTER_END": left_alone or of.finish in ("PEER_LOADS", "PEER_BULK"),
            "HANDOFF_BARRIER": others,
            "HANDOFF_RELEASE": others,
            "HANDOFF_ACQUIRE": others and of.handoff in ("LAST", "CHAIN"),
            "HANDOFF_TOLD": others,
            "HANDOFF_PROXY": of.handoff == "LAST_LOADED",
        }
    )
