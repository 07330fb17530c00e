"""The data dictionary: every table of a lake, a sentence a column. The files of a segment are in `file_schemas`.

Where Common Crawl's index has a column of the same meaning, ours has its name. `crawler.schemas` is the one door: what
other modules need of `columns` and `file_schemas` has its name here too.
"""

from __future__ import annotations

from crawler.columns import Column, Table, arrow_schema, arrow_type, ddl
from crawler.file_schemas import (
    ADDRESSES,
    DISCOVERIES,
    HOST_COLUMNS,
    HOST_STATES,
    OUTCOME_COLUMNS,
    OUTCOMES,
    ROBOTS,
    URL_COLUMNS,
)

__all__ = [
    "ADDRESSES",
    "CAPTURES",
    "CONTENT_CHECKSUMS",
    "DISCOVERIES",
    "FRONTIER",
    "HOSTS",
    "HOST_COLUMNS",
    "HOST_STATES",
    "NEAR_DUPLICATES",
    "OUTCOMES",
    "OUTCOME_COLUMNS",
    "PLANS",
    "ROBOTS",
    "ROUNDS",
    "SEEDS",
    "SEGMENTS",
    "TABLES",
    "URL_CHECKSUMS",
    "URL_COLUMNS",
    "VISIT_COLUMNS",
    "Column",
    "Table",
    "arrow_schema",
    "arrow_type",
    "ddl",
]

VISIT_COLUMNS = (
    *URL_COLUMNS,
    Column("depth", "int", "Links followed from a seed to here on the way of its discovery; 0 for a seed."),
    Column("source_key", "bigint", "Key of the page or redirect it was first found on; null for a seed."),
    Column("source", "string", "How it was found: seed, link, redirect, sitemap, feed."),
    Column(
        "status",
        "string",
        "What we know of it: unfetched, fetched, not_modified, redir_temp, redir_perm, gone, unwanted.",
    ),
    Column("failures", "int", "Failed visits in a row; sets the back-off of 1, 2, 4, 8 weeks."),
    Column("visits", "int", "Requests made for it in all rounds."),
    Column("changes", "int", "How many of those visits found another payload than the one before."),
    Column("discovered_at", "timestamp", "Scheduling time of the round that found it."),
    Column("visited_at", "timestamp", "Time of the last request for it; null before the first."),
    Column("etag", "string", "ETag of the stored payload, sent back as If-None-Match."),
    Column("last_modified", "string", "Last-Modified of the stored payload, sent back as If-Modified-Since."),
    Column("content_digest", "string", "SHA-1 of the stored payload, base32 without label."),
    Column("digest_record_id", "string", "WARC-Record-ID of the record that holds that payload."),
    Column("digest_date", "string", "WARC-Date of that record."),
    Column("due_at", "timestamp", "Scheduling time from which the next visit may be planned."),
    Column("tier", "int", "Front queue: 0 is served first; partition of the calendar."),
    Column("seed_hops", "int", "Of a seed: redirects from a line of the inbox to here, 0 for the line itself."),
    Column("source_payload", "bigint", "Payload checksum of the page it was first found on; null without one."),
)

FRONTIER = Table(
    "frontier",
    "calendar",
    "A known URL and its next visit.",
    (*VISIT_COLUMNS, Column("slot", "int", "Hour since 1970 (UTC) at which the row is due: hours near, days, weeks.")),
    partitioned_by=("slot", "tier"),
)

HOSTS = Table(
    "hosts",
    "run",
    "A host, newest row wins.",
    (
        *HOST_COLUMNS,
        Column("horizon_at", "double", "Scheduling time (epoch seconds) up to which its new URLs are spread."),
        Column("round", "int", "Round that wrote the row; the newest row of a key counts."),
        Column("bucket", "int", "Range of keys; partition."),
        Column(
            "names_horizon_at",
            "double",
            "Scheduling time up to which new names of this owner of names (a registered domain) are spread.",
        ),
    ),
    partitioned_by=("bucket",),
    sorted_by=("host_key",),
)

PLANS = Table(
    "plans",
    "log",
    "A URL planned in a round, or a count of what was left out and why.",
    (
        Column("round", "int", "Round."),
        *VISIT_COLUMNS,
        Column("slot", "int", "Slot of the calendar it was taken from."),
        Column("kind", "string", "`url`: planned; `left_out`: not planned, counted by host and reason."),
        Column("reason", "string",
               "Why rows were left out: host_waiting, host_budget, domain_hosts, domain_share, address_budget, "
               "address_share, round_budget."),
        Column("rows", "bigint", "1 for a planned URL, the number of URLs for what was left out."),
        Column("position", "int",
               "Place in its host's back queue; for `domain_hosts` the place of the host among the new ones."),
        Column("gap_factor", "int", "The partition keeps this many times the gap to the host's addresses."),
        Column("grouped_by", "array<string>",
               "Addresses and robots hosts no other partition asks without a wider gap; at position 0 only."),
        Column("host_state", "struct<" + ",".join(f"{c.name}:{c.type}" for c in HOST_COLUMNS) + ">",
               "What is known of the host, on the row at position 0 only."),
        Column("partition", "int", "Fetch partition; all hosts of a server are in one. Partition of the table, too."),
    ),
    partitioned_by=("partition",),
    sorted_by=("round", "host", "position"),
)  # fmt: skip

