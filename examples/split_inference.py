# %% [markdown]
# # Split inference on images
#
# A phone runs the first layers of a network and sends what they compute to a server, which runs the rest. The server
# should read the digit, and be unable to tell *which* picture it was. How much noise does that take?
#
# Needs `pip install 'tacit-privacy[torch]'`. Takes about ten seconds.

# %%
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

import tacit

torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
images = torch.tensor(images / 16.0, dtype=torch.float32).reshape(-1, 1, 8, 8)
labels = torch.tensor(labels)
order = torch.randperm(len(images))
public, private = order[:1297], order[1297:]  # 500 private pictures: the ones that an adversary has to tell apart

# %% [markdown]
# ## A network that is trained with the noise
#
# The phone's part ends in eight numbers between −1 and 1. Few numbers, and noise during training, teach the network to
# put nothing into them but the digit. That is worth far more than adding noise to a network that never saw any.

# %%
phone = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 8), nn.Tanh()
)
server = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 10))
optimiser = torch.optim.Adam([*phone.parameters(), *server.parameters()], lr=0.003)
for _ in range(60):
    for rows in torch.randperm(len(public)).split(64):
        sent = phone(images[public[rows]])
        scores = server(sent + 0.7 * torch.randn_like(sent))
        loss = nn.functional.cross_entropy(scores, labels[public[rows]])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
phone, server = phone.eval(), server.eval()

# %% [markdown]
# ## The most noise that keeps the accuracy
#
# `calibrate` tries noises from weak to strong. Its proven limits hold for all of them together, so choosing afterwards
# is allowed. They are for features in float32, which the phone computes in.

# %%
chosen = tacit.reconstruction.calibrate(
    phone, server, images[private], labels[private], target={"accuracy": 0.85}, draws=5000
)
print(f"noise of standard deviation {chosen.noise.sigma:.3g}: the server reads {chosen.accuracy:.0%} of the digits")
print(chosen.identification)

# %% [markdown]
# ## Attack it
#
# Two adversaries on the server. One holds all 500 pictures and names the one whose features lie closest. The other
# trains a network on public pictures to rebuild what was sent. Beside each stands what *nobody* can exceed, from new
# draws for this noise alone, which is tighter than a limit that had to hold for all noises together.

# %%
noise = tacit.reconstruction.Gaussian(chosen.noise.sigma)
named = tacit.reconstruction.identification_bound(phone, images[private], noise, seed=1)
naming = tacit.Comparison(
    guarantee=named, attacks=[tacit.reconstruction.nearest_candidate(phone, images[private], noise, named, seed=2)]
)
prior = tacit.reconstruction.Gallery(images[private])
remains = tacit.reconstruction.bayes_bound(phone, prior, noise, seed=1).guarantee
decoder = tacit.reconstruction.trained_decoder(phone, images[public], noise, epochs=20, width=256)
rebuilding = tacit.Comparison(
    guarantee=remains,
    attacks=[tacit.reconstruction.evaluate_decoder(decoder, phone, images[public], prior, noise, tries=4000, seed=3)],
)
for comparison in (naming, rebuilding):
    print(comparison.guarantee)
    print("   ", comparison.nearest)
    print("    contradicted:", comparison.contradicted)

# %% [markdown]
# ## Deploy it
#
# `Dithered` is the module for the phone: fresh noise from the operating system at every call, and no low bits that
# betray the features under it.

# %%
deployed = tacit.reconstruction.Dithered(phone, noise)
with torch.no_grad():
    sent = deployed(images[private[:6]])
rebuilt = np.clip(np.asarray(decoder(sent)), 0, 1).reshape(-1, 8, 8)
print("sent for one picture:", [round(number, 2) for number in sent[0].tolist()])

# %% [markdown]
# ## Report

# %%
report = tacit.report.Report(
    command="split inference",
    title="What a server learns about a picture beside the digit",
    summary=(
        f"The phone sends 8 numbers with noise of standard deviation {chosen.noise.sigma:.2g}.",
        f"The server reads {chosen.accuracy:.0%} of the digits.",
        "Nobody names the picture among 500 more often, and nobody rebuilds it better, than stands below.",
    ),
    comparisons=(naming, rebuilding),
    figures=(
        tacit.report.Figure(
            title="Pictures, and what an attacker makes of one message",
            caption="The attacker trained a network on public pictures. It rebuilds what a digit of this kind looks "
            "like, and little of the picture itself.",
            alternative="Six digits, and six blurred ones.",
            svg=tacit.report.figures.image_rows(
                {"original": list(np.asarray(images[private[:6], 0])), "rebuilt by an attacker": list(rebuilt)}
            ),
        ),
        chosen.plot(),
    ),
    detail={"sigma": chosen.noise.sigma, "accuracy": chosen.accuracy},
)
Path("split_inference.html").write_text(report.to_html(), encoding="utf-8")
Path("split_inference.json").write_text(report.to_json(), encoding="utf-8")
report
