"""`Once`: the guard over one database."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Concatenate, Final, Literal, ParamSpec, TypeVar, overload

from semel.core.durations import Duration, describe, to_timedelta
from semel.core.effects import Effect
from semel.core.keys import Secret
from semel.core.operations import Limits
from semel.errors import ConfigurationError
from semel.guard.claiming import AsyncClaim, Claim
from semel.guard.declaration import Acting, Declaration, KeySource, Scope, declare
from semel.guard.guarded import Guarded, Guarding
from semel.guard.places import Place

_KEPT: Final = timedelta(days=90)
P = ParamSpec("P")
R = TypeVar("R")


_VARIABLE: Final = "SEMEL_DATABASE_URL"


def _target_told() -> str:
    """What the environment says. Never the embedded server: records that vanish with a folder guard nothing."""
    told = os.environ.get(_VARIABLE, "").strip()
    if not told:
        raise ConfigurationError(
            f"Once() was given no database, and {_VARIABLE} is not set.",
            holds="Nothing was claimed and nothing done.",
            remedy=f"Set {_VARIABLE}, or say Once(…); for development: export {_VARIABLE}=$(semel db url)",
        )
    return told


class Once:
    """Guards functions by records in one database.

    ``target`` is a DSN, a SQLAlchemy engine or session, a pool, a Django alias, a SQLite file's path or a `semel.App`;
    without one the DSN is ``SEMEL_DATABASE_URL``.
    Outside effects are claimed on a small pool of the guard's own, committed by themselves. ``secret`` makes keys HMACs,
    for keys that hold personal data: then no label is stored; ``older_secrets`` still count for one retention after a
    rotation (None: the time without one).
    """

    def __init__(
        self,
        target: object = None,
        *,
        schema: str = "semel",
        scope: Scope = "",
        secret: Secret | None = None,
        older_secrets: Sequence[Secret | None] = (),
        labels: bool = True,
        keep_messages: bool = True,
    ) -> None:
        self.place = Place(_target_told() if target is None else target, schema)
        self._scope = scope
        self._labels = labels
        self._declare = partial(declare, secrets=(secret, *older_secrets), keep_message=keep_messages)

    @overload
    def operation(
        self,
        job_type: str,
        *,
        key: KeySource,
        effect: Effect | None = None,
        payload: Sequence[str] | None = None,
        acting: Acting = "from_start",
        lease: Duration = "60 s",
        longest_run: Duration | None = None,
        extend: bool = False,
        scope: Scope | None = None,
        not_done: Sequence[type[BaseException]] = (),
        max_unsure: int = 3,
        max_takeovers: int = 5,
        dated: KeySource | None = None,
        keep: Duration | None = None,
        label: bool = True,
        store_result: bool = True,
        with_operation: Literal[True] = True,
    ) -> Callable[[Callable[Concatenate[Any, P], R]], Guarded[P, R]]: ...
    @overload
    def operation(
        self,
        job_type: str,
        *,
        key: KeySource,
        effect: Effect | None = None,
        payload: Sequence[str] | None = None,
        acting: Acting = "from_start",
        lease: Duration = "60 s",
        longest_run: Duration | None = None,
        extend: bool = False,
        scope: Scope | None = None,
        not_done: Sequence[type[BaseException]] = (),
        max_unsure: int = 3,
        max_takeovers: int = 5,
        dated: KeySource | None = None,
        keep: Duration | None = None,
        label: bool = True,
        store_result: bool = True,
        with_operation: Literal[False],
    ) -> Callable[[Callable[P, R]], Guarded[P, R]]: ...
    def operation(
        self,
        job_type: str,
        *,
        key: KeySource,
        effect: Effect | None = None,
        payload: Sequence[str] | None = None,
        acting: Acting = "from_start",
        lease: Duration = "60 s",
        longest_run: Duration | None = None,
        extend: bool = False,
        scope: Scope | None = None,
        not_done: Sequence[type[BaseException]] = (),
        max_unsure: int = 3,
        max_takeovers: int = 5,
        dated: KeySource | None = None,
        keep: Duration | None = None,
        label: bool = True,
        store_result: bool = True,
        with_operation: bool = True,
    ) -> Any:
        """Guard a function: one business operation per key, whose effect happens as the declared ``effect`` promises.

        ``job_type`` is stable: it is part of the record. ``key`` names the arguments that make the key, or computes it from
        them. ``payload`` names those that must not differ under one key (default: all that differ from their defaults).
        With ``acting="explicit"`` the function marks its point of no return by ``op.acting()``, and a failure before it
        releases the claim. ``lease`` must cover ``longest_run``, unless ``extend=True`` keeps it. ``not_done`` lists
        exceptions after which the effect certainly did not happen. ``dated`` names the argument that is the operation's own
        date: one older than ``keep`` (how long records are kept) that has no record is answered `TooOld`.
        ``with_operation=False`` is for a function that takes no operation; it counts as acting from its start.
        """
        declaration = self._declare(
            job_type,
            key=key,
            effect=effect,
            payload=payload,
            acting=acting,
            lease=lease,
            longest_run=longest_run,
            extend=extend,
            scope=self._scope if scope is None else scope,
            not_done=not_done,
            limits=Limits(max_unsure=max_unsure, max_takeovers=max_takeovers),
            label=label and self._labels,
            store_result=store_result,
            dated=dated,
            keep=self._kept(job_type, keep),
        )
        return Guarding(declaration, self.place, with_operation)

    def _kept(self, job_type: str, keep: Duration | None) -> timedelta:
        """How long records are kept: as the application deletes them, where it is one; never longer than that."""
        settings = getattr(self.place.target, "settings", None)
        deleted_after: timedelta = getattr(settings, "keep_operations", None) or _KEPT
        if keep is None:
            return deleted_after
        wanted = to_timedelta(keep, name=f"keep of {job_type}")
        if settings is not None and wanted > deleted_after:
            raise ConfigurationError(
                f"keep of {job_type} is {describe(wanted)}, and the application deletes records after "
                f"{describe(deleted_after)}.",
                remedy="Raise keep_operations, or lower keep=.",
            )
        return wanted

    def claim(self, job_type: str, *key: Any, effect: Effect | None = None, **options: Any) -> Claim:
        """One delivery as a block: ``with once.claim("charge-order", order_id, effect=…) as op:``.

        Options are those of `operation`, less ``payload``. In a repeat ``op.is_repeat`` is set, and ``op.result`` is what was
        stored. Raises the other answers on entering.
        """
        return Claim(self._declare_block(job_type, key, effect, options), self.place)

    def aclaim(self, job_type: str, *key: Any, effect: Effect | None = None, **options: Any) -> AsyncClaim:
        """`claim`, as ``async with``."""
        return AsyncClaim(self._declare_block(job_type, key, effect, options), self.place)

    def _declare_block(
        self, job_type: str, key: tuple[Any, ...], effect: Effect | None, options: dict[str, Any]
    ) -> Declaration:
        guarding: Any = self.operation(
            job_type, key=lambda: key, effect=effect, payload=(), with_operation=False, **options
        )
        declaration: Declaration = guarding.declaration
        return declaration

    def close(self) -> None:
        """Close the guard's own connections."""
        self.place.close()

    async def aclose(self) -> None:
        """Close the guard's own connections of this event loop."""
        await self.place.aclose()
