"""Orbweaver: a web crawler that works in rounds, each one Spark job over Delta tables and object storage.

The journey of a URL:

1. A line of the inbox, or a link, is made canonical and filtered (`page.url`, `page.filters`), and gets a 64-bit key.
2. If no run of `url_checksums` holds the key, it enters the calendar, `frontier`, with the time it is due (`tables`).
3. When that time has come the plan takes it, within budgets, and puts its server into one partition (`transforms`).
4. A fetch task reads the plan, resolves and vets the address, and learns what robots.txt allows (`fetch`).
5. It waits for its turn with the host and the address, and asks, conditionally when a payload is held already.
6. The answer becomes WARC records, and the page its title, text, links and fingerprints (`page`, by MIME type).
7. Its outcome is sealed with the segment; from then on no crash asks for it again in this round.
8. Reconcile compares its content with all that was ever seen, and decides whether its links count (`transforms`).
9. What came of it goes to `captures`, links nobody knew to the calendar, and the URL itself to a later slot (`tables`).
10. One row in `rounds`, COMMITTED, makes all that true at once. `jobs/crawl_round.py` is this list as a program.
"""

__version__ = "0.1.0"
