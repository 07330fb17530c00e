"""Whether a process is still the one it was: a process id alone is soon used again."""

from __future__ import annotations

from pathlib import Path


def process_started(pid: int) -> str:
    """Start time of a process in clock ticks since boot, with the boot's id; empty when there is no such process.

    Source: proc(5), field 22 of /proc/PID/stat. A reused process id has another start time.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return "" if fields[0] == "Z" else f"{fields[19]}@{boot}"
    except OSError:
        return "" if Path("/proc/self").is_dir() else "unknown"
