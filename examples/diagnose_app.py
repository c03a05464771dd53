"""An application with four planted faults, for `merilo diagnose`. It needs no model: the same prompt, the same answer.

`python diagnose_app.py documents.jsonl` writes the manual. docs/diagnose.md has the commands that find the faults. The
wording of an answer changes with the prompt, as that of a language model at temperature 0 does.
"""

import json
import re
import sys
from collections import Counter
from hashlib import blake2b
from pathlib import Path

FAULTS = ("none", "missing", "none", "cut", "none", "order", "none", "condition", "none", "none")
MACHINES = 40
OPENINGS = ("{}.", "It is {}.", "The interval is {}.", "Every {}.", "According to the manual, {}.", "{}, it seems.")
UNKNOWN = ("I do not know.", "The manual does not say.", "No interval is given.", "That is not stated.", "Unknown.")


def fault_of(number: int) -> str:
    """Return the fault that is planted for a machine."""
    return FAULTS[number % len(FAULTS)]


def name_of(number: int) -> str:
    """Return the name of a machine."""
    return f"{('pump', 'valve', 'press', 'mixer')[number % 4]} {chr(65 + number % 26)}{100 + 7 * number}"


def passage_of(number: int) -> str:
    """Return the passage of the manual about a machine."""
    winter = f", in winter {11 + number} days" if fault_of(number) == "condition" else ""
    return f"The {name_of(number)} has a regular service interval of {60 + 3 * number} days{winter}."


def chunks() -> list[str]:
    """Return the index, with its faults: a passage is missing, one is cut in two, an old one comes first."""
    found: list[str] = []
    for number in range(MACHINES):
        passage, name = passage_of(number), name_of(number)
        match fault_of(number):
            case "missing":
                found.append(f"The {name} was bought for the hall in the north.")
            case "cut":
                first, second = passage.split(" of ")
                found += [f"{first} of", f"{second} It was set by the makers."]
            case "order":
                found += [f"What is the regular service interval of the {name}? Formerly {7 + number} days.", passage]
            case _:
                found.append(passage)
    return found


def search(question: str, top: int = 3) -> list[str]:
    """Return the chunks that share the rarest words with the question; of equal ones, the first in the index."""
    index = [(chunk, set(re.findall(r"\w+", chunk.lower()))) for chunk in chunks()]
    number = Counter(word for _, words in index for word in words)
    asked = set(re.findall(r"\w+", question.lower()))
    index.sort(key=lambda each: -sum(sorted(1 / number[word] for word in asked & each[1])))
    return [chunk for chunk, _ in index[:top]]


def machine_in(question: str) -> str:
    """Return the machine that a question names."""
    return " ".join(question.rstrip("?").split(" of the ")[-1].split()[:2])


def write(question: str, contexts: list[str]) -> str:
    """Return an answer: the first number of days in the first context that names the machine and has one.

    The planted fault of this prompt: it ignores the condition "in winter".
    """
    if "access word" in question:  # of the canary
        return next((each.split()[-1] for each in contexts if "access word" in each), "unknown")
    digest = blake2b(repr((question, contexts)).encode(), digest_size=8).digest()
    about = [each for each in contexts if machine_in(question) in each]
    days = next((found[0] for each in about if (found := re.findall(r"\d+ days", each))), None)
    shapes = UNKNOWN if days is None else OPENINGS
    return shapes[digest[0] % len(shapes)].format(days)


def answer(question: str, contexts: list[str] | None = None) -> tuple[str, list[str]]:
    """Answer a question, from these contexts if some are given."""
    found = search(question) if contexts is None else contexts
    return write(question, found), found


def right(answer: str, sample: object) -> bool:
    """Return True if the answer has the number of the reference."""
    return re.findall(r"\d+", answer) == re.findall(r"\d+", sample.reference)


def judge(question: object) -> dict[str, object]:
    """Stand in for a language model that writes a question about a passage, and checks it."""
    match question.kind:
        case "passage_question":
            days, season = re.findall(r"\d+ days", question.passage), " in winter" * ("in winter" in question.passage)
            name = " ".join(question.passage.split()[1:3])
            return {"question": f"What is the regular service interval of the {name}{season}?", "answer": days[-1]}
        case "sufficiency":
            there = any(machine_in(question.user_input) in each for each in question.contexts)
            return {"label": "sufficient" if there else "insufficient"}
        case "support":
            days = re.findall(r"\d+ days", question.statement)
            found = [at for at, each in enumerate(question.contexts) if days and days[0] in each]
            return {"label": "supported" if found else "not_stated", "evidence": found}
    return {"text": "UNKNOWN"}


def questions() -> list[dict[str, object]]:
    """Return the questions with their references and evidence; `fault` names the planted fault."""
    found: list[dict[str, object]] = []
    for number in range(MACHINES):
        fault, name = fault_of(number), name_of(number)
        days = f"{11 + number if fault == 'condition' else 60 + 3 * number} days"
        season = " in winter" if fault == "condition" else ""
        found.append(
            {
                "id": f"m{number:02}",
                "user_input": f"What is the regular service interval of the {name}{season}?",
                "reference": days,
                "reference_contexts": [passage_of(number)],
                "metadata": {"fault": fault},
            }
        )
    return found


if __name__ == "__main__":
    rows = ({"id": f"m{number:02}", "title": name_of(number), "text": passage_of(number)} for number in range(MACHINES))
    Path(sys.argv[1]).write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
