"""Storages for tests: one that counts requests, one that crashes at a chosen change.

Public, for whoever embeds pyhudi or writes a storage. The library itself imports nothing from here."""
