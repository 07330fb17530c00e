"""Every setting, once, with its type and its bounds; the sentences and units stand in `conf/default.toml`.

The sections are plain frozen dataclasses, so executors need no validation library; `load_settings` in
`crawler.settings_files` is the one way from files, environment and command line to a `Settings`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Gt, Le, Len

Share = Annotated[float, Ge(0), Le(1)]
Seconds = Annotated[float, Ge(0)]
Count = Annotated[int, Ge(1)]
Follow = Literal["follow", "demote", "skip"]


@dataclass(frozen=True)
class Section:
    """A table of the settings file. Unknown keys, infinities and NaN are refused."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "allow_inf_nan": False}


@dataclass(frozen=True)
class CrawlSettings(Section):
    name: Annotated[str, Len(1, 40)] = "ORB-MAIN"
    contact: str = ""
    user_agent: str = "orbweaver"
    operator: str = ""


@dataclass(frozen=True)
class LakeSettings(Section):
    buckets: Annotated[int, Ge(1), Le(65536)] = 4


@dataclass(frozen=True)
class RoundSettings(Section):
    max_urls: Count = 100_000
    max_urls_per_host: Count = 1_000
    max_domain_share: Annotated[float, Gt(0), Le(1)] = 0.1
    max_new_hosts_per_domain: Count = 100
    time_limit_s: Annotated[float, Gt(0)] = 3_600.0
    partitions: Annotated[int, Ge(0)] = 0
    max_hosts_per_address: Count = 50


@dataclass(frozen=True)
class FetchSettings(Section):
    delay_s: Seconds = 1.0
    delay_factor: Seconds = 0.0
    address_delay_share: Share = 0.25
    max_crawl_delay_s: Seconds = 30.0
    max_retry_after_s: Seconds = 21_600.0
    connections: Count = 200
    slow_connections: Count = 200
    max_connection_share: Annotated[float, Gt(0), Le(1)] = 0.25
    allow_addresses: tuple[str, ...] = ()
    only_allowed: bool = False
    host_map: str = ""
    verify_tls: bool = False
    dns_ttl_s: Seconds = 3_600.0
    robots_ttl_s: Annotated[float, Ge(0), Le(86_400)] = 86_400.0
    robots_retry_s: Seconds = 300.0
    robots_max_bytes: Annotated[int, Ge(512_000)] = 512_000
    max_body_bytes: Count = 5 * 1024 * 1024
    max_decoded_bytes: Count = 10 * 1024 * 1024
    max_head_bytes: Count = 65_536
    max_header_fields: Count = 200
    connect_timeout_s: Annotated[float, Gt(0)] = 10.0
    tls_timeout_s: Annotated[float, Gt(0)] = 10.0
    head_timeout_s: Annotated[float, Gt(0)] = 20.0
    idle_timeout_s: Annotated[float, Gt(0)] = 20.0
    exchange_timeout_s: Annotated[float, Gt(0)] = 120.0
    min_rate: Annotated[float, Ge(0)] = 240.0
    rate_window_s: Annotated[float, Gt(0)] = 20.0
    max_host_failures: Count = 5


@dataclass(frozen=True)
class SegmentSettings(Section):
    max_bytes: Count = 1_000_000_000
    max_urls: Count = 2_000
    max_seconds: Annotated[float, Gt(0)] = 60.0


@dataclass(frozen=True)
class UrlSettings(Section):
    strip_fragment: bool = True
    strip_userinfo: bool = True
    strip_session_ids: bool = True
    strip_tracking: bool = True
    collapse_slashes: bool = True
    tracking_parameters: tuple[str, ...] = (
        *("utm_*", "gclid", "fbclid", "msclkid"),
        *("mc_cid", "mc_eid", "igshid", "yclid"),
    )


