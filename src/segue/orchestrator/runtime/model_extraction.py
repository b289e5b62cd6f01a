"""One question to a model, over pydantic-ai. Only `extraction` imports it, since the library is an extra."""

import logging
from typing import Any

import anyio
from pydantic_ai import Agent, ModelRetry, TextOutput, ToolOutput
from pydantic_ai.exceptions import (
    AgentRunError,
    ModelHTTPError,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
    UserError,
)
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class
from pydantic_ai.usage import RunUsage, UsageLimits

from segue.model.findings import Spending
from segue.orchestrator.runtime.extraction import Asked, Extraction
from segue.snapshot.extraction import INSTRUCTIONS, ExtractionResult, Unreadable, read_answer
from segue.snapshot.facts.text import flattened

log = logging.getLogger("segue")

REPAIRS = 1
LONGEST_REASON = 300


async def ask(conversation: str, settings: Extraction) -> Asked:
    """Ask a model within a time limit, with one repair; every call is counted, and errors are returned, not raised."""
    usage = RunUsage()
    try:
        with anyio.fail_after(settings.timeout):
            result = await _run(conversation, settings, usage)
        return Asked(result=result, spending=_spent(usage))
    except TimeoutError:
        problem = f"The model did not answer within {settings.timeout:g} seconds."
        return Asked(problem=problem, spending=_spent(usage, unanswered=1))
    except (UnexpectedModelBehavior, UsageLimitExceeded) as error:
        problem = f"The model's answer could not be used, even after one repair: {_reason(error)}"
        return Asked(problem=problem, spending=_spent(usage))
    except AgentRunError as error:
        problem = f"The model could not be asked: {_reason(error)}"
        return Asked(problem=problem, spending=_spent(usage, unanswered=1))
    except (UserError, ImportError, ValueError, TypeError) as error:
        return Asked(problem=f"The model could not be asked: {_reason(error)}", spending=_spent(usage))
    except Exception as error:  # a library's surprise must not cost the findings by rule
        log.error("the model that reads along could not be asked", exc_info=True)
        return Asked(problem=f"The model could not be asked: {_reason(error)}", spending=_spent(usage))


async def _run(conversation: str, settings: Extraction, usage: RunUsage) -> ExtractionResult:
    """Ask the model for decisions and errors, with one repair, and return its result; `usage` is counted even if it
    raises."""
    async with _model(settings) as model:
        agent = Agent(
            model,
            instructions=INSTRUCTIONS,
            # A model that calls no tools may write the same as text.
            output_type=[ToolOutput(ExtractionResult, name="report"), TextOutput(_read)],
            retries=REPAIRS,
            # A provider that is busy is not asked again behind everybody's back.
            model_settings={"max_retries": 0},
        )
        limits = UsageLimits(request_limit=1 + REPAIRS)
        return (await agent.run(conversation, usage=usage, usage_limits=limits)).output


def _model(settings: Extraction) -> Model:
    """Return the language model that the settings name."""

    def provider(name: str) -> Provider[Any]:
        kind: Any = infer_provider_class(name)
        return kind(base_url=settings.base_url)

    return infer_model(settings.model, provider if settings.base_url else infer_provider)


def _read(text: str) -> ExtractionResult:
    """Parse an answer given as text; raise ModelRetry if it is unreadable."""
    answer = read_answer(text)
    if isinstance(answer, Unreadable):
        raise ModelRetry(f"{answer.reason} Answer with the JSON object alone.")
    return answer


def _spent(usage: RunUsage, unanswered: int = 0) -> Spending:
    """Return the spending of the answered calls; `unanswered` calls are counted, their usage is unknown."""
    measured = usage.requests > usage.unmeasured_requests
    return Spending(
        calls=usage.requests + unanswered,
        input_tokens=usage.input_tokens if measured else None,
        output_tokens=usage.output_tokens if measured else None,
        cost_usd=float(usage.cost) if usage.cost is not None else None,
    )


def _reason(error: Exception) -> str:
    """Return the error's reason on one line, shortened."""
    match error:
        case ModelHTTPError(status_code=status, body={"message": str(message)}):
            reason = f"it answered with status {status}: {message}"
        case UnexpectedModelBehavior(__cause__=Exception() as cause):
            reason = str(cause)
        case _:
            reason = str(error)
    return flattened(reason)[:LONGEST_REASON]
