"""Results of batches as different programs write them."""

import json
from typing import Any

import pytest
from each_case import each_case

from merilo.errors import Permanent
from merilo.providers.batch_apis import NOT_RUN, LineResult, read_results

REPLY = {"choices": [{"message": {"content": "yes"}}]}
ERROR = {"message": "It failed."}


@each_case(
    ("line", "status", "body"),
    [
        ({"response": {"status_code": 200, "body": REPLY}, "error": None}, 200, REPLY),
        ({"response": {"status_code": 429, "body": {"error": ERROR}}, "error": None}, 429, {"error": ERROR}),
        ({"response": {"status_code": 400, "request_id": "r"}, "error": ERROR}, 400, {"error": ERROR}),
        ({"response": None, "error": ERROR}, 500, {"error": ERROR}),
        ({"response": {"status_code": 400, "body": None}, "error": "It failed."}, 400, {"error": ERROR}),  # as vLLM
        ({"response": {"status_code": 10**30, "body": REPLY}}, 200, REPLY),
        ({"response": REPLY}, 200, REPLY),  # without a status, as some pages on `vllm run-batch` show it
        ({"response": None, "error": {"code": "batch_expired", "message": "Too late."}}, NOT_RUN, None),
        ({"response": None, "error": {"code": "batch_cancelled", "message": "Stopped."}}, NOT_RUN, None),
    ],
)
def test_a_line_has_the_status_of_a_direct_request(line: dict[str, Any], status: int, body: object) -> None:
    """Errors have their own status, 500 without one; lines that were not run are told apart."""
    (found,) = read_results(json.dumps({"custom_id": "x", **line}) + "\n\n", what="the file")
    assert found == LineResult("x", status, "" if body is None else json.dumps(body))


def test_only_line_feeds_end_a_line() -> None:
    """A reply may hold other characters that end a line elsewhere, and a file may begin with a byte order mark."""
    reply = {"choices": [{"message": {"content": "a\u2028b\u0085c"}}]}
    line = json.dumps({"custom_id": "x", "response": {"status_code": 200, "body": reply}}, ensure_ascii=False)
    (found,) = read_results(f"\ufeff{line}\r\n", what="the file")
    assert json.loads(found.text) == reply


def test_another_file_is_refused() -> None:
    """The message names the file and the line."""
    with pytest.raises(Permanent, match="the file, line 2: expected a JSON object, got 'no JSON'"):
        read_results('{"custom_id": "x"}\nno JSON\n', what="the file")
