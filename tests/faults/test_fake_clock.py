from datetime import UTC, datetime, timedelta

import anyio
import pytest

from tests.equipment.fake_clock import FakeClock

pytestmark = pytest.mark.anyio

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


async def test_sleepers_wake_in_the_order_of_their_hours_and_see_the_time_of_it() -> None:
    clock, woken = FakeClock(NOON), list[tuple[str, datetime]]()

    async def sleep(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.now()))

    async with anyio.create_task_group() as sleepers:
        for name, seconds in (("late", 30), ("early", 10), ("at once", 0)):
            sleepers.start_soon(sleep, name, seconds)
        await clock.advance(60)
    expected = [("at once", 0), ("early", 10), ("late", 30)]
    assert woken == [(name, NOON + timedelta(seconds=seconds)) for name, seconds in expected]
    assert clock.now() == NOON + timedelta(seconds=60)


async def test_who_sleeps_again_and_again_wakes_each_time() -> None:
    clock, rounds = FakeClock(NOON), list[datetime]()

    async def tick() -> None:
        while len(rounds) < 3:
            await clock.sleep(10)
            rounds.append(clock.now())

    async with anyio.create_task_group() as sleepers:
        sleepers.start_soon(tick)
        await clock.advance(30)
    assert rounds == [NOON + timedelta(seconds=seconds) for seconds in (10, 20, 30)]


async def test_who_sleeps_while_the_machine_is_suspended_sleeps_as_long_after() -> None:
    clock, woken = FakeClock(NOON), list[datetime]()

    async def sleep() -> None:
        await clock.sleep(10)
        woken.append(clock.now())

    async with anyio.create_task_group() as sleepers:
        sleepers.start_soon(sleep)
        await clock.advance(4)
        clock.suspend(3600)
        await clock.advance(5)
        assert woken == []
        await clock.advance(1)
    assert woken == [NOON + timedelta(seconds=3610)]
