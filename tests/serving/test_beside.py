"""Figures of many pages are computed by another process."""

import io
import os
import pickle

import pytest

from recrawl.errors import ParameterError, RecrawlError, RowError
from recrawl.serve.crawls.beside import Beside, answer_calls


def fail(kind):
    raise ParameterError("not so") if kind == "plain" else RowError(3, "url", "not so")


def test_calls_are_answered_one_after_the_other():
    calls = io.BytesIO(
        b"".join(pickle.dumps(call) for call in [(max, (1, 2), {}), (fail, ("row",), {}), (int, (), {})])
    )
    answers = io.BytesIO()
    answer_calls(calls, answers)
    answers.seek(0)
    assert pickle.load(answers) == (True, 2)
    well, problem = pickle.load(answers)
    assert not well
    assert isinstance(problem, RecrawlError)
    assert "not so" in str(problem)
    assert pickle.load(answers) == (True, 0)


@pytest.mark.slow
def test_the_process_is_another_one_and_its_end_is_an_error():
    beside = Beside()
    assert beside.call(os.getpid) != os.getpid()
    with pytest.raises(ZeroDivisionError):
        beside.call(divmod, 1, 0)
    with pytest.raises(RecrawlError, match="has ended"):
        beside.call(os._exit, 1)
    assert beside.call(divmod, 7, 2) == (3, 1)  # another one is started
    beside.close()
    with pytest.raises(RecrawlError, match="has ended"):
        beside.call(os.getpid)
