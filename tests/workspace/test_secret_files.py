import pytest

from segue.workspace import is_secret


@pytest.mark.parametrize(
    "path",
    [
        *(".env", "app/.env", ".env.production", ".ENV", "server.pem", "tls/server.key", "id_rsa", "id_rsa.old"),
        *("id_ed25519", "cert.p12", "cert.pfx", ".netrc", ".npmrc", ".pypirc", "credentials.json", "app.keystore"),
        *("home/.aws/credentials", ".kube/config", ".git-credentials"),
    ],
)
def test_a_file_that_may_hold_secrets_is_known_by_its_name(path: str) -> None:
    assert is_secret(path)


@pytest.mark.parametrize(
    "path",
    [
        *(".env.example", ".env.sample", "app/.env.template", "id_rsa.pub", "environment.py", "keys.py", "key"),
        *(".env/lib/module.py", "src/credentials.py", "config", "credentials", "package.json"),
    ],
)
def test_an_ordinary_file_is_not_taken_for_a_secret(path: str) -> None:
    assert not is_secret(path)
