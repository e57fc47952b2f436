"""Rows grouped by a code, such as the number of their partition."""

import numpy as np

_RADIX_CODES_MAX = 1 << 16


def stable_order(codes: np.ndarray, count: int) -> np.ndarray:
    """The numbers of the rows, sorted by code; equal codes keep their order.

    `codes`: 0 to `count` - 1. Shape: (rows,).
    """
    if count <= _RADIX_CODES_MAX:
        codes = codes.astype(np.uint16)  # NumPy sorts these by radix, several times faster
    return np.argsort(codes, kind="stable")


def rows_by_code(codes: np.ndarray, count: int) -> list[np.ndarray]:
    """For each code the numbers of its rows, ascending."""
    ends = np.cumsum(np.bincount(codes, minlength=count))
    return np.split(stable_order(codes, count), ends[:-1])
