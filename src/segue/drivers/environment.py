"""Variables of the caller's environment that an agent gets."""

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
"""Variables without meaning in a container, where other files are."""
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
    """Return the variables that an agent gets: those every program needs, and those its own `patterns` name."""
    return _matching(environment, (*ALLOWED, *patterns))


def variables_for(
    agent: AgentConfiguration, environment: Mapping[str, str], patterns: Sequence[str] = ()
) -> dict[str, str]:
    """Return the variables that this agent gets, with those that `patterns` names; in a container fewer by default."""
    own = (*agent.environment, *patterns)
    return _matching(environment, (*EVERYWHERE, *own)) if agent.container else allowed(environment, own)


def _matching(environment: Mapping[str, str], wanted: Sequence[str]) -> dict[str, str]:
    """Return the variables whose names match a pattern."""
    return {name: value for name, value in environment.items() if any(fnmatchcase(name, each) for each in wanted)}
