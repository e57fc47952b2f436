"""Upgrades and downgrades: a table becomes one of another version, with its timeline, history, properties and indexes.

One module a step. Nothing here rewrites rows: what must be compacted first is compacted by `services/compaction/`.
"""
