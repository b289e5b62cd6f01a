"""Detection of files that are likely to hold secrets, by their names."""

from fnmatch import fnmatchcase

_SECRET = (
    ".env",
    ".env.*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.ppk",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    ".dockercfg",
    ".git-credentials",
    "credentials.json",
    "client_secret*.json",
    "service-account*.json",
)
_HARMLESS = (".env.example", ".env.sample", ".env.template", ".env.dist", "*.pub")
_SECRET_IN = {".aws": ("credentials",), ".docker": ("config.json",), ".kube": ("config",)}


def is_secret(path: str) -> bool:
    """Return True if the file's name, or its name in such a folder, is one that usually holds secrets."""
    *folders, name = path.lower().split("/")
    if any(fnmatchcase(name, pattern) for pattern in _HARMLESS):
        return False
    return any(fnmatchcase(name, pattern) for pattern in _SECRET) or (
        bool(folders) and name in _SECRET_IN.get(folders[-1], ())
    )
