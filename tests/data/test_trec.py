"""TREC runs and qrels as samples."""

import gzip
from pathlib import Path

import pytest
from each_case import each_case

from merilo.api import evaluate
from merilo.data.sample import Sample
from merilo.data.trec import load_trec
from merilo.errors import DataError

RUN = "1 Q0 a 1 0.5 bm25\n1 Q0 b 2 0.9 bm25\n3 Q0 c 1 1 bm25\n"
QRELS = "1 0 b 1\n1 0 a 0\n1 0 z 2\n2 0 c 1\n"


def samples(folder: Path, run: str = RUN, qrels: str = QRELS) -> dict[str, Sample]:
    (folder / "bm25.trec").write_text(run, "utf-8")
    (folder / "judged.txt").write_text(qrels, "utf-8")
    found = list(load_trec(folder / "bm25.trec", folder / "judged.txt"))
    assert all(isinstance(each, Sample) for each in found)
    return {each.id: each for each in found if isinstance(each, Sample)}


def test_a_topic_is_a_sample(tmp_path: Path) -> None:
    """Documents come by their scores, whatever the rank column says; relevant ones from grade 1 on, best first."""
    found = samples(tmp_path)["1"]
    assert found.retrieved_context_ids == ("b", "a")
    assert found.reference_context_ids == ("z", "b")
    assert found.metadata == {"run": "bm25", "qrels": {"b": 1, "a": 0, "z": 2}}


def test_topics_of_either_file_are_there(tmp_path: Path) -> None:
    """One that the run leaves out retrieved nothing; one that nobody judged has no reference ids."""
    found = samples(tmp_path)
    assert list(found) == ["1", "2", "3"]
    assert (found["2"].retrieved_context_ids, found["2"].reference_context_ids) == ((), ("c",))
    assert (found["3"].retrieved_context_ids, found["3"].reference_context_ids) == (("c",), None)


def test_ties_are_broken_as_trec_eval_does(tmp_path: Path) -> None:
    """Of equal scores the greater id comes first, and scores that 32 bits cannot tell apart are equal."""
    run = "1 Q0 a 1 1.0 t\n1 Q0 c 2 1 t\n1 Q0 b 3 1.00000001 t\n1 Q0 d 4 0.5 t\n"
    assert samples(tmp_path, run)["1"].retrieved_context_ids == ("c", "b", "a", "d")


def test_topics_and_documents_match_in_any_unicode_form(tmp_path: Path) -> None:
    """A run in decomposed Unicode and qrels in composed Unicode name the same topic and document."""
    found = samples(tmp_path, "\u00fc Q0 e\u0301 1 1 t\n".replace("\u00fc", "u\u0308"), "\u00fc 0 \u00e9 1\n")
    assert list(found) == ["\u00fc"]
    assert found["\u00fc"].retrieved_context_ids == found["\u00fc"].reference_context_ids == ("\u00e9",)


def test_gzip_tabs_marks_and_blank_lines_are_read(tmp_path: Path) -> None:
    """White space of any kind divides fields; a byte order mark and empty lines mean nothing."""
    (tmp_path / "a.run.gz").write_bytes(gzip.compress(b"\xef\xbb\xbf1\tQ0\ta  1\t2e0 t\r\n\r\n"))
    (tmp_path / "q").write_text("1 0 a 1\n\n", "utf-8")
    dataset = load_trec(tmp_path / "a.run.gz", tmp_path / "q")
    assert [each.retrieved_context_ids for each in dataset if isinstance(each, Sample)] == [("a",)]
    assert dataset.name == "a"


@each_case(
    "qrels",
    [
        "query-id\tcorpus-id\tscore\n1\tb\t1\n1\ta\t0\n1\tz\t2\n2\tc\t1\n",
        "qid,iteration,docid,relevance\n1,0,b,1.0\n1,0,a,0\n1,0,z,2\n2,0,c,1\n",
    ],
)
def test_tables_are_qrels(tmp_path: Path, qrels: str) -> None:
    """A table with a header, as BEIR writes it, gives the samples of the same qrels in TREC format."""
    assert samples(tmp_path, qrels=qrels) == samples(tmp_path)


@each_case(
    ("run", "qrels", "message"),
    [
        ("1 Q0 a 1 0.5\n", QRELS, "bm25.trec, line 1: expected six fields: topic Q0 document rank score tag, got 5."),
        (RUN + "1 Q0 d 1 x t\n", QRELS, "bm25.trec, line 4: expected a finite number as the score, got 'x'."),
        (RUN + "1 Q0 d 1 nan t\n", QRELS, "line 4: expected a finite number as the score, got 'nan'."),
        (RUN + "1 Q0 d 1 1e99 t\n", QRELS, "line 4: expected a finite number as the score, got '1e99'."),
        (RUN + "1 Q0 a 1 2 t\n", QRELS, "line 4: expected each document once in a topic, got 'a' again in topic '1'."),
        (RUN, "1 0 a\n", "judged.txt, line 1: expected four fields: topic iteration document grade, got 3."),
        (RUN, "1 0 a 0.5\n", "judged.txt, line 1: expected a whole number as the grade, got '0.5'."),
        (RUN, QRELS + "1 0 b 1\n", "judged.txt, line 5: expected each document once in a topic, got 'b' again"),
        ("\n", QRELS, "bm25.trec: expected at least one line, got an empty file."),
        (RUN + "1 Q0 d 1 1_0 t\n", QRELS, "line 4: expected a finite number as the score, got '1_0'."),
        (RUN + "1 Q0 d 1 ٣ t\n", QRELS, "line 4: expected a finite number as the score, got '٣'."),
        (RUN + "1 Q0 d\0 1 1 t\n", QRELS, "bm25.trec, line 4: expected text, got a NUL character."),
        (RUN, "1 0 a 1_0\n", "judged.txt, line 1: expected a whole number as the grade, got '1_0'."),
        (RUN, "1 0 a ٣\n", "judged.txt, line 1: expected a whole number as the grade, got '٣'."),
    ],
)
def test_a_fault_is_told_by_file_and_line(tmp_path: Path, run: str, qrels: str, message: str) -> None:
    """Nothing is read past what is wrong: the error says where, what was expected, and what came."""
    with pytest.raises(DataError) as error:
        samples(tmp_path, run, qrels)
    assert message in str(error.value)


def test_a_trec_run_is_evaluated(tmp_path: Path) -> None:
    """The data set goes into a run as it is, and keeps its name; topics that nobody judged are undefined."""
    samples(tmp_path)
    dataset = load_trec(tmp_path / "bm25.trec", tmp_path / "judged.txt")
    found = evaluate(dataset, metrics=["nDCG@10", "recall@1"], out=tmp_path / "run", storage={"cache": False})
    assert found.manifest.data == "bm25"
    assert (found.metrics["recall@1"].mean, found.metrics["recall@1"].undefined) == (0.25, 1)
