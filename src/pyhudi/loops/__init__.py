"""Loops over bytes and numbers: functions that run as Python over few values, and compiled over many.

Here is only how a loop is run, compiled and kept. What a loop computes stands with its subject, such as in `format/`.
"""

from pyhudi.loops.dispatch import inlined, loop, loop_over

__all__ = ["inlined", "loop", "loop_over"]
