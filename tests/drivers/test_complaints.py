"""What agents were seen to say when they could not go on, and what it means."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from segue.drivers.complaints import Complaint, overheard, reset_at, understood
from segue.model.status import Failure

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
THINKING = (
    "API Error: 400 messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message"
    " cannot be modified. These blocks must remain as they were in the original response."
)
LATER = "This request would exceed your rate limit. Try again later."


@pytest.mark.parametrize(
    ("sentence", "failure"),
    [
        (f"Internal error: {THINKING}", Failure.TRANSCRIPT_CORRUPT),
        ("Internal error: Amp answered for thread T-1, not T-2.", Failure.OTHER_CONVERSATION),
        (
            "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after",
            Failure.TRANSCRIPT_CORRUPT,
        ),
        ("messages.0.content.1: unexpected `tool_use_id` found in `tool_result` blocks", Failure.TRANSCRIPT_CORRUPT),
        ("No tool output found for function call call_1.", Failure.TRANSCRIPT_CORRUPT),
        ("The session file is damaged at line 3.", Failure.TRANSCRIPT_CORRUPT),
        ("Failed to authenticate. API Error: 401 The API key is not valid.", Failure.LOGIN_REQUIRED),
        ("Internal error: The API key is not valid.", Failure.LOGIN_REQUIRED),
        ('status 401: {"error":{"code":401,"status":"UNAUTHENTICATED"}}', Failure.LOGIN_REQUIRED),
        ("Invalid API key · Please run /login", Failure.LOGIN_REQUIRED),
        ("unexpected status 401 Unauthorized: Incorrect API key provided", Failure.LOGIN_REQUIRED),
        (f"Internal error: API Error: Request rejected (429) · {LATER}", Failure.QUOTA),
        ("Internal error: You’ve hit your usage limit. Try again at 3:00 PM.", Failure.QUOTA),
        ("exceeded retry limit, last status: 429 Too Many Requests", Failure.QUOTA),
        ("Your credit balance is too low to access the API.", Failure.QUOTA),
        ('{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}', Failure.QUOTA),
        ("API Error: 529 Overloaded. This is a server-side issue, usually temporary", Failure.OTHER),
        ("The disk is full.", Failure.OTHER),
    ],
)
def test_an_error_has_one_meaning(sentence: str, failure: Failure) -> None:
    assert understood(sentence, NOW).failure is failure


@pytest.mark.parametrize(
    "sentence",
    [
        "Internal error: Prompt is too long · the request is ~210000 tokens (limit 200000)",
        '{"error":{"message":"prompt is too long","code":"context_length_exceeded"}}',
    ],
)
def test_a_prompt_that_does_not_fit_says_that_the_window_is_full(sentence: str) -> None:
    assert understood(sentence, NOW).full


@pytest.mark.parametrize(
    ("message", "failure"),
    [
        (f"API Error: Request rejected (429) · {LATER}", Failure.QUOTA),
        ("You've hit your limit · resets 3pm (UTC)", Failure.QUOTA),
        ("You’ve hit your usage limit. Try again at 3:00 PM.\n\n", Failure.QUOTA),
        (
            "You've hit your usage limit. Upgrade to Pro (https://x), visit https://y or try again at 3:00 PM.",
            Failure.QUOTA,
        ),
        ("Claude AI usage limit reached|1794841200", Failure.QUOTA),
        ("exceeded retry limit, last status: 429 Too Many Requests\n\n", Failure.QUOTA),
        (THINKING, Failure.TRANSCRIPT_CORRUPT),
        (
            "Info: Request failed due to a transient API error. Retrying..."
            "Error: Authentication failed with provider at http://127.0.0.1/v1 (HTTP 401).\n  Check your key.",
            Failure.LOGIN_REQUIRED,
        ),
        ("Invalid API key · Please run /login", Failure.LOGIN_REQUIRED),
        (
            "Error: Failed to get response from the AI model; retried 5 times (total retry wait time: 51.61 seconds)"
            f" Last error: 429 {LATER}",
            Failure.QUOTA,
        ),
        ("Selected model is at capacity. Please try a different model.", Failure.OTHER),
    ],
)
def test_a_message_that_is_nothing_but_a_complaint_is_one(message: str, failure: Failure) -> None:
    complaint = overheard(message, NOW)
    assert complaint is not None and complaint.failure is failure


@pytest.mark.parametrize(
    "message",
    [
        "I added a retry for 429 Too Many Requests.",
        "The client now says: You've hit your limit · resets 3pm (UTC)",
        "Done. The rate limit is configurable.",
        "API Error: handling is done in client.py now.",
        "You've hit your usage limit.\n\nThat is what the page will say.",
        f"API Error: 429 is what we handle. {'It is a long story. ' * 40}",
        "The rate limit reached 50 in the load test.",
        "",
    ],
)
def test_an_agent_may_talk_about_limits(message: str) -> None:
    assert overheard(message, NOW) is None


@pytest.mark.parametrize(
    ("sentence", "moment"),
    [
        ("You've hit your limit · resets 3pm (UTC)", NOW.replace(hour=15)),
        ("You've hit your limit · resets 3am (UTC)", NOW.replace(day=17, hour=3)),
        ("You've hit your weekly limit · resets Nov 19, 3:30pm (UTC)", NOW.replace(day=19, hour=15, minute=30)),
        ("usage limit. Try again at Jan 2nd, 2027 9:05 AM.", datetime(2027, 1, 2, 9, 5, tzinfo=UTC)),
        ("usage limit, resets Jan 2, 9am", datetime(2027, 1, 2, 9, tzinfo=UTC)),
        ("usage limit. Try again at 12:15 AM.", NOW.replace(day=17, hour=0, minute=15)),
        ("limit · resets 6pm (Europe/Berlin)", NOW.replace(hour=17)),
        ("Rate limit. Please try again in 20s.", NOW + timedelta(seconds=20)),
        ("Rate limit. Please try again in 1h 30m 5.5s", NOW + timedelta(hours=1, minutes=30, seconds=5.5)),
        ("Try again in 3 days 4 hours and 2 minutes.", NOW + timedelta(days=3, hours=4, minutes=2)),
        ("Try again in 250 milliseconds", NOW + timedelta(milliseconds=250)),
        ('429 {"retry-after": "30"}', NOW + timedelta(seconds=30)),
        ("quota, retry_after_seconds=12", NOW + timedelta(seconds=12)),
        ('quota {"retryDelay": "41s"}', NOW + timedelta(seconds=41)),
        ("quota resets at 2026-11-16T15:00:00Z", NOW.replace(hour=15)),
        ("quota resets at 2026-11-16 15:00", NOW.replace(hour=15)),
        ("Claude AI usage limit reached|1794841200", datetime.fromtimestamp(1794841200, UTC)),
        ('quota {"resets_at": 1794841200}', datetime.fromtimestamp(1794841200, UTC)),
        ("quota resets Feb 30, 3pm", None),
        ("quota resets 3pm (Middle/Earth)", None),
        ("Try again later.", None),
        ("You have 3 tries.", None),
    ],
)
def test_a_sentence_names_the_moment_when_it_is_over(sentence: str, moment: datetime | None) -> None:
    assert reset_at(sentence, NOW) == moment


def test_a_clock_without_a_zone_is_the_callers() -> None:
    here = timezone(timedelta(hours=-5))
    moment = reset_at("Try again at 3:00 PM.", NOW.astimezone(here))
    assert moment == datetime(2026, 11, 16, 15, tzinfo=here)
    assert moment.tzinfo is UTC


def test_only_a_quota_has_an_end() -> None:
    assert understood("API Error: 529 Overloaded, try again in 5s", NOW) == Complaint(failure=Failure.OTHER)
    assert understood("rate limit, try again in 5s", NOW).reset_at == NOW + timedelta(seconds=5)
