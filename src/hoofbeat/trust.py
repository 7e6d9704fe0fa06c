"""What a `hoofbeat.toml` that lies in the current folder may ask for.

Such a file comes with a folder, and folders come from others. It may name models, prices and limits. What could give
secrets or texts away, or change the user's own files, needs the user's word: sending a key, running a plugin, another
machine's database or cluster, calls or indexes that are kept outside this folder. The word is one of these:

- the file was named, by `--config` or `HOOFBEAT_CONFIG`: then it is the user's choice;
- `--yes`, or `HOOFBEAT_TRUST=1` (for machines where nobody answers);
- a confirmation at the terminal, remembered for this folder and this content in `trusted.json` of the user's
  configuration folder;
- for a key: `allowed.toml` there, with the hosts that a variable's value may be sent to.

      [keys]
      GATEWAY_KEY = ["gateway.example"]
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import tomllib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from hoofbeat.errors import TrustNeeded, UsageError

VARIABLE = "HOOFBEAT_TRUST"
_FIX = f"check the file; then answer yes at a terminal, add --yes, set {VARIABLE}=1, or name the file with --config"


def user_folder() -> Path:
    """Hoofbeat's folder among the user's configuration."""
    chosen = os.environ.get("XDG_CONFIG_HOME")
    try:
        return (Path(chosen) if chosen else Path.home() / ".config") / "hoofbeat"
    except RuntimeError:  # a container's user without a home: nothing is remembered
        return Path(os.devnull) / "hoofbeat"


def is_loopback(address: str) -> bool:
    """Whether an address is on this machine."""
    try:
        return is_this_machine(urlsplit(address).hostname or "")
    except ValueError:
        return False


def is_this_machine(host: str) -> bool:
    """Whether a host is this machine: `localhost`, or a loopback address. 127.example.org is a name like any other."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def parse_toml(text: str) -> dict[str, Any]:
    """A TOML text that somebody else may have written; one that is nested too deeply is damaged like any other.

    Raises `tomllib.TOMLDecodeError`.
    """
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except RecursionError:
        raise tomllib.TOMLDecodeError("it is nested too deeply") from None
    except ValueError:  # thousands of digits
        raise tomllib.TOMLDecodeError("a number is too long") from None
    level: list[object] = [parsed]
    for _ in range(_MAX_DEPTH):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return parsed
    raise tomllib.TOMLDecodeError("it is nested too deeply")


_MAX_DEPTH = 50


def _inside(value: object) -> Iterable[object]:
    found = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (each for each in found if isinstance(each, dict | list))


class FolderConfig(NamedTuple):
    """A configuration that was found in the current folder, not named: where it is, and a hash of its content.

    The content is the file's and that of the files it names: plugins run, and addresses in a list get the key.
    """

    file: Path
    sha256: str

    @classmethod
    def of(cls, file: Path) -> FolderConfig:
        """The configuration in a file, with the files that it names; whoever reads it reports what can't be read."""
        digest = hashlib.sha256()
        with suppress(OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, TypeError):
            content = file.read_bytes()
            digest.update(content)
            for path in _named_files(file.absolute(), parse_toml(content.decode())):
                digest.update(_file_digest(path))
        return cls(file.absolute(), digest.hexdigest())

    @property
    def is_trusted(self) -> bool:
        """Whether the user has allowed this content in this folder."""
        said = os.environ.get(VARIABLE, "").lower() in ("1", "yes", "true")
        return said or _remembered().get(str(self.file.parent)) == self.sha256

    def need(self, what: str) -> None:
        """Raise `TrustNeeded` unless the user has allowed this content."""
        if not self.is_trusted:
            raise TrustNeeded(f"{self.file.name} in this folder asks Hoofbeat to {what}", where=self, fix=_FIX)

    def need_place(self, what: str, place: str) -> None:
        """Raise `TrustNeeded` unless this is a path in the current folder, where links lead as well, or allowed.

        An address is another place whatever its host says: in `s3://localhost/x` it is a bucket's name.
        """
        here = Path.cwd().resolve()
        if "://" in place or place.startswith("~") or not (here / place).resolve().is_relative_to(here):
            self.need(f"{what} {place}")

    def need_key(self, variable: str, address: str) -> None:
        """Raise `TrustNeeded` unless this variable's value may be sent to this address."""
        if (urlsplit(address).hostname or "") not in _allowed_hosts(variable):
            self.need(f"send the value of {variable} to {address}")

    def remember(self) -> None:
        """Store the user's consent for this folder and this content."""
        folder = user_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept = {**_remembered(), str(self.file.parent): self.sha256}
        part = folder / f".trusted.json.{os.getpid()}.part"
        part.write_text(json.dumps(kept, indent=1), encoding="utf-8")
        part.chmod(0o600)
        part.replace(folder / "trusted.json")

    def __str__(self) -> str:
        return str(self.file)


def found_config(named: Path | None) -> tuple[Path, FolderConfig | None]:
    """The configuration file: named, or in `HOOFBEAT_CONFIG`, or `hoofbeat.toml` here, which has to be trusted."""
    if named is not None or os.environ.get("HOOFBEAT_CONFIG"):
        return named or Path(os.environ["HOOFBEAT_CONFIG"]), None
    file = Path("hoofbeat.toml")
    return file, FolderConfig.of(file) if file.is_file() else None


def _named_files(file: Path, config: dict[str, object]) -> list[Path]:
    """The files that a configuration names and whose content decides what Hoofbeat does, where they are looked for.

    Plugins are beside the file; lists are beside the one that it links to, if it is a link.
    """
    plugins, models = config.get("plugins"), config.get("models")
    tables = [each for each in models.values() if isinstance(each, dict)] if isinstance(models, dict) else []
    listed = [config.get("known_models"), *(each.get("endpoints_file") for each in tables)]
    run = [file.parent / each for each in plugins if isinstance(each, str)] if isinstance(plugins, list) else []
    return run + [file.resolve().parent / each for each in listed if each and isinstance(each, str)]


def _file_digest(path: Path) -> bytes:
    """The hash of a file; what is not a file, or not there (a device has no end), has another than any content."""
    try:
        if not path.is_file():
            return b"none"
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").digest()
    except OSError:
        return b"none"


def _remembered() -> dict[str, str]:
    try:
        kept = json.loads((user_folder() / "trusted.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _allowed_hosts(variable: str) -> Sequence[str]:
    """The hosts that the user's own file allows a variable's value to be sent to."""
    file = user_folder() / "allowed.toml"
    try:
        hosts = parse_toml(file.read_text(encoding="utf-8")).get("keys", {}).get(variable, [])
    except (FileNotFoundError, NotADirectoryError):
        return []
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, AttributeError) as err:
        raise UsageError(
            f"the file of allowed keys can't be read: {err}", where=str(file), fix="correct the file"
        ) from err
    return hosts if isinstance(hosts, list) else []
