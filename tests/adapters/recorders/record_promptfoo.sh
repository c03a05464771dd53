#!/bin/sh
# Record results of promptfoo with its provider that returns the prompt. Argument: a folder. Needs promptfoo on PATH.
set -e
out=$(cd "$1" && pwd)
cd "$(mktemp -d)"
printf '{{answer}}' > answer.txt
cat > promptfooconfig.yaml <<'END'
prompts: ["file://answer.txt"]
providers: [echo]
tests:
  - vars:
      question: When was the tower completed?
      context: The tower was completed in 1889.
      answer: It was completed in 1889.
    assert:
      - {type: contains, value: "1889"}
      - {type: equals, value: It was completed in 1889., metric: exact}
  - vars: {question: Who built it?, context: Rome has seven hills., answer: The king.}
    assert:
      - {type: icontains, value: Eiffel}
END
export PROMPTFOO_DISABLE_TELEMETRY=1 PROMPTFOO_DISABLE_UPDATE=1 PROMPTFOO_CONFIG_DIR=conf CI=1
# the exit status is 100 because one test fails, as it should
promptfoo eval --no-cache -o promptfoo.json -o promptfoo.jsonl || test $? = 100
cp promptfoo.json promptfoo.jsonl "$out"
