"""Stands in for openai's clients: what merilo reads of them, an address and a key."""

import os


class OpenAI:
    def __init__(self) -> None:
        self.base_url = os.environ["OPENAI_BASE_URL"]
        self.api_key = os.environ["OPENAI_API_KEY"]


class AsyncOpenAI(OpenAI):
    pass
