"""The containers and models that people have: the same results from all, and one clear line for what is not taken."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from tacit.audit import attempts, audit, certify, membership
from tacit.core.errors import InputError
from tacit.learning import Columns, MomentClassifier, PrivateClassifier, Teachers
from tacit.reconstruction import (
    Dithered,
    Gallery,
    Gaussian,
    Mixture,
    calibrate,
    identification_bound,
    linear_decoder,
    multipoint_bounds,
    two_point_bounds,
)

ROWS = 600
rng = np.random.default_rng(0)
X = rng.normal(size=(ROWS, 4))
y = (X[:, 0] > 0).astype(np.int64)
member = np.arange(ROWS) % 2 == 1
seen = rng.integers(0, 3, ROWS)
words = np.array(["red", "green", "blue"])[seen]
NOISE = Gaussian(0.5)


def frames(array):
    """A matrix in every container."""
    columns = {name: array[:, place] for place, name in enumerate("abcd")}
    return {
        "list": array.tolist(),
        "pandas": pd.DataFrame(columns),
        "Polars": pl.DataFrame(columns),
        "Arrow": pa.table(columns),
        "torch": torch.tensor(array),
        "column-major": np.asfortranarray(array),
    }


def columns(values):
    """A column in every container."""
    return {
        "list": values.tolist(),
        "pandas": pd.Series(values),
        "Polars": pl.Series(values),
        "Arrow": pa.chunked_array([values[:10], values[10:]]),
        "torch": torch.tensor(values),
        "column-major": values,
    }


CONTAINERS = list(frames(X))


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))


@pytest.mark.usefixtures("quick_attacks")
@pytest.mark.parametrize("kind", CONTAINERS)
def test_certificates_of_columns(kind):
    secret, output, score = (columns(values)[kind] for values in (member, seen, X[:, 0]))
    assert certify(secret, output, failure_probability=0.05) == certify(member, seen, failure_probability=0.05)
    assert certify(secret, score, failure_probability=0.05, noise=0.1) == certify(
        member, X[:, 0], failure_probability=0.05, noise=0.1
    )
    assert (
        audit(secret, output, failure_probability=0.05).high
        == certify(member, seen, failure_probability=0.05).advantage
    )


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(words),
        pd.Series(words, dtype="category"),
        pd.Series(words, dtype=object),
        pl.Series(words),
        pl.Series(words).cast(pl.Categorical),
        pa.array(words.tolist()),
        pa.array(words.tolist()).dictionary_encode(),
        words.tolist(),
    ],
    ids=lambda column: f"{type(column).__module__.partition('.')[0]} {getattr(column, 'dtype', '')}",
)
def test_certificates_of_text(column):
    assert certify(member, column, failure_probability=0.05) == certify(member, words, failure_probability=0.05)


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"number": seen, "word": words}),
        pl.DataFrame({"number": seen, "word": words}),
        pa.table({"number": seen, "word": words.tolist()}),
    ],
    ids=["pandas", "Polars", "Arrow"],
)
def test_certificates_of_tables(table):
    both = {"number": seen, "word": words}
    found = certify(member, table, failure_probability=0.05)
    assert found == certify(member, both, failure_probability=0.05)
    attacked, expected = (attempts(member, one, certificate=found, learners=["histogram"]) for one in (table, both))
    assert attacked == expected
    student = Columns().fit(both)
    assert np.array_equal(Columns().fit(table).transform(table), student.transform(both))


def test_several_columns_of_a_tensor():
    matrix = np.column_stack([seen, y])
    assert certify(member, torch.tensor(matrix), failure_probability=0.05) == certify(
        member, matrix, failure_probability=0.05
    )


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, None] * 300, dtype="Int64"),
        pd.Series([True, None] * 300, dtype="boolean"),
        pl.Series([1, None] * 300),
        pa.array(["a", None] * 300),
        pa.array([1, None] * 300),
    ],
    ids=str,
)
def test_missing_entries_are_refused_in_every_container(column):
    with pytest.raises(InputError, match=r"missing|one type"):
        certify(member, column, failure_probability=0.05)


def test_what_a_record_becomes_depends_on_no_other():
    """NumPy would make floats of large whole numbers because another entry is missing."""
    large = 2**53 + 1
    for table in (pa.table({"n": [large, None]}), pl.DataFrame({"n": [large, None]})):
        whole = (
            type(table)({"n": [large, large]}) if isinstance(table, pl.DataFrame) else pa.table({"n": [large, large]})
        )
        rule = Columns().fit({"n": np.array(["a", str(large)])})  # as text
        assert np.array_equal(rule.transform(table)[0], rule.transform(whole)[0])
        assert rule.transform(table)[0].sum() == 1


def test_tables_that_are_none():
    with pytest.raises(InputError, match="must have different names"):
        certify(member, pa.table([seen, seen], names=["a", "a"]), failure_probability=0.05)
    with pytest.raises(InputError, match="collect it first"):
        certify(member, pl.LazyFrame({"a": seen}), failure_probability=0.05)
    with pytest.raises(InputError, match="a dict of columns or a data frame"):
        Columns().fit(X)


@pytest.mark.parametrize("kind", CONTAINERS)
def test_learners(kind):
    records, labels, public = frames(X)[kind], columns(y)[kind], frames(X[:100] + 0.5)[kind]
    key = b"k" * 32
    teachers = Teachers(LogisticRegression(), 5, key, classes=[0, 1])
    plain = Teachers(LogisticRegression(), 5, key, classes=[0, 1]).fit(X, y).counts(X[:100] + 0.5)
    assert np.array_equal(teachers.fit(records, labels).counts(public), plain)
    options = {"epsilon": 50.0, "n_teachers": 20, "mechanism": "gnmax", "queries": 20, "classes": [0, 1]}
    model = PrivateClassifier(LogisticRegression(), **options).fit(records, labels, public)
    assert np.array_equal(model.predict(public), model.predict(frames(X[:100] + 0.5)[kind]))
    assert np.array_equal(model.published().predict(public), model.published().predict(X[:100] + 0.5))
    sums = MomentClassifier(epsilon=8.0, classes=[0, 1]).fit(records, labels, public)
    assert sums.predict(public).shape == (100,)
    fitted = LogisticRegression().fit(X, y)
    table = membership(fitted, (records, labels), (records, labels))
    assert np.array_equal(table.scores["loss"], membership(fitted, (X, y), (X, y)).scores["loss"])


def bounds(network, some, two):
    """What is said of records that come in some container."""
    return [
        identification_bound(network, some, NOISE, draws=200, seed=0),
        Gallery(some).description,
        Mixture.fitted(some).description,
        multipoint_bounds(network, two, NOISE, basis="pixel").std.tolist(),
        two_point_bounds(network, two, NOISE, basis="pixel").rmse.tolist(),
        linear_decoder(network, some, some, NOISE),
    ]


@pytest.fixture(scope="module")
def of_arrays(network):
    return bounds(network, X[:60], X[:2])


@pytest.mark.parametrize("kind", CONTAINERS)
def test_bounds(kind, network, of_arrays):
    some, two = frames(X[:60])[kind], frames(X[:2])[kind]
    assert bounds(network, some, two) == of_arrays
    head, target = nn.Linear(3, 2), {"identification": 0.5}
    chosen = calibrate(network, head, some, columns(y[:60])[kind], target=target, draws=200)
    assert chosen.identification.value <= 0.5
    assert Dithered(network, NOISE, keep=2, public=some)(torch.rand(5, 4)).shape == (5, 2)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
def test_tensors_with_a_gradient_and_of_other_types(kind, network):
    inputs = torch.tensor(X[:20]).to(getattr(torch, kind)).requires_grad_()
    found = identification_bound(network, inputs, NOISE, draws=200)
    assert found == identification_bound(network, inputs.detach().double().numpy(), NOISE, draws=200)


def test_loaders(network):
    inputs, labels = torch.tensor(X), torch.tensor(y)
    pairs = DataLoader(TensorDataset(inputs, labels), batch_size=64)
    alone = DataLoader(inputs, batch_size=64)
    expected = identification_bound(network, X, NOISE, draws=200)
    assert identification_bound(network, pairs, NOISE, draws=200) == expected
    assert identification_bound(network, alone, NOISE, draws=200) == expected
    assert Gallery(alone).description == Gallery(X).description
    model = nn.Linear(4, 2)
    found, plain = (membership(model, one, one) for one in (pairs, (X, y)))
    assert np.array_equal(found.scores["loss"], plain.scores["loss"])
    with pytest.raises(InputError, match="shuffle=False"):
        identification_bound(network, DataLoader(inputs, batch_size=64, shuffle=True), NOISE)
    ragged = DataLoader([torch.zeros(3), torch.zeros(4)], batch_size=1)
    with pytest.raises(InputError, match="collate_fn"):
        identification_bound(network, ragged, NOISE)


IMAGES = torch.rand(6, 3, 32, 32, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("name", "options"), [("resnet10t", {}), ("vit_tiny_patch16_224", {"img_size": 32})], ids=["resnet", "vit"]
)
def test_timm(name, options):
    import timm  # here, since every process of pytest loads this file, which would take it seconds

    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, num_classes=0, **options)
    with pytest.raises(InputError, match=r"features\.eval\(\)"):
        identification_bound(model, IMAGES, NOISE, draws=200)
    assert 1 / 6 < identification_bound(model.eval(), IMAGES, NOISE, draws=200).value <= 1


class Pooled(nn.Module):
    """As the documentation shows it."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, images):
        return self.model(images).pooler_output


def test_hugging_face():
    from transformers import ViTConfig, ViTModel

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    model = ViTModel(ViTConfig(image_size=32, patch_size=16, **sizes)).eval()
    with pytest.raises(InputError, match="wrap a module that returns a tuple"):
        identification_bound(model, IMAGES, NOISE, draws=200)
    assert 1 / 6 < identification_bound(Pooled(model), IMAGES, NOISE, draws=200).value < 1
