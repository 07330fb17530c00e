"""A crawl of a web nobody here wrote: `python -m tests.real_input.run`. The server's own log is the witness."""
