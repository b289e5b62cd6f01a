"""What an agent may see of the caller's environment."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

ALLOWED = (
    # who and where
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "TMPDIR",
    "XDG_*",
    "SSH_AUTH_SOCK",
    # language and time
    "LANG",
    "LC_*",
    "TZ",
    # the way out; programs differ in which case they read
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    # whom to trust there
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
)


def allowed(environment: Mapping[str, str], patterns: Sequence[str] = ()) -> dict[str, str]:
    """The variables an agent gets: those every program needs, and those its own `patterns` name."""
    wanted = (*ALLOWED, *patterns)
    return {name: value for name, value in environment.items() if any(fnmatchcase(name, each) for each in wanted)}
