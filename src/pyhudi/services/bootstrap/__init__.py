"""Making a table of a folder of files: what the folder holds, the plan, and carrying it out. Reading such tables is
elsewhere: `table/view/bootstrap.py` finds the source files, `table/slices/base_files/` stitches rows.
"""
