"""The second act from its curtain to its figures."""

from __future__ import annotations

import time

from semel.cli.demonstration.charges.conductor import Conductor
from semel.cli.demonstration.charges.figures import ChargeFigures
from semel.cli.demonstration.charges.script import FATES, HOW_MANY, Method
from semel.cli.demonstration.charges.shop import Shop
from semel.cli.demonstration.charges.story import ChargeStory
from semel.cli.demonstration.example import SPEED
from semel.cli.demonstration.screen import Screen
from semel.cli.demonstration.stage import Stage
from semel.store.session import open_session


def play_charges(stage: Stage, shop: Shop, methods: tuple[Method, ...], screen: Screen) -> ChargeFigures:
    """Play it on a stage that is set; answers the figures."""
    began = time.monotonic()
    shop.create_tables()
    conductor = Conductor(shop.provider)
    with (
        shop.provider.Provider(fault=conductor) as provider,
        shop.jobs.app,
        open_session(stage.url, name="semel demo") as session,
        screen,
    ):
        story = ChargeStory(stage, shop, provider, conductor, screen, session, methods)
        counted = story.tell()
    notes = story.notes
    return ChargeFigures(
        seconds=round(time.monotonic() - began, 1),
        postgresql=stage.version,
        speed=SPEED,
        lease_seconds=shop.lease,
        orders_of_each_method=len(FATES),
        fates={fate.value: number for fate, number in HOW_MANY.items()},
        killed_processes=len(notes.killed),
        at_kill={fate.value: number for fate, number in notes.at_kill.items()},
        answers_lost=notes.answers_lost,
        worker_exit_codes=notes.exit_codes,
        methods=counted,
        decisions=notes.decisions,
    )
