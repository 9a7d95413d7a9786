"""The published experiments in small: real digits where there are any, the paper's networks, kills and resumptions."""

import json
import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from published_data import write_digits
from torch import nn

from tacit import cli
from tacit.core.errors import InputError
from tacit.reconstruction import Gaussian, hcr_bounds, multipoint_bounds
from tacit.reproduce import collect, hcr, networks
from tacit.reproduce.data import Data, data_of
from tacit.reproduce.hcr import reproduce, steps
from tacit.reproduce.hcr_task import SETTINGS, Run, Task
from tacit.runtime import run_folder

KNOWN, TESTED = 320, 40


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """A data folder with the first few digits of MNIST."""
    return write_digits(tmp_path_factory.mktemp("data"), known=KNOWN, tested=TESTED)


def task(folder, out, **options):
    small = {"images": 3, "search_images": 2, "restarts": 1, "repetitions": 1, "chain_steps": 0, "device": "cpu"}
    return Task(net="mnist", data=folder, out=out, **{**small, **options})


@pytest.fixture(scope="module", autouse=True)
def fewer_draws():
    """For the linear decoder, as these tests are not about how good it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(hcr.CHAINED, "small", hcr.CHAINED["small"]._replace(draws=4_000, tries=500))
        yield


@pytest.fixture(scope="module")
def finished(digits, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "whole"
    said = []
    report = reproduce(task(digits, out), advance=said.append)
    return out, report, said


def test_a_small_run_reports_everything(finished, digits):
    out, report, said = finished
    row = report.detail["row"]
    assert (row["images"], row["search_images"], row["inputs"], row["features"]) == (3, 2, 784, 784)
    assert row["least_gain"] >= 1
    assert row["median"]["multi-point, float64"] > 10 * row["median"]["multi-point"] > 10 * row["median"]["1/200"] > 0
    assert row["median"]["1/200"] == pytest.approx(row["median"]["1/1000"], rel=0.5)
    assert (row["published_accuracy"], row["published_dithered"]) == (0.979, 0.951)
    assert [comparison.guarantee.adversary.kind for comparison in report.comparisons] == [
        *["unbiased"] * 4,
        *["prior"] * 2,
    ]
    errors = [
        next(text for text in comparison.guarantee.assumed(checked_by="caller") if "relative error of" in text)
        for comparison in report.comparisons
    ]
    assert ["a relative error of 1e-13" in text for text in errors] == [False] * 3 + [True] + [False] * 2
    assert row["feature_error"] >= 1e-6
    assert not report.contradicted
    assert len(said) == len(steps(task(digits, out)))
    assert json.loads((out / "results.json").read_text())["detail"]["row"]["sigma"] == row["sigma"]
    assert {path.name for path in out.glob("*.svg")} == {
        f"mnist-{name}.svg" for name in ("published", "lowest", "multi-point", "images")
    }
    assert all(path.stat().st_size < 300_000 for path in out.glob("*.svg"))
    assert "| MNIST | 3 (2) |" in (out / "results.md").read_text()
    said = " ".join(report.summary)
    assert "by the published search on the first 2 images, and at least" in said
    assert "features that the network computes in float32" in said
    assert "For every mode of the first 2 images, the multi-point bound is at least" in said
    assert "with a standard error of up to 28.9 points." in said


@pytest.mark.parametrize(("net", "images", "share"), [("resnet18", 5, 3 / 5), ("mnist", 2, 1)])
def test_networks_that_come_trained_are_tried_on_all_images(net, images, share, tmp_path):
    units = np.eye(3)[:, :, None, None]
    data = Data(
        images=units[:2],
        labels=np.array([0, 1]),
        known=units[[2, 0, 1]].astype(np.float32),
        known_labels=np.array([2, 2, 2]),
        mean=np.zeros(1),
        std=np.ones(1),
    )
    network = networks.Network(nn.Sequential(nn.Flatten(), nn.Linear(3, 3, bias=False)), nn.Identity())
    network.features[1].weight.data = torch.eye(3)
    run = Run(
        task=Task(net=net, out=tmp_path, device="cpu"),
        setting=SETTINGS[net],
        data=data,
        network=network,
        noise=Gaussian(1e-9),
        feature_error=1e-6,
    )
    assert hcr._accuracy(run) == {"images": images, "accuracy": share, "dithered": share}


def test_what_remains_is_bounded_by_chains_at_every_size(tmp_path, monkeypatch):
    """For a linear network and a Gaussian prior the truth is known."""
    draws = np.random.default_rng(0).normal(size=(300, 1, 2, 2)) * np.array([[2.0, 1.0], [1.0, 0.5]])
    weights = torch.tensor([[1.0, 0.5, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0]], dtype=torch.float64)
    network = networks.Network(nn.Sequential(nn.Flatten(), nn.Linear(4, 2, bias=False)), nn.Identity())
    network.features[1].weight.data = weights.float()
    data = Data(
        images=draws[:40],
        labels=np.zeros(40, dtype=np.int64),
        known=draws[40:].astype(np.float32),
        known_labels=np.zeros(260, dtype=np.int64),
        mean=np.zeros(1),
        std=np.ones(1),
    )

    def remaining(name, **options):
        run_folder.claim(tmp_path / name, {"of": "this test"}, resume=False)
        made = Task(net="mnist", out=tmp_path / name, device="cpu", **options)
        run = {"setting": SETTINGS["mnist"], "data": data, "network": network, "noise": Gaussian(0.7)}
        return hcr._remaining(Run(task=made, feature_error=1e-6, **run))

    small = remaining("small", chain_steps=20)
    covariance = torch.tensor(np.cov(data.known.reshape(260, 4).T))
    read = weights @ covariance @ weights.T + 0.49 * torch.eye(2)
    left = covariance - covariance @ weights.T @ torch.linalg.solve(read, weights @ covariance)
    truth = float(left.trace() / covariance.trace())
    assert 0.85 * truth < small.guarantee.value < truth  # fails above with probability 0.001
    assert small.guarantee.theorem[0] == "theory.posterior.posterior_mse"
    assert [0.8 * truth < attack.value < 1.2 * truth for attack in small.attacks] == [True, True]
    without = remaining("without", chain_steps=0)
    assert 0 < without.guarantee.value < small.guarantee.value
    assert len(without.attacks) == 1
    monkeypatch.setattr(hcr, "MOST_FITTED", 1)
    assert remaining("cpu", chain_steps=20) is None
    monkeypatch.setattr(hcr, "device_of", lambda _: torch.device("cuda"))  # is asked for its type alone
    large = remaining("large", chain_steps=20)
    assert "power per frequency" in large.guarantee.adversary.scope
    assert 0 < large.guarantee.value < min(attack.high for attack in large.attacks)


def test_sigma_is_the_root_mean_square_of_the_features(finished, digits):
    out, report, _ = finished
    network = networks.mnist()
    from safetensors.torch import load_file

    network.load_state_dict(load_file(out / "weights.safetensors"))
    images = torch.tensor(data_of("mnist", digits, images=3, seed=0).images, dtype=torch.float64)
    with torch.no_grad():
        features = network.double().features(images)
    assert report.detail["row"]["sigma"] == pytest.approx(float(features.square().mean().sqrt()), rel=1e-9)


class Killed(BaseException):
    pass


def killed_before_every_step(folder, out, killed, **options):
    """The report of a run that dies before each step, but those of the training, and is resumed."""

    def dying(beginning):
        if not beginning.startswith("training") and beginning not in killed:
            killed.append(beginning)
            raise Killed

    while True:
        try:
            return reproduce(task(folder, out, resume=True, **options), advance=dying)
        except Killed:
            continue


def test_the_published_search_can_be_left_out_and_made_up_for_and_kills_change_nothing(finished, digits, tmp_path):
    whole, report, said = finished
    out, killed = tmp_path / "run", []
    without = killed_before_every_step(digits, out, killed, search_images=0)
    assert set(without.detail["row"]["median"]) == {"multi-point", "multi-point, float64"}
    assert without.detail["row"]["search_images"] == 0
    assert "| not run |" in (out / "results.md").read_text()
    assert "published search" not in " ".join(without.summary)
    assert {path.name for path in out.glob("*.svg")} == {"mnist-multi-point.svg", "mnist-images.svg"}
    later = killed_before_every_step(digits, out, killed)
    assert sorted(killed) == sorted(said[SETTINGS["mnist"].epochs :])
    assert later.comparisons == report.comparisons
    assert {**later.detail, "folder": ""} == {**report.detail, "folder": ""}
    for path in whole.glob("*.npy"):
        assert path.read_bytes() == (out / path.name).read_bytes()


def never(*_, **__):
    raise AssertionError


def test_a_finished_run_repeats_nothing_and_belongs_to_its_task(finished, digits, tmp_path, monkeypatch):
    shutil.copytree(finished[0], tmp_path / "out")
    for name in ("_train", "_measured", "_accuracy", "hcr_bounds", "multipoint_bounds", "identification_bound"):
        monkeypatch.setattr(hcr, name, never)
    assert reproduce(task(digits, tmp_path / "out", resume=True)).comparisons == finished[1].comparisons
    with pytest.raises(InputError, match="must be new unless a run is resumed there"):
        reproduce(task(digits, tmp_path / "out"))
    with pytest.raises(InputError, match="differs in images, restarts, seed"):
        reproduce(task(digits, tmp_path / "out", resume=True, seed=1, restarts=3))


@pytest.fixture
def decoding(digits, tmp_path):
    """A run that has come to its decoder."""
    return Run(
        task=task(digits, tmp_path),
        setting=SETTINGS["mnist"],
        data=data_of("mnist", digits, images=None, seed=0),
        network=networks.mnist(),
        noise=Gaussian(0.1),
        feature_error=1e-6,
    )


def test_a_decoder_rebuilds_digits_that_it_never_saw(decoding, digits, tmp_path):
    run_folder.claim(tmp_path, {}, resume=True)
    found = hcr._rebuilding(decoding)
    assert found.images == TESTED
    assert 0 < found.attack.value < 1
    assert found.shown.shape == (3, 1, 28, 28)
    few = Run(**{**vars(decoding), "data": data_of("mnist", digits, images=20, seed=0)})
    assert hcr._rebuilding(few) is None


def test_a_decoder_of_very_many_features_looks_where_the_known_images_lie(decoding, monkeypatch):
    monkeypatch.setattr(hcr, "WIDEST_DECODED", 100)
    known = decoding.data.images[:12]
    part = hcr._decoded(decoding, known)
    clean, seen = (module.double()(torch.tensor(known)) for module in (decoding.features, part))
    assert seen.shape == (12, 12)
    whole = torch.cdist(clean, clean)
    assert torch.allclose(torch.cdist(seen, seen), whole, atol=1e-6)


def test_pages_of_several_runs_become_one(finished, tmp_path):
    out, _, _ = finished
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "more.md").write_text("# More of it\n\ntext\n")
    page = collect([out, out], tmp_path / "results").read_text()
    assert page.startswith("# Results\n\nOther results: [More of it](more.md).\n\n| network |")
    assert page.count("\n| MNIST |") == 2
    assert "![" in page
    assert (tmp_path / "results" / "mnist-images.svg").exists()
    with pytest.raises(InputError, match="must be that of a finished run"):
        collect([tmp_path], tmp_path / "results")


def unloaded(_):
    """Weights as they come."""


@pytest.mark.parametrize(
    ("make", "features"),
    [
        (networks.resnet18, 25_088),
        (networks.swin_t, 37_632),
        (networks.squeezenet, 86_528),
        (networks.resnet50, 100_352),
    ],
)
def test_the_networks_of_imagenet_release_what_the_paper_says(make, features):
    pytest.importorskip("torchvision", reason="needs torchvision: pip install 'tacit-privacy[vision]'")
    torch.manual_seed(0)
    network = make(unloaded).eval()
    image, change = torch.randn(2, 1, 3, 91, 91)
    released, moved = torch.func.jvp(network.features, (image,), (change,))
    assert released.shape == (1, features)
    assert network.head(released).shape == (1, 1000)
    # The search multiplies by the Jacobian and by its transpose: both must be there, and belong together.
    other = torch.randn(1, features)
    back = torch.func.vjp(network.features, image)[1](other)[0]
    forward, backward = float((moved * other).sum().detach()), float((change * back).sum().detach())
    assert forward == pytest.approx(backward, rel=0.02, abs=0.01 * float((moved.norm() * other.norm()).detach()))


def test_the_networks_of_the_small_sets_release_what_the_paper_says():
    assert networks.mnist().features(torch.zeros(1, 1, 28, 28)).shape == (1, 784)
    assert networks.cifar10().features(torch.zeros(1, 3, 32, 32)).shape == (1, 3072)
    assert networks.cifar10()(torch.zeros(1, 3, 32, 32)).shape == (1, 10)


def test_the_multipoint_bound_beats_the_search_on_a_small_image_of_squeezenet():
    pytest.importorskip("torchvision", reason="needs torchvision: pip install 'tacit-privacy[vision]'")
    torch.manual_seed(0)
    features = networks.squeezenet(unloaded).eval().features
    images = np.random.default_rng(0).normal(size=(1, 3, 2, 2))
    noise = Gaussian(0.1)
    published = hcr_bounds(features, images, noise, size=1 / 500, restarts=1, repetitions=1).std
    assert np.all(multipoint_bounds(features, images, noise).std >= published)
    assert published.min() > 0


def test_keras_sees_pixels_as_it_was_trained_to():
    colours = torch.tensor([0.2, 0.4, 0.6])[:, None, None]
    mean, std = (torch.tensor(values)[:, None, None] for values in (networks.IMAGENET_MEAN, networks.IMAGENET_STD))
    seen = networks._KerasPixels()(((colours - mean) / std)[None])[0, :, 0, 0]
    assert seen.tolist() == pytest.approx([255 * 0.6 - 103.939, 255 * 0.4 - 116.779, 255 * 0.2 - 123.68], abs=1e-3)


def test_resnet50_is_the_one_of_keras():
    pytest.importorskip("torchvision", reason="needs torchvision: pip install 'tacit-privacy[vision]'")
    network = networks.resnet50(unloaded)
    blocks = [part for part in network.modules() if type(part).__name__ == "Bottleneck"]
    assert [part.conv1.stride[0] for part in blocks if part.downsample is not None] == [1, 2, 2, 2]
    assert {part.conv2.stride for part in blocks} == {(1, 1)}
    assert {part.eps for part in network.modules() if isinstance(part, nn.BatchNorm2d)} == {1e-3}


def test_images_of_a_folder_become_91_pixels_wide_with_their_class(tmp_path):
    (tmp_path / "imagenet").mkdir()
    for name, size in (("0207_dog.png", (300, 200)), ("3_shark.webp", (100, 100)), ("999.jpg", (91, 120))):
        Image.new("RGB", size, (124, 116, 104)).save(tmp_path / "imagenet" / name)
    data = data_of("resnet18", tmp_path, images=None, seed=0)
    assert data.images.shape == (3, 3, 91, 91)
    assert data.labels.tolist() == [207, 3, 999]
    assert np.abs(data.images).max() < 0.05
    assert data_of("resnet18", tmp_path, images=2, seed=0).known.shape == (1, 3, 91, 91)
    assert isinstance(data, Data)


def test_cifar_images_lie_between_minus_one_and_one(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, size=(5, 32, 32, 3), dtype=np.uint8)
    labels = np.arange(5, dtype=np.uint8)
    np.savez(tmp_path / "cifar10.npz", x_train=pixels, y_train=labels, x_test=pixels, y_test=labels)
    data = data_of("cifar10", tmp_path, images=3, seed=0)
    assert data.images.shape == (3, 3, 32, 32)
    assert -1 <= data.images.min() < data.images.max() <= 1
    assert data.images[0, 1, 2, 3] == pytest.approx(pixels[data.labels[0], 2, 3, 1] / 127.5 - 1)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("mnist",), "TACIT_DATA"),
        (("mnist", "--data", "nowhere"), "--data must name a folder that exists"),
        (("mnist", "--data", "."), "the data must name a file that exists, got 'mnist/train-images-idx3-ubyte.gz'"),
        (("cifar10", "--data", "."), "must hold CIFAR-10"),
        (("cifar10", "--data", "evil"), "must hold CIFAR-10"),
        (("resnet18", "--data", "."), "must hold two images or more"),
        (("resnet18", "--data", "unnamed"), "must have a name that begins with the class index"),
        (("resnet18", "--data", "pictures"), "--weights must be a file of torchvision's weights for ResNet-18"),
        (("squeezenet", "--data", "pictures"), "squeezenet1_1.safetensors"),
        (("swin-t", "--data", "pictures", "--weights", "nowhere.pth"), "--weights must name a file that exists"),
        (("vgg",), "NET must be one of"),
        (("mnist", "--data", "digits", "--images", "41"), "--images must be at most 40"),
        (("mnist", "--data", "digits", "--images", "1"), "--images must be a whole number"),
        (("mnist", "--data", "digits", "--images", "4", "--search-images", "-1"), "--search-images must be"),
        (("mnist", "--data", "digits", "--images", "4", "--restarts", "0"), "--restarts must be"),
        (("mnist", "--data", "digits", "--images", "4", "--seed", "-1"), "--seed must be"),
        (("mnist", "--data", "digits", "--images", "4", "--device", "tpu"), "--device must be cpu, cuda or auto"),
        (("mnist", "--data", "digits", "--images", "4", "--weights", "x.pth"), "--weights must not be given"),
    ],
)
def test_what_is_missing_is_one_line(arguments, match, tmp_path, monkeypatch, capsys, request):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TACIT_DATA", raising=False)
    if "digits" in arguments:
        (tmp_path / "digits").symlink_to(request.getfixturevalue("digits"))
    for folder, names in (("pictures", ("1.png", "2.png")), ("unnamed", ("dog.png", "cat.png"))):
        (tmp_path / folder / "imagenet").mkdir(parents=True)
        for name in names:
            Image.new("RGB", (8, 8)).save(tmp_path / folder / "imagenet" / name)
    (tmp_path / "evil").mkdir()
    np.savez(tmp_path / "evil" / "cifar10.npz", x_train=np.array([{}], dtype=object))
    with pytest.raises(SystemExit) as end:
        cli.main(["reproduce", "hcr", *arguments, "--out", "out"])
    output = capsys.readouterr()
    assert (end.value.code, output.out) == (2, "")
    assert output.err.startswith("tacit: error: ")
    assert output.err.count("\n") == 1
    assert match in output.err
