"""What an agent may see of the caller's environment."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from segue.model.agents import AgentConfiguration

OF_THIS_MACHINE = (
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
    # whom to trust out there
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
)
"""What says nothing in a container, where other files are."""
EVERYWHERE = (
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
)
ALLOWED = (*OF_THIS_MACHINE, *EVERYWHERE)


def allowed(environment: Mapping[str, str], patterns: Sequence[str] = ()) -> dict[str, str]:
    """The variables an agent gets: those every program needs, and those its own `patterns` name."""
    return _matching(environment, (*ALLOWED, *patterns))


def variables_for(
    agent: AgentConfiguration, environment: Mapping[str, str], patterns: Sequence[str] = ()
) -> dict[str, str]:
    """Those that this agent gets, and what else is chosen for it by `patterns`."""
    own = (*agent.environment, *patterns)
    return _matching(environment, (*EVERYWHERE, *own)) if agent.container else allowed(environment, own)


def _matching(environment: Mapping[str, str], wanted: Sequence[str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if any(fnmatchcase(name, each) for each in wanted)}
