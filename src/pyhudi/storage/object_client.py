"""Makes obstore's clients from a URI and its options, and turns obstore's errors into ours.

obstore takes credentials that the options do not give from the environment (`AWS_ACCESS_KEY_ID`, ...) or from the
machine's role.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from obstore.exceptions import (
    AlreadyExistsError,
    BaseError,
    NotSupportedError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)
from obstore.store import AzureStore, GCSStore, S3Store

from pyhudi.errors import Invalid, NotFound, Unavailable, Unsupported, shown_cause
from pyhudi.storage.uris import ObjectUri

if TYPE_CHECKING:
    from obstore.store import RetryConfig

Store: TypeAlias = Any  # obstore's union of stores names one that needs another package

_FSSPEC_NAMES = {
    "s3": {
        "key": "access_key_id",
        "secret": "secret_access_key",
        "token": "session_token",
        "endpoint_url": "endpoint",
        "region_name": "region",
        "anon": "skip_signature",
    },
    "gs": {"token": "application_credentials", "endpoint_url": "base_url", "anon": "skip_signature"},
    "az": {"sas_token": "sas_key", "endpoint_url": "endpoint", "anon": "skip_signature"},
}
"""The option names of fsspec's drivers, for options that obstore names differently."""

_ONELAKE = "fabric.microsoft.com"
_LOGINS = {
    "core.chinacloudapi.cn": "https://login.chinacloudapi.cn",
    "core.usgovcloudapi.net": "https://login.microsoftonline.us",
}
"""Where Azure's other clouds give their tokens."""

_CLIENT_NAMES = frozenset(
    {"allow_http", "allow_invalid_certificates", "connect_timeout", "proxy_ca_certificate", "proxy_excludes"}
    | {"proxy_url", "read_timeout", "root_certificate", "timeout", "user_agent"}
)
_CREDENTIALS_OF_MACHINES = ("//169.254.169.254/", "//metadata.google.internal/", "//metadata/computeMetadata/")
"""Where a machine of a cloud gives the credentials of its role."""

_RETRIES_MAX = "max_retries"
_RETRY_TIMEOUT = "retry_timeout"


@dataclass(frozen=True, slots=True)
class Clients:
    """The two clients of a bucket. `retrying`: for requests that may be sent twice. `once`: for conditional puts. A put
    that is sent twice may fail its condition because the first attempt landed."""

    retrying: Store
    once: Store


def make_clients(parsed: ObjectUri, options: Mapping[str, str]) -> Clients:
    """The clients of a bucket. Makes no request.

    Raises: Invalid for an option that this kind of store does not have, or a value that it does not take.
    """
    config, client, retry = _sorted_options(parsed, options)
    if parsed.account is not None:
        for name, value in _azure_config(parsed.account, parsed.cloud).items():
            config.setdefault(name, value)
    return Clients(_make(parsed, config, client, retry), _make(parsed, config, client, {**retry, "max_retries": 0}))


def _azure_config(account: str, cloud: str | None) -> dict[str, str]:
    """obstore's settings for an account, which it takes for one of the public cloud otherwise."""
    config = {"account_name": account}
    if cloud == _ONELAKE:
        config["use_fabric_endpoint"] = "true"
    elif cloud is not None:
        config |= {"endpoint": f"https://{account}.blob.{cloud}", "authority_host": _LOGINS[cloud]}
    return config


def _sorted_options(
    parsed: ObjectUri, options: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, Any], "RetryConfig"]:
    config: dict[str, Any] = {}
    client: dict[str, Any] = {}
    retry: RetryConfig = {}

    names = _FSSPEC_NAMES[parsed.kind]
    for given, value in options.items():
        name = names.get(given, given)
        if name in _CLIENT_NAMES:
            client[name] = value
        elif name in (_RETRIES_MAX, _RETRY_TIMEOUT):
            if not value.isdecimal():
                raise Invalid(f"storage_options of '{parsed.uri}': {given}={value!r}: expected a whole number")
            if name == _RETRIES_MAX:
                retry["max_retries"] = int(value)
            else:
                retry["retry_timeout"] = timedelta(seconds=int(value))
        else:
            config[name] = value

    if config.get("base_url" if parsed.kind == "gs" else "endpoint", "").startswith("http://"):
        client.setdefault("allow_http", "true")  # a user who writes http:// wants http

    return config, client, retry


def _make(parsed: ObjectUri, config: dict[str, Any], client: dict[str, Any], retry: "RetryConfig") -> Store:
    makers: dict[str, Any] = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}  # Any: the user names the options
    try:
        return makers[parsed.kind](
            parsed.bucket, config=config, client_options=client or None, retry_config=retry or None
        )  # fmt: skip
    except UnknownConfigurationKeyError as error:
        raise Invalid(f"storage_options of '{parsed.uri}': {first_line(error)}; see obstore's names") from shown_cause(
            error
        )
    except (BaseError, ValueError, TypeError) as error:
        raise Invalid(f"storage_options of '{parsed.uri}': {first_line(error)}") from shown_cause(error)


@contextmanager
def store_errors(shown: str, doing: str) -> Iterator[None]:
    """Turn the store's errors into ours. Errors about a failed condition pass through: the caller handles them.

    Put only calls of obstore inside, no code of a user: its errors would be turned, too.
    """
    try:
        yield
    except (AlreadyExistsError, PreconditionError):
        raise
    except FileNotFoundError as error:
        raise NotFound(
            f"{shown}: expected a file in an existing bucket, found none ({first_line(error)})"
        ) from shown_cause(error)
    except NotSupportedError as error:
        raise Unsupported(f"{shown}: the store cannot {doing} it: {first_line(error)}") from shown_cause(error)
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise Unavailable(
            f"{shown}: not allowed to {doing} it: {first_line(error)}; see to the credentials and call again"
        ) from shown_cause(error)
    except ValueError as error:  # a character that no object's name may have
        raise Invalid(
            f"{shown}: the store cannot {doing} such a name: {first_line(error)}; choose another"
        ) from shown_cause(error)
    except (BaseError, OSError) as error:
        raise Unavailable(f"{shown}: cannot {doing} it: {first_line(error)}; {_cure(error)}") from shown_cause(error)


def _cure(error: BaseException) -> str:
    """What a caller can do about it. A client that is given no credentials asks the machine for those of its role."""
    if any(address in str(error) for address in _CREDENTIALS_OF_MACHINES):
        return "no credentials were found: give them by storage_options or the environment, then call again"
    return "call again"


def first_line(error: BaseException) -> str:
    """The first line of an error's text. obstore's further lines are a dump of the answer."""
    return str(error).strip().partition("\n")[0]
