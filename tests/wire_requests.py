"""The requests and questions with which the tests of providers ask."""

from merilo.judging.kinds.contexts import Relevance, RelevanceVerdict
from merilo.judging.reply_parsing import schema_for
from merilo.providers.base import Message, Request

KEY = "key-for-tests-0123456789"
REQUEST = Request(
    messages=(Message("system", "You judge."), Message("user", "Judge this.")),
    schema=schema_for("noncommittal"),
    schema_name="noncommittal",
    max_tokens=100,
    temperature=0.0,
)
QUESTION = Relevance("Who?", ("One.", "Two."))
GOOD = RelevanceVerdict(1, evidence=(0,), reason="As the test wants it.")
