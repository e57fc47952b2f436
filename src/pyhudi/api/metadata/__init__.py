"""The metadata table as a user meets it: what it knows, whether it is true, what it saves. How it is stored is not
here."""
