"""`python -m jobs.java`: see that Spark has a Java. Runs before anything is installed: standard library only."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from shutil import which

from crawler.java import SUPPORTED, find_java, installed

DEBIAN_PACKAGE = "openjdk-17-jre-headless"
COMMANDS = {
    "apt-get": f"sudo apt-get update && sudo apt-get install -y {DEBIAN_PACKAGE}",
    "dnf": "sudo dnf install -y java-17-openjdk-headless",
    "zypper": "sudo zypper install -y java-17-openjdk-headless",
    "pacman": "sudo pacman -S --noconfirm jre17-openjdk-headless",
    "apk": "sudo apk add openjdk17-jre-headless",
    "brew": "brew install --cask temurin@17",
}


def main() -> int:
    """0 when there is a supported Java at the end, else 1 and the command that installs one."""
    java = find_java()
    if java is None and os.geteuid() == 0 and which("apt-get"):
        print(f"Installing {DEBIAN_PACKAGE} ...", flush=True)
        install_on_debian()
        java = find_java()
    if java is None:
        print(f"{missing()}\nInstall one: {install_command()}", file=sys.stderr)
        return 1
    print(f"Java {java.version} in {java.home}")
    return 0


def missing() -> str:
    """What was looked for and what was found instead."""
    others = ", ".join(f"{java.version or 'unknown version'} in {java.home}" for java in installed())
    needed = " or ".join(map(str, SUPPORTED))
    return f"Spark needs Java {needed}; found {others or 'none'}. JAVA_HOME and PATH are looked at first."


def install_command(find: Callable[[str], str | None] = which) -> str:
    """The command for this system's package tool."""
    known = (command for tool, command in COMMANDS.items() if find(tool))
    return next(known, "a Java 17 runtime from your system's packages, then set JAVA_HOME")


def install_on_debian() -> None:
    """Install Debian's Java 17. Failure shows in apt's own words; whether Java is there is for the caller to see."""
    environ = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", "install", "-qy", "--no-install-recommends", DEBIAN_PACKAGE]
    for command in (["apt-get", "update", "-q"], install):
        subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, check=False)


if __name__ == "__main__":
    sys.exit(main())
