"""Modes, models, servers of tools and images: what is chosen for a conversation, and what comes with it."""

import base64
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from literally import LiteralAgent, answer, update

from segue.drivers import Image, Launch, load
from segue.model import errors
from segue.model.agents import McpServer
from segue.model.events import TextDelta
from segue.model.ids import PromptId
from segue.testing.rehearsal.launch import Rehearsal, rest_of_turn, turn

pytestmark = pytest.mark.anyio

DRIVER = load("acp")
CHOICES = "modes: [ask, edits]\nmodels: [small, large]\n"
ONLY_LOAD = "capabilities: {resume: false}\n"
FILES = McpServer(name="files", command=("sh", "-c", "cat"), variables={"TOKEN": "Bearer ${FILES_TOKEN}", "PLAIN": "x"})


async def opened(launch: Launch, token: str | None = None) -> str:
    async with DRIVER.start(launch) if token is None else DRIVER.resume(launch, token) as agent:
        return agent.token


def chosen(rehearsal: Rehearsal) -> list[tuple[str, str]]:
    return [(entry.kind, entry["id"]) for entry in rehearsal.diary() if entry.kind in ("mode", "model")]


async def test_a_new_conversation_has_the_mode_and_the_model_that_were_chosen(rehearsal: Rehearsal) -> None:
    await opened(replace(rehearsal.launch(CHOICES), mode="edits", model="large"))
    assert chosen(rehearsal) == [("mode", "edits"), ("model", "large")]


async def test_what_an_agent_has_already_is_not_chosen_again(rehearsal: Rehearsal) -> None:
    token = await opened(replace(rehearsal.launch(CHOICES), mode="ask", model="Small"))
    assert chosen(rehearsal) == []
    for script in (CHOICES, ONLY_LOAD + CHOICES):
        await opened(replace(rehearsal.launch(script), mode="edits", model="large"), token)
    assert chosen(rehearsal) == [("mode", "edits"), ("model", "large")]


@pytest.mark.parametrize(
    ("script", "choice", "sentence"),
    [
        (CHOICES, {"mode": "yolo"}, "no mode 'yolo'. It has: ask, edits."),
        (CHOICES, {"model": "huge"}, "no model 'huge'. It has: small, large."),
        ("on_choose: {error: Not today.}\n" + CHOICES, {"mode": "edits"}, "did not take the mode 'edits': Not today."),
        ("on_choose: {error: Not today.}\n" + CHOICES, {"model": "large"}, "did not take the model 'large'"),
        (CHOICES, {"mcp_servers": (McpServer(name="web", transport="sse", url="http://x"),)}, "over sse, and 'web'"),
        (CHOICES, {"mcp_servers": (FILES,)}, "'files' needs the variable FILES_TOKEN"),
    ],
)
async def test_what_cannot_be_chosen_is_named_and_a_return_without_it_is_none(
    rehearsal: Rehearsal, script: str, choice: Mapping[str, Any], sentence: str
) -> None:
    with pytest.raises(errors.AgentError, match=sentence) as started:
        await opened(replace(rehearsal.launch(script), **choice))
    assert type(started.value) is errors.AgentError
    token = await opened(rehearsal.launch(script))
    with pytest.raises(errors.NotRestored, match=sentence):
        await opened(replace(rehearsal.launch(script), **choice), token)


async def test_an_agent_without_models_says_so(rehearsal: Rehearsal) -> None:
    with pytest.raises(errors.AgentError, match="lets nobody choose its model"):
        await opened(replace(rehearsal.launch("{}"), model="large"))


async def test_models_and_modes_in_their_other_forms_are_chosen_too(literal: LiteralAgent) -> None:
    group = {"group": "g", "name": "G", "options": [{"value": "plan", "name": "Plan"}]}
    launch = literal.launch(
        session_new=[
            answer(
                sessionId="s",
                models={"currentModelId": "a[low]", "availableModels": [{"modelId": "b[low]", "name": "B"}]},
                configOptions=[
                    {"id": "m", "category": "mode", "type": "select", "currentValue": "build", "options": [group]}
                ],
            )
        ],
        session_set_model=[answer()],
        session_set_config_option=[answer()],
    )
    heard = await requests(literal, replace(launch, mode="Plan", model="b[low]"))
    assert heard["session/set_config_option"] == {"sessionId": "s", "configId": "m", "value": "plan"}
    assert heard["session/set_model"] == {"sessionId": "s", "modelId": "b[low]"}


