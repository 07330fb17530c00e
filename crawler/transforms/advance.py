"""From what happened to what we know, and to the next visit.

Two families of states as in Nutch: an outcome says what happened in this round, a status what we know of the URL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from crawler.records import Outcome
from crawler.schemas import FRONTIER, HOSTS, VISIT_COLUMNS
from crawler.settings import Settings
from crawler.transforms.select import host_key
from crawler.transforms.slots import slot_of

WEEK_S = 7 * 86_400
DAY_S = 86_400


@dataclass(frozen=True)
class Step:
    """What an outcome does to a URL: its new status (None: unchanged) and the rule for its next visit."""

    status: str | None
    next_visit: str  # success | back_off | host_back_off | retry_at | now


STEPS: dict[Outcome, Step] = {
    Outcome.SUCCESS: Step("fetched", "success"),
    Outcome.NOT_MODIFIED: Step("not_modified", "success"),
    Outcome.REDIRECT_TEMP: Step("redir_temp", "success"),
    Outcome.REDIRECT_PERM: Step("redir_perm", "success"),
    Outcome.GONE: Step("gone", "back_off"),
    Outcome.CLIENT_ERROR: Step(None, "back_off"),
    Outcome.SERVER_ERROR: Step(None, "back_off"),
    Outcome.ASKED_TO_WAIT: Step(None, "retry_at"),
    Outcome.ROBOTS_DENIED: Step(None, "success"),
    Outcome.ROBOTS_UNREACHABLE: Step(None, "host_back_off"),
    Outcome.ADDRESS_REFUSED: Step(None, "back_off"),
    Outcome.DNS_FAILED: Step(None, "back_off"),
    Outcome.CONNECT_FAILED: Step(None, "back_off"),
    Outcome.TLS_FAILED: Step(None, "back_off"),
    Outcome.TIMEOUT: Step(None, "back_off"),
    Outcome.PROTOCOL_ERROR: Step(None, "back_off"),
    Outcome.HEADERS_TOO_LARGE: Step(None, "back_off"),
    Outcome.UNSUPPORTED_SCHEME: Step(None, "back_off"),
    Outcome.UNWANTED_TYPE: Step("unwanted", "back_off"),
    Outcome.QUARANTINED: Step(None, "back_off"),
    Outcome.HOST_FAILED: Step(None, "host_back_off"),
    Outcome.NOT_REACHED: Step(None, "now"),
}
ASKED = [outcome for outcome in Outcome if not outcome.is_untried]
HELD = (Outcome.SUCCESS, Outcome.NOT_MODIFIED)


def next_visits(
    planned: DataFrame, marked: DataFrame, host_failures: DataFrame, settings: Settings, now: float
) -> DataFrame:
    """The next calendar row of every planned URL, less nothing: one row in, one row out.

    `host_failures`: host_key and how many rounds in a row its host has now failed.
    """
    plan = planned.select(*(F.col(c.name).alias(f"was_{c.name}") for c in VISIT_COLUMNS), host_key().alias("host_key"))
    both = (
        plan.join(marked, on=F.col("was_url_key") == F.col("url_key"), how="inner")
        .join(host_failures.withColumnRenamed("failures", "host_failures"), on="host_key", how="left")
        .withColumn("rule", _by_outcome({outcome: step.next_visit for outcome, step in STEPS.items()}))
        .withColumn("new_failures", _failures())
    )
    return both.select(*_visit_columns(settings, now)).select(
        *(c.name for c in VISIT_COLUMNS), slot_of("due_at", now).alias("slot")
    )


def _by_outcome(values: dict[Outcome, str | None]) -> Column:
    known = {str(outcome): value for outcome, value in values.items() if value is not None}
    pairs = [F.lit(part) for item in known.items() for part in item]
    return F.create_map(*pairs)[F.col("outcome")]


def _failures() -> Column:
    is_failure = F.col("rule") == "back_off"
    is_success = F.col("rule") == "success"
    return F.when(is_failure, F.col("was_failures") + 1).when(is_success, F.lit(0)).otherwise(F.col("was_failures"))


def _visit_columns(settings: Settings, now: float) -> Sequence[Column]:
    is_held = (
        F.col("outcome").isin(*HELD) & F.col("content_digest").isNotNull() & (F.col("warc_record_type") == "response")
    )
    is_asked = F.col("outcome").isin(*ASKED)
    status = F.coalesce(_by_outcome({outcome: step.status for outcome, step in STEPS.items()}), F.col("was_status"))
    kept = (
        *("url_key", "url", "host", "depth", "source_key", "source", "discovered_at"),
        *("tier", "seed_hops", "source_payload"),
    )
    return [
        *(F.col(f"was_{name}").alias(name) for name in kept),
        status.alias("status"),
        F.col("new_failures").alias("failures"),
        (F.col("was_visits") + is_asked.cast("int")).alias("visits"),
        (F.col("was_changes") + F.coalesce(is_changed().cast("int"), F.lit(0))).alias("changes"),
        F.when(is_asked, F.col("fetch_time")).otherwise(F.col("was_visited_at")).alias("visited_at"),
        *(
            F.when(is_held, F.col(name)).otherwise(F.coalesce(_refreshed(name), f"was_{name}")).alias(name)
            for name in ("etag", "last_modified")
        ),
        F.when(is_held, F.col("content_digest")).otherwise(F.col("was_content_digest")).alias("content_digest"),
        F.when(is_held, F.col("warc_record_id")).otherwise(F.col("was_digest_record_id")).alias("digest_record_id"),
        F.when(is_held, F.col("warc_date")).otherwise(F.col("was_digest_date")).alias("digest_date"),
        _due_at(settings, now).alias("due_at"),
    ]


def _refreshed(name: str) -> Column:
    """A validator that came with a confirmation of the payload we hold replaces the older one."""
    return F.when(F.col("outcome") == str(Outcome.NOT_MODIFIED), F.col(name))


def is_changed() -> Column:
    """True when a successful visit found another payload than the last one, false when the same, null at the first."""
    is_visit = F.col("outcome").isin(*HELD) & F.col("was_content_digest").isNotNull()
    same = (F.col("outcome") == str(Outcome.NOT_MODIFIED)) | (F.col("content_digest") == F.col("was_content_digest"))
    return F.when(is_visit, ~F.coalesce(same, F.lit(False)))


def _due_at(settings: Settings, now: float) -> Column:
    weeks = settings.revisit.failure_weeks
    steps = F.array(*(F.lit(float(week) * WEEK_S) for week in weeks))

    def backed_off(failures: Column) -> Column:
        return F.element_at(steps, F.greatest(F.least(failures, F.lit(len(weeks))), F.lit(1)).cast("int"))

    asked_at = F.unix_micros("fetch_time") / 1e6
    wait = (
        F.when(F.col("rule") == "success", F.lit(settings.revisit.success_days * DAY_S))
        .when(F.col("rule") == "back_off", backed_off(F.col("new_failures")))
        .when(F.col("rule") == "host_back_off", backed_off(F.coalesce("host_failures", F.lit(1))))
        .when(F.col("rule") == "retry_at", F.greatest(F.col("retry_at") - asked_at, F.lit(0.0)))
    )
    later = F.timestamp_micros(((F.lit(now) + wait) * 1e6).cast("bigint"))
    return F.when(F.col("rule") == "now", F.col("was_due_at")).otherwise(F.coalesce(later, F.col("was_due_at")))


def leftover(opened: DataFrame, planned: DataFrame, now: float, late: DataFrame | None = None) -> DataFrame:
    """The rows of the opened slots that the plan did not take, in the slot that has come. `late`: hosts that the next
    rounds will leave out as well, with `start_at`, the time of their turn; their rows are due then."""
    rest = opened.join(planned.select("url_key"), on="url_key", how="left_anti")
    if late is not None:
        later = F.timestamp_micros((F.col("start_at") * 1e6).cast("bigint"))
        rest = rest.join(late.select("host", "start_at"), on="host", how="left")
        rest = rest.withColumn("due_at", F.greatest("due_at", later)).drop("start_at")
    return rest.withColumn("slot", slot_of("due_at", now)).select(*FRONTIER.names)


def first_visits(spread_urls: DataFrame, now: float) -> DataFrame:
    """The first calendar row of every new URL."""
    at = F.timestamp_micros(F.lit(int(now * 1e6)))
    values = {
        "status": F.lit("unfetched"), "failures": F.lit(0), "visits": F.lit(0), "changes": F.lit(0),
        "discovered_at": at,
    }  # fmt: skip
    filled = spread_urls.withColumns(values | {"slot": slot_of("due_at", now)})
    empty = [c for c in FRONTIER.columns if c.name not in filled.columns]
    return filled.withColumns({c.name: F.lit(None).cast(c.type) for c in empty}).select(*FRONTIER.names)


def next_hosts(known: DataFrame, states: DataFrame, horizons: DataFrame, round_number: int) -> DataFrame:
    """The new row of every host that was asked or has new URLs.

    `known`: rows of hosts, `states`: the hosts as the segments left them, newest only; `horizons`: host_key, host,
    registered_domain, horizon_at, names_horizon_at of the hosts with new URLs or names. A round that a host leaves for
    its failures counts one, any other asked round sets the count to zero.
    """
    asked = [c.name for c in HOSTS.columns if c.name in states.columns and c.name not in {"host_key", "failures"}]
    new = states.select("host_key", *(F.col(name).alias(f"new_{name}") for name in asked), F.col("is_out"))
    far = horizons.select(
        "host_key",
        F.col("host").alias("far_host"),
        F.col("registered_domain").alias("far_domain"),
        F.col("horizon_at").alias("far_horizon"),
        F.col("names_horizon_at").alias("far_names"),
    )
    joined = new.join(far, on="host_key", how="full").join(known.drop("round"), on="host_key", how="left")
    was = F.coalesce("failures", F.lit(0))
    failures = F.when(F.col("is_out"), was + 1).when(F.col("is_out").isNull(), was).otherwise(0)
    values = {name: F.when(F.col("is_out").isNotNull(), F.col(f"new_{name}")).otherwise(F.col(name)) for name in asked}
    values |= {
        "host": F.coalesce("new_host", "host", "far_host"),
        "failures": failures,
        "registered_domain": F.coalesce("new_registered_domain", "registered_domain", "far_domain"),
        "horizon_at": F.coalesce("far_horizon", "horizon_at"),
        "names_horizon_at": F.coalesce("far_names", "names_horizon_at"),
        "round": F.lit(round_number),
    }
    names = [name for name in HOSTS.names if name not in {"bucket", "host_key"}]
    return joined.select("host_key", *(values[name].alias(name) for name in names))


def failures_after(known: DataFrame, states: DataFrame) -> DataFrame:
    """host_key and its failed rounds in a row, after this round, of the hosts that were asked."""
    was = F.coalesce("was", F.lit(0))
    return states.join(known.select("host_key", F.col("failures").alias("was")), on="host_key", how="left").select(
        "host_key", F.when(F.col("is_out"), was + 1).otherwise(0).alias("failures")
    )
