"""What one operation is, as its author declares it; checked when declared, and computed for each call."""

from __future__ import annotations

import inspect
import json
import secrets
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, Literal, TypeAlias

from semel.core.durations import Duration, describe, to_timedelta
from semel.core.effects import AcceptDuplicate, AcceptMiss, Effect, Hold, Lookup, ProviderKey, Row
from semel.core.keys import OperationKey, Secret, compute_fingerprint, compute_key
from semel.core.operations import Limits
from semel.errors import ConfigurationError, KeyRefused, NotDone
from semel.store.guard_request import Request

KeySource: TypeAlias = Callable[..., object] | str | tuple[str, ...]
"""A function of the arguments by name, or the names of the arguments that make the key."""

Scope: TypeAlias = str | Callable[..., str]
Acting: TypeAlias = Literal["from_start", "explicit"]


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """One job type: how its key is made, what its effect is, how long a claim holds."""

    job_type: str
    key: KeySource
    effect: Effect
    payload: tuple[str, ...] | None
    """The fields of the fingerprint; None: the arguments that differ from their defaults; empty: no fingerprint."""
    acting: Acting
    lease: timedelta
    longest_run: timedelta
    extend: bool
    scope: Scope
    not_done: tuple[type[BaseException], ...]
    limits: Limits
    label: bool
    store_result: bool
    keep_message: bool
    secret: Secret | None = field(repr=False, default=None)
    dated: KeySource | None = None
    """Where the operation's own date is among the arguments; None: nowhere."""
    keep: timedelta = timedelta(days=90)
    """How long the records of this job type are kept: `TooOld` is the answer to what is older and has none."""
    older_secrets: tuple[Secret | None, ...] = field(repr=False, default=())
    """Of before a rotation, None for the time without one: their keys still count, for one retention."""

    def __post_init__(self) -> None:
        if not self.job_type or len(self.job_type) > 200 or "\0" in self.job_type:
            raise ConfigurationError(
                "An operation's job type is a non-empty string of at most 200 characters, without NUL."
            )
        if not isinstance(self.effect, Row | Hold | Lookup | ProviderKey | AcceptDuplicate | AcceptMiss):
            raise ConfigurationError(
                f"effect of {self.job_type} is {self.effect!r}, which is no effect.",
                remedy="Give Row(), ProviderKey(…), Lookup(…), Hold(), AcceptDuplicate() or AcceptMiss().",
            )
        if self.acting not in ("from_start", "explicit"):
            raise ConfigurationError(
                f'acting of {self.job_type} is {self.acting!r}: give "from_start" or "explicit".'
            )
        if self.lease < self.longest_run and not self.extend and not isinstance(self.effect, Row):
            raise ConfigurationError(
                f"The lease of {self.job_type} ({describe(self.lease)}) is shorter than its longest run "
                f"({describe(self.longest_run)}), and nobody extends it: a live run would be taken for dead.",
                remedy="Raise lease=, lower longest_run=, or set extend=True.",
            )

    def requests(self, arguments: Arguments, *, message: str | None, dialect: str) -> list[Request]:
        """The request of a new attempt, and one for each older secret: a record under any of them counts."""
        secrets_ = (self.secret, *self.older_secrets)
        return [self._request(arguments, secret, message, dialect) for secret in secrets_]

    def is_beyond_records(self, arguments: Arguments) -> bool:
        """Whether the operation is so old by its own date that its record may have been deleted.

        By this machine's clock, with a day to spare: retention is counted in days.
        """
        if self.dated is None:
            return False
        found = arguments.pick(self.dated, f"the date of {self.job_type}")
        found = found[0] if isinstance(found, tuple) else found
        if isinstance(found, datetime):
            found = found.astimezone(UTC).date()
        if not isinstance(found, date):
            raise KeyRefused(
                f"The date of {self.job_type} is {found!r}.",
                remedy="Give dated= a date or an aware datetime.",
            )
        return datetime.now(UTC).date() - found >= self.keep - timedelta(days=1)

    def nothing(self) -> Request:
        """A request for the handle of a repeat, which asks for nothing."""
        return Request(
            scope="",
            job_type=self.job_type,
            key="",
            token="",
            reference="",
            effect=self.effect,
            lease=self.lease,
            longest_run=self.longest_run,
        )

    def compute_key(self, arguments: Arguments) -> OperationKey:
        """The key of one call, with the newest secret."""
        return self._key(arguments, self.secret)

    def _key(self, arguments: Arguments, secret: Secret | None) -> OperationKey:
        value = arguments.pick(self.key, f"the key of {self.job_type}")
        return compute_key(value, secret=secret, label=self.label)

    def _scope(self, arguments: Arguments) -> str:
        if isinstance(self.scope, str):
            return self.scope
        scope: object = arguments.call(self.scope, f"the scope of {self.job_type}")
        if scope is None or isinstance(scope, float):
            raise KeyRefused(
                f"The scope of {self.job_type} is {scope!r}.",
                remedy="Give the tenant's name or number as text.",
            )
        return str(scope)

    def _request(
        self, arguments: Arguments, secret: Secret | None, message: str | None, dialect: str
    ) -> Request:
        key = self._key(arguments, secret)
        scope = self._scope(arguments)
        return Request(
            scope=scope,
            job_type=self.job_type,
            key=key.digest,
            token=secrets.token_hex(16),
            reference=make_reference(),
            effect=self.effect,
            lease=self.lease,
            longest_run=self.longest_run,
            limits=self.limits,
            fingerprint=self._fingerprint(arguments, secret),
            label=key.label,
            key_version=key.version,
            acts_from_start=self.acting == "from_start",
            message=message if self.keep_message else None,
            dialect=dialect,
        )

    def _fingerprint(self, arguments: Arguments, secret: Secret | None) -> str | None:
        if self.payload == ():
            return None
        fields = arguments.changed if self.payload is None else arguments.named(self.payload)
        return compute_fingerprint(fields, secret=secret)


