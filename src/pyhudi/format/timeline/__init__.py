"""The files of the timeline, active and archived: their names' instants, their records and schemas.

Which files a timeline has, and where, is decided in `timeline/`."""
