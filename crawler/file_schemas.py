"""The data dictionary, part one: the files that a fetch partition writes beside its WARC files, a sentence a column.

Where Common Crawl's index has a column of the same meaning, ours has its name.
"""

from __future__ import annotations

from crawler.columns import Column, Table

ADDRESSES = "array<struct<address:string,expires_at:double>>"
ROBOTS = "array<struct<scheme:string,fetched_at:double,status:int,body:binary>>"

URL_COLUMNS = (
    Column("url_key", "bigint", "64-bit key of the URL: high 24 bits from the host, low 40 from the whole URL."),
    Column("url", "string", "The canonical URL, ASCII."),
    Column("host", "string", "Host name in A-label form, with the port where it is not the scheme's own."),
)

HOST_COLUMNS = (
    Column("host_key", "bigint", "64-bit key of the host; its high 24 bits are those of its URLs' keys."),
    Column("host", "string", "Host name in A-label form, with the port where it is not the scheme's own."),
    Column("registered_domain", "string", "Registered domain by the public suffix list; the host itself for an IP."),
    Column("addresses", ADDRESSES, "Last answer of the resolver, each address with its expiry."),
    Column("robots", ROBOTS, "Last robots.txt per scheme: when, final HTTP status (0: unreachable), body."),
    Column("robots_hosts", "array<string>", "Other hosts that its robots.txt led to; plans keep them together."),
    Column("crawl_delay_s", "double", "Crawl-delay that robots.txt asks of us, as written."),
    Column("not_before", "double", "Epoch seconds of real time before which no request is made (Retry-After)."),
    Column("last_request_at", "double", "Epoch seconds of real time at which the last request began."),
    Column("last_fetch_s", "double", "How long the last exchange took, seconds."),
    Column("failures", "int", "Rounds in a row that ended with the host out of the round."),
)

OUTCOME_COLUMNS = (
    *URL_COLUMNS,
    Column("outcome", "string", "What happened, one of records.Outcome."),
    Column("reason", "string", "The detail behind it, for people."),
    Column("fetch_time", "timestamp", "Start of the request, or of the decision not to ask."),
    Column("fetch_s", "double", "How long the exchange took, seconds."),
    Column("fetch_status", "smallint", "HTTP status; null when there was no response."),
    Column("fetch_redirect", "string", "Canonical target of a redirect."),
    Column("redirect_key", "bigint", "Key of that target when the filters accept it."),
    Column("retry_at", "double", "Epoch seconds at which the server allows another try; null when it did not say."),
    Column("address", "string", "Address that was connected to."),
    Column("http_version", "string", "Version on the status line, such as 1.1."),
    Column("tls_verdict", "string", "ok, expired, wrong_host, self_signed, untrusted, other; null without TLS."),
    Column("content_mime_type", "string", "MIME type by the Content-Type header."),
    Column("content_mime_detected", "string", "MIME type by the bytes; it chose the document module."),
    Column("content_charset", "string", "Encoding used to read the text, WHATWG name."),
    Column("content_charset_source", "string", "Found by: bom, header, meta, content (valid UTF-8), default."),
    Column("content_truncated", "string", "WARC-Truncated reason: length, time, disconnect, unspecified (unwanted)."),
    Column("content_length", "bigint", "Bytes of the body as stored (de-chunked, still content-coded)."),
    Column("content_digest", "string", "SHA-1 of that body, base32 without label; null when truncated."),
    Column("payload_checksum", "bigint", "64-bit checksum of the decoded body; null when truncated or empty."),
    Column("text_checksum", "bigint", "64-bit checksum of the text's normalised words; null without enough of them."),
    Column("text_words", "int", "Number of words of the text."),
    Column("title", "string", "Title, bounded."),
    Column("signature", "binary", "Low byte of each MinHash permutation; null for short texts."),
    Column("bands", "array<bigint>", "Keys of the MinHash bands."),
    Column("directives", "array<string>", "Robots directives of page and head: noindex, nofollow, noarchive."),
    Column("links", "array<bigint>", "Keys of the distinct links that may be followed."),
    Column("links_found", "int", "Distinct links found before any filter."),
    Column("links_refused", "map<string,int>", "Links refused, by reason."),
    Column("etag", "string", "ETag of the response."),
    Column("last_modified", "string", "Last-Modified of the response."),
    Column("parse_status", "string", "ok, not_parsed, truncated, failed, killed; null without anything to parse."),
    Column("warc_filename", "string", "WARC file, relative to the lake; null when nothing was stored."),
    Column("warc_record_offset", "bigint", "Offset of the response or revisit record's gzip member."),
    Column("warc_record_length", "bigint", "Length of that member."),
    Column("warc_record_id", "string", "WARC-Record-ID of that record."),
    Column("warc_record_type", "string", "response or revisit."),
    Column("warc_date", "string", "WARC-Date of that record."),
    Column("partition", "int", "Fetch partition."),
    Column("seed_hops", "int", "Of a seed whose redirect target is a seed then: redirects from a line to that target."),
)

OUTCOMES = Table("outcomes", "file", "The outcomes of a segment; its creation seals the segment.", OUTCOME_COLUMNS)

DISCOVERIES = Table(
    "discoveries",
    "file",
    "The text of the distinct URLs that a segment's pages link to and that the filters accept.",
    (
        *URL_COLUMNS,
        Column("host_key", "bigint", "64-bit key of the host."),
        Column("registered_domain", "string", "Registered domain of the host."),
        Column("source", "string", "How it was found first: link, redirect, sitemap, feed."),
    ),
)

HOST_STATES = Table(
    "host_states",
    "file",
    "The hosts a segment asked, as it left them.",
    (*HOST_COLUMNS, Column("is_out", "boolean", "The host failed too often and left the round.")),
)
