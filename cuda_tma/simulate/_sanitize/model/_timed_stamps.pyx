# cython: boundscheck=False, wraparound=False, cdivision=True
"""The stamps of a shadow of memory that lasts longer than the clusters that touch it."""

from libc.stdint cimport int32_t, int64_t

import numpy as np

from ._bits cimport COLUMN_BITS, FENCED, NOBODY, ORDERED, SLOT_BITS, WARP, fill


cdef class TimedStamps:
    """As `Stamps`, where who touched a unit may be gone: with each stamp is the place of a cluster, and the time.

    Attributes
    ----------
    stamps, whens, sites : numpy.ndarray, [place, unit]
        In `whens` the time and the place of the cluster; in `sites` the site.
    """

    cdef readonly object stamps
    cdef readonly object whens
    cdef readonly object sites
    cdef int64_t[:, ::1] _stamps
    cdef int64_t[:, ::1] _whens
    cdef int32_t[:, ::1] _sites

    def __init__(self, Py_ssize_t places, Py_ssize_t units):
        self.stamps = np.zeros((places, units), np.int64)
        self.whens = np.zeros((places, units), np.int64)
        self.sites = np.zeros((places, units), np.int32)
        self._stamps, self._whens, self._sites = self.stamps, self.whens, self.sites

    def operate(
        self, const int64_t[::1] first, Py_ssize_t each, const int32_t[:, ::1] clock, int visible, bint fenced,
        Py_ssize_t threads, int64_t started, int place, int64_t stamp, int64_t when, int site
    ):
        """As `Stamps.operate`, by the cluster of `when`; in the last place it is a write.

        Parameters
        ----------
        visible : int
            The row of `clock` for writes before; of reads it is the first.
        fenced : bool
            Whether a fence must be between, too.
        threads : int
            Columns of threads, before those of clusters' times.
        started : int
            When the cluster of `when` began.
        """
        cdef int at, last = <int>self._stamps.shape[0] - 1
        cdef Py_ssize_t i
        cdef bint known = True
        with nogil:
            for at in range(last if place < last else 0, last + 1):
                known = known and self._is_known(
                    at, first, each, &clock[visible if at == last else ORDERED, 0], &clock[FENCED, 0], fenced, threads,
                    when & ((1 << SLOT_BITS) - 1), started
                )
            if known:
                for i in range(first.shape[0]):
                    self._fill(place, first[i], first[i] + each, stamp, when, site)
                    for at in range(last if place == last else 0):
                        fill(&self._stamps[at, 0], first[i], first[i] + each, NOBODY)
        return known

    def touch(
        self, const int64_t[::1] first, Py_ssize_t each, const int32_t[:, :, :] lanes, const int32_t[:, :, :] warps,
        int visible, Py_ssize_t threads, const int64_t[::1] started, const int64_t[::1] who, int64_t now, int place,
        int site
    ):
        """Put weak accesses of threads, if each follows the accesses before it; else change nothing.

        Parameters
        ----------
        lanes, warps : numpy.ndarray of int32, [row, lane, column], [row, warp, column]
            The clocks, see `Known`.
        visible, threads
            As of `operate`.
        started : numpy.ndarray of int64, [slot]
            The times at which the present clusters began.
        who : numpy.ndarray of int64
            The lane of each access.
        now : int
            The present time.
        place : int
            The place of these accesses. In the last place they are writes.

        Returns
        -------
        int
            0 if nothing has changed, 2 if two of the accesses write one unit, else 1.
        """
        cdef int at, last = <int>self._stamps.shape[0] - 1, found = 0
        cdef Py_ssize_t i
        cdef bint follow = True
        with nogil:
            for at in range(last if place < last else 0, last + 1):
                follow = follow and self._follow(
                    at, visible if at == last else ORDERED, first, each, lanes, warps, threads, started, who
                )
            if follow:
                found = self._put_own(place, first, each, lanes, threads, who, now, site)
                for i in range(first.shape[0] if place == last else 0):
                    for at in range(last):
                        fill(&self._stamps[at, 0], first[i], first[i] + each, NOBODY)
        return found

    cdef bint _follow(
        self, int place, int row, const int64_t[::1] first, Py_ssize_t each, const int32_t[:, :, :] lanes,
        const int32_t[:, :, :] warps, Py_ssize_t threads, const int64_t[::1] started, const int64_t[::1] who
    ) noexcept nogil:
        cdef Py_ssize_t i, unit
        cdef int64_t stamp, when, epoch, column, whose, time, lane, warp
        for i in range(first.shape[0]):
            lane, warp = who[i], who[i] // WARP
            for unit in range(first[i], first[i] + each):
                stamp, when = self._stamps[place, unit], self._whens[place, unit]
                if stamp == NOBODY:
                    continue
                column, epoch = stamp & ((1 << COLUMN_BITS) - 1), stamp >> COLUMN_BITS
                whose, time = when & ((1 << SLOT_BITS) - 1), when >> SLOT_BITS
                if whose == lane // threads and time >= started[whose]:
                    if lanes[row, lane, column] >= epoch or warps[row, warp, column] >= epoch:
                        continue
                if lanes[row, lane, threads + whose] < time and warps[row, warp, threads + whose] < time:
                    return False
        return True

    cdef int _put_own(
        self, int place, const int64_t[::1] first, Py_ssize_t each, const int32_t[:, :, :] lanes, Py_ssize_t threads,
        const int64_t[::1] who, int64_t now, int site
    ) noexcept nogil:
        cdef int found = 1
        cdef Py_ssize_t i, unit
        cdef int64_t lane, column, stamp, when
        for i in range(first.shape[0]):
            lane, column = who[i], who[i] % threads
            when = now << SLOT_BITS | lane // threads
            for unit in range(first[i], first[i] + each):
                if self._whens[place, unit] >> SLOT_BITS == now and self._stamps[place, unit] != NOBODY:
                    found = 2
            stamp = <int64_t>lanes[ORDERED, lane, column] << COLUMN_BITS | column
            self._fill(place, first[i], first[i] + each, stamp, when, site)
        return found

    cdef bint _is_known(
        self, int place, const int64_t[::1] first, Py_ssize_t each, const int32_t* row, const int32_t* behind_fence,
        bint fenced, Py_ssize_t threads, int64_t slot, int64_t started
    ) noexcept nogil:
        cdef Py_ssize_t i, unit
        cdef int64_t stamp, when, epoch, column, whose, time, stamp_before = NOBODY, when_before = 0
        cdef bint here, known
        for i in range(first.shape[0]):
            for unit in range(first[i], first[i] + each):
                stamp, when = self._stamps[place, unit], self._whens[place, unit]
                if stamp == NOBODY or (stamp == stamp_before and when == when_before):
                    continue
                column, epoch = stamp & ((1 << COLUMN_BITS) - 1), stamp >> COLUMN_BITS
                whose, time = when & ((1 << SLOT_BITS) - 1), when >> SLOT_BITS
                here = whose == slot and time >= started
                known = (here and row[column] >= epoch) or row[threads + whose] >= time
                if fenced and known:
                    here = here and column >= threads
                    known = (here and behind_fence[column] >= epoch) or behind_fence[threads + whose] >= time
                if not known:
                    return False
                stamp_before, when_before = stamp, when
        return True

    cdef void _fill(
        self, int place, Py_ssize_t start, Py_ssize_t stop, int64_t stamp, int64_t when, int site
    ) noexcept nogil:
        cdef Py_ssize_t unit
        cdef int32_t* sites = &self._sites[place, 0]
        fill(&self._stamps[place, 0], start, stop, stamp)
        fill(&self._whens[place, 0], start, stop, when)
        for unit in range(start, stop):
            sites[unit] = site
