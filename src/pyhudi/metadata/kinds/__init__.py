"""The kinds of indexes of the metadata table, one module a kind. No other module tells kinds apart by their names.

`registry` gives the kinds, and the kind of a metadata partition; `protocol` says what each of them answers.
"""
