"""The command `pyhudi`: a thin shell over `pyhudi.api`."""