@dataclass(frozen=True)
class FilterSettings(Section):
    schemes: tuple[str, ...] = ("http", "https")
    ports: tuple[Annotated[int, Ge(1), Le(65_535)], ...] = ()
    max_raw_length: Count = 4_096
    max_length: Count = 2_083
    max_depth: Annotated[int, Ge(0)] = 20
    max_path_segments: Count = 20
    max_segment_repeats: Count = 2
    deny_domains: tuple[str, ...] = ()
    deny_prefixes: tuple[str, ...] = ()
    deny_suffixes: tuple[str, ...] = (
        *(".iso", ".img", ".dmg", ".vmdk", ".vdi", ".vhd", ".vhdx", ".qcow2", ".ova", ".wim", ".toast"),
        *(".zip", ".zipx", ".7z", ".rar", ".tar", ".gz", ".tgz", ".bz2", ".tbz2", ".xz", ".txz", ".lzma", ".lz"),
        *(".lz4", ".zst", ".tzst", ".z", ".cab", ".cpio", ".arj", ".lzh", ".jar", ".war", ".bin"),
        *(".exe", ".msi", ".msix", ".deb", ".rpm", ".apk", ".aab", ".ipa", ".pkg", ".appimage", ".snap"),
        *(".flatpak", ".xpi", ".crx", ".whl", ".gem", ".nupkg"),
        *(".mp3", ".m4a", ".m4b", ".aac", ".ogg", ".oga", ".opus", ".flac", ".wav", ".wma", ".aif", ".aiff"),
        *(".ape", ".mka"),
        *(".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".wmv", ".flv", ".mpg", ".mpeg", ".ogv", ".3gp", ".vob"),
        *(".m2ts", ".swf"),
    )
    keep_suffixes: tuple[str, ...] = (".xml.gz", ".txt.gz", ".rss.gz", ".atom.gz")
    deny_patterns: tuple[str, ...] = ()
    allow_patterns: tuple[str, ...] = ()
    block_lists: tuple[str, ...] = ()


@dataclass(frozen=True)
class ContentSettings(Section):
    deny_types: tuple[str, ...] = (
        *("audio/*", "video/*", "application/ogg", "application/octet-stream"),
        *("application/zip", "application/x-zip-compressed", "application/x-7z-compressed", "application/vnd.rar"),
        *("application/x-rar-compressed", "application/x-rar"),
        *("application/x-tar", "application/x-gtar", "application/x-bzip2", "application/x-bzip"),
        *("application/x-xz", "application/zstd", "application/x-lzma", "application/x-compress"),
        *("application/x-compressed", "application/x-compressed-tar", "application/x-cpio"),
        *("application/vnd.ms-cab-compressed", "application/java-archive"),
        *("application/x-iso9660-image", "application/x-cd-image", "application/x-apple-diskimage"),
        *("application/x-raw-disk-image", "application/x-virtualbox-vdi"),
        *("application/x-msdownload", "application/x-msdos-program"),
        *("application/vnd.microsoft.portable-executable", "application/x-msi", "application/x-ms-installer"),
        *("application/x-debian-package", "application/vnd.debian.binary-package", "application/x-deb"),
        *("application/x-rpm", "application/x-redhat-package-manager"),
        *("application/vnd.android.package-archive", "application/x-executable", "application/x-shockwave-flash"),
        *("application/vnd.flatpak", "application/x-xpinstall"),
    )
    unparsed_types: tuple[str, ...] = ()
    unstored_types: tuple[str, ...] = ()


@dataclass(frozen=True)
class ScopeSettings(Section):
    mode: Literal["hosts", "domains", "web"] = "domains"
    seed_redirects: Annotated[int, Ge(0), Le(20)] = 5


@dataclass(frozen=True)
class PageSettings(Section):
    html_module: str = "lexbor"
    max_links: Count = 6_000
    max_title_chars: Count = 500
    obey_nofollow: bool = True
    inline_bytes: Annotated[int, Ge(0)] = 131_072
    parse_cpu_s: Annotated[float, Gt(0)] = 10.0
    parse_memory_mb: Annotated[int, Ge(64)] = 180


@dataclass(frozen=True)
class DuplicateSettings(Section):
    links: Follow = "demote"


@dataclass(frozen=True)
class NearDuplicateSettings(Section):
    threshold: Annotated[float, Gt(0), Le(1)] = 0.8
    permutations: Annotated[int, Ge(16), Le(512)] = 128
    bands: Count = 16
    shingle_words: Count = 5
    min_words: Count = 20
    seed: int = 1
    links: Follow = "demote"


@dataclass(frozen=True)
class RevisitSettings(Section):
    success_days: Annotated[float, Gt(0)] = 14.0
    failure_weeks: Annotated[tuple[Annotated[float, Gt(0)], ...], Len(1)] = (1.0, 2.0, 4.0, 8.0)
    lowest_tier: Annotated[int, Ge(1), Le(9)] = 3


@dataclass(frozen=True)
class SparkSettings(Section):
    master: str = ""
    driver_memory: str = "2g"
    shuffle_partitions: Annotated[int, Ge(0)] = 0


@dataclass(frozen=True)
class Settings:
    """The whole configuration of a crawl."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "allow_inf_nan": False}

    crawl: CrawlSettings = field(default_factory=CrawlSettings)
    lake: LakeSettings = field(default_factory=LakeSettings)
    round: RoundSettings = field(default_factory=RoundSettings)
    fetch: FetchSettings = field(default_factory=FetchSettings)
    segment: SegmentSettings = field(default_factory=SegmentSettings)
    url: UrlSettings = field(default_factory=UrlSettings)
    filters: FilterSettings = field(default_factory=FilterSettings)
    content: ContentSettings = field(default_factory=ContentSettings)
    scope: ScopeSettings = field(default_factory=ScopeSettings)
    page: PageSettings = field(default_factory=PageSettings)
    duplicates: DuplicateSettings = field(default_factory=DuplicateSettings)
    near_duplicates: NearDuplicateSettings = field(default_factory=NearDuplicateSettings)
    revisit: RevisitSettings = field(default_factory=RevisitSettings)
    spark: SparkSettings = field(default_factory=SparkSettings)
