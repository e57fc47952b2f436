"""Loops over bytes and numbers: functions that run as Python over few values and compiled over many.

What a loop computes stands where it belongs (`format/`); here is only how it is run, compiled and kept.
"""

from pyhudi.loops.dispatch import inlined, loop, loop_over

__all__ = ["inlined", "loop", "loop_over"]
