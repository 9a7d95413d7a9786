"""Run the commands of the gallery on small cases, and write their pages and pictures into docs/gallery/.

`make gallery` calls this; name pages to write these alone. The commands are those of docs/gallery.md, and serve, whose
picture is in its tutorial. The tables are made up, except for the digits of scikit-learn. A picture is the top of its
page, in Chromium.
"""

import io
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from playwright.sync_api import sync_playwright
from safetensors.torch import save_file
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from torch import nn

DOCS = Path(__file__).parent
GALLERY = DOCS / "gallery"
COMMANDS = {
    words[1]: words[1:]
    for words in map(shlex.split, re.findall(r"`(tacit [^`]+)`$", (DOCS / "gallery.md").read_text(), re.MULTILINE))
}
PAGES = {"bound": "bound.html", "learn": "bought/publish/report.html", "audit": "audit.html", "plan": "plan.html"}
WIDTH, HEIGHT, SCALE = 980, 1180, 0.75

MODEL = """
from torch import nn

def features():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(), nn.Flatten(),
        nn.Linear(144, 16),
    )

def head():
    return nn.Sequential(nn.ReLU(), nn.Linear(16, 10))
"""


def digits(folder):
    """A small convolutional network, and the digits it is used on."""
    (folder / "model.py").write_text(MODEL)
    made = {}
    exec(MODEL, made)  # noqa: S102 — the text above
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images, labels = (images[order] / 16).reshape(-1, 1, 8, 8).astype(np.float32), labels[order]
    np.save(folder / "images.npy", images[:400])
    np.save(folder / "labels.npy", labels[:400])
    np.save(folder / "public.npy", images[400:])
    torch.manual_seed(0)
    features, head = made["features"](), made["head"]()
    known, classes = torch.tensor(images[400:]), torch.tensor(labels[400:])
    optimiser = torch.optim.Adam([*features.parameters(), *head.parameters()], lr=2e-3)
    for _ in range(20):
        for rows in torch.randperm(len(known)).split(64):
            loss = nn.functional.cross_entropy(head(features(known[rows])), classes[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    save_file(features.state_dict(), folder / "features.safetensors")
    save_file(head.state_dict(), folder / "head.safetensors")
    size = float(features(known).detach().square().mean().sqrt())
    sys.stdout.write(f"the features' root mean square is {size:.3g}\n")


def customers(folder):
    """Who bought something, by age, income and membership."""
    rng = np.random.default_rng(0)
    age, income = rng.integers(18, 80, 12_000), rng.normal(40_000, 12_000, 12_000).round(-2)
    member = rng.choice(["none", "silver", "gold"], 12_000, p=[0.6, 0.3, 0.1])
    wish = (age - 45) / 9 + (income - 40_000) / 9_000 + 1.5 * (member == "gold") + rng.normal(0, 1, 12_000)
    bought = np.where(wish > 0.25, "yes", "no")
    parts = {"private": slice(8000), "public": slice(8000, 10_000), "test": slice(10_000, None)}
    for name, rows in parts.items():
        columns = {"age": age, "income": income, "member": member} | ({} if name == "public" else {"bought": bought})
        written(folder / f"{name}.csv", {title: column[rows] for title, column in columns.items()})


def scores(folder):
    """How sure a forest is of its records, which it knows by heart, and of others."""
    records, labels = make_classification(6000, 12, n_informative=6, flip_y=0.3, random_state=0)
    forest = RandomForestClassifier(100, random_state=0).fit(records[:3000], labels[:3000])
    sure = forest.predict_proba(records).max(axis=1).round(1)
    written(folder / "scores.csv", {"member": np.repeat(["yes", "no"], 3000), "confidence": sure})


def written(path, columns):
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")


def photographed(tab, picture):
    """Write the top of a page as a small picture."""
    seen = Image.open(io.BytesIO(tab.screenshot())).convert("RGB")
    tab.close()
    small = seen.resize((round(WIDTH * SCALE), round(HEIGHT * SCALE)), Image.Resampling.LANCZOS)
    small.quantize(128).save(picture, optimize=True)


def served(tab, picture):
    """Write the page of the service after one question."""
    command = [sys.executable, "-m", "tacit", "serve", "--demo", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as service:  # noqa: S603
        try:
            said = ""
            while "tacit_" not in said:
                said += service.stdout.readline()
            tab.goto(re.search(r"http://\S+", said)[0])
            tab.get_by_label("Token").fill(re.search(r"tacit_\S+", said)[0])
            tab.get_by_role("button", name="Log in").click()
            tab.get_by_role("button", name="Ask", exact=True).click()
            tab.get_by_role("heading", name="Answer", exact=True).wait_for()
            tab.evaluate("scrollTo(0, 0)")
            photographed(tab, picture)
        finally:
            service.terminate()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place, sync_playwright() as driver:
        folder = Path(place)
        for made in (digits, customers, scores):
            made(folder)
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in sys.argv[1:] or [*COMMANDS, "serve"]:
            tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
            if name == "serve":
                served(tab, GALLERY / "serve.png")
                continue
            command = [sys.executable, "-m", "tacit", *COMMANDS[name]]
            finished = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=False)  # noqa: S603
            if finished.returncode not in (0, 1):  # 1: the ceiling is not met
                sys.exit(finished.returncode)
            page = GALLERY / f"{name}.html"
            shutil.copyfile(folder / PAGES[name], page)
            tab.goto(page.as_uri())
            photographed(tab, GALLERY / f"{name}.png")
            sys.stdout.write(f"written: {page}\n")
