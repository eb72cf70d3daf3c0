"""Pipelines that Hypothesis draws, and their necessary statements."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from hypothesis import strategies as st

_SPANS = {"SWIZZLE_NONE": (32, 64, 128), "SWIZZLE_32B": (32,), "SWIZZLE_64B": (64,), "SWIZZLE_128B": (128,)}
_TYPES = {"unsigned char": 1, "unsigned short": 2, "unsigned": 4}
_COPIES = ("TMA", "IM2COL", "BULK")
_ONE_READS = ("STORE", "REDUCE", "STORE_BULK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """The macros of ``pipeline.cu`` for one pipeline, in lower case, and the launch of the pipeline.

    Attributes
    ----------
    grid, multiprocessors, items : int
        The number of CTAs, of multiprocessors (fewer than CTAs if these run in waves), and of tiles of all CTAs.
    element, swizzle, cols, slices : The data type, the swizzle, the number of elements in a row, and the number of rows
    in a tile divided by 8. consumers, producers : int
        Threads.
    """

    producer: str = "TMA"
    consumer: str = "LOADS"
    release: str = "EACH"
    epilogue: str = "DIRECT"
    exchange: str = "ALONE"
    finish: str = "NO_PEER"
    handoff: str = "NO_HANDOFF"
    multicast: bool = False
    together: bool = False
    groups: bool = False
    delay: bool = False
    stages: int = 2
    ctas: int = 1
    grid: int = 1
    multiprocessors: int = 1
    items: int = 3
    element: str = "unsigned"
    swizzle: str = "SWIZZLE_NONE"
    cols: int = 16
    slices: int = 1
    consumers: int = 32
    producers: int = 32
    loaders: int = 1
    buffers: int = 1
    starter: int = 0

    @property
    def element_bytes(self) -> int:
        return _TYPES[self.element]

    @property
    def block(self) -> int:
        return self.consumers + (0 if self.together else self.producers)

    @property
    def workers(self) -> int:
        """Return the number of workers that process tiles. A worker is a CTA, or a cluster with multicast."""
        return self.grid // self.ctas if self.multicast else self.grid

    @property
    def turns(self) -> int:
        """Return the largest number of tiles that a worker processes."""
        return -(-self.items // self.workers)

    @property
    def copies(self) -> bool:
        """Return whether a tensor copy or a bulk copy fills the stages."""
        return self.producer in _COPIES

    @property
    def reads_once(self) -> bool:
        """Return whether only one thread reads a stage, by an asynchronous store from the stage."""
        return self.consumer in _ONE_READS

    @property
    def remote(self) -> bool:
        """Return whether other CTAs fill or release a stage."""
        return self.multicast or self.producer == "ST_ASYNC"

    def defines(self, fault: str = "NOTHING") -> dict[str, object]:
        """Return the macros of the pipeline without one statement."""
        values = {name.upper(): value for name, value in asdict(self).items()}
        number = {"LOADS": 0, "WGMMA": 1, "STORE": 2, "REDUCE": 3, "STORE_BULK": 4}[self.consumer]
        launch = ("GRID", "MULTIPROCESSORS", "ITEMS")
        macros = {name: int(v) if isinstance(v, bool) else v for name, v in values.items() if name not in launch}
        return macros | {"CONSUMER": number, "FAULT": fault}


@st.composite
def pipelines(draw) -> Pipeline:
    """Draw a random pipeline that has all necessary statements."""
    consumer = draw(st.sampled_from(["LOADS"] * 5 + ["WGMMA", "STORE", "REDUCE", "STORE_BULK"]))
    producers = ["TMA", "TMA", "BULK", "CP_ASYNC", "STORES", "IM2COL"] + ["ST_ASYNC"] * (consumer == "LOADS")
    if consumer == "WGMMA":
        producers = ["TMA", "STORES"]
    producer = draw(st.sampled_from(producers))
    ctas = draw(st.sampled_from([2, 4] if producer == "ST_ASYNC" else [1, 1, 2, 4]))
    multicast = producer in ("TMA", "BULK") and ctas > 1 and draw(st.booleans())
    together = producer in _COPIES and consumer == "LOADS" and not multicast and draw(st.integers(0, 3)) == 0
    found = Pipeline(producer=producer, consumer=consumer, ctas=ctas, multicast=multicast, together=together)
    return _ends(draw, _threads(draw, _tile(draw, found)))


def _tile(draw, of: Pipeline) -> Pipeline:
    if of.consumer == "WGMMA":
        return replace(
            of, element="unsigned short", swizzle="SWIZZLE_128B", cols=64, slices=8, stages=draw(st.integers(1, 3))
        )
    plain = of.producer not in ("TMA", "IM2COL", "STORES") or of.consumer == "STORE_BULK"
    swizzle = "SWIZZLE_NONE" if plain else draw(st.sampled_from([*_SPANS]))
    element = "unsigned" if of.consumer == "REDUCE" else draw(st.sampled_from([*_TYPES]))
    cols = draw(st.sampled_from(_SPANS[swizzle])) // _TYPES[element]
    slices = of.ctas if of.multicast else draw(st.integers(1, 2))
    return replace(of, element=element, swizzle=swizzle, cols=cols, slices=slices, stages=draw(st.integers(1, 4)))


def _threads(draw, of: Pipeline) -> Pipeline:
    consumers = 128 if of.consumer == "WGMMA" else 32 if of.consumer in _ONE_READS else 32 * draw(st.integers(1, 3))
    producers = 32 if of.copies else 32 * draw(st.integers(1, 2))
    two = of.copies and of.producer != "IM2COL" and not (of.multicast or of.together) and of.slices % 2 == 0
    releases = ["EACH", "WARP", "LATE", "COUNTED", "GROUP"] + ["HEADER"] * (of.producer != "ST_ASYNC")
    clusters = draw(st.integers(1, max(1, 6 // of.ctas)))
    workers = clusters if of.multicast else clusters * of.ctas
    of = replace(of, consumers=consumers, producers=producers, loaders=draw(st.integers(1, 1 + two)))
    return replace(
        of,
        release=draw(st.sampled_from(releases)),
        grid=clusters * of.ctas,
        multiprocessors=draw(st.sampled_from([1, 1, 4])),
        items=draw(st.integers(0 if draw(st.booleans()) else workers, 4 * workers)),
        groups=draw(st.booleans()),
        delay=of.stages > 1 and draw(st.booleans()),
        starter=draw(st.sampled_from([0, 31, of.block - 32, of.block - 1])),
    )


def _ends(draw, of: Pipeline) -> Pipeline:
    reads = of.consumer == "LOADS"
    finishes = ["NO_PEER"] + (
        ["NO_PEER", "PEER_LOADS", "PEER_STORES", "PEER_ASYNC", "PEER_BULK"] if of.ctas > 1 else []
    )
    finish = draw(st.sampled_from(finishes))
    handoffs = ["NO_HANDOFF"] * 3 + ["LAST", "LAST_ACQ_REL"] + ["LAST_LOADED"] * (finish == "NO_PEER")
    # A chain with many spinning threads takes too much time.
    handoffs += ["CHAIN"] * (of.grid < 4)
    return replace(
        of,
        finish=finish,
        handoff=draw(st.sampled_from(handoffs)),
        epilogue=draw(st.sampled_from(["DIRECT", "ATOMIC", "STAGED", "STAGED_REDUCE"])) if reads else "DIRECT",
        exchange=draw(st.sampled_from(["ALONE", "ALONE", "NEIGHBOURS", "LANES"])) if reads else "ALONE",
        buffers=draw(st.integers(1, 2)),
    )
