"""Hudi tables in SQL and in streams of Spark Connect, where the client plans and the server's Python takes part.

How the server is asked is in `engine/spark/connect/`.
"""
