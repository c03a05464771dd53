"""One plan, run by the asyncio driver until it has an outcome."""

import asyncio

from merilo.engine.drivers import AsyncDriver
from merilo.engine.plan_run import PlanRun


async def run_plan(driver: AsyncDriver, plan_run: PlanRun) -> PlanRun:
    """Run one plan until it has an outcome; return it. Raises the error that ends the run."""
    ended = asyncio.Event()
    waiting = driver.begin(plan_run, lambda _: ended.set())
    driver.advance_ready()
    done = asyncio.ensure_future(ended.wait())
    try:
        await asyncio.wait({done, driver.ended}, return_when=asyncio.FIRST_COMPLETED)
        if not ended.is_set():
            driver.ended.result()
            raise asyncio.CancelledError  # a limit was reached before this plan was done
    finally:
        done.cancel()
        waiting.abandoned = True
        plan_run.close()
    return plan_run