async def test_an_agent_that_comes_back_without_saying_what_it_has_is_told_all_the_same(literal: LiteralAgent) -> None:
    launch = literal.launch(
        initialize=[answer(protocolVersion=1, agentCapabilities={"loadSession": True})],
        session_load=[answer()],
        session_set_mode=[answer()],
    )
    heard = await requests(literal, replace(launch, mode="plan"), "t")
    assert heard["session/set_mode"] == {"sessionId": "t", "modeId": "plan"}


async def requests(literal: LiteralAgent, launch: Launch, token: str | None = None) -> dict[str, Any]:
    await opened(launch, token)
    return {message["method"]: message["params"] for message in literal.heard()}


async def test_servers_come_with_every_way_into_a_conversation(rehearsal: Rehearsal) -> None:
    launch = rehearsal.launch("{}")
    launch = replace(launch, mcp_servers=(FILES,), environment={**launch.environment, "FILES_TOKEN": "t"})
    token = await opened(launch)
    await opened(launch, token)
    await opened(replace(launch, command=rehearsal.launch(ONLY_LOAD).command), token)
    async with DRIVER.fork(launch, token):
        pass
    assert [(entry.kind, entry["servers"]) for entry in rehearsal.diary()] == [
        ("started", ["files"]),
        ("resumed", ["files"]),
        ("resumed", ["files"]),
        ("forked", ["files"]),
    ]


async def test_servers_are_written_as_the_protocol_wants_them(literal: LiteralAgent) -> None:
    takes_http = answer(protocolVersion=1, agentCapabilities={"mcpCapabilities": {"http": True}})
    launch = literal.launch(initialize=[takes_http])
    web = McpServer(name="web", transport="http", url="http://x/mcp", variables={"Authorization": "${FILES_TOKEN}"})
    environment = {"FILES_TOKEN": "t", "PATH": "/usr/bin:/bin"}
    heard = await requests(literal, replace(launch, mcp_servers=(FILES, web), environment=environment))
    program, address = heard["session/new"]["mcpServers"]
    assert program.pop("command").endswith("/sh")
    assert program == {
        "name": "files",
        "args": ["-c", "cat"],
        "env": [{"name": "TOKEN", "value": "Bearer t"}, {"name": "PLAIN", "value": "x"}],
    }
    headers = [{"name": "Authorization", "value": "t"}]
    assert address == {"type": "http", "name": "web", "url": "http://x/mcp", "headers": headers}


async def test_an_image_goes_with_the_prompt(literal: LiteralAgent, rehearsal: Rehearsal) -> None:
    picture = Image(media_type="image/png", data=b"\x89PNG")
    async with DRIVER.start(rehearsal.launch("{}")) as agent:
        assert agent.capabilities.images
        await agent.prompt(PromptId("prompt-1"), "What is this?", [picture])
        await rest_of_turn(agent)
    assert [entry["images"] for entry in rehearsal.diary("prompt")] == [1]


async def test_an_agent_that_takes_no_images_gets_none(rehearsal: Rehearsal) -> None:
    async with DRIVER.start(rehearsal.launch("capabilities: {images: false}")) as agent:
        with pytest.raises(errors.AgentError, match="rehearsal takes no images"):
            await agent.prompt(PromptId("prompt-1"), "What is this?", [Image(media_type="image/png", data=b"x")])
        assert (await turn(agent, "And without?"))[0] == TextDelta(role="message", text="Done.")


async def test_an_image_from_the_agent_is_named_and_not_kept(literal: LiteralAgent) -> None:
    data = base64.b64encode(b"12345").decode()
    image = update("agent_message_chunk", content={"type": "image", "data": data, "mimeType": "image/png"})
    async with DRIVER.start(literal.launch(session_prompt=[image, answer(stopReason="end_turn")])) as agent:
        assert (await turn(agent, "draw"))[0] == TextDelta(role="message", text="[image: image/png, 5 bytes]")
