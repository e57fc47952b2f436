"""Base files of every format behind one protocol. Lives here: opening a base file, its rows, what it states of them.
Must not: know slices, logs or plans. Nothing outside this folder and the writers knows a format.
"""
