"""Options of the HTTP server: accepted host names and origins, and the path prefix of a proxy."""

import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from seqloom.core.errors import ConfigError

ANY = "*"
_HOST_NAME = r"[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?"
_ORIGIN = rf"https?://({_HOST_NAME}|\[[0-9a-f:.]+\])(:[0-9]+)?"
_SEGMENT = r"[A-Za-z0-9._~-]+"


@dataclass(frozen=True)
class HttpOptions:
    """Checked options of the HTTP server.

    hosts:           host names that requests may use besides IP addresses and localhost; "*" for any
    origins:         origins whose pages may send requests, such as https://example.org; "*" for any
    frame_ancestors: origins whose pages may show this server's page in a frame; "'self'" for this
                     server
    root_path:       path under which a proxy makes the server available, such as "/mt"; "" for none
    """

    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    frame_ancestors: tuple[str, ...] = ()
    root_path: str = ""

    @classmethod
    def parse(
        cls,
        host: str,
        allowed_hosts: Sequence[str],
        allowed_origins: Sequence[str],
        frame_ancestors: Sequence[str],
        root_path: str,
    ) -> "HttpOptions":
        """Return the checked options of `seqloom serve`.

        Raises one ConfigError that lists all problems.

        host: value of --host. Besides the allowed hosts, requests may use this name, the name of
              this machine, and the name of this machine with the suffix ".local".
        """
        hosts = tuple(name.lower() for name in allowed_hosts)
        origins = tuple(origin.lower().rstrip("/") for origin in allowed_origins)
        ancestors = tuple(_quote_self(ancestor.rstrip("/")) for ancestor in frame_ancestors)
        root_path = "/".join(["", *root_path.strip("/").split("/")]) if root_path.strip("/") else ""
        errors = [
            *(
                f"--allow-host {name}: must be a host name without a port, such as "
                "translate.example.org, or *"
                for name in hosts
                if name != ANY and not re.fullmatch(_HOST_NAME, name)
            ),
            *(
                f"--allow-origin {origin}: must be an origin such as https://example.org, or *"
                for origin in origins
                if origin != ANY and not re.fullmatch(_ORIGIN, origin)
            ),
            *(
                f"--frame-ancestors {ancestor}: must be an origin such as https://example.org, "
                "self, or *"
                for ancestor in ancestors
                if ancestor not in (ANY, "'self'")
                and not re.fullmatch(_ORIGIN, ancestor, re.IGNORECASE)
            ),
        ]
        if root_path and not _is_path(root_path):
            errors.append(f"--root-path {root_path}: must be a path such as /mt")
        if errors:
            raise ConfigError("\n".join(errors))
        machine = socket.gethostname().lower()
        return cls(
            (host.lower(), machine, f"{machine}.local", *hosts), origins, ancestors, root_path
        )


def _quote_self(ancestor: str) -> str:
    """Quote the keyword self, as the content security policy requires: self -> 'self'"""
    return "'self'" if ancestor.strip("'").lower() == "self" else ancestor


def _is_path(path: str) -> bool:
    segments = path.split("/")[1:]
    return all(re.fullmatch(_SEGMENT, segment) and segment.strip(".") != "" for segment in segments)
