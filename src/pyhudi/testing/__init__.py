"""For tests of whoever embeds pyhudi, or writes a storage: storages that count and crash, and a storage's contract.

Public. The library itself imports nothing from here.
"""
