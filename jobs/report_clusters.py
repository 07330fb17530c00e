"""Clusters of near-duplicates of a round: pages that were judged to say nearly what an earlier one said."""

from __future__ import annotations

from typing import Any

from crawler import schemas
from crawler.tables.reader import Reader, Rows, Versions, pc

MOST_CLUSTERS = 20
MOST_MEMBERS = 10


def clusters_of(reader: Reader, versions: Versions, captures: Rows) -> dict[str, Any]:
    """The largest clusters: the original, how many pages of this round are like it, the least similarity, some URLs."""
    near = captures.filter(pc.equal(captures["duplicate_kind"], "near"))
    groups = near.group_by(["duplicate_of_key", "duplicate_of_round"]).aggregate(
        [([], "count_all"), ("similarity", "min"), ("similarity", "max")]
    )
    largest = groups.sort_by([("count_all", "descending"), ("duplicate_of_key", "ascending")]).slice(0, MOST_CLUSTERS)
    originals = _urls_of(reader, versions, largest)
    clusters = [_cluster(row, near, originals) for row in largest.to_pylist()]
    return {"clusters": groups.num_rows, "pages": near.num_rows, "largest": clusters}


def _cluster(row: dict[str, Any], near: Rows, originals: dict[int, str]) -> dict[str, Any]:
    members = near.filter(pc.equal(near["duplicate_of_key"], row["duplicate_of_key"]))
    return {
        "url": originals.get(row["duplicate_of_key"]),
        "url_key": row["duplicate_of_key"],
        "round": row["duplicate_of_round"],
        "pages": row["count_all"],
        "least_similarity": round(row["similarity_min"], 4),
        "greatest_similarity": round(row["similarity_max"], 4),
        "members": sorted(members["url"].slice(0, MOST_MEMBERS).to_pylist()),
    }


def _urls_of(reader: Reader, versions: Versions, largest: Rows) -> dict[int, str]:
    """The URLs of the originals, from the captures of their rounds."""
    if not largest.num_rows:
        return {}
    rounds = pc.unique(largest["duplicate_of_round"]).to_pylist()
    keys = largest["duplicate_of_key"].to_pylist()
    where = pc.field("round").isin(rounds) & pc.field("url_key").isin(keys)
    rows = reader.rows(schemas.CAPTURES, versions, ("url_key", "url"), where)
    return dict(zip(rows["url_key"].to_pylist(), rows["url"].to_pylist(), strict=True))
