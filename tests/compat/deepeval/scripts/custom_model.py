# Upstream page: https://deepeval.com/guides/guides-using-custom-llms
# Lines: 4.3
"""The user's own model class."""

import json
import os
import urllib.request

from deepeval.metrics import FaithfulnessMetric
from deepeval.models.base_model import DeepEvalBaseLLM
from deepeval.test_case import LLMTestCase


class OwnModel(DeepEvalBaseLLM):
    def __init__(self, model):
        self.model = model

    def load_model(self):
        return self.model

    def generate(self, prompt: str) -> str:
        body = {"model": self.load_model(), "messages": [{"role": "user", "content": prompt}]}
        request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode())
        with urllib.request.urlopen(request) as reply:
            return json.load(reply)["choices"][0]["message"]["content"]

    async def a_generate(self, prompt: str) -> str:
        return self.generate(prompt)

    def get_model_name(self):
        return "own model"


metric = FaithfulnessMetric(model=OwnModel("small"), async_mode=False)
test_case = LLMTestCase(
    input="When was the Doran lighthouse lit?",
    actual_output="The Doran lighthouse was lit in 1871. It is painted red. Many ships pass.",
    retrieval_context=["The lamp at Cape Doran first burned in 1871. The tower is white."],
)
SCORES = {"score": metric.measure(test_case)}
