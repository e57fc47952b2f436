"""Rows grouped by a code, such as the number of their partition."""

import numpy as np

_RADIX_CODES_MAX = 1 << 16


def stable_order(codes: np.ndarray, count: int) -> np.ndarray:
    """The rows by code, equal ones as they were. `codes`: from 0 to below `count`. Shape: (rows,)."""
    if count <= _RADIX_CODES_MAX:
        codes = codes.astype(np.uint16)  # NumPy sorts these by radix, several times faster
    return np.argsort(codes, kind="stable")


def rows_by_code(codes: np.ndarray, count: int) -> list[np.ndarray]:
    """For each code its rows, ascending."""
    ends = np.cumsum(np.bincount(codes, minlength=count))
    return np.split(stable_order(codes, count), ends[:-1])
