# cython: boundscheck=False, wraparound=False, cdivision=True
"""The stamps of a shadow: each access looks at every unit that it touches, of which a wgmma has thousands."""

from libc.stdint cimport int32_t, int64_t

import numpy as np

cdef enum:
    COLUMN_BITS = 20  # of a stamp; above them is the epoch
    NOBODY = 0
    WARP = 32


cdef class Stamps:
    """Who touched each unit, in so many places for each.

    Attributes
    ----------
    values, notes : numpy.ndarray, [place, unit]
        The stamps; and of each, the site twice, and whether the access was strong.
    """

    cdef readonly object values
    cdef readonly object notes
    cdef int64_t[:, ::1] _values
    cdef int32_t[:, ::1] _notes

    def __init__(self, Py_ssize_t places, Py_ssize_t units):
        # Memory that is never touched is never there.
        self.values = np.zeros((places, units), np.int64)
        self.notes = np.zeros((places, units), np.int32)
        self._values, self._notes = self.values, self.notes

    def late(
        self, int places, const int64_t[::1] first, Py_ssize_t each,
        const int32_t[:, :] lanes, const int32_t[:, :] warps, const int64_t[::1] who, bint strong
    ):
        """In which places there is a stamp that is not known to who touches its unit now.

        Parameters
        ----------
        places : int
            A bit for each place that is looked at; so is the result.
        first : numpy.ndarray of int64
            Of each access the first unit, of `each`.
        lanes, warps : numpy.ndarray of int32, [lane, column], [warp, column]
            What is known, see `Known`.
        who : numpy.ndarray of int64
            The lane of each access; one, if all are of the same.
        strong : bool
            Whether what is strong itself does not count.
        """
        cdef int place, found = 0
        with nogil:
            for place in range(<int>self._values.shape[0]):
                if places >> place & 1 and self._is_late(place, first, each, lanes, warps, who, strong):
                    found |= 1 << place
        return found

    cdef bint _is_late(
        self, int place, const int64_t[::1] first, Py_ssize_t each,
        const int32_t[:, :] lanes, const int32_t[:, :] warps, const int64_t[::1] who, bint strong
    ) noexcept nogil:
        cdef const int64_t* stamps = &self._values[place, 0]
        cdef Py_ssize_t i, unit
        cdef int64_t stamp, epoch, column, known = NOBODY, lane = who[0]
        for i in range(first.shape[0]):
            if who.shape[0] > 1:
                lane, known = who[i], NOBODY
            for unit in range(first[i], first[i] + each):
                stamp = stamps[unit]
                if stamp == known or stamp == NOBODY or (strong and self._notes[place, unit] & 1):
                    continue
                column, epoch = stamp & ((1 << COLUMN_BITS) - 1), stamp >> COLUMN_BITS
                if lanes[lane, column] < epoch and warps[lane // WARP, column] < epoch:
                    return True
                known = stamp
        return False

    def put(
        self, const int64_t[::1] places, const int64_t[::1] first, Py_ssize_t each, const int64_t[::1] stamps, int note
    ):
        """Stamp units: of each access its own place and stamp, or one for all."""
        cdef Py_ssize_t i, unit, place = places[0]
        cdef int64_t stamp = stamps[0]
        with nogil:
            for i in range(first.shape[0]):
                place = places[i] if places.shape[0] > 1 else place
                stamp = stamps[i] if stamps.shape[0] > 1 else stamp
                for unit in range(first[i], first[i] + each):
                    self._values[place, unit] = stamp
                    self._notes[place, unit] = note

    def clear(self, int places, const int64_t[::1] first, Py_ssize_t each):
        """Nobody has touched units: in the places whose bits are set."""
        cdef int place
        cdef Py_ssize_t i, unit
        with nogil:
            for place in range(<int>self._values.shape[0]):
                if places >> place & 1:
                    for i in range(first.shape[0]):
                        for unit in range(first[i], first[i] + each):
                            self._values[place, unit] = NOBODY