CAPTURES = Table(
    "captures",
    "log",
    "One visit, or one planned URL that was not asked: all outcome fields and what reconcile made of them.",
    (
        Column("round", "int", "Round."),
        *(column for column in OUTCOME_COLUMNS if column.name not in {"links", "bands"}),
        Column("links_kept", "int", "Links that passed the filters."),
        Column("duplicate_kind", "string", "payload, text or near when an earlier capture has this content."),
        Column("duplicate_of_key", "bigint", "URL key of that earlier capture."),
        Column("duplicate_of_round", "int", "Round of that earlier capture."),
        Column("similarity", "double", "Estimated Jaccard similarity to it; 1.0 for payload and text."),
        Column("is_changed", "boolean", "Another payload than at the last visit; null at the first."),
    ),
    sorted_by=("round",),
)

URL_CHECKSUMS = Table(
    "url_checksums",
    "run",
    "A URL ever seen: its key.",
    (
        Column("url_key", "bigint", "64-bit key of the URL."),
        Column("round", "int", "Round that found it."),
        Column("bucket", "int", "Range of keys; partition."),
    ),
    partitioned_by=("bucket",),
    sorted_by=("url_key",),
)

CONTENT_CHECKSUMS = Table(
    "content_checksums",
    "run",
    "A distinct content ever seen and its first capture.",
    (
        Column("checksum", "bigint", "Checksum of the decoded payload, or of the text."),
        Column("kind", "string", "payload or text."),
        Column("url_key", "bigint", "URL key of the first capture."),
        Column("round", "int", "Round of the first capture."),
        Column("url", "string", "URL of the first capture."),
        Column("fetch_time", "timestamp", "Time of the first capture."),
        Column("warc_filename", "string", "WARC file of the first capture."),
        Column("warc_record_offset", "bigint", "Offset of its record."),
        Column("warc_record_length", "bigint", "Length of its record."),
        Column("warc_record_id", "string", "WARC-Record-ID of its record."),
        Column("signature", "binary", "Of a text: low byte of each MinHash permutation; null for short ones."),
        Column("bucket", "int", "Range of checksums; partition."),
    ),
    partitioned_by=("bucket",),
    sorted_by=("checksum",),
)

NEAR_DUPLICATES = Table(
    "near_duplicates",
    "run",
    "A band of a distinct document's MinHash signature.",
    (
        Column("band_key", "bigint", "64-bit key of the band: its number and the values in it."),
        Column("text_checksum", "bigint", "Checksum of the document's text: content_checksums has its signature."),
        Column("url_key", "bigint", "URL key of the document's first capture."),
        Column("round", "int", "Round of that capture."),
        Column("scheme", "string", "Scheme, seed, permutations, bands, shingle; others are not compared."),
        Column("bucket", "int", "Range of band keys; partition."),
    ),
    partitioned_by=("bucket",),
    sorted_by=("band_key",),
)

SEGMENTS = Table(
    "segments",
    "log",
    "An accepted segment: the files of one batch of a fetch partition. A WARC file exists because a row here names it.",
    (
        Column("round", "int", "Round."),
        Column("name", "string", "Name shared by its files; carries round, partition, attempt and a UUID."),
        Column("partition", "int", "Fetch partition."),
        Column("attempt", "int", "Attempt at the partition, from 1: the number of its lease."),
        Column("outcomes", "string", "Outcomes file, relative to the lake."),
        Column("discoveries", "string", "Discoveries file."),
        Column("hosts", "string", "Host states file."),
        Column("warcs", "map<string,string>", "WARC file by subset."),
        Column("warc_bytes", "map<string,bigint>", "Size of each."),
        Column("warc_sha256", "map<string,string>", "SHA-256 of each, hexadecimal."),
        Column("rows", "int", "Outcome rows."),
    ),
    sorted_by=("round",),
)

SEEDS = Table(
    "seeds",
    "log",
    "A line of the inbox and the verdict on it, or what a seed redirected to, which is a seed as well.",
    (
        Column("round", "int", "Round that took it in."),
        Column("line", "string", "The line as given, bounded; null for what a seed redirected to."),
        Column("url_key", "bigint", "Key of the canonical URL; null when refused."),
        Column("url", "string", "Canonical URL; null when refused."),
        Column("host", "string", "Its host."),
        Column("registered_domain", "string", "Its registered domain; with hosts it makes the scope."),
        Column("verdict", "string", "admitted, known, or the reason of the refusal."),
        Column("inbox_file", "string", "File it came in; null for what a seed redirected to."),
        Column("redirected_from", "string", "The seed that redirected here in that round; null for a line."),
        Column("seed_hops", "int", "Redirects from a line of the inbox to here; null for a line."),
    ),
    sorted_by=("round",),
)

ROUNDS = Table(
    "rounds",
    "log",
    "A state a round reached. The row COMMITTED is the commit of all tables.",
    (
        Column("round", "int", "Number of the round, from 1."),
        Column("state", "string", "OPENED, PLANNED, FETCHED or COMMITTED."),
        Column("now_at", "timestamp", "Scheduling time of the round."),
        Column("recorded_at", "timestamp", "Real time of this row."),
        Column("segment_folder", "string", "Folder of its WARC files, relative to the lake."),
        Column(
            "versions",
            "map<string,bigint>",
            "Version of every table: the round reads it from here on; COMMITTED: after it.",
        ),
        Column("inbox", "array<string>", "Inbox files it took in."),
        Column("counts", "map<string,bigint>", "Counts of this stage."),
        Column("settings_hash", "string", "Checksum of the settings."),
        Column("holder", "string", "Who held the lock."),
        Column("token", "bigint", "Fencing token of the lock."),
        Column("settings", "string", "All settings of this stage, as JSON; null where an older version ran it."),
    ),
    sorted_by=("round",),
)

TABLES = (
    FRONTIER, PLANS, CAPTURES, URL_CHECKSUMS, CONTENT_CHECKSUMS, NEAR_DUPLICATES, HOSTS, SEGMENTS, SEEDS, ROUNDS
)  # fmt: skip