def make_reference() -> str:
    """A new reference: opaque, unique, at most 36 characters of letters, digits and hyphens, as every provider takes."""
    return str(uuid.uuid4())


_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Arguments:
    """One call's arguments by name."""

    def __init__(self, signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        bound = signature.bind(*args, **kwargs)
        given = dict(bound.arguments)
        self._passed = (bound.args, bound.kwargs)
        bound.apply_defaults()
        self.all: dict[str, Any] = dict(bound.arguments)
        for parameter in signature.parameters.values():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                self.all = {**self.all.pop(parameter.name), **self.all}
        self.changed: dict[str, Any] = {
            name: value for name, value in given.items() if not _is_default(signature.parameters[name], value)
        }

    def call(self, function: Callable[..., Any], what: str = "this") -> Any:
        """Call a function of the arguments by name with those that it takes."""
        parameters = inspect.signature(function).parameters.values()
        if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
            taken = self.all
        else:
            names = {parameter.name for parameter in parameters}
            taken = {name: value for name, value in self.all.items() if name in names}
        needed = [each for each in parameters if each.default is inspect.Parameter.empty]
        missing = [each.name for each in needed if each.kind in _NAMED and each.name not in taken]
        if missing:
            raise _no_such_argument(missing[0], what)
        return function(**taken)

    def call_behind(self, function: Callable[..., Any], first: object) -> Any:
        """Call a function of ``first`` and the arguments, in one way however the caller passed them.

        It gets those that it names, and all where it has ``**rest``; or all by position, where it has ``*rest`` or
        calls them by other names.
        """
        positional, keywords = self._passed
        try:
            head, *parameters = inspect.signature(function).parameters.values()
        except ValueError:  # it has no signature, or takes nothing
            return function(first, *positional, **keywords)
        kinds = {parameter.kind for parameter in (head, *parameters)}
        needed = {each.name for each in parameters if each.default is each.empty and each.kind in _NAMED}
        if inspect.Parameter.VAR_POSITIONAL in kinds or not needed <= self.all.keys():
            return function(first, *positional, **keywords)
        names = {parameter.name for parameter in parameters}
        if inspect.Parameter.VAR_KEYWORD in kinds:
            names = self.all.keys() - {head.name}
        return function(first, **{name: value for name, value in self.all.items() if name in names})

    def pick(self, source: KeySource, what: str) -> object:
        """The value that a key source makes of them."""
        if callable(source):
            return self.call(source, what)
        names = (source,) if isinstance(source, str) else source
        return tuple(self.named(names, what).values())

    def named(self, names: Sequence[str], what: str = "the payload") -> dict[str, Any]:
        """The ones of these names, all of which have to be there."""
        missing = [name for name in names if name not in self.all]
        if missing:
            raise _no_such_argument(missing[0], what)
        return {name: self.all[name] for name in names}


def _no_such_argument(name: str, what: str) -> KeyRefused:
    return KeyRefused(
        f"There is no argument {name!r} for {what}.",
        remedy="Name the function's own parameters, as they are now.",
    )


def _is_default(parameter: inspect.Parameter, value: Any) -> bool:
    default = parameter.default
    return default is not inspect.Parameter.empty and type(default) is type(value) and bool(default == value)


def declare(
    job_type: str,
    *,
    effect: Effect | None,
    payload: Sequence[str] | None,
    lease: Duration,
    longest_run: Duration | None,
    not_done: Sequence[type[BaseException]],
    label: bool,
    secrets: Sequence[Secret | None],
    **plain: Any,
) -> Declaration:
    """A checked declaration; durations as people write them. Without ``longest_run`` a run may take the whole lease.

    ``plain`` are fields of `Declaration` as they are. The first of ``secrets`` makes new keys.
    """
    held = to_timedelta(lease, name=f"lease of {job_type}")
    longest = to_timedelta(held if longest_run is None else longest_run, name=f"longest_run of {job_type}")
    return Declaration(
        job_type=job_type,
        effect=Hold() if effect is None else effect,
        payload=None if payload is None else tuple(payload),
        lease=held,
        longest_run=longest,
        not_done=(NotDone, *not_done),
        label=label and secrets[0] is None,
        secret=secrets[0],
        older_secrets=tuple(secrets[1:]),
        **plain,
    )


def to_message(adapter: str, **fields: Any) -> str:
    """How to send a message again, as the record keeps it."""
    return json.dumps({"adapter": adapter} | fields)
