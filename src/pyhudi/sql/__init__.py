"""Spark SQL texts as values: which statement it is, which table it names, and slices of the text for Spark to evaluate.

Pure: no table is opened here, and no Spark is asked. Carrying statements out does not belong here.
"""
