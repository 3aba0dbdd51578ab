import base64
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort.report._html import to_json, typed


@given(st.text())
def test_any_text_survives_and_none_can_end_a_script(text):
    out = to_json({"name": text})
    assert json.loads(out) == {"name": text}
    assert not set(out) & set("<>&\u2028\u2029")


@given(st.lists(st.integers(-(2**40), 2**40), max_size=20))
def test_whole_numbers_come_back_exactly(values):
    out = typed(np.array(values, dtype=np.int64))
    back = np.frombuffer(base64.b64decode(out["bdata"]), dtype="<" + out["dtype"])
    assert back.astype(np.int64).tolist() == values


def test_a_matrix_has_a_shape_and_gaps_stay_gaps():
    out = typed(np.array([[1.0, np.nan], [0.5, 2.0]]))
    assert out["shape"] == "2, 2"
    back = np.frombuffer(base64.b64decode(out["bdata"]), dtype="<f4")
    assert np.isnan(back[1])


def test_what_is_not_data_is_refused():
    assert json.loads(to_json([np.int64(3), np.array(["a"])])) == [3, ["a"]]
    with pytest.raises(TypeError, match="does not go into a page"):
        to_json({"x": object()})
    with pytest.raises(ValueError, match="JSON"):
        to_json(float("nan"))
