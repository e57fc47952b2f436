"""Where each row of a write goes. The plans are pure.

Files are written in `handles/`."""
